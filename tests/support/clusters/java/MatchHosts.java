/* What Kafka's authorizer takes for the clients of an ACL's host: arguments are pairs of an address and a host. */

import org.apache.kafka.server.authorizer.internals.CidrUtils;

public class MatchHosts {
    public static void main(String[] pairs) {
        for (int at = 0; at < pairs.length; at += 2) {
            String address = pairs[at], host = pairs[at + 1];
            System.out.println(host.equals("*") || host.equals(address) || CidrUtils.isInRange(address, host));
        }
    }
}
