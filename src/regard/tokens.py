"""The first four entries of every vocabulary, and the one after them where sources have parts."""

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
SEPARATOR = 4  # between the parts of a source, such as a story and a question
SEPARATOR_SIGN = "\uf8f0"  # what it looks like in a text: nothing that people write
