"""One fit: the data it takes, and the path from there to the network."""
