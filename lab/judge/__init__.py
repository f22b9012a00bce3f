"""What came out of a run: verdicts and scenarios."""
