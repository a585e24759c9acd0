"""Main losses; every task names one."""
