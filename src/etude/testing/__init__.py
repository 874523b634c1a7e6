"""The test kit: ships, so that plug-ins and course authors can use it too."""
