import java.io.FileOutputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * A YARN cluster in this process: one ResourceManager, and NodeManagers that start real containers.
 *
 * Arguments: the folder that gets yarn-site.xml, how many nodes, MiB and cores of each, attempts of an application.
 * It prints the URL of the ResourceManager's web interface, and ends with its standard input.
 */
public class MiniYarn {
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        YarnConfiguration configuration = new YarnConfiguration();
        configuration.set("yarn.scheduler.capacity.root.queues", "default");
        configuration.set("yarn.scheduler.capacity.root.default.capacity", "100");
        configuration.set("yarn.scheduler.capacity.maximum-am-resource-percent", "1.0");
        configuration.set(YarnConfiguration.YARN_MINICLUSTER_NM_PMEM_MB, arguments[2]);
        configuration.set(YarnConfiguration.NM_VCORES, arguments[3]);
        configuration.set(YarnConfiguration.RM_AM_MAX_ATTEMPTS, arguments[4]);
        configuration.set("yarn.scheduler.capacity.resource-calculator",
            "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator");
        // Disks of machines that run tests may be nearly full.
        configuration.set("yarn.nodemanager.disk-health-checker.enable", "false");
        configuration.set("yarn.nodemanager.delete.debug-delay-sec", "600");
        MiniYARNCluster cluster = new MiniYARNCluster("tests", Integer.parseInt(arguments[1]), 1, 1);
        try {
            cluster.init(configuration);
            cluster.start();
            if (!cluster.waitForNodeManagersToConnect(300_000)) {
                throw new IllegalStateException("no node has connected");
            }
            Configuration found = cluster.getConfig();
            Files.createDirectories(folder);
            try (OutputStream file = new FileOutputStream(folder.resolve("yarn-site.xml").toFile())) {
                found.writeXml(file);
            }
            System.out.println("http://" + found.get(YarnConfiguration.RM_WEBAPP_ADDRESS));
            System.out.flush();
            while (System.in.read() >= 0) {
            }
        } catch (Throwable failure) {
            failure.printStackTrace();
        }
        // Its threads would keep it alive.
        Runtime.getRuntime().halt(0);
    }
}
