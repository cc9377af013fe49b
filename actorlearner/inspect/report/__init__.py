"""A run as one page that opens anywhere: curves, rates, troubles, configuration, and its best policy."""
