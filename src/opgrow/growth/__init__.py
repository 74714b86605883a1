"""Growing a network: the loop, the search, its events and checkpoints, and the methods."""
