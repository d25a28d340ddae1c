def measure_reports(*, failures: bool) -> None:
    pass
