"""Local mode: the four roles as processes of one machine, watched by one command."""
