"""What holds a run back: from where the time of its roles goes to what to change."""
