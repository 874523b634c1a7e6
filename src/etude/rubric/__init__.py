"""What a session's events mean: polarity tables and the recap made from them."""
