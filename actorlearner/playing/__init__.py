"""Playing episodes with a policy: for evaluation, with a saved one, and for videos."""
