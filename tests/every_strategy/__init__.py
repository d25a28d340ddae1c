"""What every declared strategy must pass: `pytest tests/every_strategy`. A strategy joins by being declared."""
