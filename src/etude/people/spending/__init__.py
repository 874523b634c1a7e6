"""What is spent on models, in whose name, and how much may be."""
