"""Estimators that go on learning: what they hold of the rows seen, and further rows for them."""
