"""What all reports share: columns, lines for a terminal, Markdown, measured numbers, words."""
