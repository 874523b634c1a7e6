"""Engine, unit of work, migrations and blobs. Knows no noun of the product."""
