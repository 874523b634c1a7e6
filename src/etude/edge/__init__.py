"""Whatever hosts a practice: journal, session writer, confidence router, outbox."""
