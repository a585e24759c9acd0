"""Losses of the targets themselves; a task names one."""
