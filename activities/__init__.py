"""Activities: everything in a run that is paid, fallible or touches the outside."""
