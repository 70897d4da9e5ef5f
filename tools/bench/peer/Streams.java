import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.Scanner;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntConsumer;
import java.util.function.IntUnaryOperator;

/**
 * Makes requests of a server in so many streams, each a thread that makes its next when its last
 * was answered, with keys, columns and sizes of values like those of `trestle bench`.
 *
 * <p>It goes on from one workload to the next in one process, so that what the virtual machine has
 * compiled stays: each line of standard input is one, "WORKLOAD WARM_SECONDS SECONDS SEED", and is
 * answered by a line of JSON with what `trestle bench --json` says of one.
 */
final class Streams {
    private static final int STREAMS = 64;
    private static final int BATCH = 100;
    private static final int VALUE = 100;
    private static final int CLOCK_TICKS = 100; // a second, in /proc, on Linux

    private final Calls calls;
    private final long server;
    private final int rows;
    private final int cells;
    private final byte[][] keys;

    /** What is measured: requests that were answered, and how long each took. */
    private static final class Window {
        private final AtomicInteger requests = new AtomicInteger();
        private final AtomicLong rows = new AtomicLong();
        private final int[] micros = new int[1 << 22]; // more requests than a window has
        final AtomicReference<Throwable> failure = new AtomicReference<>();

        /** Waits for a request, and counts it. */
        void await(CompletableFuture<Integer> request) {
            long began = System.nanoTime();
            try {
                rows.addAndGet(request.join());
            } catch (RuntimeException failed) {
                failure.compareAndSet(null, failed);
                return;
            }
            micros[requests.getAndIncrement()] = (int) ((System.nanoTime() - began) / 1000);
        }

        String told(double seconds, double serverSeconds) {
            int[] sorted = Arrays.copyOf(micros, requests.get());
            Arrays.sort(sorted);
            return String.format(Locale.ROOT,
                    "{\"requests\": %d, \"rows\": %d, \"seconds\": %.3f, "
                            + "\"server_cpu_seconds\": %.2f, \"p50_us\": %d, \"p99_us\": %d}",
                    sorted.length, rows.get(), seconds, serverSeconds,
                    sorted[sorted.length / 2], sorted[(int) (sorted.length * 0.99)]);
        }
    }

    private Streams(Calls calls, long server, int rows, int cells) {
        this.calls = calls;
        this.server = server;
        this.rows = rows;
        this.cells = cells;
        keys = new byte[rows][];
        for (int i = 0; i < rows; i++) {
            keys[i] = key(i);
        }
    }

    /** The output function of splitmix64, as `trestle bench` has it, as a key of 24 bytes. */
    private static byte[] key(long index) {
        long number = index + 1;
        number = (number ^ (number >>> 30)) * 0xbf58476d1ce4e5b9L;
        number = (number ^ (number >>> 27)) * 0x94d049bb133111ebL;
        number ^= number >>> 31;
        String digits = "0".repeat(20) + Long.toUnsignedString(number);
        String key = "user" + digits.substring(digits.length() - 20);
        return key.getBytes(StandardCharsets.US_ASCII);
    }

    /** Reads workloads until the input ends. */
    static void run(Calls calls, long server, int rows, int cells) throws Exception {
        Streams streams = new Streams(calls, server, rows, cells);
        try (Scanner input = new Scanner(System.in)) {
            while (input.hasNext()) {
                System.out.println(streams.workload(input.next(), input.nextDouble(),
                        input.nextDouble(), input.nextLong()));
                System.out.flush();
            }
        }
        calls.close();
    }

    private String workload(String name, double warm, double seconds, long seed) throws Exception {
        if (name.equals("load")) {
            return load(seed);
        }
        if (warm > 0) {
            measure(name, warm, seed);
        }
        return measure(name, seconds, seed + STREAMS);
    }

    // --- requests ---

    private byte[][] values(SplittableRandom random) {
        byte[][] values = new byte[cells][VALUE];
        for (byte[] value : values) {
            random.nextBytes(value);
        }
        return values;
    }

    private CompletableFuture<Integer> request(String name, SplittableRandom random) {
        byte[] key = keys[random.nextInt(rows)];
        switch (name) {
            case "read":
                return calls.read(key);
            case "write":
                return calls.write(key, values(random));
            case "scan":
                return calls.scan(key, BATCH);
            case "batch":
                return batch(random, i -> random.nextInt(rows));
            default:
                throw new IllegalArgumentException("there is no workload " + name);
        }
    }

    private CompletableFuture<Integer> batch(SplittableRandom random,
            IntUnaryOperator row) {
        byte[][] some = new byte[BATCH][];
        byte[][][] values = new byte[BATCH][][];
        for (int i = 0; i < BATCH; i++) {
            some[i] = keys[row.applyAsInt(i)];
            values[i] = values(random);
        }
        return calls.batch(some, values);
    }

    // --- measuring ---

    private double serverSeconds() throws Exception {
        String stat = Files.readString(Path.of("/proc/" + server + "/stat"));
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return (Long.parseLong(fields[11]) + Long.parseLong(fields[12])) / (double) CLOCK_TICKS;
    }

    private String measure(String name, double seconds, long seed) throws Exception {
        Window window = new Window();
        long until = System.nanoTime() + (long) (seconds * 1e9);
        return inStreams(window, stream -> {
            SplittableRandom random = new SplittableRandom(seed + stream);
            while (System.nanoTime() < until && window.failure.get() == null) {
                window.await(request(name, random));
            }
        });
    }

    /** All rows, each once. */
    private String load(long seed) throws Exception {
        calls.makeTable();
        Window window = new Window();
        AtomicLong done = new AtomicLong();
        return inStreams(window, stream -> {
            SplittableRandom random = new SplittableRandom(seed + stream);
            long at = done.getAndAdd(BATCH);
            while (at < rows && window.failure.get() == null) {
                int from = (int) at;
                window.await(batch(random, i -> (from + i) % rows));
                at = done.getAndAdd(BATCH);
            }
        });
    }

    /** The line that is answered. */
    private String inStreams(Window window, IntConsumer stream) throws Exception {
        double before = serverSeconds();
        long began = System.nanoTime();
        Thread[] threads = new Thread[STREAMS];
        for (int i = 0; i < STREAMS; i++) {
            int number = i;
            threads[i] = new Thread(() -> stream.accept(number));
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        if (window.failure.get() != null) {
            throw new IllegalStateException("a request failed", window.failure.get());
        }
        double seconds = (System.nanoTime() - began) / 1e9;
        return window.told(seconds, serverSeconds() - before);
    }
}
