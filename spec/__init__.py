"""The language of models and claims, and its reference interpreter: imports nothing of ours."""
