"""Models behind the Messages API: requests fitted to limits, failover, prices and answers read without trust."""
