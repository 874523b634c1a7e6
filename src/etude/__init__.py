"""Etude: practice-learning software, from the author's syllabus to the teacher's view and back."""
