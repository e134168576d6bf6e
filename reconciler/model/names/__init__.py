"""Names of topics and groups: expressions that match them, selections, rename rules and policies."""
