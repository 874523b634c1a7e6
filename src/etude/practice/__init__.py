"""The practice runtime: apps, lessons, the follow-read clock and what a session leaves behind."""
