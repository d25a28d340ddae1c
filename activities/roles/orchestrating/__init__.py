"""What the roles of the strategy `orchestrator` do where their activities run; a prompt of the same name lies beside."""
