"""What is reported beside the steps: notices, drift, health."""
