"""The commands of the command line: a module for each kind, with what `--help` says and what it starts."""
