"""One look at a run: its roles, rates, replay, returns, and what holds it back."""
