"""`actorlearner status`: the roles, rates, replay, returns and bottleneck of a run."""
