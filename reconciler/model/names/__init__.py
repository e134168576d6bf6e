"""Names of topics and groups: expressions that match them, selections and rename rules."""
