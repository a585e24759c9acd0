"""Users' files, translated and written back: text, tables, PO, XLIFF, TMX.

A document gives its texts to translate and writes itself with their translations; everything else stays as it was, byte
for byte. Each format is one module in `formats/`.
"""
