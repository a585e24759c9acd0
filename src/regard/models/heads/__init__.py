"""Heads: modules in a decoder's place that predict from the encoder's output without generating."""
