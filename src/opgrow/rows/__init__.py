"""Where the rows of a fit are, and how they are read: tables, memory, a device, chunks."""
