"""What models predict, other than text. base.py has the interface."""
