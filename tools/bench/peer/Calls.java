import java.util.concurrent.CompletableFuture;

/** A server as the harness (Streams.java) sees it. Each call says how many rows came of it, or
 * fails. Any thread, many at once. */
interface Calls extends AutoCloseable {
    /** Makes the table anew, with nothing in it. */
    void makeTable() throws Exception;

    /** A row by its key; fails unless it has all its cells. */
    CompletableFuture<Integer> read(byte[] key);

    /** One row's cells. */
    CompletableFuture<Integer> write(byte[] key, byte[][] values);

    /** So many rows at once, each with its own cells. */
    CompletableFuture<Integer> batch(byte[][] keys, byte[][][] values);

    /** At most so many rows from a key on; fails unless each has all its cells. */
    CompletableFuture<Integer> scan(byte[] from, int rows);
}
