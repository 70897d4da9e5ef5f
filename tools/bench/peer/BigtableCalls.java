import com.google.api.core.ApiFuture;
import com.google.api.core.ApiFutureCallback;
import com.google.api.core.ApiFutures;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminClient;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminSettings;
import com.google.cloud.bigtable.admin.v2.models.CreateTableRequest;
import com.google.cloud.bigtable.admin.v2.models.GCRules;
import com.google.cloud.bigtable.data.v2.BigtableDataClient;
import com.google.cloud.bigtable.data.v2.BigtableDataSettings;
import com.google.cloud.bigtable.data.v2.models.BulkMutation;
import com.google.cloud.bigtable.data.v2.models.Mutation;
import com.google.cloud.bigtable.data.v2.models.Query;
import com.google.cloud.bigtable.data.v2.models.Range.ByteStringRange;
import com.google.cloud.bigtable.data.v2.models.Row;
import com.google.cloud.bigtable.data.v2.models.RowMutation;
import com.google.cloud.bigtable.data.v2.models.RowMutationEntry;
import com.google.cloud.bigtable.data.v2.models.TableId;
import com.google.common.util.concurrent.MoreExecutors;
import com.google.protobuf.ByteString;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/** Trestle by Google's client for Java, as an application has it: PORT SERVER_PID ROWS CELLS. */
final class BigtableCalls implements Calls {
    private static final String FAMILY = "cf";
    private static final long TIMESTAMP = 1000;

    private final int port;
    private final BigtableDataClient client;
    private final String name;
    private final TableId table;
    private final ByteString[] columns;

    private BigtableCalls(int port, int cells) throws Exception {
        this.port = port;
        client = BigtableDataClient.create(BigtableDataSettings.newBuilderForEmulator(port)
                .setProjectId("p").setInstanceId("i").build());
        name = "java" + cells;
        table = TableId.of(name);
        columns = new ByteString[cells];
        for (int i = 0; i < cells; i++) {
            columns[i] = ByteString.copyFromUtf8("c" + i);
        }
    }

    @Override
    public void makeTable() throws Exception {
        try (BigtableTableAdminClient admin = BigtableTableAdminClient.create(
                BigtableTableAdminSettings.newBuilderForEmulator(port)
                        .setProjectId("p").setInstanceId("i").build())) {
            if (admin.exists(name)) {
                admin.deleteTable(name);
            }
            admin.createTable(CreateTableRequest.of(name)
                    .addFamily(FAMILY, GCRules.GCRULES.maxVersions(1)));
        }
    }

    private static <T> CompletableFuture<Integer> rows(ApiFuture<T> call,
            Function<T, Integer> count) {
        CompletableFuture<Integer> rows = new CompletableFuture<>();
        ApiFutures.addCallback(call, new ApiFutureCallback<T>() {
            @Override
            public void onSuccess(T answer) {
                try {
                    rows.complete(count.apply(answer));
                } catch (RuntimeException unsound) {
                    rows.completeExceptionally(unsound);
                }
            }

            @Override
            public void onFailure(Throwable failure) {
                rows.completeExceptionally(failure);
            }
        }, MoreExecutors.directExecutor());
        return rows;
    }

    private int counted(Row row) {
        if (row == null || row.getCells().size() != columns.length) {
            throw new IllegalStateException("a row lacks cells");
        }
        return 1;
    }

    private int allOf(List<Row> found) {
        return found.stream().mapToInt(this::counted).sum();
    }

    @Override
    public CompletableFuture<Integer> read(byte[] key) {
        return rows(client.readRowAsync(table, ByteString.copyFrom(key)), this::counted);
    }

    private Mutation mutation(byte[][] values) {
        Mutation mutation = Mutation.create();
        for (int i = 0; i < columns.length; i++) {
            mutation.setCell(FAMILY, columns[i], TIMESTAMP, ByteString.copyFrom(values[i]));
        }
        return mutation;
    }

    @Override
    public CompletableFuture<Integer> write(byte[] key, byte[][] values) {
        RowMutation row = RowMutation.create(table, ByteString.copyFrom(key), mutation(values));
        return rows(client.mutateRowAsync(row), nothing -> 1);
    }

    @Override
    public CompletableFuture<Integer> batch(byte[][] keys, byte[][][] values) {
        BulkMutation rows = BulkMutation.create(table);
        for (int i = 0; i < keys.length; i++) {
            rows.add(RowMutationEntry.createFromMutationUnsafe(ByteString.copyFrom(keys[i]),
                    mutation(values[i])));
        }
        return rows(client.bulkMutateRowsAsync(rows), nothing -> keys.length);
    }

    @Override
    public CompletableFuture<Integer> scan(byte[] from, int rows) {
        Query query = Query.create(table).limit(rows)
                .range(ByteStringRange.unbounded().startClosed(ByteString.copyFrom(from)));
        return rows(client.readRowsCallable().all().futureCall(query), this::allOf);
    }

    @Override
    public void close() {
        client.close();
    }

    public static void main(String[] arguments) throws Exception {
        int cells = Integer.parseInt(arguments[3]);
        Streams.run(new BigtableCalls(Integer.parseInt(arguments[0]), cells),
                Long.parseLong(arguments[1]), Integer.parseInt(arguments[2]), cells);
        System.exit(0); // threads of the client's stay
    }
}
