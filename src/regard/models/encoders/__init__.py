"""Encoders: tokens in, `EncoderOutput` out."""
