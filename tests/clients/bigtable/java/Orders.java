// Drives a Bigtable server by Google's library for Java as applications do.
//
//     mvn -q dependency:build-classpath -Dmdep.outputFile=classpath
//     BIGTABLE_EMULATOR_HOST=127.0.0.1:8086 java -cp $(cat classpath) Orders.java PROJECT
//
// Prints a line for each thing that was as it should be, and ends with 1 if one was not.

import static com.google.cloud.bigtable.admin.v2.models.GCRules.GCRULES;
import static com.google.cloud.bigtable.data.v2.models.Filters.FILTERS;

import com.google.api.gax.batching.Batcher;
import com.google.api.gax.rpc.ApiException;
import com.google.api.gax.rpc.StatusCode;
import com.google.cloud.Date;
import com.google.cloud.bigtable.admin.v2.BigtableInstanceAdminClient;
import com.google.cloud.bigtable.admin.v2.BigtableInstanceAdminSettings;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminClient;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminSettings;
import com.google.cloud.bigtable.admin.v2.models.AppProfile;
import com.google.cloud.bigtable.admin.v2.models.Backup;
import com.google.cloud.bigtable.admin.v2.models.ClusterAutoscalingConfig;
import com.google.cloud.bigtable.admin.v2.models.ColumnFamily;
import com.google.cloud.bigtable.admin.v2.models.CopyBackupRequest;
import com.google.cloud.bigtable.admin.v2.models.CreateAppProfileRequest;
import com.google.cloud.bigtable.admin.v2.models.CreateAuthorizedViewRequest;
import com.google.cloud.bigtable.admin.v2.models.CreateBackupRequest;
import com.google.cloud.bigtable.admin.v2.models.CreateInstanceRequest;
import com.google.cloud.bigtable.admin.v2.models.CreateMaterializedViewRequest;
import com.google.cloud.bigtable.admin.v2.models.CreateTableRequest;
import com.google.cloud.bigtable.admin.v2.models.FamilySubsets;
import com.google.cloud.bigtable.admin.v2.models.ModifyColumnFamiliesRequest;
import com.google.cloud.bigtable.admin.v2.models.RestoreTableRequest;
import com.google.cloud.bigtable.admin.v2.models.StorageType;
import com.google.cloud.bigtable.admin.v2.models.SubsetView;
import com.google.cloud.bigtable.admin.v2.models.UpdateAppProfileRequest;
import com.google.cloud.bigtable.admin.v2.models.UpdateBackupRequest;
import com.google.cloud.bigtable.admin.v2.models.UpdateInstanceRequest;
import com.google.cloud.bigtable.admin.v2.models.Type;
import com.google.cloud.bigtable.admin.v2.models.UpdateTableRequest;
import com.google.cloud.bigtable.common.Status;
import com.google.cloud.bigtable.data.v2.BigtableDataClient;
import com.google.cloud.bigtable.data.v2.BigtableDataSettings;
import com.google.cloud.bigtable.data.v2.models.AddToCell;
import com.google.cloud.bigtable.data.v2.models.AuthorizedViewId;
import com.google.cloud.bigtable.data.v2.models.ChangeStreamContinuationToken;
import com.google.cloud.bigtable.data.v2.models.ChangeStreamMutation;
import com.google.cloud.bigtable.data.v2.models.ChangeStreamRecord;
import com.google.cloud.bigtable.data.v2.models.CloseStream;
import com.google.cloud.bigtable.data.v2.models.ConditionalRowMutation;
import com.google.cloud.bigtable.data.v2.models.DeleteCells;
import com.google.cloud.bigtable.data.v2.models.DeleteFamily;
import com.google.cloud.bigtable.data.v2.models.Entry;
import com.google.cloud.bigtable.data.v2.models.Filters.Filter;
import com.google.cloud.bigtable.data.v2.models.Heartbeat;
import com.google.cloud.bigtable.data.v2.models.MaterializedViewId;
import com.google.cloud.bigtable.data.v2.models.Mutation;
import com.google.cloud.bigtable.data.v2.models.Query;
import com.google.cloud.bigtable.data.v2.models.Range.ByteStringRange;
import com.google.cloud.bigtable.data.v2.models.ReadChangeStreamQuery;
import com.google.cloud.bigtable.data.v2.models.ReadModifyWriteRow;
import com.google.cloud.bigtable.data.v2.models.Row;
import com.google.cloud.bigtable.data.v2.models.RowCell;
import com.google.cloud.bigtable.data.v2.models.RowMutation;
import com.google.cloud.bigtable.data.v2.models.RowMutationEntry;
import com.google.cloud.bigtable.data.v2.models.SetCell;
import com.google.cloud.bigtable.data.v2.models.TableId;
import com.google.cloud.bigtable.data.v2.models.sql.BoundStatement;
import com.google.cloud.bigtable.data.v2.models.sql.ResultSet;
import com.google.cloud.bigtable.data.v2.models.sql.SqlType;
import com.google.protobuf.ByteString;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;

class Orders {
  static final String INSTANCE = "orders";
  static final String CLUSTER = "orders-c1";
  static final int MEGABYTE = 1 << 20;
  static final int HOUR = 3600;

  final BigtableInstanceAdminClient instances;
  final BigtableTableAdminClient tables;
  final BigtableDataClient data;

  Orders(String project) throws Exception {
    instances =
        BigtableInstanceAdminClient.create(
            BigtableInstanceAdminSettings.newBuilder().setProjectId(project).build());
    tables =
        BigtableTableAdminClient.create(
            BigtableTableAdminSettings.newBuilder()
                .setProjectId(project)
                .setInstanceId(INSTANCE)
                .build());
    data = BigtableDataClient.create(settings(project).build());
  }

  static BigtableDataSettings.Builder settings(String project) {
    return BigtableDataSettings.newBuilder().setProjectId(project).setInstanceId(INSTANCE);
  }

  // ---- what holds ----

  static void same(String what, Object got, Object want) {
    if (!Objects.equals(got, want)) {
      throw new AssertionError(what + ": got " + got + ", want " + want);
    }
  }

  static void refused(String what, StatusCode.Code want, Runnable call) {
    try {
      call.run();
    } catch (ApiException refusal) {
      same(what, refusal.getStatusCode().getCode(), want);
      return;
    }
    throw new AssertionError(what + ": not refused");
  }

  static List<String> columns(Row row) {
    List<String> columns = new ArrayList<>();
    if (row != null) {
      for (RowCell cell : row.getCells()) {
        columns.add(cell.getFamily() + ":" + cell.getQualifier().toStringUtf8());
      }
    }
    return columns;
  }

  static String first(Row row, String family, String column) {
    return row.getCells(family, column).get(0).getValue().toStringUtf8();
  }

  Row read(String key) {
    return data.readRow(TableId.of("t"), key);
  }

  void write(String key, String family, String column, String value) {
    data.mutateRow(
        RowMutation.create(TableId.of("t"), key).setCell(family, column, 1000, value));
  }

  // ---- admin ----

  void anInstance() {
    instances.createInstance(
        CreateInstanceRequest.of(INSTANCE)
            .addCluster(CLUSTER, "us-central1-b", 1, StorageType.SSD)
            .setDisplayName("Orders")
            .addLabel("team", "shop"));
    tables.createTable(CreateTableRequest.of("t").addFamily("f").addFamily("g"));
    instances.updateInstance(UpdateInstanceRequest.of(INSTANCE).setDisplayName("All orders"));
    same("name", instances.getInstance(INSTANCE).getDisplayName(), "All orders");
    same("labels", instances.getInstance(INSTANCE).getLabels(), Map.of("team", "shop"));
    same("zone", instances.getCluster(INSTANCE, CLUSTER).getZone(), "us-central1-b");
    same("nodes", instances.resizeCluster(INSTANCE, CLUSTER, 3).getServeNodes(), 3);
    same("instances", instances.listInstances().size(), 1);
    instances.updateClusterAutoscalingConfig(
        ClusterAutoscalingConfig.of(INSTANCE, CLUSTER)
            .setMinNodes(4)
            .setMaxNodes(6)
            .setCpuUtilizationTargetPercent(60));
    same("nodes so far", instances.getCluster(INSTANCE, CLUSTER).getServeNodes(), 3);
  }

  void appProfiles() {
    AppProfile made =
        instances.createAppProfile(
            CreateAppProfileRequest.of(INSTANCE, "batch")
                .setRoutingPolicy(AppProfile.SingleClusterRoutingPolicy.of(CLUSTER, true)));
    for (String description : List.of("at night", "by day")) { // each from what was made
      instances.updateAppProfile(
          UpdateAppProfileRequest.of(made).setDescription(description).setIgnoreWarnings(true));
    }
    AppProfile shown = instances.getAppProfile(INSTANCE, "batch");
    same("description", shown.getDescription(), "by day");
    same("profiles", instances.listAppProfiles(INSTANCE).size(), 2);
    instances.deleteAppProfile(INSTANCE, "batch", true);
  }

  void tablesAndFamilies() {
    tables.createTable(
        CreateTableRequest.of("schema")
            .addFamily("one", GCRULES.maxVersions(1))
            .addFamily("plain")
            .addSplit(ByteString.copyFromUtf8("g"))
            .addSplit(ByteString.copyFromUtf8("p")));
    tables.modifyFamilies(
        ModifyColumnFamiliesRequest.of("schema")
            .addFamily(
                "rule",
                GCRULES
                    .union()
                    .rule(GCRULES.maxVersions(2))
                    .rule(GCRULES.maxAge(1, TimeUnit.DAYS)))
            .updateFamily("one", GCRULES.maxVersions(3))
            .dropFamily("plain"));
    Map<String, Object> rules = new HashMap<>();
    for (ColumnFamily family : tables.getTable("schema").getColumnFamilies()) {
      rules.put(family.getId(), family.getGCRule());
    }
    same("families", new TreeSet<>(rules.keySet()), new TreeSet<>(List.of("one", "rule")));
    same("rule", rules.get("one"), GCRULES.maxVersions(3));
    same("splits", data.sampleRowKeys(TableId.of("schema")).size(), 3);
    for (String key : List.of("a1", "a2", "b1")) {
      data.mutateRow(RowMutation.create(TableId.of("schema"), key).setCell("one", "q", "v"));
    }
    tables.dropRowRange("schema", "a");
    same("left", keys(Query.create(TableId.of("schema"))), List.of("b1"));
    tables.dropAllRows("schema");
    same("empty", keys(Query.create(TableId.of("schema"))), List.of());
    refused("made twice", StatusCode.Code.ALREADY_EXISTS,
        () -> tables.createTable(CreateTableRequest.of("schema")));
    tables.awaitReplication("t");
    tables.deleteTable("schema");
    same("tables", tables.listTables(), List.of("t"));
  }

  void authorizedViews() {
    SubsetView subset =
        SubsetView.create()
            .addRowPrefix("eu-")
            .setFamilySubsets("f", FamilySubsets.create().addQualifierPrefix("open"));
    tables.createAuthorizedView(
        CreateAuthorizedViewRequest.of("t", "europe").setAuthorizedViewType(subset));
    AuthorizedViewId view = AuthorizedViewId.of("t", "europe");
    data.mutateRow(RowMutation.create(view, "eu-1").setCell("f", "open", "shown"));
    write("eu-1", "g", "secret", "hidden");
    write("us-1", "f", "open", "elsewhere");
    same("view", keys(Query.create(view)), List.of("eu-1"));
    same("columns", columns(data.readRow(view, "eu-1")), List.of("f:open"));
    refused("another row", StatusCode.Code.PERMISSION_DENIED,
        () -> data.mutateRow(RowMutation.create(view, "us-1").setCell("f", "open", "v")));
    SubsetView shown =
        (SubsetView) tables.getAuthorizedView("t", "europe").getAuthorizedViewType();
    same("prefixes", shown.getRowPrefixes(), subset.getRowPrefixes());
    same("views", tables.listAuthorizedViews("t"), List.of("europe"));
    tables.deleteAuthorizedView("t", "europe");
  }

  void backups() throws Exception {
    write("kept", "f", "q", "v");
    org.threeten.bp.Instant soon = org.threeten.bp.Instant.now().plusSeconds(6 * HOUR);
    tables.createBackup(
        CreateBackupRequest.of(CLUSTER, "nightly").setSourceTableId("t").setExpireTime(soon));
    org.threeten.bp.Instant later = soon.plusSeconds(42 * HOUR);
    tables.updateBackup(UpdateBackupRequest.of(CLUSTER, "nightly").setExpireTime(later));
    tables.copyBackup(
        CopyBackupRequest.of(CLUSTER, "nightly")
            .setDestination(CLUSTER, "copied")
            .setExpireTime(later));
    Backup shown = tables.getBackup(CLUSTER, "nightly");
    same("source", shown.getSourceTableId(), "t");
    same("expires", shown.getExpireTime().getEpochSecond(), later.getEpochSecond());
    tables.restoreTable(
        RestoreTableRequest.of(CLUSTER, "nightly").setTableId("restored"));
    same("restored", first(data.readRow(TableId.of("restored"), "kept"), "f", "q"), "v");
    same("backups", new TreeSet<>(tables.listBackups(CLUSTER)),
        new TreeSet<>(List.of("copied", "nightly")));
    tables.deleteTable("restored");
    tables.deleteBackup(CLUSTER, "nightly");
    tables.deleteBackup(CLUSTER, "copied");
  }

  void end() {
    instances.deleteInstance(INSTANCE);
    same("exists", instances.exists(INSTANCE), false);
  }

  // ---- rows ----

  List<String> keys(Query query) {
    List<String> keys = new ArrayList<>();
    data.readRows(query).forEach(row -> keys.add(row.getKey().toStringUtf8()));
    return keys;
  }

  void writes() {
    data.mutateRow(
        RowMutation.create(TableId.of("t"), "w")
            .setCell("f", "q", 1000, "1")
            .setCell("f", "q", 2000, "2")
            .setCell("g", "other", "now"));
    Row row = read("w");
    same("columns", columns(row), List.of("f:q", "f:q", "g:other"));
    same("newest first", first(row, "f", "q"), "2");
    data.mutateRow(
        RowMutation.create(TableId.of("t"), "w").deleteFamily("g").deleteCells("f", "none"));
    same("left", columns(read("w")), List.of("f:q", "f:q"));
    data.mutateRow(RowMutation.create(TableId.of("t"), "w").deleteRow());
    same("exists", data.exists(TableId.of("t"), "w"), false);
    refused("no such family", StatusCode.Code.NOT_FOUND, () -> write("w", "none", "q", "v"));
    refused("no such table", StatusCode.Code.NOT_FOUND,
        () -> data.readRow(TableId.of("none"), "w"));
  }

  void atomics() {
    for (boolean matched : List.of(false, true)) {
      same("matched", matched,
          data.checkAndMutateRow(
              ConditionalRowMutation.create(TableId.of("t"), "order")
                  .condition(FILTERS.value().exactMatch("new"))
                  .then(Mutation.create().setCell("f", "state", 1000, "paid"))
                  .otherwise(Mutation.create().setCell("f", "state", 1000, "new"))));
    }
    ReadModifyWriteRow change =
        ReadModifyWriteRow.create(TableId.of("t"), "order")
            .increment("g", "count", 5)
            .append("g", "log", "x");
    data.readModifyWriteRow(change);
    Row changed = data.readModifyWriteRow(change);
    same("count", changed.getCells("g", "count").get(0).getValue().byteAt(7), (byte) 10);
    same("log", first(changed, "g", "log"), "xx");
    same("state", first(read("order"), "f", "state"), "paid");
  }

  void filters() {
    data.mutateRow(
        RowMutation.create(TableId.of("t"), "fruit")
            .setCell("f", "a", 1000, "apple")
            .setCell("f", "b", 2000, "berry")
            .setCell("g", "c", 3000, "cherry"));
    filtered(FILTERS.family().exactMatch("g"), "g:c");
    filtered(FILTERS.family().regex("no.*"));
    filtered(FILTERS.qualifier().regex("[ab]"), "f:a", "f:b");
    filtered(FILTERS.value().regex(".*rry"), "f:b", "g:c");
    filtered(FILTERS.value().range().startClosed("b").endOpen("c"), "f:b");
    filtered(FILTERS.qualifier().rangeWithinFamily("f").startOpen("a"), "f:b");
    filtered(FILTERS.timestamp().range().startClosed(2000L).endOpen(3000L), "f:b");
    filtered(FILTERS.offset().cellsPerRow(2), "g:c");
    filtered(FILTERS.limit().cellsPerRow(1), "f:a");
    filtered(
        FILTERS
            .interleave()
            .filter(FILTERS.qualifier().exactMatch("a"))
            .filter(FILTERS.qualifier().regex("[ac]")),
        "f:a", "f:a", "g:c");
    filtered(
        FILTERS
            .condition(FILTERS.value().exactMatch("apple"))
            .then(FILTERS.qualifier().exactMatch("c"))
            .otherwise(FILTERS.pass()),
        "g:c");
    filtered(
        FILTERS.chain().filter(FILTERS.family().exactMatch("f")).filter(FILTERS.value().strip()),
        "f:a", "f:b");
    filtered(FILTERS.block());
    Filter labelled =
        FILTERS
            .chain()
            .filter(FILTERS.qualifier().exactMatch("a"))
            .filter(FILTERS.label("sweet"));
    Row row = data.readRow(TableId.of("t"), "fruit", labelled);
    same("labels", row.getCells().get(0).getLabels(), List.of("sweet"));
    refused("a family that is not there", StatusCode.Code.NOT_FOUND,
        () -> data.readRow(TableId.of("t"), "fruit", FILTERS.family().exactMatch("none")));
  }

  void filtered(Filter filter, String... want) {
    Row row = data.readRow(TableId.of("t"), "fruit", filter);
    same(filter.toProto().toString(), columns(row), Arrays.asList(want));
  }

  void ranges() {
    for (int each = 1; each <= 5; each++) {
      write("r" + each, "f", "q", "v");
    }
    Query all = Query.create(TableId.of("t")).prefix("r");
    same("prefix", keys(all), List.of("r1", "r2", "r3", "r4", "r5"));
    same("limit", keys(all.clone().limit(2)), List.of("r1", "r2"));
    same("reversed", keys(all.clone().reversed(true).limit(2)), List.of("r5", "r4"));
    same("key", keys(all.clone().filter(FILTERS.key().regex("r[24]"))), List.of("r2", "r4"));
    Query some = Query.create(TableId.of("t")).range("r2", "r4").rowKey("r5").rowKey("none");
    same("ranges and keys", keys(some), List.of("r2", "r3", "r5"));
  }

  // ---- much data ----

  void fill(String table, int rows, int cells, int size) throws Exception {
    ByteString value = ByteString.copyFrom(new byte[size]);
    tables.createTable(CreateTableRequest.of(table).addFamily("f"));
    try (Batcher<RowMutationEntry, Void> batcher =
        data.newBulkMutationBatcher(TableId.of(table))) {
      for (int row = 0; row < rows; row++) {
        RowMutationEntry entry = RowMutationEntry.create(String.format("r%06d", row));
        for (int cell = 0; cell < cells; cell++) {
          entry.setCell("f", ByteString.copyFromUtf8(String.format("q%04d", cell)), 1000, value);
        }
        batcher.add(entry);
      }
    }
  }

  void fillAndCount(int rows, int cells, int size) throws Exception {
    fill("scanned", rows, cells, size);
    long[] seen = new long[3];
    for (Row row : data.readRows(Query.create(TableId.of("scanned")))) {
      seen[0]++;
      for (RowCell cell : row.getCells()) {
        seen[1]++;
        seen[2] += cell.getValue().size();
      }
    }
    long count = (long) rows * cells;
    same("rows, cells, bytes", Arrays.toString(seen),
        Arrays.toString(new long[] {rows, count, count * size}));
    tables.deleteTable("scanned");
  }

  void scans() throws Exception {
    fillAndCount(1000, 10, 100);
    fillAndCount(1000, 10, 1000);
    fillAndCount(200, 50, 1000);
    fillAndCount(66, 100, 1000);
  }

  void bulk() throws Exception {
    fillAndCount(5000, 4, 50);
  }

  void largeCells() {
    for (int megabytes : new int[] {3, 5, 60}) {
      byte[] bytes = new byte[megabytes * MEGABYTE];
      Arrays.fill(bytes, (byte) megabytes);
      ByteString value = ByteString.copyFrom(bytes);
      String key = "large-" + megabytes;
      data.mutateRow(
          RowMutation.create(TableId.of("t"), key)
              .setCell("f", ByteString.copyFromUtf8("q"), 1000, value)
              .setCell("g", "after", "small"));
      Row row = read(key);
      same(key, row.getCells("f").get(0).getValue().equals(value), true);
      same("after it", first(row, "g", "after"), "small");
      data.mutateRow(RowMutation.create(TableId.of("t"), key).deleteRow());
    }
  }

  // ---- SQL ----

  static <T> List<T> two(T each) {
    return Arrays.asList(each, each);
  }

  void parameters() {
    Instant moment = Instant.parse("2024-02-29T01:02:03.456789Z");
    ByteString bytes = ByteString.copyFrom(new byte[] {0, -1});
    back(SqlType.bytes(), bytes, (to, value) -> to.setBytesParam("one", value),
        from -> from.getBytes("one"));
    back(SqlType.string(), "é😀", (to, value) -> to.setStringParam("one", value),
        from -> from.getString("one"));
    back(SqlType.int64(), Long.MIN_VALUE, (to, value) -> to.setLongParam("one", value),
        from -> from.getLong("one"));
    back(SqlType.float32(), 1.25f, (to, value) -> to.setFloatParam("one", value),
        from -> from.getFloat("one"));
    back(SqlType.float64(), -2.5e300, (to, value) -> to.setDoubleParam("one", value),
        from -> from.getDouble("one"));
    back(SqlType.bool(), true, (to, value) -> to.setBooleanParam("one", value),
        from -> from.getBoolean("one"));
    back(SqlType.timestamp(), moment, (to, value) -> to.setTimestampParam("one", value),
        from -> from.getTimestamp("one"));
    back(SqlType.date(), Date.fromYearMonthDay(2024, 2, 29),
        (to, value) -> to.setDateParam("one", value), from -> from.getDate("one"));
  }

  interface Setter<T> {
    void set(BoundStatement.Builder to, T value);
  }

  interface Getter<T> {
    T get(ResultSet from);
  }

  /** Asks for a value, an array of it and a NULL of its type. */
  <T> void back(SqlType<T> type, T value, Setter<T> set, Getter<T> get) {
    SqlType.Array<T> array = SqlType.arrayOf(type);
    Map<String, SqlType<?>> types = Map.of("one", type, "many", array);
    BoundStatement.Builder bound =
        data.prepareStatement("SELECT @one AS one, @many AS many", types).bind();
    set.set(bound, value);
    bound.setListParam("many", two(value), array);
    try (ResultSet rows = data.executeQuery(bound.build())) {
      same("a row", rows.next(), true);
      same(type.toString(), get.get(rows), value);
      same("array of it", rows.getList("many", array), two(value));
      same("another", rows.next(), false);
    }
    BoundStatement.Builder without =
        data.prepareStatement("SELECT @one AS one, @many AS many", types).bind();
    set.set(without, null);
    without.setListParam("many", null, array);
    try (ResultSet rows = data.executeQuery(without.build())) {
      same("a row", rows.next(), true);
      same("nulls", rows.isNull("one") && rows.isNull("many"), true);
    }
  }

  /** The cells of a row of a view, in words. */
  static List<String> cellsOf(Row row) {
    List<String> cells = new ArrayList<>();
    for (RowCell cell : row == null ? List.<RowCell>of() : row.getCells()) {
      String value = HexFormat.of().formatHex(cell.getValue().toByteArray());
      String column = cell.getFamily() + ":" + cell.getQualifier().toStringUtf8();
      cells.add(column + "@" + cell.getTimestamp() + "=" + value);
    }
    return cells;
  }

  void setAmount(String key, long amount) {
    ByteString value = ByteString.copyFrom(ByteBuffer.allocate(8).putLong(0, amount));
    data.mutateRow(
        RowMutation.create(TableId.of("viewed"), key)
            .setCell("f", ByteString.copyFromUtf8("amount"), 1000, value));
  }

  void materializedViews() throws Exception {
    tables.createTable(CreateTableRequest.of("viewed").addFamily("f"));
    setAmount("r1", 5);
    String query =
        "SELECT _key, COUNT(f['amount']) AS `result.count`, "
            + "SUM(TO_INT64(f['amount'])) AS total FROM viewed GROUP BY _key";
    instances.createMaterializedView(
        CreateMaterializedViewRequest.of(INSTANCE, "totals").setQuery(query));
    same("listed", instances.listMaterializedViews(INSTANCE).size(), 1);
    MaterializedViewId view = MaterializedViewId.of("totals");
    List<String> first =
        List.of("default:@0=", "default:total@0=0000000000000005",
            "result:count@0=0000000000000001");
    same("r1", cellsOf(data.readRow(view, "r1")), first);
    setAmount("r1", 7);
    List<String> then =
        List.of("default:@0=", "default:total@0=0000000000000007",
            "result:count@0=0000000000000001");
    for (int i = 0; i < 1200 && !cellsOf(data.readRow(view, "r1")).equals(then); i++) {
      Thread.sleep(50);
    }
    same("r1 then", cellsOf(data.readRow(view, "r1")), then);
    same("samples", data.sampleRowKeys(view).get(0).getKey(), ByteString.EMPTY);
    try (ResultSet results =
        data.executeQuery(
            data.prepareStatement("SELECT total FROM totals", Map.of()).bind().build())) {
      same("a row", results.next(), true);
      same("total", results.getLong("total"), 7L);
    }
    refused("a table that is read", StatusCode.Code.FAILED_PRECONDITION,
        () -> tables.deleteTable("viewed"));
    instances.deleteMaterializedView(INSTANCE, "totals");
    tables.deleteTable("viewed");
  }

  void ofTable() throws Exception {
    fill("sales", 1000, 3, 200);
    Map<String, SqlType<?>> types = Map.of("start", SqlType.bytes());
    BoundStatement bound =
        data.prepareStatement("SELECT _key, f FROM sales WHERE _key >= @start", types)
            .bind()
            .setBytesParam("start", ByteString.copyFromUtf8("r000100"))
            .build();
    SqlType.Map<ByteString, ByteString> family = SqlType.mapOf(SqlType.bytes(), SqlType.bytes());
    int rows = 0;
    int size = 0;
    try (ResultSet results = data.executeQuery(bound)) {
      for (; results.next(); rows++) { // of many messages
        for (ByteString value : results.getMap("f", family).values()) {
          size += value.size();
        }
      }
    }
    same("rows", rows, 900);
    same("bytes", size, 900 * 3 * 200);
    String counting = "SELECT COUNT(*) AS n FROM sales WHERE f['q0001'] IS NOT NULL";
    try (ResultSet results =
        data.executeQuery(data.prepareStatement(counting, Map.of()).bind().build())) {
      same("a row", results.next(), true);
      same("count", results.getLong("n"), 1000L);
    }
    refused("no such column", StatusCode.Code.INVALID_ARGUMENT,
        () -> data.prepareStatement("SELECT nothing FROM sales", Map.of()));
    tables.deleteTable("sales");
  }

  // ---- change streams: the calls that Beam makes ----

  static String entries(ChangeStreamMutation change) {
    List<String> entries = new ArrayList<>();
    for (Entry entry : change.getEntries()) {
      if (entry instanceof SetCell set) {
        entries.add("set " + set.getQualifier().toStringUtf8() + " " + set.getValue().size());
      } else if (entry instanceof DeleteFamily family) {
        entries.add("delete " + family.getFamilyName());
      } else if (entry instanceof DeleteCells cells) {
        entries.add("delete " + cells.getQualifier().toStringUtf8());
      } else if (entry instanceof AddToCell) {
        entries.add("add");
      } else {
        entries.add(entry.toString());
      }
    }
    return change.getRowKey().toStringUtf8() + ": " + String.join(", ", entries);
  }

  List<ChangeStreamRecord> changes(ReadChangeStreamQuery query) {
    List<ChangeStreamRecord> records = new ArrayList<>();
    for (ChangeStreamRecord record : data.readChangeStream(query)) {
      if (!(record instanceof Heartbeat)) {
        records.add(record);
      }
    }
    return records;
  }

  void changeStreams() {
    TableId table = TableId.of("changes");
    CreateTableRequest request = CreateTableRequest.of("changes").addFamily("f").addFamily("g");
    request.addSplit(ByteString.copyFromUtf8("m"));
    request.addChangeStreamRetention(org.threeten.bp.Duration.ofDays(1));
    tables.createTable(request);
    Instant start = Instant.now();
    data.mutateRow(
        RowMutation.create(table, "a")
            .setCell("f", "large", 1000, "x".repeat(5 * MEGABYTE))
            .deleteCells("f", "small")
            .deleteFamily("g"));
    data.mutateRow(RowMutation.create(table, "b").setCell("g", "q", 1000, "v"));
    data.mutateRow(RowMutation.create(table, "b").deleteRow());
    data.readModifyWriteRow(ReadModifyWriteRow.create(table, "c").append("f", "q", "xyz"));
    data.mutateRow(RowMutation.create(table, "z").setCell("f", "q", 1000, "another's"));
    List<ByteStringRange> partitions = new ArrayList<>();
    data.generateInitialChangeStreamPartitions("changes").forEach(partitions::add);
    same("partitions", partitions.size(), 2);
    ReadChangeStreamQuery query =
        ReadChangeStreamQuery.create("changes")
            .streamPartition(partitions.get(0))
            .endTime(Instant.now().plusMillis(500));
    List<ChangeStreamRecord> records = changes(query.startTime(start));
    List<String> told = new ArrayList<>();
    for (ChangeStreamRecord record : records.subList(0, records.size() - 1)) {
      told.add(entries((ChangeStreamMutation) record));
    }
    same("changes", told, List.of(
        "a: set large " + 5 * MEGABYTE + ", delete small, delete g",
        "b: set q 1", "b: delete g", "c: set q 3"));
    CloseStream close = (CloseStream) records.get(4);
    same("the end", close.getStatus().getCode(), Status.Code.OK);
    String token = ((ChangeStreamMutation) records.get(1)).getToken();
    ReadChangeStreamQuery later =
        ReadChangeStreamQuery.create("changes")
            .streamPartition(partitions.get(0))
            .endTime(Instant.now())
            .continuationTokens(
                List.of(ChangeStreamContinuationToken.create(partitions.get(0), token)));
    same("after a token", changes(later).size(), 3);
    refused("a table with a stream", StatusCode.Code.FAILED_PRECONDITION,
        () -> tables.deleteTable("changes"));
    tables.updateTable(UpdateTableRequest.of("changes").disableChangeStreamRetention());
    tables.deleteTable("changes");
  }

  // One random mutation, noted in words as its change will be told.
  static void mutate(Random random, RowMutation row, List<String> words) {
    String column = "q" + random.nextInt(4);
    switch (random.nextInt(6)) {
      case 0 -> {
        row.deleteCells("f", column);
        words.add("delete " + column);
      }
      case 1 -> {
        row.deleteFamily("g");
        words.add("delete g");
      }
      case 2 -> {
        row.addToCell("sum", column, 0, random.nextInt());
        words.add("add");
      }
      default -> {
        int size = random.nextInt(10) == 0 ? random.nextInt(3 * MEGABYTE) : random.nextInt(100);
        row.setCell(random.nextBoolean() ? "f" : "g", column, 1000, "x".repeat(size));
        words.add("set " + column + " " + size);
      }
    }
  }

  // Their client fails for good on what its rules do not allow.
  void randomChanges() {
    TableId table = TableId.of("random");
    CreateTableRequest request = CreateTableRequest.of("random").addFamily("f").addFamily("g");
    request.addFamily("sum", Type.int64Sum());
    request.addChangeStreamRetention(org.threeten.bp.Duration.ofDays(1));
    tables.createTable(request);
    Instant start = Instant.now();
    Random random = new Random(23);
    List<String> expected = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      String key = "k" + random.nextInt(10);
      RowMutation row = RowMutation.create(table, key);
      List<String> words = new ArrayList<>();
      for (int n = 0; n <= random.nextInt(4); n++) {
        mutate(random, row, words);
      }
      data.mutateRow(row);
      expected.add(key + ": " + String.join(", ", words));
    }
    ReadChangeStreamQuery query =
        ReadChangeStreamQuery.create("random")
            .streamPartition("", "")
            .startTime(start)
            .endTime(Instant.now().plusMillis(500));
    List<ChangeStreamRecord> records = changes(query);
    List<String> told = new ArrayList<>();
    for (ChangeStreamRecord record : records.subList(0, records.size() - 1)) {
      told.add(entries((ChangeStreamMutation) record));
    }
    same("changes", told, expected);
    tables.updateTable(UpdateTableRequest.of("random").disableChangeStreamRetention());
    tables.deleteTable("random");
  }

  // ---- all of them ----

  interface Check {
    void run() throws Exception;
  }

  static int failures = 0;

  static void check(String name, Check check) {
    try {
      check.run();
      System.out.println("ok " + name);
    } catch (Exception | AssertionError failure) {
      System.err.println("FAILED " + name + ": " + failure);
      failures++;
    }
  }

  public static void main(String[] arguments) throws Exception {
    Orders orders = new Orders(arguments[0]);
    check("an instance and its clusters", orders::anInstance);
    check("app profiles", orders::appProfiles);
    check("tables and families", orders::tablesAndFamilies);
    check("authorized views", orders::authorizedViews);
    check("backups", orders::backups);
    check("writes and what they refuse", orders::writes);
    check("conditions, increments, appends", orders::atomics);
    check("filters", orders::filters);
    check("ranges, both ways", orders::ranges);
    check("bulk writes", orders::bulk);
    check("wide and long scans", orders::scans);
    check("large cells", orders::largeCells);
    check("SQL and its parameters", orders::parameters);
    check("SQL over a table", orders::ofTable);
    check("materialized views", orders::materializedViews);
    check("change streams", orders::changeStreams);
    check("random changes", orders::randomChanges);
    check("the end of the instance", orders::end);
    orders.data.close();
    orders.tables.close();
    orders.instances.close();
    System.exit(failures == 0 ? 0 : 1);
  }
}
