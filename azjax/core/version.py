"""The version of the package, also where it runs from a folder without being installed."""

__version__ = "0.2.0"
