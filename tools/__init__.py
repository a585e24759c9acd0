"""What sets up the virtual environments, and what CI needs."""
