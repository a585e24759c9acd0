"""Training: the objective, the loop, its schedule, checkpoints that survive anything, and reports."""
