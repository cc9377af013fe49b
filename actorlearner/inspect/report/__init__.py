"""`actorlearner report`: a run as one HTML page that needs no other file."""
