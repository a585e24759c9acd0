"""Tasks, one file each: inputs, targets, and everything that depends on them."""
