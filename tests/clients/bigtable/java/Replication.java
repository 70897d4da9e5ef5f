// What Google's client for Java asks of an instance's clusters, at the server HOST:PORT:
//
//     java -cp … Replication.java HOST:PORT
//
// Waits until what has been written to the table t of the instance spread is at all of them, twice;
// then prints the ids of the clusters and of the app profiles.
import com.google.cloud.bigtable.admin.v2.BigtableInstanceAdminClient;
import com.google.cloud.bigtable.admin.v2.BigtableInstanceAdminSettings;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminClient;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminSettings;
import com.google.cloud.bigtable.admin.v2.models.AppProfile;
import com.google.cloud.bigtable.admin.v2.models.Cluster;
import com.google.cloud.bigtable.admin.v2.models.ConsistencyRequest;

public class Replication {
  static void await(String host, int port) throws Exception {
    BigtableTableAdminSettings settings =
        BigtableTableAdminSettings.newBuilderForEmulator(host, port)
            .setProjectId("p").setInstanceId("spread").build();
    try (BigtableTableAdminClient tables = BigtableTableAdminClient.create(settings)) {
      tables.awaitReplication("t");
      tables.awaitConsistency(ConsistencyRequest.forReplication("t"));
    }
  }

  static void list(String host, int port) throws Exception {
    BigtableInstanceAdminSettings settings =
        BigtableInstanceAdminSettings.newBuilderForEmulator(host, port).setProjectId("p").build();
    try (BigtableInstanceAdminClient instances = BigtableInstanceAdminClient.create(settings)) {
      for (Cluster each : instances.listClusters("spread")) {
        System.out.println(each.getId());
      }
      for (AppProfile each : instances.listAppProfiles("spread")) {
        System.out.println(each.getId());
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    String[] address = arguments[0].split(":");
    await(address[0], Integer.parseInt(address[1]));
    list(address[0], Integer.parseInt(address[1]));
  }
}
