"""File formats of training data, one module each. `regard.data.readers` finds them."""
