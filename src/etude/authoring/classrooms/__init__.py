"""Single classrooms: one lesson from a text, without a course; and classrooms brought and taken."""
