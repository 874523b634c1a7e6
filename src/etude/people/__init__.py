"""Learners, staff, devices and their holders, tokens, audit log, erasure."""
