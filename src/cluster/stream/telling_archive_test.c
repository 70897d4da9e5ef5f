/* A drop of rows that a change stream is told of, in an archive: a server that is restored to any
 * moment of it has the rows and the stream of that moment, and goes on telling. */
#include "cluster/stream/tell_dropped.h"
#include "cluster/testing/archive_testing.h"
#include "cluster/testing/stream_testing.h"

/* --- the story --- */

static status write_row(struct cluster_fixture *f, const char *row_key)
{
    return try_write(f, row_key, setting(f, FAMILY_F, "q", 1, "1"));
}

static status add_to_n(struct cluster_fixture *f, const char *amount)
{
    uint8_t state[8] = {[7] = (uint8_t)(*amount - '0')};
    struct row_change *change = row_change_create(f->arena);
    row_change_add(change, ENTRY_SUM, FAMILY_SUM, bytes_of("n"), 0,
                   arena_copy(f->arena, bytes_make(state, sizeof state)));
    return try_write(f, "n", change);
}

static status drop_rows(struct cluster_fixture *f, const char *prefix)
{
    return table_drop_rows(f->table, bytes_of(prefix));
}

static status tell_row(struct cluster_fixture *f, const char *unused)
{
    (void)unused;
    return tell_dropped_piece(f->table, &f->table->spaces[0]);
}

/* What each adds to the stream, what the sum is then, and what a server that is restored to then
 * has still to tell. */
static const struct step {
    status (*run)(struct cluster_fixture *f, const char *argument);
    const char *argument;
    const char *told;
    unsigned sum;
    const char *rest;
} steps[] = {
    {write_row, "a", "a:f.q=1", 0, ""},
    {write_row, "b", "b:f.q=1", 0, ""},
    {add_to_n, "1", "n:sum.n+1", 1, ""},
    {drop_rows, "", "", 0, "a:-f b:-f n:-sum"},
    {add_to_n, "2", "n:-sum n:sum.n+2", 2, "a:-f b:-f"},
    {tell_row, NULL, "a:-f", 2, "b:-f"},
    {add_to_n, "4", "n:sum.n+4", 6, "b:-f"},
    {write_row, "b", "b:-f b:f.q=1", 6, ""},
    {tell_row, NULL, "", 6, ""},
    {tell_row, NULL, "", 6, ""},
    {add_to_n, "1", "n:sum.n+1", 7, ""},
    {drop_rows, "n", "", 0, "n:-sum"},
};

enum { STEPS = sizeof steps / sizeof *steps };

/* --- a server that is restored --- */

static void assert_sum(struct cluster_fixture *f, unsigned expected)
{
    const struct key_range range = {.from = bytes_of("n"), .to = bytes_of("o")};
    struct buffer text = {0};
    assert_ok(scan_text(f, &range, 1, false, 0, &text));
    const uint8_t *value = memchr(text.data, '=', text.size);
    assert_int_equal(value == NULL ? 0 : value[8], expected);
    buffer_free(&text);
}

static void append_told(struct buffer *out, const char *told)
{
    buffer_append_bytes(out, bytes_of(out->size > 0 && told[0] != 0 ? " " : ""));
    buffer_append_bytes(out, bytes_of(told));
}

static void assert_stream(struct cluster_fixture *f, size_t done, bool is_whole)
{
    struct reader reader = reader_of(f, "", "");
    struct buffer expected = {0};
    for (size_t i = 0; i < done; i++)
        append_told(&expected, steps[i].told);
    if (is_whole && done > 0)
        append_told(&expected, steps[done - 1].rest);
    buffer_append_byte(&expected, 0);
    assert_next(&reader, (const char *)expected.data);
    buffer_free(&expected);
    end_reader(&reader);
}

static void open_restored(struct cluster_fixture *f, const struct cluster_fixture *of,
                          const char *directory)
{
    *f = *of;
    assert_ok(pool_create(2, 64, "test", &f->pool));
    f->options.pool = f->pool;
    f->options.data_directory = directory;
    f->options.archive.place = NULL;
    open_test_cluster(f);
    assert_ok(cluster_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
}

static void close_restored(struct cluster_fixture *f)
{
    table_release(f->table);
    close_test_cluster(f);
    pool_destroy(f->pool);
}

static void assert_goes_on(struct cluster_fixture *f, size_t done)
{
    struct table_space *space = &f->table->spaces[0];
    assert_stream(f, done, false);
    assert_ok(keyspace_compact(space->keyspace, bytes_of(""), bytes_of("")));
    assert_sum(f, done == 0 ? 0 : steps[done - 1].sum);
    while (telling_has_begun(space->telling))
        assert_ok(tell_dropped_piece(f->table, space));
    assert_stream(f, done, true);
    assert_ok(keyspace_compact(space->keyspace, bytes_of(""), bytes_of("")));
    assert_sum(f, done == 0 ? 0 : steps[done - 1].sum);
}

static void assert_restored(struct fixture *t, const char *base, uint64_t sequence, size_t done)
{
    char copy[] = "/tmp/trestle-restored-XXXXXX";
    struct archive_restored restored;
    struct cluster_fixture f;
    assert_non_null(mkdtemp(copy));
    copy_directory(base, copy);
    assert_ok(restore_copy(copy, &t->place->place, sequence, &t->f.log, &restored));
    open_restored(&f, &t->f, copy);
    assert_goes_on(&f, done);
    close_restored(&f);
    remove_test_directory(copy);
}

/* --- */

static void open_first(struct fixture *t)
{
    t->f.options.maintenance_by_hand = true;
    t->f.options.piece_bytes = 1; /* a row a piece */
    assert_ok(pool_create(2, 64, "test", &t->f.pool));
    t->f.options.pool = t->f.pool;
    open_test_cluster(&t->f);
}

static void open_again(struct fixture *t)
{
    open_first(t);
    assert_ok(cluster_table(t->f.cluster, bytes_of(TEST_TABLE), &t->f.table));
}

/* The copy that a restore begins with is of behind `base_after` steps. */
static void restore_each(struct fixture *t, size_t base_after)
{
    char base[] = "/tmp/trestle-base-XXXXXX";
    uint64_t moments[STEPS + 1] = {0};
    assert_non_null(mkdtemp(base));
    open_first(t);
    t->f.table = create_test_table(t->f.cluster, NULL);
    switch_stream(&t->f, RETENTION_US);
    for (size_t i = 0; i <= STEPS; i++) {
        if (i > 0)
            assert_ok(steps[i - 1].run(&t->f, steps[i - 1].argument));
        moments[i] = commit_applied(t->f.cluster->home->commits);
        if (i != base_after)
            continue;
        close_restored(&t->f);
        copy_directory(t->f.directory, base);
        open_again(t);
        moments[i] = commit_applied(t->f.cluster->home->commits);
    }
    assert_ok(archiver_step(t->f.cluster->home->archiver, true));
    close_restored(&t->f);
    for (size_t i = base_after + 1; i <= STEPS; i++)
        assert_restored(t, base, moments[i], i);
    remove_test_directory(base);
}

static void from_before_the_drop(void **state)
{
    restore_each(*state, 2);
}

static void from_amid_the_telling(void **state)
{
    restore_each(*state, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(from_before_the_drop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(from_amid_the_telling, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
