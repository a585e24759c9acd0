"""Encoders: tokens in, `Memory` out."""
