"""Tasks, one file each: what is read, what is predicted, and everything that follows from it."""
