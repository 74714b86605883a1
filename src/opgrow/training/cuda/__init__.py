"""Growth on a GPU: rows that stay there or stream through it, search, training and closed-form fits.

Everything here runs on any torch device. On a CPU the kernels need Triton's interpreter, which is for tests.
"""
