"""The methods: a declaration of each, and how its family grows a layer."""

from .bls import BLS
from .hemlgop import HEMLGOP, HEMLRN, HOMLGOP, HOMLRN
from .pln import PLN
from .pop import PMLP, POP, POPFAST, POPMEMH, POPMEMO

__all__ = [
    "BLS",
    "HEMLGOP",
    "HEMLRN",
    "HOMLGOP",
    "HOMLRN",
    "PLN",
    "PMLP",
    "POP",
    "POPFAST",
    "POPMEMH",
    "POPMEMO",
]
