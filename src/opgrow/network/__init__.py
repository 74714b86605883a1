"""What was grown, as plain objects of numpy arrays: blocks of neurons, layers of blocks, networks.

Sizes and FLOPs follow the conventions that reproduce the paper's tables: a hidden neuron has its weights and,
where it has them, a bias and the scale and shift of its batch norm; the head has weights and biases. The
constants that standardise the input are not counted.

`opgrow.network.torch` offers the same networks as torch modules, which can be differentiated and run on a
GPU.
"""

from .blocks import NORM_EPSILON, NORMALIZATIONS, Block, Head, Layer, Linear, Norm
from .network import Network

__all__ = ["NORMALIZATIONS", "NORM_EPSILON", "Block", "Head", "Layer", "Linear", "Network", "Norm"]
