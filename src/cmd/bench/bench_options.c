#include "client/endpoint.h"
#include "cmd/bench/bench.h"

#define ROW(kind_, member_, preset_, least_, most_, unit_, sentence_)                              \
    {                                                                                              \
        .member = #member_, .kind = OPTION_##kind_,                                                \
        .offset = offsetof(struct bench_options, member_), .preset = preset_, .least = least_,     \
        .most = most_, .unit = unit_, .sentence = sentence_                                        \
    }

enum {
    ROWS_MOST = 1000000000,
    CELLS_MOST = 10000,
    VALUE_MOST = 1 << 20,
    HOUR_US_THOUSANDTH = 3600000,
    US_PER_S = 1000000,
    PID_MOST = 1 << 22, /* Linux's */
};

static const struct option rows[] = {
    ROW(STRING, endpoint, NULL, 0, 0, "ADDR:PORT",
        "The server; by default BIGTABLE_EMULATOR_HOST, else 127.0.0.1:8086."),
    ROW(STRING, ca, NULL, 0, 0, "FILE",
        "PEM certificates that the server's must lead to: speaks TLS. Without it speaks plainly."),
    ROW(STRING, token, NULL, 0, 0, "FILE", "Its first line is the bearer token of each call."),
    ROW(STRING, table, "projects/p/instances/i/tables/bench", 0, 0, "NAME",
        "The table; `load` deletes it if it exists, and makes it."),
    ROW(STRING, workloads, bench_mix_names, 0, 0, "NAME,...", "What to run, in this order."),
    ROW(INTEGER, rows, "100000", 1, ROWS_MOST, "COUNT", "Rows of the table."),
    ROW(INTEGER, cells, "1", 1, CELLS_MOST, "COUNT", "Cells of a row."),
    ROW(SIZE, value_size, "100", 0, VALUE_MOST, "", "Size of a cell's value."),
    ROW(INTEGER, connections, "4", 1, 1000, "COUNT", "Connections to the server."),
    ROW(INTEGER, streams, "16", 1, 1000, "COUNT", "Calls at once on each connection."),
    ROW(DURATION, duration, "10s", 1000, 1000LL * HOUR_US_THOUSANDTH, "",
        "Time for each workload but load and overwrite."),
    ROW(INTEGER, operations, "0", 0, INT64_MAX, "COUNT",
        "Requests of each of these workloads, within its time; 0 means any number."),
    ROW(INTEGER, rate, "0", 0, US_PER_S, "REQUESTS/S",
        "Pace of requests; 0 means that each call makes its next when the last was answered."),
    ROW(INTEGER, batch, "100", 1, 10000, "COUNT",
        "Rows of one request of load, overwrite and batch."),
    ROW(INTEGER, overwrites, "10", 1, 1000, "COUNT", "How often overwrite writes each row."),
    ROW(INTEGER, scan_rows, "100", 1, 1000000, "COUNT",
        "Rows of one request of scan, limit and reverse."),
    ROW(INTEGER, columns, "1000000", 1, 100000000, "COUNT", "Columns of the row that wide reads."),
    ROW(INTEGER, tablets, "1", 1, 1000, "COUNT", "Tablets that the table is made with."),
    ROW(BOOLEAN, stream, "false", 0, 0, "",
        "The table keeps a change stream for a day, which `changes` reads."),
    ROW(INTEGER, server_pid, "0", 0, PID_MOST, "PID",
        "The server's process, to count its CPU time; 0 means not to."),
    ROW(INTEGER, seed, "1", 0, INT64_MAX, "NUMBER", "Makes the random choices the same again."),
    ROW(BOOLEAN, json, "false", 0, 0, "", "One JSON object a workload instead of a table."),
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle bench"};

status bench_options_read(const char *const *arguments, struct bench_options *out)
{
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = out, .origins = origins};
    const char *const no_environment[] = {NULL};
    *out = (struct bench_options){0};
    TRY(options_read(&table, arguments, no_environment, &values));
    if (out->endpoint == NULL)
        out->endpoint = endpoint_default();
    return status_ok();
}

void bench_options_write_help(struct buffer *out)
{
    options_write_help(&table, out);
}
