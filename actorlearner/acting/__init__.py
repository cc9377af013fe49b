"""Acting in environments: the collect actor's loop, evaluation episodes, saved policies and videos."""
