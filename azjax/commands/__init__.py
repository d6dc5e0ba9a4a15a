"""The commands of the command line, one a file: a dataclass of options, and the function that runs the command."""
