"""``opgrow playground``: a growth that can be watched, stopped and gone on with in a browser."""
