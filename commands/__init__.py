"""What the command line does that needs several packages: a file a command, called by `cli`."""
