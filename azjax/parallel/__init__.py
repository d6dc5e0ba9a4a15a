"""Several devices, processes and members of a population."""
