"""The HeMLGOP paper's experiment: what its text leaves open, and its tables run as printed."""
