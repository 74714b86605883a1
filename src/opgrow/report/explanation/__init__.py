"""What a fitted network computes, and why it said what it said: curves, neurons, one row's way, formulas."""
