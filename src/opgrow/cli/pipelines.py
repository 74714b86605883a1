"""Tables for pipelines of scikit-learn that were saved with their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from sklearn.pipeline import Pipeline

    from opgrow.rows.tables import Table, TableEncoder

__all__ = ["first_encoder", "pipeline_columns", "pipeline_inputs", "pipeline_matrix", "takes_windows"]


def first_encoder(pipeline: Pipeline) -> TableEncoder | None:
    """The table encoder that gets the columns of a pipeline first, and knows what they are."""
    from opgrow.rows.tables import TableEncoder

    first = pipeline.steps[0][1]
    if len(pipeline.steps) == 1:
        encoder: TableEncoder | None = first.table_
        return encoder
    return first if isinstance(first, TableEncoder) else None


def pipeline_columns(pipeline: Pipeline) -> list[str] | None:
    """Names of the columns that a pipeline takes; None if it was fitted on a matrix."""
    names = getattr(pipeline, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def pipeline_inputs(pipeline: Pipeline, table: Table) -> Any:
    """What the last step takes: a table that has gone through the steps before it."""
    if first_encoder(pipeline) is not None:
        made = _before(pipeline, table)
    elif pipeline_columns(pipeline) is not None:
        made = _before(pipeline, _frame(pipeline, table))
    else:
        made = _before(pipeline, pipeline_matrix(pipeline, table))
    return made.toarray() if hasattr(made, "toarray") else made


def pipeline_matrix(pipeline: Pipeline, table: Table) -> np.ndarray:
    """All columns of a table, for a pipeline that was fitted on a matrix."""
    import numpy as np

    _check_number(pipeline, table)
    return np.column_stack(list(table.columns.values()))


def takes_windows(pipeline: Pipeline) -> bool:
    """Whether a pipeline begins with the features of windows, as exported C does."""
    from opgrow.rows.signals import WindowFeatures

    return isinstance(pipeline.steps[0][1], WindowFeatures)


def _before(pipeline: Pipeline, x: Any) -> Any:
    """Rows that have gone through all steps but the last."""
    return pipeline[:-1].transform(x) if len(pipeline.steps) > 1 else x


def _frame(pipeline: Pipeline, table: Table) -> Any:
    """A data frame with the columns that the pipeline was fitted on."""
    import numpy as np

    from opgrow.common.extras import require

    pandas = require("pandas", "A pipeline that was fitted on a data frame", "tables")
    columns = table.select(pipeline_columns(pipeline) or []).columns
    return pandas.DataFrame(
        {
            name: pandas.Series([np.nan if one is None else one for one in values], dtype=values.dtype)
            for name, values in columns.items()
        }
    )


def _check_number(pipeline: Pipeline, table: Table) -> None:
    n = int(pipeline.n_features_in_)
    if len(table.names) != n:
        raise ValueError(f"The table has {len(table.names)} columns, and the pipeline takes {n}.")
