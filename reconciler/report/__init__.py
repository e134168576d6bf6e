"""Plans, graphs and status as text, JSON or Markdown."""
