"""The study of peers: our presets beside what people use today, on tables of classes and of numbers.

One run is one model on one split of one table. It has a process of its own, on one core, and becomes one line
of a results file; the summary is computed from that file alone.
"""
