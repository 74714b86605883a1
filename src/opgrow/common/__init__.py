"""What every package may use: errors, atomic writing, threads, optional dependencies, the team of a fit."""
