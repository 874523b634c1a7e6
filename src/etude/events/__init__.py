"""The event protocol: model, vocabulary, NDJSON codec, lint, schemas (`docs/events.md`)."""
