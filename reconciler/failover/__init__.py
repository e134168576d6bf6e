"""Moving everybody to the other side of a flow and back: cuts, groups, what diverged."""
