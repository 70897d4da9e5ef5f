// Takes the place of the class of this name in Google's tests, which says where production is: the
// same clients, of the server that the property bigtable.data-endpoint names, without TLS.

package com.google.cloud.bigtable.test_helpers.env;

import com.google.cloud.bigtable.admin.v2.BigtableInstanceAdminClient;
import com.google.cloud.bigtable.admin.v2.BigtableInstanceAdminSettings;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminClient;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminSettings;
import com.google.cloud.bigtable.admin.v2.models.CreateTableRequest;
import com.google.cloud.bigtable.data.v2.BigtableDataClient;
import com.google.cloud.bigtable.data.v2.BigtableDataSettings;
import com.google.cloud.bigtable.data.v2.models.TableId;
import java.io.IOException;

public class CloudEnv extends AbstractTestEnv {
  private final String host = property("data-endpoint").split(":")[0];
  private final int port = Integer.parseInt(property("data-endpoint").split(":")[1]);
  private BigtableDataClient data;
  private BigtableTableAdminClient tables;
  private BigtableInstanceAdminClient instances;

  static CloudEnv fromSystemProperties() {
    return new CloudEnv();
  }

  private static String property(String name) {
    return System.getProperty("bigtable." + name);
  }

  private BigtableTableAdminSettings.Builder tablesOf(String instance) {
    return BigtableTableAdminSettings.newBuilderForEmulator(host, port)
        .setProjectId(getProjectId())
        .setInstanceId(instance);
  }

  @Override
  void start() throws IOException {
    data = BigtableDataClient.create(getDataClientSettings());
    tables = BigtableTableAdminClient.create(getTableAdminSettings());
    instances = BigtableInstanceAdminClient.create(getInstanceAdminClientSettings());
    if (!tables.exists(getTableId().getTableId())) {
      tables.createTable(
          CreateTableRequest.of(getTableId().getTableId()).addFamily(getFamilyId()));
    }
  }

  @Override
  void stop() {
    data.close();
    tables.close();
    instances.close();
  }

  @Override
  public BigtableDataClient getDataClient() {
    return data;
  }

  @Override
  public BigtableTableAdminClient getTableAdminClient() {
    return tables;
  }

  @Override
  public BigtableTableAdminClient getTableAdminClientForInstance(String instance)
      throws IOException {
    return BigtableTableAdminClient.create(tablesOf(instance).build());
  }

  @Override
  public BigtableInstanceAdminClient getInstanceAdminClient() {
    return instances;
  }

  @Override
  public BigtableDataSettings getDataClientSettings() {
    return BigtableDataSettings.newBuilderForEmulator(host, port)
        .setProjectId(getProjectId())
        .setInstanceId(getInstanceId())
        .build();
  }

  @Override
  public BigtableInstanceAdminSettings getInstanceAdminClientSettings() {
    try {
      return BigtableInstanceAdminSettings.newBuilderForEmulator(host, port)
          .setProjectId(getProjectId())
          .build();
    } catch (IOException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  @Override
  public BigtableTableAdminSettings getTableAdminSettings() {
    try {
      return tablesOf(getInstanceId()).build();
    } catch (IOException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  @Override
  public String getProjectId() {
    return property("project");
  }

  @Override
  public String getInstanceId() {
    return property("instance");
  }

  @Override
  public TableId getTableId() {
    return TableId.of(property("table"));
  }

  @Override
  public String getKmsKeyName() {
    return "";
  }
}
