"""Topics as Pulumi resources, one stack per data centre."""
