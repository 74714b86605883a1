"""Tables in, matrices out.

A file or a data frame becomes a `Table` (named columns of numbers or text), a `TableEncoder` turns the table
into the float32 matrix that the estimators take. pandas and pyarrow are optional: without them, CSV and NumPy
files still work.
"""

from opgrow.data.encoder import TableEncoder
from opgrow.data.files import read_table
from opgrow.data.table import Table
from opgrow.data.tasks import TaskGuess, guess_task, infer_task

__all__ = ["Table", "TableEncoder", "TaskGuess", "guess_task", "infer_task", "read_table"]
