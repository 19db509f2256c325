"""Data: what public sources say of models and devices, each entry with its source."""
