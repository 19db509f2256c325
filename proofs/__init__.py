"""What is claimed: the obligations, their independent restatements and expected verdicts."""
