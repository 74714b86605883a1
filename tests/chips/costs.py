"""What operations of exported C take on chips, measured in simulators: writes ``cycle_costs.json``.

    python -m tests.chips.costs [--boards avr,m0,m3,m4,riscv] [--out src/opgrow/export/cycle_costs.json]

Networks of one block and of every operator are run, in sizes that tell their costs apart: least squares, with
no cost below zero. It prints how far the estimates are from what was measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

import opgrow
from opgrow import Block, Layer, Network, OperatorSet
from opgrow.export.cycles import operations
from opgrow.export.folding import without_norms
from opgrow.export.program import program_of
from opgrow.operators import registered
from tests.chips import boards
from tests.chips.boards import BOARDS, Board
from tests.chips.chips import inputs_of, write_rows
from tests.networks import randomized

OUT = Path("src/opgrow/export/cycle_costs.json")
#: Rows of each network; what floats take depends a little on the numbers.
ROWS = 8


def as_classifier(network: Network) -> opgrow.HeMLGOPClassifier:
    """An estimator around a network that was not fitted."""
    estimator = opgrow.HeMLGOPClassifier()
    estimator.network_, estimator.n_features_in_ = network, network.n_inputs
    estimator.classes_, estimator.loss_ = np.arange(network.n_outputs), "cross_entropy"
    return estimator


def networks() -> Iterator[tuple[Network, list[str]]]:
    """Networks, and the storages that they are measured in."""
    sums = [(nodal, "sum", "identity") for nodal in registered("nodal")]
    pools = [("harmonic", pool, "identity") for pool in registered("pool")]
    pools += [("multiplication", pool, "identity") for pool in registered("pool")]
    pools += [("quadratic", "correlation1", "identity")]
    activations = [("multiplication", "sum", name) for name in registered("activation")]
    shapes = [(4, 8, 2), (16, 12, 2)]
    for names in dict.fromkeys([*sums, *pools, *activations]):
        for shape in shapes:
            yield _network(names, *shape), ["float32"]
    for names in (("multiplication", "sum", "tanh"), ("harmonic", "sum", "identity")):
        for shape in ((24, 8, 2), (8, 24, 6)):
            yield _network(names, *shape), ["float32", "int16", "int8", "int4"]


def _network(names: tuple[str, str, str], n_inputs: int, n_neurons: int, n_outputs: int) -> Network:
    layer = Layer([Block(n_inputs, n_neurons, OperatorSet(*names))])
    network = Network(n_inputs, n_outputs, [layer], np.zeros(n_inputs), np.ones(n_inputs), input_bound=3.0)
    return randomized(network, constants=False)


def measured(board: Board, network: Network, weights: str, arithmetic: str) -> tuple[dict[str, int], float]:
    """The operations of a network, and the cycles of a row."""
    model = as_classifier(network)
    x = np.random.default_rng(0).normal(size=(ROWS, network.n_inputs)).astype(np.float32)
    program = program_of(model)
    if (arithmetic, weights) == ("float", "float32"):
        program = without_norms(program)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mode = {"weights": weights, "arithmetic": arithmetic}
        model.export_c(folder / "model.c", calibration=x, min_agreement=0, **mode)
        write_rows(folder / "rows.h", inputs_of(folder / "model.h", x), network.n_outputs, 0)
        sources = [boards.FIRMWARE / "main.c", folder / "model.c"]
        done = boards.run(board, boards.build(board, folder, sources, "firmware"))
    return operations(program, weights, arithmetic), board.unit[1] * done.ticks / ROWS


def costs_of(board: Board, arithmetic: str) -> dict[str, float]:
    """What each operation takes, in cycles."""
    cases = []
    for network, storages in networks():
        for weights in storages:
            if (arithmetic, weights) != ("integer", "float32") or "int16" not in storages:
                cases.append(measured(board, network, weights, arithmetic))
    names = sorted({name for counts, _ in cases for name in counts})
    counts = np.array([[case.get(name, 0) for name in names] for case, _ in cases], float)
    ticks = np.array([cycles for _, cycles in cases])
    # Shares of errors count: the rows are in units of what was measured.
    costs, _ = nnls(counts / ticks[:, None], np.ones(len(ticks)))
    off = np.abs(counts @ costs / ticks - 1)
    print(
        f"{board.name}, {arithmetic}: {len(cases)} networks, off by {off.mean():.1%}, at most {off.max():.1%}"
    )
    return {name: round(float(cost), 1) for name, cost in zip(names, costs, strict=True)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boards", default=",".join(BOARDS))
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    found = json.loads(given.out.read_text()) if given.out.exists() else {}
    for key in given.boards.split(","):
        lacks = boards.missing(BOARDS[key])
        if lacks is not None:
            print(lacks)
            continue
        found[key] = {arithmetic: costs_of(BOARDS[key], arithmetic) for arithmetic in ("float", "integer")}
        given.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
