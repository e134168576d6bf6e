"""Real Kafka brokers as child processes, for the demo, the tests and the bench.

    jars      finds Java, fetches Kafka's jars once into the user's cache
    ports     leases ports that no other cluster of this user takes
    settings  files of one node: `server.properties` and its storage format
    launch    starts a child that cannot outlive this process
    broker    one node: start, signal, wait, read its log
    cluster   nodes that answer together; several clusters side by side

Other rooms use `EmbeddedCluster`, `ClusterOptions`, `start_all`, `stop_all` and `running`; the bench also uses `jars`.
"""

from reconciler.embedded.cluster import EmbeddedCluster, running, start_all, stop_all
from reconciler.embedded.settings import QUICK_JVM, STEADY_JVM, ClusterOptions

__all__ = ["QUICK_JVM", "STEADY_JVM", "ClusterOptions", "EmbeddedCluster", "running", "start_all", "stop_all"]
