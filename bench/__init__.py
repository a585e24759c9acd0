"""Every speed and memory claim, measured beside what a user would otherwise pick."""
