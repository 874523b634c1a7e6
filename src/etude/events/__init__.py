"""The event protocol: model, vocabulary, NDJSON codec, lint, schemas (`events.md`)."""
