"""Tables in, matrices out.

A file or a data frame becomes a `Table` (named columns of numbers or text), a `TableEncoder` turns the table
into the float32 matrix that the estimators take. pandas and pyarrow are optional: without them, CSV and NumPy
files still work.
"""

from opgrow.rows.tables.encoder import TableEncoder
from opgrow.rows.tables.files import read_table
from opgrow.rows.tables.table import Table
from opgrow.rows.tables.tasks import TaskGuess, guess_task, infer_task

__all__ = ["Table", "TableEncoder", "TaskGuess", "guess_task", "infer_task", "read_table"]
