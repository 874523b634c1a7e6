"""Learners, staff, devices and their holders, tokens, audit log, export and erasure.

One noun a module: `learners`, `staff`, `devices`, `holders`, `services`, `tokens`, `scopes`,
`audit`, `learner_data` (the registry of every context), `export`, `erasure`.
"""
