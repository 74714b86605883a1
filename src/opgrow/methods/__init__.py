"""The methods: what each searches, tunes and decides differently."""

from .hemlgop import HEMLGOP, HEMLRN, HOMLGOP, HOMLRN

__all__ = ["HEMLGOP", "HEMLRN", "HOMLGOP", "HOMLRN"]
