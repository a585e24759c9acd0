"""Other projects' models, in and out."""
