"""What Spark tasks receive, and what they report."""
