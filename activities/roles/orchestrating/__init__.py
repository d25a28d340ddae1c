"""What the roles of the strategy `orchestrator` do where their activities run; their prompts lie beside."""
