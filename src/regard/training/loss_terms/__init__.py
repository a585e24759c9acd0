"""Terms that are added to the loss in training, one object each."""
