"""Drawings of networks, as SVG."""
