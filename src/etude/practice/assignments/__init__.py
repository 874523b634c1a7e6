"""Assignments on the server: stored, checked, told to gateways. Not for the gateway process."""
