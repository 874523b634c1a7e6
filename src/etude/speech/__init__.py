"""Sound: Opus, audio files, and (later) recognition and synthesis."""
