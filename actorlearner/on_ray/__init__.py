"""A run on a Ray cluster: collect actors wherever Ray has room, all other roles beside the run directory."""
