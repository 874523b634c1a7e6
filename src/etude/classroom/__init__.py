"""The classroom: one unit of a course as a typed, versioned document (`docs/classroom.md`)."""
