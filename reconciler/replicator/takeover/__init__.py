"""Opening of partitions: where both logs end, and which record comes next."""
