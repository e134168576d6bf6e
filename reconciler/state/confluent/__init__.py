"""confluent-kafka's clients: creation, calls, and errors in the terms of this project."""
