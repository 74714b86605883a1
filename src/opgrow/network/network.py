"""A grown network: standardised input, layers of blocks, and a head."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..common.extras import require_torch
from ..common.threads import default_threads, run_all
from ..engine.native import native
from ..engine.prediction import CompiledNetwork
from .compiled import Layout, digest_of
from .drawing.drawing import draw
from .scaling import squash
from .structure import Structure

__all__ = ["Network"]

#: Rows that are computed at once, block by block, where the engine cannot compute the whole network.
_ROWS = 1 << 15


class Network(Structure):
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
    head_low, head_high : arrays in single precision, one value for each feature that the head sees, optional
        Where given, a linear head reads no feature as less or more than these.
    head_operators : OperatorSet, optional
        The head is linear; where these are given, as for POP, it is a block of such neurons without norm.
    broad : bool, default=False
        True, for BLS: the head sees the outputs of all layers, and not only of the last. Only then may
        blocks from the second layer on have fewer inputs than the layer before has outputs.
    members : sequence of sequences of int, optional
        For the average of several networks, which stand side by side: of each of them, how many blocks each
        of its layers has. Their blocks follow each other in every layer. A block reads what its own network
        has in the layer before, and the head sees the last layer of each network.

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

    _layout: Layout | None = None

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
            out = self.head.outputs(self.read_by_head(x)).astype(np.float64)
            if self.output_mean is None or self.output_scale is None:
                return out
            out = out * self.output_scale + self.output_mean
            return out if self.output_low is None else np.clip(out, self.output_low, self.output_high)

    def standardize(self, x: np.ndarray) -> np.ndarray:
        """Inputs as the first layer sees them: centred, scaled and bounded, in single precision."""
        z = (np.asarray(x, np.float64) - self.input_mean) / self.input_scale
        return squash(z, self.input_bound).astype(np.float32)

    def features(self, x: np.ndarray) -> np.ndarray:
        """What the head sees of rows of inputs: mostly the last layer's outputs, not limited yet."""
        x = self.standardize(x)
        outputs = []
        for layer, reads in zip(self.layers, self.block_spans(), strict=True):
            x = layer.outputs(x, default_threads(), [span.start for span in reads])
            outputs.append(x)
        seen = [outputs[layer][:, start:stop] for layer, start, stop in self.head_spans()]
        return np.concatenate(seen, axis=1) if seen else x

    def read_by_head(self, x: np.ndarray) -> np.ndarray:
        """What the head reads of rows of inputs: the features that it sees, within their limits."""
        features = self.features(x)
        if self.head_low is None or self.head_high is None:
            return features
        return np.clip(features, self.head_low, self.head_high)

    def to_torch(self) -> Any:
        """The same network as a torch module, which can be differentiated and moved to a GPU.

        Returns
        -------
        opgrow.network.torch.NetworkModule
            In evaluation mode, with arrays of its own. `opgrow.network.torch.from_torch` leads back.
        """
        require_torch("A network as a torch module")
        from .modules import to_torch

        return to_torch(self)

    def digest(self) -> str:
        """SHA-256 of everything that the network computes with, as 64 hexadecimal digits.

        Networks with the same digest predict the same; a model that is saved and loaded keeps it.
        """
        return digest_of(self)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_layout": None}  # it holds addresses

    def _repr_html_(self) -> str:
        return draw(self)._repr_html_()
