"""The command line. A composition root; starts the processes by name."""
