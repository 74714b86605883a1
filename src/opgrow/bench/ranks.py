"""How long a fit takes on the ranks that torchrun has started.

    torchrun --nproc-per-node=2 -m opgrow.bench.ranks 200000

prints one line: seconds in all, of the search and of tuning, and the processor time of rank 0.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch.distributed as dist

from .. import distributed
from ..distributed.launch import share_of
from ..estimators import HeMLGOPClassifier
from .one_layer import one_layer, phase_seconds

__all__ = ["main"]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fit HeMLGOP on the ranks that torchrun has started.")
    parser.add_argument("rows", type=int, help="rows of all ranks")
    parser.add_argument("--inputs", type=int, default=50)
    parser.add_argument("--batch", type=int, default=4096, help="rows of a batch on all ranks")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    return parser.parse_args()


def _rows(n_rows: int, n_inputs: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n_rows, n_inputs), dtype=np.float32)
    noise = 0.3 * rng.normal(size=n_rows)
    return x, (np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + noise > 0).astype(int)


def main() -> None:
    """Fit once on a few rows, so that everything is loaded, and then on all of them."""
    options = _arguments()
    with distributed.process_group(options.device):
        rank, size = dist.get_rank(), dist.get_world_size()
        x, y = (part[share_of(options.rows, rank, size)] for part in _rows(options.rows, options.inputs))
        model = HeMLGOPClassifier(
            **one_layer(40, 20, n_blocks=1),
            n_estimators=1,
            epochs=(4,),
            fine_tune_epochs=2,
            batch_size=options.batch,
            tune_perceptron=False,
            n_jobs=1,
            device=options.device,
        )
        distributed.fit(model, x[:2000], y[:2000])
        started, busy = time.perf_counter(), time.process_time()
        distributed.fit(model, x, y)
        seconds, busy = time.perf_counter() - started, time.process_time() - busy
    searching, tuning = phase_seconds(model.history_)
    if rank == 0:
        print(
            f"{options.rows:,} x {options.inputs}, batches of {options.batch}, ranks: {size}, "
            f"{options.device}; "
            f"{seconds:.1f} s: search {searching:.1f}, tuning {tuning:.1f}; {busy:.1f} s of processor time; "
            f"score {model.history_[-1].score.value:.9f}"
        )


if __name__ == "__main__":
    main()
