"""Bad inputs, kills and faults, counted by family: docs/reliability.md shows the table."""
