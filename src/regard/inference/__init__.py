"""From sources to translations: search, and a trained run opened for use."""
