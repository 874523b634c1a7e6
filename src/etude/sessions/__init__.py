"""Practice sessions on the server: ingest, ownership, gaps, media, export. Owns the event store."""
