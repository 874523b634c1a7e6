"""From a syllabus to a course: authors, framework, modules in order (`docs/courses.md`)."""
