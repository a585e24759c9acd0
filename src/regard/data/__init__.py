"""From files to batches.

files → readers → examples → input validation (valid, or rejected) → dataset (memory-mapped) → tokens → batches
"""
