"""Back-propagation: candidates, their schedule, and what trains them.

`train` decides (schedule, patience, best state, statistics, scores); a trainer computes: `native` by the
engine in C, `reference` by plain torch, `cuda.training` on a GPU, `shared` on the rows of several
ranks.
"""
