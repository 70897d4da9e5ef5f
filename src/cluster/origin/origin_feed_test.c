/* The origin feed: what it has and has not, over starts and with memory that runs out; and that
 * another cluster, to which it is applied change by change, comes to the same rows.
 *
 *     origin_feed_test [HISTORIES] [CHANGES] [SEED] */
#include "cluster/origin/origin_feed.h"

#include "base/testing/failmalloc.h"
#include "cluster/testing/origin_testing.h"

static struct test_run run = {.rounds = 2, .changes = 300, .seed = 1};

/* --- fixture --- */

static int set_up(void **state)
{
    *state = cluster_fixture_create(NULL);
    return 0;
}

/* --- reading --- */

struct seen {
    struct cluster_fixture *f;
    struct buffer text;
    struct stream_position last;
};

static status note(void *context, const struct origin_change *change, bool *enough)
{
    struct seen *seen = context;
    (void)enough;
    assert_int_equal(change->table, seen->f->table->id);
    assert_true(stream_position_compare(change->position, seen->last) > 0);
    assert_true(version_time_us(change->version) > 0);
    assert_true(change->is_drop || change->change.value.size > 0);
    seen->last = change->position;
    buffer_append_format(&seen->text, change->is_drop ? "[%.*s,%.*s) " : "%.*s%.*s ",
                         (int)change->from.size, (const char *)change->from.data,
                         (int)change->to.size, (const char *)change->to.data);
    return status_ok();
}

static void assert_feed(struct cluster_fixture *f, struct stream_position after,
                        const char *expected)
{
    struct seen seen = {.f = f};
    struct stream_position reached;
    bool is_end;
    assert_ok(origin_feed_read(home_of(f), after, SIZE_MAX, note, &seen, &reached, &is_end));
    assert_true(is_end);
    buffer_append_byte(&seen.text, 0);
    assert_string_equal((const char *)seen.text.data, expected);
    buffer_free(&seen.text);
}

static struct stream_position end_of(struct cluster_fixture *f)
{
    struct stream_position end;
    assert_ok(origin_feed_end(home_of(f), &end));
    return end;
}

/* --- what it has --- */

static void what_clients_change_is_in_it(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "before", "v");
    begin_feed(f);
    begin_feed(f); /* a second time changes nothing */
    struct stream_position after = end_of(f);
    assert_feed(f, after, "");
    set_cell(f, "b", "v");
    set_cell(f, "a", "v");
    split_at(f, "b");
    set_cell(f, "c", "v");
    assert_ok(table_drop_rows(f->table, bytes_of("b")));
    set_cell(f, "b", "w");
    merge_at(f, "b");
    assert_ok(table_drop_rows(f->table, bytes_of("")));
    assert_feed(f, after, "b a c [b,c) b [,) ");
    assert_true(origin_feed_may_have(home_of(f), after));
    assert_false(origin_feed_may_have(home_of(f), end_of(f)));
}

static void what_another_cluster_changed_is_not(void **state)
{
    struct cluster_fixture *f = *state;
    struct packed_change change;
    begin_feed(f);
    struct stream_position after = end_of(f);
    assert_ok(
        row_change_pack(setting(f, FAMILY_F, "q", 1, "theirs"), rows_big_value(f->table), &change));
    uint64_t version = commit_submitted(home_of(f)->commits); /* of the past, by its time */
    set_cell(f, "a", "v");
    assert_ok(foreign_row_write(f->table, bytes_of("z"), &change, version | 1));
    set_cell(f, "b", "v");
    assert_feed(f, after, "a b ");
    assert_scan(f, "", "", false, "a=v b=v z=theirs");
    buffer_free(&change.fragment);
}

/* Estimates: of nothing there is nothing, and less is behind a later place. */
static void how_much_is_behind_a_place_is_known(void **state)
{
    enum { ROWS = 200, VALUE = 1000 };
    struct cluster_fixture *f = *state;
    struct stream_position middle;
    char key[16], value[VALUE + 1];
    assert_int_equal(origin_feed_bytes(home_of(f), ORIGIN_BEGINNING), 0); /* it is off */
    begin_feed(f);
    struct stream_position begin = end_of(f);
    assert_int_equal(origin_feed_bytes(home_of(f), begin), 0);
    memset(value, 'v', VALUE);
    value[VALUE] = '\0';
    for (int i = 0; i < ROWS; i++) {
        snprintf(key, sizeof key, "row-%03d", i);
        set_cell(f, key, value);
        if (i == ROWS / 2)
            middle = end_of(f);
    }
    uint64_t all = origin_feed_bytes(home_of(f), begin);
    uint64_t half = origin_feed_bytes(home_of(f), middle);
    assert_in_range(all, ROWS * VALUE / 2, 3 * ROWS * VALUE);
    assert_true(half > 0 && half < all);
    assert_int_equal(origin_feed_bytes(home_of(f), end_of(f)), 0);
}

static void it_goes_on_after_a_start_and_ends_when_it_is_told(void **state)
{
    struct cluster_fixture *f = *state;
    begin_feed(f);
    struct stream_position after = end_of(f);
    set_cell(f, "a", "v");
    reopen_test_cluster(f);
    assert_true(origin_feed_is_on(home_of(f)));
    set_cell(f, "b", "v");
    assert_feed(f, after, "a b ");
    assert_ok(origin_feeds_end(f->cluster));
    assert_false(origin_feed_is_on(home_of(f)));
    set_cell(f, "c", "v");
    reopen_test_cluster(f);
    assert_false(origin_feed_is_on(home_of(f)));
    begin_feed(f);
    after = end_of(f);
    set_cell(f, "d", "v");
    assert_feed(f, after, "d ");
}

/* The commit alone is short of memory: not what packed its change. */
static status write_without_memory(struct cluster_fixture *f, size_t after, bool *fails)
{
    struct test_write write;
    struct event event;
    event_init(&event);
    make_write(f, &write, bytes_of("a"), setting(f, FAMILY_F, "q", 1, "v"), &event);
    failmalloc_start(after);
    loop_post(f->loop, &write.start);
    status s = event_wait(&event, 1);
    *fails = failmalloc_stop();
    return s;
}

/* A write is refused as a whole, or is there as a whole, and told. */
static void memory_that_runs_out(void **state)
{
    enum { MOST = 400 };
    struct cluster_fixture *f = *state;
    bool fails = true;
    begin_feed(f);
    struct stream_position after = end_of(f);
    size_t count = 0, written = 0;
    for (; fails && count < MOST; count++) {
        status s = write_without_memory(f, count, &fails);
        written += status_is_ok(s);
        assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
        status_free(s);
    }
    assert_true(written >= 1 && !fails);
    struct seen seen = {.f = f};
    struct stream_position reached;
    bool is_end;
    assert_ok(origin_feed_read(home_of(f), after, SIZE_MAX, note, &seen, &reached, &is_end));
    assert_int_equal(seen.text.size, written * strlen("a "));
    buffer_free(&seen.text);
}

/* --- applied elsewhere --- */

static void pull_all(struct replica *replica)
{
    while (!pull(replica, 4000))
        ;
}

static void go_through_history(uint64_t seed)
{
    struct replica replica = {.of = cluster_fixture_create(NULL),
                              .f = cluster_fixture_create(NULL)};
    uint64_t random = seed * 2654435761u + 1;
    begin_feed(replica.of);
    replica.at = end_of(replica.of);
    for (unsigned i = 0; i < run.changes; i++)
        step(&replica, &random);
    pull_all(&replica);
    assert_same_rows(&replica);
    cluster_fixture_destroy(replica.of);
    cluster_fixture_destroy(replica.f);
}

/* --- and both ways --- */

/* Versions name it, and what is deleted is known for as long as older changes may come. */
static struct cluster_fixture *create_numbered(unsigned number)
{
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    table_release(f->table);
    close_test_cluster(f);
    f->options.tombstones_from = 1;
    f->options.number = number;
    open_test_cluster(f);
    assert_ok(cluster_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
    begin_feed(f);
    return f;
}

static void go_both_ways(uint64_t seed)
{
    struct cluster_fixture *a = create_numbered(1), *b = create_numbered(2);
    struct replica b_of_a = {.of = a, .f = b, .at = end_of(a)};
    struct replica a_of_b = {.of = b, .f = a, .at = end_of(b)};
    uint64_t random = seed * 2654435761u + 1;
    for (unsigned i = 0; i < run.changes; i++)
        step(draw(&random, 2) == 0 ? &b_of_a : &a_of_b, &random);
    pull_all(&b_of_a);
    pull_all(&a_of_b);
    assert_same_rows(&b_of_a);
    pull_all(&b_of_a); /* nothing comes back */
    assert_same_rows(&b_of_a);
    cluster_fixture_destroy(a);
    cluster_fixture_destroy(b);
}

static void two_clusters_come_to_the_same_rows(void **state)
{
    (void)state;
    for (unsigned i = 0; i < run.rounds; i++)
        go_both_ways(run.seed + i);
}

static void another_cluster_comes_to_the_same_rows(void **state)
{
    (void)state;
    for (unsigned i = 0; i < run.rounds; i++)
        go_through_history(run.seed + i);
}

#define FEED_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, cluster_fixture_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        FEED_TEST(what_clients_change_is_in_it),
        FEED_TEST(what_another_cluster_changed_is_not),
        FEED_TEST(how_much_is_behind_a_place_is_known),
        FEED_TEST(it_goes_on_after_a_start_and_ends_when_it_is_told),
        FEED_TEST(memory_that_runs_out),
        cmocka_unit_test(another_cluster_comes_to_the_same_rows),
        cmocka_unit_test(two_clusters_come_to_the_same_rows),
    };
    take_test_run(&run, (struct test_run){200, 1000, 1}, argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
