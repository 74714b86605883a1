"""The methods: a declaration of each, and how its family grows a layer."""

from .bls import BLS
from .hemlgop import HEMLGOP, HEMLRN, HOMLGOP, HOMLRN
from .pln import PLN

__all__ = ["BLS", "HEMLGOP", "HEMLRN", "HOMLGOP", "HOMLRN", "PLN"]
