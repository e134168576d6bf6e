"""How a cluster is reached: hosts, references to secrets, security settings and tokens."""
