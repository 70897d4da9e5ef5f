/* DropRowRange in a cluster: what is dropped stays so over kills, passes, deletions; nobody waits
 * for it; what follows from a read of before is decided again; and random histories against a list.
 *
 *     drop_range_test [HISTORIES] [STEPS] [SEED]      default 3 of 80; 1000 with TRESTLE_LONG=all
 */
#include "base/limits.h"
#include "cluster/heat/heat_choice.h"
#include "cluster/live_size.h"
#include "cluster/ranges.h"
#include "cluster/testing/lives_testing.h"
#include "cluster/testing/update_testing.h"
#include "store/testing/snapshot_testing.h"
#include "tablet/drop_records.h"
#include "tablet/older_rows.h"

static struct test_run run = {3, 80, 1};
static const struct test_run a_thousand = {1000, 80, 1};

static int setup(void **state)
{
    *state = cluster_fixture_create(NULL);
    return 0;
}

static int teardown(void **state)
{
    cluster_fixture_destroy(*state);
    return 0;
}

static struct table_space *space_of(const struct cluster_fixture *f)
{
    return &f->table->spaces[0];
}

static size_t drop_count(const struct cluster_fixture *f)
{
    return row_drops_count(space_of(f)->drops);
}

/* In the catalog. */
static size_t record_count(const struct cluster_fixture *f, uint64_t id)
{
    struct row_drops *drops;
    assert_ok(row_drops_create(&drops));
    assert_ok(drop_records_load(f->cluster->catalog, id, drops));
    size_t count = row_drops_count(drops);
    row_drops_destroy(drops);
    return count;
}

static uint64_t keyspace_of(const struct cluster_fixture *f)
{
    return keyspace_id(space_of(f)->keyspace);
}

static bool has_anything_left(const struct cluster_fixture *f)
{
    const struct row_range all = {.keyspace = space_of(f)->keyspace};
    bool found;
    assert_ok(rows_find_older(&all, UINT64_MAX, &found));
    return found;
}

/* Maintenance sees to it, or something else keeps what is older. */
static void run_passes(struct cluster_fixture *f)
{
    for (int i = 0; i < 20 && drop_count(f) > 0; i++) {
        space_of(f)->pass.not_until_us = 0;
        maintenance_run_once(f->cluster->maintenance);
    }
}

/* As a backup does: no drop is being forgotten. */
static void hold_drops(struct cluster_fixture *f)
{
    pthread_mutex_lock(&f->cluster->admin);
    row_drops_hold(space_of(f)->drops);
    pthread_mutex_unlock(&f->cluster->admin);
}

static void by_hand(struct cluster_fixture *f)
{
    f->options.maintenance_by_hand = true;
    reopen_test_cluster(f);
}

static struct row_change *adding(struct cluster_fixture *f, uint8_t amount)
{
    uint8_t state[8] = {[7] = amount};
    bytes kept = arena_copy(f->arena, bytes_make(state, sizeof state));
    struct row_change *change = row_change_create(f->arena);
    assert_non_null(change);
    row_change_add(change, ENTRY_SUM, FAMILY_SUM, bytes_of("n"), 0, kept);
    return change;
}

/* The one cell of the first row, a sum. */
static int sum_of(struct cluster_fixture *f)
{
    const struct key_range all = {.is_point = false};
    struct buffer text = {0};
    assert_ok(scan_text(f, &all, 1, false, 0, &text));
    const uint8_t *at = memchr(text.data, '=', text.size);
    int sum = at == NULL ? 0 : at[8];
    buffer_free(&text);
    return sum;
}

/* --- what is dropped --- */

static void what_is_dropped_stays_so_until_it_is_forgotten(void **state)
{
    struct cluster_fixture *f = *state;
    by_hand(f);
    set_cell(f, "a", "1");
    set_cell(f, "b", "2");
    assert_ok(keyspace_flush(space_of(f)->keyspace));
    set_cell(f, "ba", "3");
    set_cell(f, "c", "4");
    assert_ok(table_drop_rows(f->table, bytes_of("b")));
    assert_scan(f, "", "", false, "a=1 c=4");
    set_cell(f, "b", "new");
    assert_scan(f, "", "", false, "a=1 b=new c=4");
    reopen_test_cluster(f);
    assert_int_equal(drop_count(f), 1);
    assert_scan(f, "", "", true, "c=4 b=new a=1");
    run_passes(f);
    assert_int_equal(drop_count(f), 0);
    assert_int_equal(record_count(f, keyspace_of(f)), 0);
    assert_scan(f, "", "", false, "a=1 b=new c=4");
    reopen_test_cluster(f);
    assert_int_equal(drop_count(f), 0);
    assert_scan(f, "", "", false, "a=1 b=new c=4");
    assert_ok(table_drop_rows(f->table, bytes_of("")));
    assert_scan(f, "", "", false, "");
    run_passes(f);
    assert_false(has_anything_left(f));
}

/* The next start writes what the log has into tables while it reads it. */
static void fill_log(struct cluster_fixture *f)
{
    enum { ROWS = 40, VALUE = 16 << 10, BUFFER = 256 << 10 };
    char key[8], value[VALUE + 1];
    memset(value, 'v', VALUE);
    value[VALUE] = 0;
    for (int i = 0; i < ROWS; i++) {
        snprintf(key, sizeof key, "z%d", i);
        set_cell(f, key, value);
    }
    f->options.write_buffer_bytes = BUFFER;
}

/* A start folds what the log has before it knows of drops. Nobody reads the row before: what was
 * read is stored as one record, which is folded no more. (The test did once, and saw nothing.) */
static void adds_on_both_sides_are_told_apart_after_a_kill(void **state)
{
    struct cluster_fixture *f = *state;
    by_hand(f);
    assert_ok(try_write(f, "r", adding(f, 1)));
    assert_ok(table_drop_rows(f->table, bytes_of("r")));
    assert_ok(try_write(f, "r", adding(f, 2)));
    assert_ok(try_write(f, "r", adding(f, 4)));
    fill_log(f);
    uint64_t before = keyspace_newest_table(space_of(f)->keyspace);
    reopen_test_cluster(f);
    assert_true(keyspace_newest_table(space_of(f)->keyspace) > before);
    assert_int_equal(sum_of(f), 6);
    run_passes(f);
    assert_int_equal(drop_count(f), 0);
    assert_int_equal(sum_of(f), 6);
}

static void large_cells_are_dropped(void **state)
{
    struct cluster_fixture *f = *state;
    char big[600];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    by_hand(f);
    set_cell(f, "a", big);
    set_cell(f, "b", "2");
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    assert_scan(f, "", "", false, "b=2");
    assert_ok(try_write(f, "a", setting(f, FAMILY_G, "q", 1, "new")));
    assert_scan(f, "", "", false, "a=new b=2");
    run_passes(f);
    assert_int_equal(drop_count(f), 0);
    assert_scan(f, "", "", false, "a=new b=2");
}

/* It would wait for ever if it took one. */
static void nobody_holds_it_up(void **state)
{
    struct cluster_fixture *f = *state;
    set_cell(f, "a", "1");
    row_locks_acquire_all(f->cluster->home->locks);
    assert_ok(table_drop_rows(f->table, bytes_of("")));
    row_locks_release_all(f->cluster->home->locks, 0);
    assert_scan(f, "", "", false, "");
}

static void a_deleted_table_keeps_what_was_dropped(void **state)
{
    struct cluster_fixture *f = *state;
    f->options.undelete_window_us = INT64_C(3600) * 1000000;
    by_hand(f);
    uint64_t id = keyspace_of(f);
    set_cell(f, "a", "1");
    set_cell(f, "b", "2");
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    assert_ok(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL));
    assert_status(table_drop_rows(f->table, bytes_of("b")), STATUS_NOT_FOUND);
    assert_int_equal(record_count(f, id), 1);
    table_release(f->table);
    close_test_cluster(f);
    open_test_cluster(f);
    assert_ok(cluster_deleted_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
    assert_ok(cluster_undelete_table(f->cluster, f->table, NULL));
    assert_scan(f, "", "", false, "b=2");
    assert_ok(cluster_delete_tables(f->cluster, bytes_of(TEST_TABLE), NULL));
    assert_int_equal(record_count(f, id), 0);
    table_release(f->table);
    f->table = create_test_table(f->cluster, NULL);
}

static void a_schema_that_changes_knows_the_drops(void **state)
{
    struct cluster_fixture *f = *state;
    const struct row_rules *former = table_rules(f->table, space_of(f)->keyspace);
    by_hand(f);
    former = table_rules(f->table, space_of(f)->keyspace);
    assert_ptr_equal(former->drops, space_of(f)->drops);
    const struct family families[] = {{.id = FAMILY_F, .name = bytes_of("f")}};
    struct table_record record = table_record_of(f->table);
    struct description *description;
    struct schema *schema;
    assert_ok(schema_create(GRANULARITY_MICROS, families, 1, 4, &schema));
    record.schema = schema;
    record.generation++;
    assert_ok(description_create(f->cluster, &record, f->table, &description));
    assert_int_equal(description->space_count, 1);
    assert_ptr_equal(description->of_spaces[0]->drops, space_of(f)->drops);
    description_destroy(description);
    schema_destroy(schema);
}

static bool take_offset(void *context, bytes end, uint64_t offset_bytes)
{
    (void)end;
    *(uint64_t *)context = offset_bytes;
    return true;
}

/* By whatever is told of sizes. */
static void assert_has_no_size(struct cluster_fixture *f)
{
    enum { RANGES = 10 };
    uint64_t sampled = 1, in_range = 1, in_heat = 1;
    struct heat_ranges *ranges;
    assert_int_equal(live_table_size(f->table), 0);
    assert_ok(table_sample(f->table, take_offset, &sampled));
    assert_int_equal(sampled, 0);
    assert_ok(table_range_size(f->table, bytes_of("00"), bytes_of(""), &in_range));
    assert_int_equal(in_range, 0);
    assert_ok(heat_choose_ranges(f->table, RANGES, RANGES, &in_heat, &ranges));
    heat_ranges_destroy(ranges);
    assert_int_equal(in_heat, 0);
}

/* Two hundred, of which each half has a prefix of its own. */
static void write_sized_rows(struct cluster_fixture *f)
{
    enum { ROWS = 200, VALUE = 4000 };
    char key[16], value[VALUE + 1];
    memset(value, 'v', VALUE);
    value[VALUE] = 0;
    for (unsigned i = 0; i < ROWS; i++) {
        snprintf(key, sizeof key, "%04u", i);
        set_cell(f, key, value);
    }
    assert_ok(keyspace_flush(space_of(f)->keyspace));
}

static void what_is_dropped_has_no_size(void **state)
{
    struct cluster_fixture *f = *state;
    f->options.overflow_bytes = 1 << 20;
    by_hand(f);
    write_sized_rows(f);
    uint64_t before = live_table_size(f->table);
    assert_true(before > 0);
    assert_ok(table_drop_rows(f->table, bytes_of("01")));
    uint64_t half = live_table_size(f->table);
    assert_true(half < before);
    assert_ok(table_drop_rows(f->table, bytes_of("")));
    assert_has_no_size(f);
    reopen_test_cluster(f);
    assert_has_no_size(f);
    run_passes(f);
    assert_int_equal(drop_count(f), 0);
}

static void what_is_written_since_has_a_size(void **state)
{
    struct cluster_fixture *f = *state;
    f->options.overflow_bytes = 1 << 20;
    by_hand(f);
    write_sized_rows(f);
    uint64_t before = live_table_size(f->table);
    assert_ok(table_drop_rows(f->table, bytes_of("")));
    write_sized_rows(f);
    assert_true(live_table_size(f->table) > before / 2);
}

/* The drop stays for a while after its rows have gone: it takes nothing from others then. */
static void space_that_has_come_back_is_not_left_out_once_more(void **state)
{
    struct cluster_fixture *f = *state;
    f->options.overflow_bytes = 1 << 20;
    by_hand(f);
    write_sized_rows(f);
    assert_ok(table_drop_rows(f->table, bytes_of("01")));
    uint64_t half = live_table_size(f->table);
    assert_ok(keyspace_compact(space_of(f)->keyspace, bytes_of(""), bytes_of("")));
    assert_int_equal(drop_count(f), 1);
    assert_in_range(live_table_size(f->table), half / 2, 2 * half);
}

/* Each of the calls but the last few finds room; these wait for a pass. */
static void the_oldest_goes_before_there_are_too_many(void **state)
{
    struct cluster_fixture *f = *state;
    by_hand(f);
    for (int i = 0; i < LIMIT_ROW_DROPS; i++)
        assert_ok(table_drop_rows(f->table, bytes_of("a")));
    assert_int_equal(drop_count(f), LIMIT_ROW_DROPS);
    set_cell(f, "a", "1");
    set_cell(f, "b", "2");
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    assert_true(drop_count(f) <= LIMIT_ROW_DROPS);
    assert_scan(f, "", "", false, "b=2");
    hold_drops(f);
    while (drop_count(f) < LIMIT_ROW_DROPS)
        assert_ok(table_drop_rows(f->table, bytes_of("a")));
    assert_status(table_drop_rows(f->table, bytes_of("a")), STATUS_UNAVAILABLE);
    row_drops_let_go(space_of(f)->drops);
}

/* --- what follows from a read --- */

struct dropping_update {
    struct test_update base; /* first */
    bool has_dropped;
};

/* Sets "x" behind what there is; the first time the rows are dropped after that was read. */
static status drop_and_append(struct row_update *update, const struct cell_list *cells,
                              struct packed_change *change, bool *writes)
{
    struct dropping_update *self = (struct dropping_update *)(void *)update;
    struct buffer value = {0};
    if (cells->count > 0)
        buffer_append_bytes(&value, cells->items[0].value);
    buffer_append_byte(&value, 'x');
    bytes copy = arena_copy(update->arena, buffer_bytes(&value));
    buffer_free(&value);
    if (!self->has_dropped)
        assert_ok(table_drop_rows(update->table, bytes_of("")));
    self->has_dropped = true;
    struct row_change *row_change = row_change_create(update->arena);
    assert_non_null(row_change);
    row_change_set(row_change, FAMILY_F, bytes_of("q"), 1, copy);
    *writes = true;
    return row_change_pack(row_change, SIZE_MAX, change);
}

static void an_update_is_decided_again(void **state)
{
    struct cluster_fixture *f = *state;
    by_hand(f);
    set_cell(f, "a", "1");
    set_cell(f, "a", "2"); /* so that the record goes along with the change */
    struct dropping_update update = {.base.update = {.decide = drop_and_append}};
    test_update_run(f, &update.base, "a");
    assert_scan(f, "", "", false, "a=x");
    reopen_test_cluster(f);
    assert_scan(f, "", "", false, "a=x");
}

/* --- passes --- */

static void a_pass_waits_for_who_holds_the_drops(void **state)
{
    struct cluster_fixture *f = *state;
    by_hand(f);
    set_cell(f, "a", "1");
    hold_drops(f);
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    run_passes(f);
    assert_int_equal(drop_count(f), 1);
    assert_true(has_anything_left(f));
    row_drops_let_go(space_of(f)->drops);
    run_passes(f);
    assert_int_equal(drop_count(f), 0);
    assert_false(has_anything_left(f));
}

/* Who begins to hold them when the pass has looked, and has yet to forget. */
static void a_drop_that_is_held_meanwhile_is_not_forgotten(void **state)
{
    struct cluster_fixture *f = *state;
    by_hand(f);
    set_cell(f, "a", "1");
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    pthread_mutex_lock(&f->cluster->admin);
    maintenance_submit(f->cluster->maintenance, f->table, &f->table->drop_pass.job);
    while (has_anything_left(f))
        sched_yield();
    row_drops_hold(space_of(f)->drops);
    pthread_mutex_unlock(&f->cluster->admin);
    maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(drop_count(f), 1);
    row_drops_let_go(space_of(f)->drops);
    run_passes(f);
    assert_int_equal(drop_count(f), 0);
}

/* In a table, beneath what was written after. */
static void a_view_that_keeps_rows_keeps_the_drop(void **state)
{
    if (!snapshots_keep_values())
        skip();
    struct cluster_fixture *f = *state;
    by_hand(f);
    set_cell(f, "a", "1");
    set_cell(f, "b", "2");
    assert_ok(keyspace_compact(space_of(f)->keyspace, bytes_of(""), bytes_of("")));
    struct store_snapshot *snapshot = store_snapshot_create(f->cluster->home->store);
    assert_non_null(snapshot);
    assert_ok(table_drop_rows(f->table, bytes_of("a")));
    assert_ok(try_write(f, "a", setting(f, FAMILY_G, "q", 2, "new")));
    run_passes(f);
    assert_int_equal(drop_count(f), 1);
    assert_scan(f, "", "", false, "a=new b=2");
    store_snapshot_release(snapshot);
    run_passes(f);
    assert_int_equal(drop_count(f), 0);
    assert_scan(f, "", "", false, "a=new b=2");
}

/* --- random histories --- */

enum { KEYS = 8, VALUE_SIZE = 8 };

static const char *const keys[KEYS] = {"a", "aa", "ab", "b", "ba", "bb", "c", "d"};
static const char *const prefixes[] = {"", "a", "b", "ab", "c", "d"};

/* What a row has: f:q, of which the number counts, and sum:n. */
struct said {
    int value; /* 0: none */
    int sum;
};

struct history {
    struct lives lives; /* first */
    int next;           /* value */
    struct said rows[KEYS];
    /* This life's. */
    struct cluster_fixture *f;
    struct store_snapshot *snapshot;
};

static unsigned below(struct history *h, unsigned end)
{
    return lives_random(&h->lives, end);
}

/* Every third is so large that it lies beside its record. */
static void write_value(struct history *h)
{
    char value[400];
    int row = (int)below(h, KEYS), size = below(h, 3) == 0 ? 300 : VALUE_SIZE;
    snprintf(value, sizeof value, "%0*d", size, ++h->next);
    set_cell(h->f, keys[row], value);
    h->rows[row].value = h->next;
}

static void add_some(struct history *h)
{
    int row = (int)below(h, KEYS), amount = (int)below(h, 3) + 1;
    assert_ok(try_write(h->f, keys[row], adding(h->f, (uint8_t)amount)));
    h->rows[row].sum += amount;
}

static void drop_some(struct history *h)
{
    const char *prefix = prefixes[below(h, sizeof prefixes / sizeof *prefixes)];
    assert_ok(table_drop_rows(h->f->table, bytes_of(prefix)));
    for (int i = 0; i < KEYS; i++)
        if (bytes_start_with(bytes_of(keys[i]), bytes_of(prefix)))
            h->rows[i] = (struct said){0};
}

static void let_go(struct history *h)
{
    if (h->snapshot != NULL)
        row_drops_let_go(space_of(h->f)->drops);
    store_snapshot_release(h->snapshot);
    h->snapshot = NULL;
}

static void hold_or_let_go(struct history *h)
{
    if (h->snapshot != NULL) {
        let_go(h);
        return;
    }
    hold_drops(h->f);
    h->snapshot = store_snapshot_create(h->f->cluster->home->store);
    assert_non_null(h->snapshot);
}

/* Every other time by a kill. All that was done is acknowledged, and nothing is under way. */
static void start_anew(struct history *h)
{
    if (below(h, 2) == 0)
        kill(getpid(), SIGKILL);
    let_go(h);
    reopen_test_cluster(h->f);
}

static void take_step(struct history *h)
{
    struct keyspace *keyspace = space_of(h->f)->keyspace;
    unsigned kind = below(h, 32);
    if (kind < 9)
        write_value(h);
    else if (kind < 16)
        add_some(h);
    else if (kind < 21)
        drop_some(h);
    else if (kind < 24)
        assert_ok(keyspace_flush(keyspace));
    else if (kind < 26)
        assert_ok(keyspace_compact(keyspace, bytes_of(""), bytes_of("")));
    else if (kind < 29)
        run_passes(h->f);
    else if (kind < 30)
        hold_or_let_go(h);
    else if (kind < 31)
        start_anew(h);
    else
        split_at(h->f, "b");
}

/* "7+3": the value, and what was added. */
static struct said row_in(const struct cell_list *cells)
{
    struct said said = {0};
    for (size_t i = 0; i < cells->count; i++) {
        const struct cell *cell = &cells->items[i];
        char text[400] = "";
        if (cell->family->id == FAMILY_SUM) {
            said.sum = cell->value.data[6] << 8 | cell->value.data[7];
        } else {
            assert_true(cell->value.size < sizeof text);
            memcpy(text, cell->value.data, cell->value.size);
            said.value = (int)strtol(text, NULL, 10);
        }
    }
    return said;
}

static int place_of(bytes key)
{
    int at = 0;
    while (!bytes_equal(key, bytes_of(keys[at])))
        assert_true(++at < KEYS);
    return at;
}

static void compare(struct history *h)
{
    const struct key_range all = {.is_point = false};
    struct said found[KEYS] = {{0}};
    struct scan_spec spec = {.table = h->f->table,
                             .ranges = &all,
                             .range_count = 1,
                             .schema = table_schema(h->f->table),
                             .arena = arena_create(1 << 20)};
    struct scan *scan;
    struct scan_row row;
    enum row_outcome outcome = ROW_ABSENT;
    assert_ok(scan_create(&spec, &scan));
    while (outcome != ROW_END) {
        assert_ok(scan_next(scan, STORE_READ_ANY, &row, &outcome));
        if (outcome == ROW_FOUND)
            found[place_of(row.key)] = row_in(row.cells);
    }
    scan_destroy(scan);
    arena_destroy(spec.arena);
    for (int i = 0; i < KEYS; i++) {
        assert_int_equal(found[i].value, h->rows[i].value);
        assert_int_equal(found[i].sum, h->rows[i].sum);
    }
}

static struct cluster_fixture *open_life(struct history *h)
{
    bool is_first = h->lives.count++ == 0;
    struct cluster_fixture *f = cluster_fixture_create_at(h->lives.directory);
    f->options.maintenance_by_hand = true;
    open_test_cluster(f);
    if (is_first)
        f->table = create_test_table(f->cluster, NULL);
    else
        assert_ok(cluster_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
    return f;
}

static void live(struct lives *lives)
{
    struct history *h = (struct history *)(void *)lives;
    h->f = open_life(h);
    h->snapshot = NULL;
    compare(h);
    while (h->lives.step < run.changes) {
        h->lives.step++;
        take_step(h);
        compare(h);
    }
    let_go(h);
    run_passes(h->f);
    compare(h);
    cluster_fixture_destroy(h->f);
}

/* The first test (lives_testing.h). */
static void rows_are_what_was_written_since_they_were_dropped(void **state)
{
    (void)state;
    lives_tell("drop_range_test", &run, sizeof(struct history), live);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_what_was_written_since_they_were_dropped),
        cmocka_unit_test_setup_teardown(what_is_dropped_stays_so_until_it_is_forgotten, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(adds_on_both_sides_are_told_apart_after_a_kill, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(large_cells_are_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_holds_it_up, setup, teardown),
        cmocka_unit_test_setup_teardown(a_deleted_table_keeps_what_was_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(a_schema_that_changes_knows_the_drops, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_dropped_has_no_size, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_written_since_has_a_size, setup, teardown),
        cmocka_unit_test_setup_teardown(space_that_has_come_back_is_not_left_out_once_more, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_oldest_goes_before_there_are_too_many, setup, teardown),
        cmocka_unit_test_setup_teardown(an_update_is_decided_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pass_waits_for_who_holds_the_drops, setup, teardown),
        cmocka_unit_test_setup_teardown(a_drop_that_is_held_meanwhile_is_not_forgotten, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_view_that_keeps_rows_keeps_the_drop, setup, teardown),
    };
    take_test_run(&run, a_thousand, argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
