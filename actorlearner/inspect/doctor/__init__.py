"""`actorlearner doctor`: whether this machine can train what a configuration says."""
