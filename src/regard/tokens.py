"""The first four entries of every vocabulary."""

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
