"""Settings of what a model reads, one file per modality; `build_stem` makes the module in `models/stems/`."""
