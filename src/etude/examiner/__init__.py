"""The examiner: a report whose every number stands on events that anyone can open and recompute."""
