"""What leaves the machine: a report with its sources as one file, and the same report in the formats of others."""
