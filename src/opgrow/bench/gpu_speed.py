"""Speed on a GPU: kernels against the card's arithmetic, searches, steps and whole fits.

The limit of a forward pass counts instructions. A multiprocessor starts 128 single-precision instructions
a cycle, or 16 special ones (powers of 2, sines), which take a place among the 128 as well; loads,
addresses and loops are left out, so the limit is out of reach.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..engine import reference
from ..engine.cuda import pools as cuda
from ..estimators import HeMLGOPClassifier, POPClassifier, POPFastClassifier
from ..growth.cuda_engine import CudaEngine
from ..growth.search import SearchSettings, search
from ..network import Block, Layer, Linear
from ..operators import OperatorSet, library
from ..rows import datasets
from ..rows.device.rows import DeviceRows
from ..rows.problem import Problem
from ..training.candidates import Candidates, Shape
from ..training.cuda.model import Model
from ..training.cuda.steps import DeviceSteps
from ..training.reference import ReferenceTrainer
from ..training.settings import TuningSettings
from .speed import Row
from .workloads import random_rows

__all__ = ["measure_gpu"]

#: Instructions of psi and its four pools, and how many of them are special; psi first, then 5 for the pools.
_INSTRUCTIONS = {
    "multiplication": (1 + 5, 0),
    "exponential": (5 + 5, 1),  # product, two clamps, power, minus one
    "harmonic": (3 + 5, 1),  # product, turns, sine
    "quadratic": (1 + 5, 0),
    "gaussian": (5 + 5, 1),  # product, two clamps, power, product
    "dog": (6 + 5, 1),  # one product more
}
_LANES, _SPECIAL_LANES = 128, 16


def measure_gpu(device: torch.device, data_home: str | None, repeats: int, quick: bool) -> Iterator[Row]:
    """All measurements on a device, one after the other."""
    yield from _forward(device, repeats)
    yield _search(device, repeats)
    yield from _gradients(device, repeats)
    yield from _steps(device, repeats)
    yield from _steps_side_by_side(device, repeats)
    if not quick:
        yield from _fits(device, data_home)


def _milliseconds(function: Callable[[], Any], device: torch.device, repeats: int, times: int = 1) -> float:
    """Median time of a function on the device, of several calls in a row where launching takes a while."""
    function()
    milliseconds = []
    for _ in range(max(repeats, 5)):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize(device)
        start.record()
        for _ in range(times):
            function()
        end.record()
        torch.cuda.synchronize(device)
        milliseconds.append(start.elapsed_time(end) / times)
    return float(np.median(milliseconds))


def _recorded(function: Callable[[], Any], device: torch.device) -> Callable[[], Any]:
    """A function recorded as a CUDA graph, so that its launches cost next to nothing."""
    stream = torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.synchronize(device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph.replay


def _limit(device: torch.device, name: str) -> float:
    """Elements a second that the card's arithmetic allows."""
    card = torch.cuda.get_device_properties(device)
    cycles = card.multi_processor_count * _clock(device)
    total, special = _INSTRUCTIONS[name]
    return cycles / max(total / _LANES, special / _SPECIAL_LANES)


def _clock(device: torch.device) -> float:
    """Cycles a second at most."""
    return 1e3 * float(torch.cuda.get_device_properties(device).clock_rate)


def _forward(device: torch.device, repeats: int) -> Iterator[Row]:
    n, n_inputs = 36_000, 512
    x = torch.randn(n_inputs, n, device=device)
    rows = x.T.contiguous()
    for n_neurons in (40, 200):
        weight = torch.empty(n_inputs, n_neurons, device=device).uniform_(-0.1, 0.1)
        for name in _INSTRUCTIONS:
            code = OperatorSet(name, "sum", "relu").nodal_operator.code
            assert code is not None
            elements = n * n_inputs * n_neurons
            run = partial(cuda.all_pools, code, x, weight)
            seconds = _milliseconds(run, device, repeats, 10) / 1e3
            limit = _limit(device, name)
            peers = {"limit": limit / 1e9}
            if n_neurons == 40:
                function = _broadcasting(name, rows, weight)
                peers["torch broadcasting"] = elements / _milliseconds(function, device, 5) / 1e6
                torch.cuda.empty_cache()
            total, special = _INSTRUCTIONS[name]
            rate = elements / seconds
            yield Row(
                f"forward, {name}, all pools, {n:,} x {n_inputs} x {n_neurons}",
                rate / 1e9,
                "G elements/s",
                peers,
                f"{1e3 * seconds:.2f} ms; {total} instructions, {special} special; "
                f"{rate / limit:.0%} of the limit",
            )


def _broadcasting(name: str, x: Tensor, weight: Tensor) -> Callable[[], Any]:
    """All four pools from the N x D x d tensor, as plain torch has it."""
    sets = [OperatorSet(name, pool, "relu") for pool in ("sum", "correlation1", "correlation2", "maximum")]

    def run() -> list[Tensor]:
        z = sets[0].nodal_operator.function(x[:, :, None], weight[None])
        return [s.pool_operator.function(z) for s in sets]

    return run


def _part(
    device: torch.device,
    n_rows: int,
    n_inputs: int,
    n_accepted: int,
    n_classes: int,
    accepted_at_once: int = 40,
) -> DeviceRows:
    rows = random_rows(n_rows, n_inputs, 0, n_classes)
    part = CudaEngine(device).rows(Problem(rows.x, rows.target, rows.weight))
    for _ in range(n_accepted // accepted_at_once):
        part.accept(Block(n_inputs, accepted_at_once, OperatorSet("multiplication", "sum", "tanh")))
    return part


def _search(device: torch.device, repeats: int) -> Row:
    part = _part(device, 36_000, 512, 160, 10)
    settings = SearchSettings(ridges=(0.1, 1.0, 10.0))

    def run() -> None:
        search(part, library(), 20, settings, np.random.default_rng(0))

    return Row(
        "search, 144 sets, 160 + 20 neurons, 36,000 x 512",
        _milliseconds(run, device, repeats),
        "ms",
        note="3 ridges, leave-one-out",
    )


def _gradients(device: torch.device, repeats: int) -> Iterator[Row]:
    """Forward and backward of one pool by weights and inputs, beside autograd of plain torch."""
    n_inputs, n_neurons = 512, 40
    weight = torch.empty(n_inputs, n_neurons, device=device).uniform_(-0.1, 0.1).requires_grad_()
    for batch in (128, 4096):
        x = torch.randn(batch, n_inputs, device=device).requires_grad_()
        for nodal, pool in (("gaussian", "sum"), ("harmonic", "correlation2"), ("exponential", "maximum")):
            operator_set = OperatorSet(nodal, pool, "identity")
            codes = operator_set.codes
            assert codes is not None

            def ours(x: Tensor = x, codes: tuple[int, int, int] = codes) -> None:
                out = cuda.Pooled.apply(x, weight, codes[0], codes[1], False)
                torch.autograd.grad(out.sum(), (x, weight))

            def plain(x: Tensor = x, operator_set: OperatorSet = operator_set) -> None:
                torch.autograd.grad(reference.pooled(x, weight, operator_set).sum(), (x, weight))

            yield Row(
                f"forward + backward, {nodal}/{pool}, batch {batch:,}, {n_inputs} x {n_neurons}",
                1e3 * _milliseconds(_recorded(ours, device), device, repeats, 10),
                "us",
                {"torch autograd": 1e3 * _milliseconds(_recorded(plain, device), device, repeats, 10)},
                "by weights and inputs; both as CUDA graphs",
            )


def _steps(device: torch.device, repeats: int) -> Iterator[Row]:
    """Whole training steps of a block of 40 with 160 frozen features, replayed as CUDA graphs."""
    part = _part(device, 36_000, 512, 160, 10)
    for batch in (32, 128, 4096):
        for operators in (("multiplication", "sum", "sigmoid"), ("gaussian", "correlation2", "tanh")):
            block, head = Block(512, 40, OperatorSet(*operators)), Linear(200, 10)
            layers = [Layer([block])]
            shape, settings = Shape(layers, head, 160), TuningSettings(batch_size=batch, dropout=0.1)
            theta = torch.from_numpy(shape.flatten(layers, head)).to(device)
            trainer = DeviceSteps(Model([shape], theta[None].clone()), part, settings, 1)
            rate = torch.full((1,), 1e-3, dtype=torch.float64, device=device)
            trainer.epoch(rate, 1)
            ours = _milliseconds(partial(trainer.epoch, rate, 1), device, repeats) / trainer.n_steps
            peers = {}
            if batch >= 128:
                few = _part(device, 16 * batch, 512, 160, 10)
                candidates = Candidates.of_networks([(layers, head)], 160, [0.1])
                plain = ReferenceTrainer(candidates, few, settings, "loss", device=device)
                epoch = partial(plain.epoch, np.array([1e-3]), np.random.default_rng(0))
                peers["torch autograd and Adam"] = 1e3 * _milliseconds(epoch, device, 5) / 16
            yield Row(
                f"training step, {shape.sets[0]}, batch {batch:,}, 512 inputs, 160 + 40 features",
                1e3 * ours,
                "us",
                peers,
            )


def _steps_side_by_side(device: torch.device, repeats: int) -> Iterator[Row]:
    """Training steps of networks that grow side by side, each with its operators and rows, as CUDA graphs."""
    n_inputs, n_accepted, width, n_classes, batch = 16, 60, 10, 26, 64
    sets = [
        OperatorSet("gaussian", "correlation2", "tanh"),
        OperatorSet("multiplication", "sum", "sigmoid"),
        OperatorSet("harmonic", "sum", "relu"),
        OperatorSet("dog", "correlation1", "elu"),
        OperatorSet("exponential", "maximum", "tanh"),
    ]
    head = Linear(n_accepted + width, n_classes)
    settings = TuningSettings(batch_size=batch, dropout=0.3)
    shapes, thetas, parts = [], [], []
    for operator_set in sets:
        layers = [Layer([Block(n_inputs, width, operator_set)])]
        shapes.append(Shape(layers, head, n_accepted))
        thetas.append(torch.from_numpy(shapes[-1].flatten(layers, head)))
        parts.append(_part(device, 9_600, n_inputs, n_accepted, n_classes, accepted_at_once=10))
    for k in (1, len(sets)):
        model = Model(shapes[:k], torch.stack(thetas[:k]).to(device))
        trainer = DeviceSteps(model, parts[:k], settings, 1)
        rates = torch.full((k,), 1e-3, dtype=torch.float64, device=device)
        trainer.epoch(rates, 1)
        milliseconds = _milliseconds(partial(trainer.epoch, rates, 1), device, repeats) / trainer.n_steps
        yield Row(
            f"training step, {k} candidate{'s' if k > 1 else ''} with own rows, batch {batch}, "
            f"{n_inputs} inputs, {n_accepted} + {width} features, {n_classes} outputs",
            1e3 * milliseconds,
            "us",
        )


def _fits(device: torch.device, data_home: str | None) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    problems: list[tuple[str, str | None, Any]] = [
        ("HeMLGOP", "mnist", HeMLGOPClassifier(random_state=0)),
        ("HeMLGOP", None, HeMLGOPClassifier(random_state=0)),
        ("POPFast", "scene15_gist512", POPFastClassifier(random_state=0)),
        ("POP", "scene15_gist512", POPClassifier(random_state=0)),
    ]
    for method, name, model in problems:
        if name is None:
            x, y = _many_classes(60_000, 512, 500)
            name = "synthetic, 500 classes"
        else:
            try:
                bunch = datasets.load(name, data_home)
            except FileNotFoundError:
                note = "no data: give --data or set OPGROW_DATA"
                yield Row(f"{method}, {name}", float("nan"), "s", note=note)
                continue
            x, y = bunch.data, bunch.target
        test = rng.permutation(len(x)) < len(x) // 5
        model.set_params(device=str(device))
        seconds = []
        for _ in range(2 if name == "mnist" else 1):  # the first one compiles most of the kernels
            started = time.perf_counter()
            model.fit(x[~test], y[~test])
            seconds.append(time.perf_counter() - started)
        accuracy, network = model.score(x[test], y[test]), model.network_
        yield Row(
            f"{type(model).__name__}().fit, {name}, {int((~test).sum()):,} x {x.shape[1]}",
            seconds[-1],
            "s",
            note=f"first fit {seconds[0]:.1f} s; {network.topology()}, {network.n_parameters():,} "
            f"parameters, test accuracy {accuracy:.3f}",
        )


def _many_classes(n_rows: int, n_inputs: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """A problem of the shape of CFW60k: many classes, around centres in a space of fewer dimensions."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n_rows)
    hidden = 0.7 * rng.standard_normal((n_classes, 64))[y] + rng.standard_normal((n_rows, 64))
    x = np.tanh(hidden) @ rng.standard_normal((64, n_inputs)) + rng.standard_normal((n_rows, n_inputs))
    return x.astype(np.float32), y
