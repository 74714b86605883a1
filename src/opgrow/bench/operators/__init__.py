"""The study of operators: what each of them, and each part of HeMLGOP, adds to single networks.

A run is one variant on one split of one table, and one line of a results file, like a run of
`opgrow.bench.peers`; but all of them are ours and small, and run one after the other in one process.
"""
