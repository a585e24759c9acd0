"""Engines, one file each: PyTorch for every model, the native C library and CTranslate2 for some, on the CPU."""
