"""How good an output is, against references."""
