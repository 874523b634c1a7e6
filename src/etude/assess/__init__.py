"""Assessment: how each turn was said, in numbers that carry their method, engine and interval."""
