"""Models behind the Messages API: fitting requests to limits, failover, prices, and untrusted answers."""
