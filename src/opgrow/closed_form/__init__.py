"""Heads and layers that are solved for instead of trained: ridge regression, ADMM, linear memory."""
