"""The subcommands of `python -m bench`, one file each, and `common` for what they share."""
