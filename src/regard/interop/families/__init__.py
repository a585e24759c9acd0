"""One file for each family of models; the registry lists them (`interop/family.py`). Files that several share begin
with an underscore."""
