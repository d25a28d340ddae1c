"""What the roles of the strategy `reflective` do where their activities run; a prompt of the same name lies beside."""
