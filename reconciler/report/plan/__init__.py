"""Plans, their outcome and drift as text, JSON, Markdown and pictures."""
