/* The origin feed: what it has and has not, over starts and with memory that runs out; and that
 * another cluster, to which it is applied change by change, comes to the same rows.
 *
 *     origin_feed_test [HISTORIES] [CHANGES] [SEED] */
#include "cluster/origin/origin_feed.h"

#include "base/big_endian.h"
#include "base/testing/failmalloc.h"
#include "cluster/foreign_rows.h"
#include "cluster/testing/testing.h"

enum { TEXT_MOST = 700 /* of values: past what overflows, and what is big */ };

static struct test_run run = {.rounds = 2, .changes = 300, .seed = 1};

/* --- fixture --- */

static int set_up(void **state)
{
    *state = cluster_fixture_create(NULL);
    return 0;
}

static struct shard *home_of(const struct cluster_fixture *f)
{
    return f->cluster->home;
}

static void begin_feed(struct cluster_fixture *f)
{
    assert_ok(origin_feeds_begin(f->cluster));
    assert_true(origin_feed_is_on(home_of(f)));
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

struct replica {
    struct cluster_fixture *of;
    struct cluster_fixture *f;
    struct stream_position at;
};

static void rebuild(const struct origin_change *from, struct arena *arena,
                    struct packed_change *out)
{
    *out = (struct packed_change){.big_count = from->change.count};
    buffer_append_bytes(&out->fragment, from->change.value);
    assert_false(out->fragment.failed);
    if (out->big_count == 0)
        return;
    out->big = arena_alloc(arena, out->big_count * sizeof *out->big);
    assert_non_null(out->big);
    event_big_cells(&from->change, out->big);
}

static status apply(void *context, const struct origin_change *change, bool *enough)
{
    struct replica *replica = context;
    struct packed_change packed;
    (void)enough;
    if (change->is_drop)
        return foreign_rows_drop(replica->f->table, change->from, change->to, change->version);
    rebuild(change, replica->f->arena, &packed);
    status s = foreign_row_write(replica->f->table, change->from, &packed, change->version);
    buffer_free(&packed.fragment);
    return s;
}

/* One piece. */
static bool pull(struct replica *replica, size_t most_bytes)
{
    bool is_end;
    assert_ok(origin_feed_read(home_of(replica->of), replica->at, most_bytes, apply, replica,
                               &replica->at, &is_end));
    return is_end;
}

/* Each cell of each row. */
static void write_rows(struct cluster_fixture *f, struct buffer *out)
{
    struct key_range all = {.from = bytes_of(""), .to = bytes_of("")};
    struct arena *arena = arena_create(1 << 20);
    struct scan_spec spec = {.table = f->table,
                             .ranges = &all,
                             .range_count = 1,
                             .schema = table_schema(f->table),
                             .arena = arena};
    struct scan *scan;
    struct scan_row row;
    enum row_outcome outcome = ROW_ABSENT;
    assert_ok(scan_create(&spec, &scan));
    while (outcome != ROW_END) {
        assert_ok(scan_next(scan, STORE_READ_ANY, &row, &outcome));
        for (size_t i = 0; outcome == ROW_FOUND && i < row.cells->count; i++) {
            const struct cell *cell = &row.cells->items[i];
            bytes value = cell->value;
            enum row_outcome loaded = ROW_FOUND;
            if (cell_is_deferred(cell))
                assert_ok(scan_load_value(scan, cell, STORE_READ_ANY, &value, &loaded));
            buffer_append_bytes(out, row.key);
            buffer_append_format(out, " %u %.*s %lld ", cell->family->id, (int)cell->qualifier.size,
                                 (const char *)cell->qualifier.data, (long long)cell->timestamp_us);
            for (size_t k = 0; k < value.size; k++) /* sums have zeroes */
                buffer_append_format(out, "%02x", value.data[k]);
            buffer_append_byte(out, '\n');
        }
    }
    scan_destroy(scan);
    arena_destroy(arena);
    buffer_append_byte(out, 0);
}

static void assert_same_rows(struct replica *replica)
{
    struct buffer here = {0}, there = {0};
    write_rows(replica->of, &here);
    write_rows(replica->f, &there);
    assert_string_equal((const char *)here.data, (const char *)there.data);
    buffer_free(&here);
    buffer_free(&there);
}

static uint32_t draw(uint64_t *random, uint32_t below)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33) % below;
}

static const char *value_of(uint64_t *random, char text[TEXT_MOST])
{
    size_t size = draw(random, 8) == 0 ? TEXT_MOST - 1 : draw(random, 40);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + draw(random, 26));
    text[size] = '\0';
    return text;
}

static bytes number_of(struct cluster_fixture *f, uint64_t number)
{
    uint8_t *state = arena_alloc(f->arena, BIG_ENDIAN_SIZE);
    assert_non_null(state);
    big_endian_write(state, number);
    return bytes_make(state, BIG_ENDIAN_SIZE);
}

static struct row_change *draw_change(struct cluster_fixture *f, uint64_t *random)
{
    static const char *const qualifiers[] = {"p", "q", "r"};
    char text[TEXT_MOST];
    struct row_change *change = row_change_create(f->arena);
    assert_non_null(change);
    for (uint32_t i = 0; i <= draw(random, 3); i++) {
        uint32_t family = FAMILY_F + draw(random, 2);
        bytes qualifier = bytes_of(qualifiers[draw(random, 3)]);
        switch (draw(random, 12)) {
        case 0:
            row_change_delete_row(change);
            break;
        case 1:
            row_change_delete_family(change, family);
            break;
        case 2:
            row_change_delete_column(change, family, qualifier, 0, INT64_MAX);
            break;
        case 3:
            row_change_delete_column(change, FAMILY_SUM, qualifier, 0, INT64_MAX);
            break;
        case 4:
        case 5:
            row_change_add(change, ENTRY_SUM, FAMILY_SUM, qualifier, 0,
                           number_of(f, draw(random, 1000)));
            break;
        default: {
            bytes value = arena_copy(f->arena, bytes_of(value_of(random, text)));
            row_change_set(change, family, qualifier, 1 + draw(random, 3), value);
        }
        }
    }
    return change;
}

/* A step of the cluster that is followed, or of following it. */
static void step(struct replica *replica, uint64_t *random)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e"};
    struct cluster_fixture *f = replica->of;
    const char *key = keys[draw(random, 5)];
    switch (draw(random, 24)) {
    case 0:
        split_at(f, key);
        break;
    case 1:
        assert_ok(keyspace_flush(f->table->spaces[0].keyspace));
        break;
    case 2:
        reopen_test_cluster(f);
        break;
    case 3:
        assert_ok(table_drop_rows(f->table, bytes_of(draw(random, 3) == 0 ? "" : key)));
        break;
    case 4:
        maintenance_run_once(f->cluster->maintenance);
        break;
    case 5:
    case 6:
        (void)pull(replica, draw(random, 4000));
        break;
    default:
        assert_ok(try_write(f, key, draw_change(f, random)));
    }
}

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
        FEED_TEST(it_goes_on_after_a_start_and_ends_when_it_is_told),
        FEED_TEST(memory_that_runs_out),
        cmocka_unit_test(another_cluster_comes_to_the_same_rows),
        cmocka_unit_test(two_clusters_come_to_the_same_rows),
    };
    take_test_run(&run, (struct test_run){200, 1000, 1}, argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
