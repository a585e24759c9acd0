"""Settings of encoders, one file each; `build` makes the module in `models/encoders/`."""
