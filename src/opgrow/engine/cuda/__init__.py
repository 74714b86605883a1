"""Kernels of a GPU, in Triton, and how they are launched."""
