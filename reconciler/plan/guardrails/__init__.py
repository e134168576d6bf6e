"""What a plan refuses, and the checks that come before a change."""
