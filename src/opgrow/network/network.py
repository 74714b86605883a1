"""A grown network: standardised input, layers of blocks, and a head."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from ..common.extras import require_torch
from ..common.threads import default_threads, run_all
from ..engine.native import native
from ..engine.prediction import CompiledNetwork
from ..operators import OperatorSet
from .blocks import Block, Head, Layer, Linear, check_sizes
from .compiled import Layout, digest_of
from .scaling import squash

__all__ = ["Network"]

#: Rows that are computed at once, block by block, where the engine cannot compute the whole network.
_ROWS = 1 << 15


class Network:
    """Standardised input, layers of blocks, and a head.

    Its arrays may be replaced or changed in place: predictions follow.

    Parameters
    ----------
    n_inputs, n_outputs : int
    layers : sequence of Layer
    input_mean, input_scale : arrays of shape (n_inputs,), optional
        The input is used as ``z = (x - input_mean) / input_scale``.
    input_bound : float, optional
        Where given, as ``z / sqrt(1 + (z / input_bound)^2)``, which no input takes beyond this bound.
    output_mean, output_scale : arrays of shape (n_outputs,), optional
        Where given, as for regression, the head's outputs are multiplied and shifted by them, in double
        precision.
    output_low, output_high : arrays of shape (n_outputs,), optional
        Where given, outputs are not below or above them.
    head_operators : OperatorSet, optional
        The head is linear; where these are given, as for POP, it is a block of such neurons without norm.
    broad : bool, default=False
        True, for BLS: the head sees the outputs of all layers, and not only of the last. Only then may
        blocks from the second layer on have fewer inputs than the layer before has outputs.

    Attributes
    ----------
    layers : list of Layer, from input to output
    head : Linear or Block
    input_low, input_high : arrays of shape (n_inputs,), or None
        The least and the largest input that the network has learned from, as far as that is known.

    Examples
    --------
    >>> from opgrow import Block, Layer, Network, OperatorSet
    >>> perceptron = OperatorSet("multiplication", "sum", "sigmoid")
    >>> network = Network(8, 2, [Layer([Block(8, 40, perceptron), Block(8, 20, perceptron)])])
    >>> network.n_parameters(), network.flops()
    (782, 1442)
    """

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        layers: Sequence[Layer] = (),
        input_mean: np.ndarray | None = None,
        input_scale: np.ndarray | None = None,
        output_mean: np.ndarray | None = None,
        output_scale: np.ndarray | None = None,
        *,
        input_bound: float | None = None,
        output_low: np.ndarray | None = None,
        output_high: np.ndarray | None = None,
        head_operators: OperatorSet | None = None,
        broad: bool = False,
    ) -> None:
        check_sizes(n_inputs=n_inputs, n_outputs=n_outputs)
        if not isinstance(layers, Sequence) or not all(isinstance(layer, Layer) for layer in layers):
            raise TypeError(f"layers must be a list of Layers, got {layers!r}")
        self.n_inputs, self.n_outputs = n_inputs, n_outputs
        # In double precision, for inputs whose mean is large and whose deviation is small.
        self.input_mean = np.zeros(n_inputs) if input_mean is None else _double(input_mean)
        self.input_scale = np.ones(n_inputs) if input_scale is None else _double(input_scale)
        self.output_mean, self.output_scale = _optional(output_mean), _optional(output_scale)
        self.output_low, self.output_high = _optional(output_low), _optional(output_high)
        self.input_low: np.ndarray | None = None
        self.input_high: np.ndarray | None = None
        self.input_bound = input_bound
        self.layers = list(layers)
        self.broad = broad
        self._check_widths()
        width = self.head_width
        self.head: Head = Linear(width, n_outputs)
        if head_operators is not None:
            self.head = Block(width, n_outputs, head_operators, norm=None)
        self._layout: Layout | None = None

    @property
    def head_width(self) -> int:
        """How many features the head sees."""
        widths = [layer.n_neurons for layer in self.layers]
        return (sum(widths) if self.broad else widths[-1]) if widths else self.n_inputs

    def _check_widths(self) -> None:
        """Refuse widths that the engine could not trust and a model file could not hold."""
        width = self.n_inputs
        for i, layer in enumerate(self.layers):
            for j, block in enumerate(layer):
                n_inputs = block.n_inputs
                if n_inputs != width and not (self.broad and i > 0 and n_inputs < width):
                    where = f"block {j + 1} of layer {i + 1}"
                    raise ValueError(
                        f"{where} has {n_inputs} inputs, and the layer before it {width} outputs"
                    )
            width = layer.n_neurons

    # --- what it computes ---

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """Outputs for rows of inputs, (N, n_inputs) to (N, n_outputs), on as many threads as torch would use.

        They are in single precision, or in double precision where the network has output constants. The
        engine computes them in one call, unless there are operators that users have registered.
        """
        compiled = self._for_engine()
        if compiled is not None:
            spread = partial(run_all, n_threads=default_threads())
            out = native().predict(compiled, x, spread)
        else:
            parts = [self._by_blocks(x[start : start + _ROWS]) for start in range(0, len(x), _ROWS)]
            out = np.concatenate(parts) if parts else np.zeros((0, self.n_outputs))
        with np.errstate(over="ignore"):
            return out if self.output_mean is not None else out.astype(np.float32)

    def _for_engine(self) -> CompiledNetwork | None:
        """The network laid out for the engine; None where only torch can compute it."""
        layout = self._layout
        if layout is None or not layout.is_of(self):
            layout = self._layout = Layout(self)
        return layout.network

    def _by_blocks(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):  # what is not finite shows in the outputs
            out = self.head.outputs(self.features(x)).astype(np.float64)
            if self.output_mean is None or self.output_scale is None:
                return out
            out = out * self.output_scale + self.output_mean
            return out if self.output_low is None else np.clip(out, self.output_low, self.output_high)

    def standardize(self, x: np.ndarray) -> np.ndarray:
        """Inputs as the first layer sees them: centred, scaled and bounded, in single precision."""
        z = (np.asarray(x, np.float64) - self.input_mean) / self.input_scale
        return squash(z, self.input_bound).astype(np.float32)

    def features(self, x: np.ndarray) -> np.ndarray:
        """What the head sees of rows of inputs: the last layer's outputs, or those of all layers."""
        x = self.standardize(x)
        seen = []
        for layer in self.layers:
            x = layer.outputs(x, default_threads())
            seen.append(x)
        return np.concatenate(seen, axis=1) if self.broad and seen else x

    def to_torch(self) -> Any:
        """The same network as a torch module, which can be differentiated and moved to a GPU.

        Returns
        -------
        opgrow.network.torch.NetworkModule
            In evaluation mode, with arrays of its own. `opgrow.network.torch.from_torch` leads back.
        """
        require_torch("A network as a torch module")
        from .torch import to_torch

        return to_torch(self)

    # --- copies ---

    def copy(self) -> Network:
        """A network with arrays of its own and the same values."""
        return deepcopy(self)

    def digest(self) -> str:
        """SHA-256 of everything that the network computes with, as 64 hexadecimal digits.

        Networks with the same digest predict the same; a model that is saved and loaded keeps it.
        """
        return digest_of(self)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_layout": None}  # it holds addresses

    # --- what it is ---

    def n_parameters(self) -> int:
        hidden = sum(block.n_parameters() for layer in self.layers for block in layer)
        return hidden + self.head.n_parameters()

    def flops(self) -> int:
        """Elementary operations for one sample."""
        return sum(block.flops() for layer in self.layers for block in layer) + self.head.flops()

    def describe(self) -> dict[str, Any]:
        """Topology, operators and costs as plain data.

        A block has "norm" and "bias" only where they are not "batch" and True.
        """
        layers = [
            {"neurons": layer.n_neurons, "blocks": [_describe_block(block) for block in layer]}
            for layer in self.layers
        ]
        return {
            "inputs": self.n_inputs,
            "outputs": self.n_outputs,
            "layers": layers,
            "head": self._head_kind(),
            "broad": self.broad,
            "parameters": self.n_parameters(),
            "flops": self.flops(),
        }

    def __repr__(self) -> str:
        lines = [f"Network({self.topology()}: {self.n_parameters():,} parameters, {self.flops():,} FLOPs)"]
        for number, layer in enumerate(self.layers, 1):
            lines.append(f"  layer {number}: {layer.n_neurons} neurons")
            blocks = [
                f"    {block.n_neurons:>4} x {', '.join([str(block.operator_set), *block.remarks()])}"
                for block in layer
            ]
            for line, equal in groupby(blocks):  # BLS has dozens of windows that read the same
                times = len(list(equal))
                lines.append(line if times == 1 else f"{line} ({times} such blocks)")
        sees = ", sees all layers" if self.broad else ""
        lines.append(f"  head: {self._head_kind()}, {self.n_outputs} outputs{sees}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from .drawing.drawing import draw

        return draw(self)._repr_html_()

    def _head_kind(self) -> str:
        return str(self.head.operator_set) if isinstance(self.head, Block) else "linear"

    def topology(self) -> str:
        """Widths from input to output, such as "8-60-2"."""
        widths = [self.n_inputs, *(layer.n_neurons for layer in self.layers), self.n_outputs]
        return "-".join(str(width) for width in widths)


def _double(values: Any) -> np.ndarray:
    return np.array(values, np.float64)


def _optional(values: Any) -> np.ndarray | None:
    return None if values is None else _double(values)


def _describe_block(block: Block) -> dict[str, Any]:
    data: dict[str, Any] = {"operators": str(block.operator_set), "neurons": block.n_neurons}
    if block.normalization != "batch":
        data["norm"] = block.normalization
    if not block.has_bias:
        data["bias"] = False
    return data
