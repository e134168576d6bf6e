"""Commands that look at what data centres run, and write what others run."""
