"""Networks as pictures (SVG)."""
