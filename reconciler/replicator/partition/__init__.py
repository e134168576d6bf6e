"""One partition: its state, its send queue, and the reasons why it does not run. No I/O."""
