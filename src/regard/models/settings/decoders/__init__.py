"""Settings of decoders and heads, one file each; `build` makes the module in `models/decoders/` or `models/heads/`."""
