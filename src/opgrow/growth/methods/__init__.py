"""The methods: a declaration of each, and how its family grows a layer."""

# isort: off
# In this order methods are declared, and listed wherever a user sees them.
from .hemlgop import HEMLGOP, HEMLRN, HOMLGOP, HOMLRN
from .pop import PMLP, POP, POPFAST, POPMEMH, POPMEMO
from .pln import PLN
from .bls import BLS
from .registry import METHODS, declared
# isort: on

__all__ = [
    "BLS",
    "HEMLGOP",
    "HEMLRN",
    "HOMLGOP",
    "HOMLRN",
    "METHODS",
    "PLN",
    "PMLP",
    "POP",
    "POPFAST",
    "POPMEMH",
    "POPMEMO",
    "declared",
]
