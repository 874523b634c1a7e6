"""The author that needs no network and no key: it compiles material by rule, always alike."""
