"""Terms that are added to the main loss in training."""
