/* How many records a reader of a change stream's log gets per CPU second: one that catches up from
 * far back, a MiB at a time, of a log in tables. Not a test: build/src/stream/log_bench. */
#include "stream/testing/testing.h"

#include "base/check.h"

#include <sys/resource.h>

enum { RECORDS = 2000000, BATCH = 500, LIST = 100 };

static int64_t cpu_us(void)
{
    struct rusage used;
    assert_int_equal(getrusage(RUSAGE_THREAD, &used), 0);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * INT64_C(1000000) +
           used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

/* On this thread, in place of the commit thread, which rests. */
static void append_batch(struct log_fixture *f, uint64_t first, unsigned tablets,
                         struct store_batch *batch)
{
    stream_log_begin(f->log);
    store_batch_clear(batch);
    for (uint32_t i = 0; i < BATCH; i++) {
        char row[32];
        snprintf(row, sizeof row, "user%012llu", (unsigned long long)(first + i) * 7919 % RECORDS);
        const struct stream_append append = {.kind = STREAM_USER,
                                             .tablet = 1 + (first + i) % tablets,
                                             .position = {.sequence = version_at(0) + first + i},
                                             .version = version_at((int64_t)(first + i)),
                                             .row_key = bytes_of(row),
                                             .list = &f->list};
        CHECK(stream_log_prepare(f->log, &append));
        stream_log_append(f->log, batch);
    }
    assert_ok(store_write(f->t->store, batch, STORE_ASYNC));
    stream_log_written(f->log, true);
}

static void write_all(struct log_fixture *f, uint64_t first, unsigned tablets)
{
    struct store_batch *batch = store_batch_create();
    int64_t before_us = cpu_us();
    for (uint64_t i = 0; i < RECORDS; i += BATCH)
        append_batch(f, first + i, tablets, batch);
    print_message("%u tablets: written with %.2f us of this thread each\n", tablets,
                  (double)(cpu_us() - before_us) / RECORDS);
    store_batch_destroy(batch);
    assert_ok(keyspace_flush(store_keyspace_find(f->t->store, f->next_keyspace - 1)));
}

static status count_record(void *context, const struct stream_record *record, bool *enough)
{
    (void)record, (void)enough;
    (*(uint64_t *)context)++;
    return status_ok();
}

static void read_all(struct log_fixture *f, uint64_t first, unsigned tablets)
{
    static uint64_t ids[16];
    struct stream_part part = {.after = {first - 1, UINT32_MAX}};
    struct stream_query query = query_after(&part);
    uint64_t count = 0, calls = 0;
    for (unsigned i = 0; i < tablets; i++)
        ids[i] = i + 1;
    query.tablets = ids;
    query.tablet_count = tablets;
    query.through = first + RECORDS - 1;
    query.most_bytes = 1 << 20;
    int64_t before_us = cpu_us();
    while (part.after.sequence < query.through || part.after.ordinal != UINT32_MAX) {
        assert_ok(stream_log_read(f->log, &query, count_record, &count, &part.after));
        calls++;
    }
    int64_t us = cpu_us() - before_us;
    assert_int_equal(count, RECORDS);
    print_message("%u tablets: read %llu records of %d bytes in %llu calls: %.0f per CPU second\n",
                  tablets, (unsigned long long)count, LIST, (unsigned long long)calls,
                  (double)count * 1e6 / (double)us);
}

/* As a reader that was woken for one record does. */
static void look_at_the_end(struct log_fixture *f, uint64_t last)
{
    enum { LOOKS = 20000 };
    const struct stream_part part = {.after = {last - 1, UINT32_MAX}};
    struct stream_query query = query_after(&part);
    struct stream_position reached;
    uint64_t count = 0;
    query.tablet_count = 1;
    query.through = last;
    int64_t before_us = cpu_us();
    for (int i = 0; i < LOOKS; i++)
        assert_ok(stream_log_read(f->log, &query, count_record, &count, &reached));
    assert_int_equal(count, LOOKS);
    print_message("a look at the end, one record: %.1f us\n",
                  (double)(cpu_us() - before_us) / LOOKS);
}

static void measure(void **state)
{
    struct log_fixture *f = *state;
    static char list[LIST];
    uint64_t first = 1;
    for (size_t i = 0; i < LIST; i++)
        list[i] = (char)(i * 2654435761u >> 11);
    buffer_clear(&f->list.list);
    buffer_append(&f->list.list, list, LIST);
    f->log->start.sequence = atomic_load(&f->log->open)->from = 1; /* sequences are small here */
    for (unsigned tablets = 1; tablets <= 10; tablets += 9, first += RECORDS) {
        write_all(f, first, tablets);
        read_all(f, first, tablets);
        read_all(f, first, tablets);
        if (tablets == 1)
            look_at_the_end(f, first + RECORDS - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(measure, setup, teardown)};
    return cmocka_run_group_tests_name("log_bench", tests, NULL, NULL);
}
