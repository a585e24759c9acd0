"""Sources that are not text: one modality per file. base.py has the interface."""
