"""Durable jobs: an intent row in the caller's transaction, carried out at least once."""
