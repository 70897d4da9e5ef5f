/* Change streams of tables: what commits did is read once, in order, whatever became of the tablets
 * meanwhile. */
#include "cluster/stream/table_stream.h"

#include "cluster/maintenance.h"
#include "cluster/row_group.h"
#include "cluster/testing/stream_testing.h"

enum { ROUNDS = 400, KEYS = 40, MOST_READERS = 8 };

static int setup(void **state)
{
    static const struct gc_rule one_version = {.kind = GC_MAX_VERSIONS, .max_versions = 1};
    struct cluster_fixture *f = *state = cluster_fixture_create(&one_version);
    f->options.maintenance_by_hand = true;
    f->options.overflow_bytes = 1 << 20;
    reopen_test_cluster(f);
    switch_stream(f, RETENTION_US);
    return 0;
}

/* --- tests --- */

static void changes_come_in_order_and_once(void **state)
{
    struct cluster_fixture *f = *state;
    struct reader reader = reader_of(f, "", "");
    set_in(f, "b", FAMILY_F, "q", 1, "1");
    set_in(f, "a", FAMILY_G, "q", 1, "2");
    assert_next(&reader, "b:f.q=1 a:g.q=2");
    struct row_change *change = row_change_create(f->arena);
    row_change_delete_family(change, FAMILY_F);
    row_change_set(change, FAMILY_G, bytes_of("r"), 5, bytes_of("3"));
    assert_ok(try_write(f, "b", change));
    assert_next(&reader, "b:-f:g.r=3");
    assert_next(&reader, "");
    end_reader(&reader);
}

/* Also what a later mutation of the same request undoes. */
static void what_was_asked_for_is_told_in_its_order(void **state)
{
    struct cluster_fixture *f = *state;
    struct reader reader = reader_of(f, "", "");
    const struct list_mutation mutations[] = {
        {.kind = LIST_SET,
         .family = bytes_of("f"),
         .qualifier = bytes_of("q"),
         .value = bytes_of("1")},
        {.kind = LIST_DELETE_FAMILY, .family = bytes_of("f")},
        {.kind = LIST_ADD_INT, .family = bytes_of("sum"), .qualifier = bytes_of("n"), .number = 7},
    };
    struct row_change *change = row_change_create(f->arena);
    row_change_delete_family(change, FAMILY_F);
    write_listed(f, "a", change, mutations, 3);
    assert_next(&reader, "a:f.q=1:-f:sum.n+7");
    end_reader(&reader);
}

static void deletion_of_a_row_is_one_of_each_family_that_has_cells(void **state)
{
    struct cluster_fixture *f = *state;
    set_in(f, "a", FAMILY_F, "q", 1, "1");
    set_in(f, "a", FAMILY_F, "r", 1, "1");
    set_in(f, "a", FAMILY_G, "q", 1, "1");
    struct reader reader = reader_at(f, cluster_version_us(f->cluster), "", "");
    delete_row(f, "a");
    delete_row(f, "a");
    delete_row(f, "nobody");
    set_in(f, "b", FAMILY_F, "q", 1, "2");
    assert_next(&reader, "a:-f:-g b:f.q=2");
    end_reader(&reader);
}

/* As one that was packed just before the stream was switched on. */
static void deletion_that_nobody_looked_into_is_one_of_all_families(void **state)
{
    struct cluster_fixture *f = *state;
    struct reader reader = reader_of(f, "", "");
    struct row_change *change = row_change_create(f->arena);
    row_change_delete_row(change);
    assert_ok(try_write(f, "a", change));
    assert_next(&reader, "a:-f:-g:-sum");
    end_reader(&reader);
}

static void readers_go_on_over_a_restart(void **state)
{
    struct cluster_fixture *f = *state;
    struct reader reader = reader_of(f, "", "");
    set_in(f, "a", FAMILY_F, "q", 1, "1");
    set_in(f, "b", FAMILY_F, "q", 1, "2");
    reopen_test_cluster(f);
    set_in(f, "a", FAMILY_F, "q", 2, "3");
    assert_next(&reader, "a:f.q=1 b:f.q=2 a:f.q=3");
    reopen_test_cluster(f);
    assert_next(&reader, "");
    end_reader(&reader);
}

static void assert_partitions(struct cluster_fixture *f, const char *start, const char *end,
                              bool is_one)
{
    uint32_t shard;
    assert_int_equal(table_stream_is_partition(f->table, bytes_of(start), bytes_of(end), &shard),
                     is_one);
}

static struct reader part_of(const struct reader *whole, const char *start, const char *end)
{
    struct reader part = {.f = whole->f, .from_us = whole->from_us};
    assert_ok(stream_token_cut(&whole->token, bytes_of(start), bytes_of(end), whole->f->arena,
                               &part.token));
    return part;
}

static void partitions_follow_tablets(void **state)
{
    struct cluster_fixture *f = *state;
    struct reader whole = reader_of(f, "", "");
    set_in(f, "a", FAMILY_F, "q", 1, "1");
    set_in(f, "m", FAMILY_F, "q", 1, "2");
    split_at(f, "g");
    assert_partitions(f, "", "", false);
    assert_partitions(f, "", "g", true);
    set_in(f, "m", FAMILY_F, "q", 2, "3");
    struct reader left = part_of(&whole, "", "g"), right = part_of(&whole, "g", "");
    assert_next(&right, "m:f.q=2 m:f.q=3");
    assert_next(&left, "a:f.q=1");
    end_reader(&whole);
    end_reader(&left);
    end_reader(&right);
}

/* Each goes on where it stands. */
static void readers_of_merged_partitions_meet(void **state)
{
    struct cluster_fixture *f = *state;
    split_at(f, "g");
    split_at(f, "p");
    struct reader parts[] = {reader_of(f, "", "g"), reader_of(f, "g", "p"), reader_of(f, "p", "")};
    set_in(f, "a", FAMILY_F, "q", 1, "1");
    set_in(f, "h", FAMILY_F, "q", 1, "2");
    set_in(f, "z", FAMILY_F, "q", 1, "3");
    assert_next(&parts[1], "h:f.q=2");
    merge_at(f, "g");
    merge_at(f, "p");
    set_in(f, "h", FAMILY_F, "q", 2, "4");
    struct stream_token tokens[] = {parts[2].token, parts[0].token, parts[1].token};
    struct reader whole = {.f = f};
    assert_ok(stream_token_join(tokens, 3, bytes_of(""), bytes_of(""), f->arena, &whole.token));
    reopen_test_cluster(f);
    assert_next(&whole, "a:f.q=1 z:f.q=3 h:f.q=4");
    assert_int_equal(whole.token.part_count, 1);
    for (size_t i = 0; i < 3; i++)
        end_reader(&parts[i]);
    end_reader(&whole);
}

static void what_rules_condemn_is_told_when_it_is_deleted(void **state)
{
    struct cluster_fixture *f = *state;
    struct reader reader = reader_of(f, "", "");
    set_in(f, "a", FAMILY_F, "q", 1, "1");
    set_in(f, "a", FAMILY_F, "q", 2, "2");
    assert_next(&reader, "a:f.q=1 a:f.q=2");
    atomic_store(&f->table->gc.due_us, 1); /* it is past */
    maintenance_run_once(f->cluster->maintenance);
    assert_next(&reader, "gc:a:-f.q");
    maintenance_run_once(f->cluster->maintenance);
    assert_next(&reader, "");
    end_reader(&reader);
}

static void stream_that_is_switched_on_again_is_another_one(void **state)
{
    struct cluster_fixture *f = *state;
    uint64_t life = table_stream_facts(f->table).life;
    set_in(f, "a", FAMILY_F, "q", 1, "1");
    switch_stream(f, 0);
    assert_int_equal(table_stream_facts(f->table).retention_us, 0);
    set_in(f, "a", FAMILY_F, "q", 2, "2");
    switch_stream(f, RETENTION_US);
    assert_true(table_stream_facts(f->table).life != life);
    struct reader reader = reader_of(f, "", "");
    set_in(f, "a", FAMILY_F, "q", 3, "3");
    assert_next(&reader, "a:f.q=3");
    end_reader(&reader);
}

static void table_with_a_stream_is_not_deleted(void **state)
{
    struct cluster_fixture *f = *state;
    assert_status(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL),
                  STATUS_FAILED_PRECONDITION);
    assert_status(cluster_delete_tables(f->cluster, bytes_of("projects/p/instances/i/"), NULL),
                  STATUS_FAILED_PRECONDITION);
    switch_stream(f, 0);
    assert_ok(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL));
}

static void longer_retention_brings_nothing_back(void **state)
{
    struct cluster_fixture *f = *state;
    int64_t from_us = table_stream_facts(f->table).oldest_us;
    switch_stream(f, 7 * RETENTION_US);
    assert_int_equal(table_stream_facts(f->table).oldest_us, from_us);
    switch_stream(f, 1);
    int64_t then_us = table_stream_facts(f->table).oldest_us;
    assert_true(then_us > from_us);
    switch_stream(f, 7 * RETENTION_US);
    assert_true(table_stream_facts(f->table).oldest_us >= then_us);
}

/* Former tablets are forgotten once nothing is kept of them. */
static void former_tablets_are_forgotten(void **state)
{
    struct cluster_fixture *f = *state;
    split_at(f, "g");
    merge_at(f, "g");
    assert_false(lineage_is_empty(&f->table->lineage));
    maintenance_run_once(f->cluster->maintenance);
    assert_false(lineage_is_empty(&f->table->lineage));
    switch_stream(f, 0);
    maintenance_run_once(f->cluster->maintenance);
    assert_true(lineage_is_empty(&f->table->lineage));
    reopen_test_cluster(f);
    assert_true(lineage_is_empty(&f->table->lineage));
}

/* --- random histories --- */

/* Each value is written once, as "row=n"; a reader of each row's values must meet them in order,
 * each once, whatever splits, merges and restarts come between. */
struct history {
    struct cluster_fixture *f;
    struct reader readers[MOST_READERS]; /* of the partitions, in order */
    size_t reader_count;
    unsigned written[KEYS];
    unsigned met[KEYS];
};

static const char *key_of(unsigned number, char *key)
{
    snprintf(key, 8, "k%02u", number);
    return key;
}

static status meet(void *context, const struct stream_record *record, bool *enough)
{
    struct history *history = context;
    struct list_reader list;
    struct list_mutation mutation;
    char text[16] = "";
    (void)enough;
    unsigned row = (unsigned)(record->row_key.data[1] - '0') * 10 + record->row_key.data[2] - '0';
    assert_true(row < KEYS);
    list_reader_start(&list, record->list);
    assert_true(list_reader_next(&list, &mutation) && mutation.value.size < sizeof text);
    memcpy(text, mutation.value.data, mutation.value.size);
    assert_int_equal(strtoul(text, NULL, 10), history->met[row] + 1);
    history->met[row]++;
    *enough = record->position.sequence % 5 == 0;
    return status_ok();
}

static void read_some(struct history *history, size_t at)
{
    bool is_at_end;
    assert_ok(table_stream_read(history->f->table, &history->readers[at].token, 512, meet, history,
                                &is_at_end));
}

static status note_partition(void *context, bytes start, bytes end)
{
    struct history *history = context;
    assert_true(history->reader_count < MOST_READERS);
    struct reader *reader = &history->readers[history->reader_count++];
    *reader = (struct reader){.f = history->f};
    reader->token.start = arena_copy(history->f->arena, start);
    reader->token.parts = arena_zalloc(history->f->arena, sizeof *reader->token.parts);
    reader->token.parts->end = arena_copy(history->f->arena, end);
    reader->token.part_count = 1;
    return status_ok();
}

static bytes end_of(const struct stream_token *token)
{
    return token->parts[token->part_count - 1].end;
}

static bool meets(const struct stream_token *token, bytes start, bytes end)
{
    bytes its = end_of(token);
    return (its.size == 0 || bytes_compare(start, its) < 0) &&
           (end.size == 0 || bytes_compare(token->start, end) < 0);
}

static bytes later(bytes a, bytes b)
{
    return bytes_compare(a, b) > 0 ? a : b;
}

static bytes earlier_end(bytes a, bytes b)
{
    if (a.size == 0 || b.size == 0)
        return a.size == 0 ? b : a;
    return bytes_compare(a, b) < 0 ? a : b;
}

/* As clients do: each new partition from the tokens of the former ones that it meets. */
static void follow_partitions(struct history *history)
{
    struct reader before[MOST_READERS];
    size_t count = history->reader_count;
    memcpy(before, history->readers, sizeof before);
    history->reader_count = 0;
    assert_ok(table_stream_partitions(history->f->table, note_partition, history));
    for (size_t i = 0; i < history->reader_count; i++) {
        struct stream_token *token = &history->readers[i].token, pieces[MOST_READERS];
        bytes start = token->start, end = end_of(token);
        size_t pieces_count = 0;
        for (size_t j = 0; j < count; j++)
            if (meets(&before[j].token, start, end))
                assert_ok(stream_token_cut(&before[j].token, later(before[j].token.start, start),
                                           earlier_end(end_of(&before[j].token), end),
                                           history->f->arena, &pieces[pieces_count++]));
        assert_ok(stream_token_join(pieces, pieces_count, start, end, history->f->arena, token));
    }
}

static void write_next(struct history *history, unsigned row)
{
    char key[8], value[16];
    snprintf(value, sizeof value, "%u", ++history->written[row]);
    set_in(history->f, key_of(row, key), FAMILY_G, "q", 1, value);
}

static void reshape(struct history *history, unsigned row)
{
    char key[8];
    struct tablet *tablet = table_route(history->f->table, bytes_of(key_of(row, key)));
    bool begins_there = bytes_equal(tablet->start, bytes_of(key));
    tablet_release(tablet);
    if (begins_there)
        merge_at(history->f, key);
    else if (history->reader_count < MOST_READERS)
        split_at(history->f, key);
    follow_partitions(history);
}

static void step(struct history *history, unsigned long random)
{
    unsigned row = (unsigned)(random >> 8) % KEYS;
    unsigned what = random % 100;
    if (what < 60)
        write_next(history, row);
    else if (what < 85)
        read_some(history, row % history->reader_count);
    else if (what < 98)
        reshape(history, row / 5 * 5 + 1);
    else
        reopen_test_cluster(history->f);
}

static void each_change_is_met_once_whatever_becomes_of_tablets(void **state)
{
    struct history history = {.f = *state, .reader_count = 1};
    history.readers[0] = reader_of(history.f, "", "");
    unsigned long random = 20261129;
    for (unsigned i = 0; i < ROUNDS; i++) {
        random = random * 6364136223846793005UL + 1442695040888963407UL;
        step(&history, random >> 16);
    }
    for (size_t i = 0; i < history.reader_count; i++) {
        bool is_at_end = false;
        while (!is_at_end)
            assert_ok(table_stream_read(history.f->table, &history.readers[i].token, 4096, meet,
                                        &history, &is_at_end));
    }
    for (unsigned row = 0; row < KEYS; row++)
        assert_int_equal(history.met[row], history.written[row]);
}

#define STREAM_TEST(name) cmocka_unit_test_setup_teardown(name, setup, cluster_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STREAM_TEST(changes_come_in_order_and_once),
        STREAM_TEST(what_was_asked_for_is_told_in_its_order),
        STREAM_TEST(deletion_of_a_row_is_one_of_each_family_that_has_cells),
        STREAM_TEST(deletion_that_nobody_looked_into_is_one_of_all_families),
        STREAM_TEST(readers_go_on_over_a_restart),
        STREAM_TEST(partitions_follow_tablets),
        STREAM_TEST(readers_of_merged_partitions_meet),
        STREAM_TEST(what_rules_condemn_is_told_when_it_is_deleted),
        STREAM_TEST(stream_that_is_switched_on_again_is_another_one),
        STREAM_TEST(table_with_a_stream_is_not_deleted),
        STREAM_TEST(longer_retention_brings_nothing_back),
        STREAM_TEST(former_tablets_are_forgotten),
        STREAM_TEST(each_change_is_met_once_whatever_becomes_of_tablets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
