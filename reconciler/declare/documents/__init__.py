"""YAML documents: parsing, positions, the schema, and messages about violations."""
