"""What is declared, what runs and what is on record: commands that change nothing."""
