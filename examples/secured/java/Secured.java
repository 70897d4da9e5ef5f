// Against a Trestle server that wants TLS and a token: creates a table, writes a row, reads it.
//
//     mvn -q dependency:build-classpath -Dmdep.outputFile=classpath
//     java -cp $(cat classpath) Secured.java ENDPOINT CA.PEM TOKEN-FILE create write read
//
// With an empty ENDPOINT it goes where BIGTABLE_EMULATOR_HOST says, without either.

import com.google.api.core.ApiFunction;
import com.google.api.gax.core.CredentialsProvider;
import com.google.api.gax.core.FixedCredentialsProvider;
import com.google.api.gax.grpc.InstantiatingGrpcChannelProvider;
import com.google.auth.oauth2.AccessToken;
import com.google.auth.oauth2.OAuth2Credentials;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminClient;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminSettings;
import com.google.cloud.bigtable.admin.v2.models.CreateTableRequest;
import com.google.cloud.bigtable.admin.v2.stub.BigtableTableAdminStubSettings;
import com.google.cloud.bigtable.data.v2.BigtableDataClient;
import com.google.cloud.bigtable.data.v2.BigtableDataSettings;
import com.google.cloud.bigtable.data.v2.models.Row;
import com.google.cloud.bigtable.data.v2.models.RowMutation;
import com.google.cloud.bigtable.data.v2.models.TableId;
import com.google.cloud.bigtable.data.v2.stub.EnhancedBigtableStubSettings;
import com.google.cloud.bigtable.data.v2.stub.metrics.NoopMetricsProvider;
import io.grpc.ManagedChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContext;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

class Secured {
  /** What each client is told. */
  static class Connection {
    final String endpoint;
    final SslContext tls;
    final CredentialsProvider credentials;

    Connection(String endpoint, String authority, String tokenFile) throws Exception {
      String token = Files.readString(Path.of(tokenFile)).strip();
      this.endpoint = endpoint;
      tls = GrpcSslContexts.forClient().trustManager(new File(authority)).build();
      credentials =
          FixedCredentialsProvider.create(OAuth2Credentials.create(new AccessToken(token, null)));
    }

    InstantiatingGrpcChannelProvider channel(InstantiatingGrpcChannelProvider.Builder channel) {
      ApiFunction<ManagedChannelBuilder, ManagedChannelBuilder> trust =
          builder -> ((NettyChannelBuilder) builder).sslContext(tls);
      return channel
          .setEndpoint(endpoint)
          .setAttemptDirectPath(false)
          .setChannelConfigurator(trust)
          .build();
    }

    void tell(BigtableTableAdminSettings.Builder admin) {
      admin.setCredentialsProvider(credentials);
      admin
          .stubSettings()
          .setTransportChannelProvider(
              channel(BigtableTableAdminStubSettings.defaultGrpcTransportProviderBuilder()));
    }

    void tell(BigtableDataSettings.Builder data) {
      data.setCredentialsProvider(credentials);
      data.setMetricsProvider(NoopMetricsProvider.INSTANCE); // they would go to Google's monitoring
      data.disableInternalMetrics();
      data.stubSettings()
          .setTransportChannelProvider(
              channel(EnhancedBigtableStubSettings.defaultGrpcTransportProviderBuilder()));
    }
  }

  static BigtableTableAdminClient admin(Connection connection) throws Exception {
    BigtableTableAdminSettings.Builder settings = BigtableTableAdminSettings.newBuilder();
    if (connection != null) connection.tell(settings);
    return BigtableTableAdminClient.create(settings.setProjectId("p").setInstanceId("i").build());
  }

  static BigtableDataClient data(Connection connection) throws Exception {
    BigtableDataSettings.Builder settings = BigtableDataSettings.newBuilder();
    if (connection != null) connection.tell(settings);
    return BigtableDataClient.create(settings.setProjectId("p").setInstanceId("i").build());
  }

  static void create(BigtableTableAdminClient admin) {
    admin.createTable(CreateTableRequest.of("greetings").addFamily("f"));
  }

  static void write(BigtableDataClient data) {
    data.mutateRow(
        RowMutation.create(TableId.of("greetings"), "hello").setCell("f", "text", "world"));
  }

  static void read(BigtableDataClient data) {
    Row row = data.readRow(TableId.of("greetings"), "hello");
    System.out.println("hello " + row.getCells().get(0).getValue().toStringUtf8());
  }

  public static void main(String[] arguments) throws Exception {
    String endpoint = arguments[0];
    Connection connection =
        endpoint.isEmpty() ? null : new Connection(endpoint, arguments[1], arguments[2]);
    try (BigtableTableAdminClient admin = admin(connection);
        BigtableDataClient data = data(connection)) {
      for (String step : List.of(arguments).subList(3, arguments.length)) {
        switch (step) {
          case "create" -> create(admin);
          case "write" -> write(data);
          case "read" -> read(data);
        }
      }
    }
  }
}
