"""Plans that delete: destroy, prune, and the limit of deletions."""
