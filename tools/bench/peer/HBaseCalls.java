import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.AdvancedScanResultConsumer;
import org.apache.hadoop.hbase.client.AsyncAdmin;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.AsyncTable;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/** HBase by its own asynchronous client: PORT_OF_ZOOKEEPER SERVER_PID ROWS CELLS. A write is
 * answered when the log is synced (FSYNC_WAL; SYNC_WAL, the default, leaves it to the system). */
final class HBaseCalls implements Calls {
    private static final byte[] FAMILY = Bytes.toBytes("cf");
    private static final long TIMESTAMP = 1000;

    private final AsyncConnection connection;
    private final AsyncTable<AdvancedScanResultConsumer> table;
    private final TableName name;
    private final byte[][] columns;

    private HBaseCalls(String port, int cells) throws Exception {
        Configuration configuration = HBaseConfiguration.create();
        configuration.set("hbase.zookeeper.quorum", "127.0.0.1");
        configuration.set("hbase.zookeeper.property.clientPort", port);
        configuration.set("hbase.client.ipc.pool.size", "4");
        connection = ConnectionFactory.createAsyncConnection(configuration).get();
        name = TableName.valueOf("bench" + cells);
        table = connection.getTable(name);
        columns = new byte[cells][];
        for (int i = 0; i < cells; i++) {
            columns[i] = Bytes.toBytes("c" + i);
        }
    }

    @Override
    public void makeTable() {
        AsyncAdmin admin = connection.getAdmin();
        if (admin.tableExists(name).join()) {
            admin.disableTable(name).join();
            admin.deleteTable(name).join();
        }
        admin.createTable(TableDescriptorBuilder.newBuilder(name)
                .setDurability(Durability.FSYNC_WAL)
                .setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY)).build()).join();
    }

    private int counted(Result row) {
        if (row.size() != columns.length) {
            throw new IllegalStateException("a row has " + row.size() + " cells");
        }
        return 1;
    }

    private Put put(byte[] key, byte[][] values) {
        Put put = new Put(key).setDurability(Durability.FSYNC_WAL);
        for (int i = 0; i < columns.length; i++) {
            put.addColumn(FAMILY, columns[i], TIMESTAMP, values[i]);
        }
        return put;
    }

    @Override
    public CompletableFuture<Integer> read(byte[] key) {
        return table.get(new Get(key)).thenApply(this::counted);
    }

    @Override
    public CompletableFuture<Integer> write(byte[] key, byte[][] values) {
        return table.put(put(key, values)).thenApply(nothing -> 1);
    }

    @Override
    public CompletableFuture<Integer> batch(byte[][] keys, byte[][][] values) {
        List<Put> puts = new ArrayList<>();
        for (int i = 0; i < keys.length; i++) {
            puts.add(put(keys[i], values[i]));
        }
        return table.putAll(puts).thenApply(nothing -> puts.size());
    }

    @Override
    public CompletableFuture<Integer> scan(byte[] from, int rows) {
        Scan scan = new Scan().withStartRow(from).setLimit(rows).setCaching(rows)
                .setReadType(Scan.ReadType.PREAD);
        return table.scanAll(scan)
                .thenApply(found -> found.stream().mapToInt(this::counted).sum());
    }

    @Override
    public void close() throws Exception {
        connection.close();
    }

    public static void main(String[] arguments) throws Exception {
        int cells = Integer.parseInt(arguments[3]);
        Streams.run(new HBaseCalls(arguments[0], cells), Long.parseLong(arguments[1]),
                Integer.parseInt(arguments[2]), cells);
        System.exit(0); // threads of the client's stay
    }
}
