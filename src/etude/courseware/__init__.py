"""Frozen, versioned modules of courses: bundles, their registry, publishing, strict loading."""
