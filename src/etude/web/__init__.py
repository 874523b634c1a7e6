"""HTTP: the API and its pages. A composition root."""
