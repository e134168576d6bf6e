"""Keeps the processes of data centres running: by a keeper of its own for each process, or by units of systemd."""
