"""The figures that the HeMLGOP paper publishes, as data, to be shown beside measured ones.

Source: D. T. Tran, S. Kiranyaz, M. Gabbouj, A. Iosifidis, "Heterogeneous Multilayer Generalized Operational
Perceptron", IEEE Transactions on Neural Networks and Learning Systems (arXiv:1804.05093), below "the paper".
Figures are kept as printed, misprints too; a ``note`` says what is wrong or doubtful about one. Units are
those of `opgrow.bench.runs.execute`: accuracy is a fraction, time is in seconds. An accuracy is the median of
`RUNS` runs on test rows, and size and FLOPs are those of the same run. Sizes and FLOPs are printed in
thousands, all but one with one decimal. Times are CPU times, of the small data sets alone; the paper has none
for GPUs. It did not run POP on the large data sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from .published_datasets import DATASETS

__all__ = [
    "METHODS",
    "QUANTITIES",
    "RESULTS",
    "RUNS",
    "TABLES",
    "Published",
    "Table",
    "check_names",
    "printed",
    "published",
]


@dataclass(frozen=True)
class Table:
    """A table of the paper: its number, by the order of the captions, and its label in the LaTeX source."""

    number: int
    label: str
    content: str
    note: str = ""


@dataclass(frozen=True)
class Published:
    """What the paper prints for one method on one data set; None where it has no number."""

    dataset: str
    method: str
    accuracy: float | None
    parameters: int | None
    seconds: float | None
    flops: int | None
    note: str = ""


#: Columns of the tables, in the paper's order.
METHODS = ("HeMLGOP", "HoMLGOP", "HeMLRN", "HoMLRN", "POP", "PMLP", "PLN", "BLS")
#: What is published of a method on a data set; each has a table of its own.
QUANTITIES = ("accuracy", "parameters", "seconds", "flops")
#: Runs of each method on each data set.
RUNS = 3

TABLES = {
    "operators": Table(
        1,
        "t2",
        "formulas of the operators",
        "ELU is printed as exp(x) for negative x, which jumps at 0, instead of exp(x) - 1; softplus is "
        "printed with exp(-x), where exp(x) is usual.",
    ),
    "datasets": Table(2, "t1", "samples, inputs and classes of the data sets"),
    "accuracy": Table(3, "t3", "test accuracy in percent"),
    "parameters": Table(4, "t6", "number of parameters"),
    "seconds": Table(
        5,
        "t4",
        "training seconds on a CPU, small data sets only",
        "The text puts HeMLGOP at about 300 times the speed of POP in most cases; by the table it is 330, "
        "369, 1,221, 845 and 1,268 times.",
    ),
    "flops": Table(
        6,
        "t5",
        "floating-point operations to predict one sample",
        "The text finds PLN and BLS above 200 times HeMLGOP's operations on YEAST, Caltech256 and CFW60k; by "
        "the table that holds on YEAST only.",
    ),
}

# Cells as printed, in the order of METHODS; a dash where the paper has one.
_PRINTED = {
    "accuracy": {
        "hollywood3d": "78.78 76.72 78.93 74.42 74.42 79.38 75.24 71.38",
        "olympic_sports": "87.06 87.08 87.50 83.92 87.82 87.45 87.23 85.88",
        "cmc": "60.37 59.36 62.63 58.90 59.75 59.95 58.93 55.23",
        "pima": "81.81 79.84 81.41 76.68 79.05 78.66 71.94 68.77",
        "yeast": "65.75 65.31 65.53 63.69 64.30 63.29 63.08 55.57",
        "scene15": "92.01 91.57 91.80 90.24 - 91.68 89.46 86.36",
        "mit_indoor": "69.77 69.14 69.23 67.99 - 69.18 64.38 56.23",
        "caltech101": "92.08 91.41 91.68 90.87 - 91.78 89.64 84.28",
        "caltech256": "79.21 78.61 79.09 77.65 - 79.26 75.58 70.60",
        "pubfig": "98.92 98.29 98.85 98.69 - 98.85 98.46 95.00",
        "cfw60k": "88.15 88.23 87.90 57.80 - 87.93 85.09 75.19",
    },
    "parameters": {
        "hollywood3d": "9.4k 7.0k 14.0k 18.7k 64.0k 23.4k 6.4k 58.8k",
        "olympic_sports": "7.1k 11.9k 23.8k 11.9k 64.1k 105.0k 6.8k 43.84k",
        "cmc": "0.9k 0.9k 3.0k 1.5k 43.6k 84.2k 4.9k 7.9k",
        "pima": "0.8k 4.5k 2.3k 15.8k 43.2k 43.2k 21.5k 7.4k",
        "yeast": "1.3k 1.3k 4.2k 10.3k 44.8k 44.8k 219.7k 18.8k",
        "scene15": "63.6k 110.9k 106.0k 106.0k - 187.2k 134.2k 252.3k",
        "mit_indoor": "69.9k 81.5k 116.5k 116.5k - 116.5k 122.3k 513.8k",
        "caltech101": "74.1k 98.8k 123.5k 123.5k - 204.7k 166.9k 653.0k",
        "caltech256": "92.9k 154.7k 154.7k 154.7k - 235.9k 1466.2k 2205.7k",
        "pubfig": "47.9k 47.9k 119.7k 119.7k - 160.3k 130.8k 591.1k",
        "cfw60k": "162.9k 183.2k 203.5k 203.5k - 203.5k 5472.6k 5092.0k",
    },
    "seconds": {
        "hollywood3d": "1002 717 469 447 330980 28 0.48 0.57",
        "olympic_sports": "699 1063 751 220 257926 29 0.18 0.38",
        "cmc": "274 300 477 114 334599 21 0.25 0.18",
        "pima": "217 551 364 441 183362 14 0.85 0.12",
        "yeast": "312 323 461 484 395465 33 3.05 0.33",
    },
    "flops": {
        "hollywood3d": "31.4k 25.1k 42.2k 66.8k 113.3k 46.4k 13.5k 157.1k",
        "olympic_sports": "31.1k 22.1k 62.1k 52.2k 206.7k 208.8k 14.6k 118.2k",
        "cmc": "2.5k 1.6k 9.0k 2.6k 248.2k 167.2k 10.0k 14.4k",
        "pima": "2.2k 4.8k 4.6k 54.8k 126.4k 85.6k 43.5k 13.4k",
        "yeast": "1.9k 2.8k 6.4k 18.2k 55.2k 88.8k 728.5k 382.3k",
        "scene15": "248.0k 356.8k 290.5k 413.0k - 373.2k 355.1k 853.7k",
        "mit_indoor": "152.0k 225.0k 372.6k 321.4k - 232.5k 289.8k 1563.1k",
        "caltech101": "187.0k 344.6k 338.8k 124.3k - 408.2k 417.3k 1883.1k",
        "caltech256": "175.3k 461.6k 380.4k 462.1k - 470.5k 4083.4k 5323.3k",
        "pubfig": "150.5k 130.0k 294.1k 324.6k - 319.8k 316.9k 1698.1k",
        "cfw60k": "250.2k 184.6k 204.9k 205.1k - 406.6k 15449.4k 11182.9k",
    },
}

_FEW_FLOPS = (
    "FLOPs exceed the number of parameters by less than 1 %, though every weight of the linear output layer "
    "takes two operations."
)
_FAR_BELOW = "Accuracy is 30 points below HeMLGOP, HoMLGOP and HeMLRN; the text does not comment on it."
_NO_TOPOLOGY = "Parameters fit no template: 100-200-16 has 23,816 and 100-200-200-16 has 64,416."
_NOTES = {
    ("olympic_sports", "POP"): _NO_TOPOLOGY,
    ("caltech101", "HoMLRN"): _FEW_FLOPS,
    ("cfw60k", "HoMLGOP"): _FEW_FLOPS,
    ("cfw60k", "HeMLRN"): _FEW_FLOPS,
    ("cfw60k", "HoMLRN"): f"{_FAR_BELOW} {_FEW_FLOPS}",
}


def _cell(quantity: str, dataset: str, method: str) -> str | None:
    row = _PRINTED[quantity].get(dataset)
    text = row.split()[METHODS.index(method)] if row else "-"
    return None if text == "-" else text


def _number(text: str | None) -> Decimal | None:
    if text is None:
        return None
    return Decimal(text.removesuffix("k")) * (1000 if text.endswith("k") else 1)


def _result(dataset: str, method: str) -> Published:
    percent, parameters, seconds, flops = (_number(_cell(q, dataset, method)) for q in QUANTITIES)
    return Published(
        dataset,
        method,
        None if percent is None else float(percent / 100),
        None if parameters is None else int(parameters),
        None if seconds is None else float(seconds),
        None if flops is None else int(flops),
        _NOTES.get((dataset, method), ""),
    )


#: Every method on every data set, by both names.
RESULTS = {(dataset, method): _result(dataset, method) for dataset in DATASETS for method in METHODS}


def check_names(dataset: str, method: str) -> None:
    """Refuse a data set or a method that the paper does not have."""
    if dataset not in DATASETS:
        raise ValueError(f"the paper has no data set {dataset!r}; it has: {', '.join(DATASETS)}")
    if method not in METHODS:
        raise ValueError(f"the paper has no method {method!r}; it has: {', '.join(METHODS)}")


def published(dataset: str, method: str) -> Published:
    """What the paper prints for a method on a data set.

    Parameters
    ----------
    dataset : a key of `DATASETS`
    method : one of `METHODS`

    Examples
    --------
    >>> figures = published("pima", "HeMLGOP")
    >>> figures.accuracy, figures.parameters, figures.seconds, figures.flops
    (0.8181, 800, 217.0, 2200)
    >>> published("scene15", "POP").accuracy is None
    True
    """
    check_names(dataset, method)
    return RESULTS[dataset, method]


def printed(dataset: str, method: str, quantity: str) -> str | None:
    """A figure with the digits of the paper, accuracy in percent; None where it has no number.

    Examples
    --------
    >>> printed("pima", "HeMLGOP", "accuracy"), printed("pima", "HeMLGOP", "parameters")
    ('81.81', '0.8k')
    """
    check_names(dataset, method)
    if quantity not in QUANTITIES:
        raise ValueError(f"the paper has no {quantity!r} of a method; it has: {', '.join(QUANTITIES)}")
    return _cell(quantity, dataset, method)
