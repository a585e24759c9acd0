"""From people's files to batches.

files → readers → Example → door (checked, or set aside) → corpus (memory-mapped) → subwords → batches
"""
