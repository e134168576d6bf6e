"""ACLs: what a principal needs, what a cluster has, and what Kafka decides from them."""
