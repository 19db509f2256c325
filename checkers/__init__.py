"""How an obligation is decided: readings of the terms, engines, evidence and reports."""
