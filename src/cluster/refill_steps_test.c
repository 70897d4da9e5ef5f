/* Repair of a table from a store that has it as it was, with a disk that fails, at each of its
 * steps, and without memory.
 *
 * Rows, some with large cells, are in one table file, of which there is a copy; then some were
 * written over and some deleted, and a block of the file is damaged. Whatever becomes of a repair,
 *
 *     each row that was not hit is what it is now, or refused while the disk does not read it;
 *     each that was hit is refused, or as it was in the copy; and
 *     a repair without faults brings all into service: then rows can be written there that the
 *     next start has.
 *
 * The same if large cells alone are damaged: each row that was hit is what it is now, except one
 * whose large cells have been written since the copy, which has those of the copy. */
#include "base/testing/failmalloc.h"
#include "cluster/checkpoint.h"
#include "cluster/refill.h"
#include "cluster/row_jobs.h"
#include "cluster/testing/damaged_testing.h"
#include "row/row_key.h"
#include "tablet/drop_records.h"

enum { LARGE = 13 * VALUE, LARGE_EACH = 8 /* overflows */ };

/* --- what there was, and is --- */

static bool was_rewritten(unsigned i)
{
    return i % 3 == 0;
}

static bool was_deleted(unsigned i)
{
    return i % 7 == 1 && !was_rewritten(i);
}

/* Half of those that were large, and as many that were not. */
static bool is_large_anew(unsigned i)
{
    return (i % 16 == 8 || i % 16 == 4) && !was_rewritten(i) && !was_deleted(i);
}

/* Has a large cell, and a small one beside it that was written before, and is read first. */
static bool has_small_beside(unsigned i)
{
    return i % 32 == 0 && !was_rewritten(i) && !was_deleted(i);
}

static void large_value(char value[LARGE + 1], unsigned i)
{
    for (unsigned at = 0; at < LARGE / VALUE; at++)
        value_of(value + (size_t)at * VALUE, i * 100 + at);
}

static void value_then(char value[LARGE + 1], unsigned i)
{
    if (i % LARGE_EACH == 0 && !has_small_beside(i))
        large_value(value, i);
    else
        value_of(value, i);
}

static void value_now(char value[LARGE + 1], unsigned i)
{
    if (was_rewritten(i))
        value_of(value, i + ROWS);
    else if (is_large_anew(i))
        large_value(value, i + ROWS);
    else
        value_then(value, i);
    if (was_deleted(i))
        value[0] = '\0';
}

/* Of a row whose large cells alone were hit: what it had in the same place before them may have
 * been what they replaced. */
static void value_refilled(char value[LARGE + 1], unsigned i)
{
    value_now(value, i);
    if (is_large_anew(i))
        value_then(value, i);
    if (is_large_anew(i) && i % LARGE_EACH != 0)
        value[0] = '\0';
}

/* --- the story's data --- */

struct story {
    struct cluster_fixture f;
    bool is_of_cells; /* large cells alone are hit */
    struct hit hit;
    bool is_closed[ROWS]; /* of cells: by what it was before any repair */
    char copy[64];        /* where a power cut leaves it */
    char former[64];      /* has the store as it was, in FORMER */
    char then[96];
    struct log log;
    struct store *store; /* that one */
    struct table_record record;
    struct schema *schema;
    uint64_t keyspace_id;
    struct arena *arena;
    struct foreign_table source;
};

static void write_then(struct story *story)
{
    struct cluster_fixture *f = &story->f;
    struct checkpoint_facts facts;
    char key[8], value[LARGE + 1];
    f->table = create_test_table(f->cluster, NULL);
    for (unsigned i = 0; i < ROWS; i++) {
        key_of(key, i);
        value_then(value, i);
        if (has_small_beside(i)) {
            assert_ok(try_write(f, key, setting(f, FAMILY_F, "q", 2, value)));
            large_value(value, i);
        }
        set_cell(f, key, value);
    }
    assert_ok(keyspace_flush(f->table->tablets[0]->keyspace));
    assert_ok(cluster_checkpoint(f->cluster, story->then, &facts));
    story->source.newest_us = version_time_us(facts.sequence);
}

static void delete_row(struct cluster_fixture *f, const char *key)
{
    struct row_change *change = row_change_create(f->arena);
    assert_non_null(change);
    row_change_delete_row(change);
    assert_ok(try_write(f, key, change));
}

static void write_now(struct story *story)
{
    char key[8], value[LARGE + 1];
    for (unsigned i = 0; i < ROWS; i++) {
        key_of(key, i);
        value_now(value, i);
        if (is_large_anew(i))
            set_cell(&story->f, key, "replaced");
        if (was_deleted(i))
            delete_row(&story->f, key);
        else if (was_rewritten(i) || is_large_anew(i))
            set_cell(&story->f, key, value);
    }
}

/* The copy has the same file, by a link: it gets one of its own. */
static void unlink_copy(const char *path)
{
    char other[600], piece[4096];
    ssize_t size;
    snprintf(other, sizeof other, "%s.new", path);
    int from = open(path, O_RDONLY | O_CLOEXEC);
    int to = open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(from >= 0 && to >= 0);
    while ((size = read(from, piece, sizeof piece)) > 0)
        assert_int_equal(write(to, piece, (size_t)size), size);
    assert_int_equal(close(from) | close(to), 0);
    assert_int_equal(rename(other, path), 0);
}

/* Rows come first in a file, and are less than half of it. */
static void fill(struct story *story)
{
    char path[512];
    open_test_cluster(&story->f);
    write_then(story);
    write_now(story);
    end_life(&story->f);
    off_t size = find_table_file(story->f.directory, path);
    unlink_copy(path);
    flip_at(path, story->is_of_cells ? size * 3 / 4 : FLIPPED_AT);
}

static status note_table(void *context, const struct table_record *record)
{
    struct story *story = context;
    struct buffer encoded = {0};
    assert_ok(catalog_encode_table(record, &encoded));
    bytes kept = arena_copy(story->arena, buffer_bytes(&encoded));
    assert_ok(catalog_decode_table(kept, story->arena, &story->record, &story->schema));
    story->record.id = record->id;
    buffer_free(&encoded);
    return status_ok();
}

static status note_tablet(void *context, const struct tablet_record *record)
{
    struct story *story = context;
    story->keyspace_id = record->keyspace_id;
    return status_ok();
}

static void open_source(struct story *story)
{
    const struct catalog_visitor visitor = {
        .context = story, .table = note_table, .tablet = note_tablet};
    story->log = (struct log){.fd = -1, .level = LOG_ERROR, .clock = clock_system()};
    const struct store_options options = {.directory = story->then,
                                          .fold = &row_fold,
                                          .log = &story->log,
                                          .cache_bytes = 1 << 20,
                                          .open_files = 64,
                                          .read_only = true};
    assert_ok(__real_store_open(&options, &story->store));
    assert_ok(catalog_read(store_keyspace_find(story->store, CATALOG_KEYSPACE_ID), &visitor));
    story->source.keyspace = store_keyspace_find(story->store, story->keyspace_id);
    story->source.record = &story->record;
}

static void make_story(struct story *story, bool is_of_cells)
{
    *story = (struct story){.is_of_cells = is_of_cells, .arena = arena_create(1 << 20)};
    make_steps_fixture(&story->f);
    make_steps_directory(story->copy, sizeof story->copy);
    make_steps_directory(story->former, sizeof story->former);
    snprintf(story->then, sizeof story->then, "%s/then", story->former);
}

static void begin_story(struct story *story, bool is_of_cells)
{
    make_story(story, is_of_cells);
    fill(story);
    open_source(story);
}

static void end_story(struct story *story)
{
    store_close(story->store);
    schema_destroy(story->schema);
    arena_destroy(story->arena);
    remove_test_directory(story->copy);
    remove_test_directory(story->former);
    free_steps_fixture(&story->f);
}

/* --- what is so --- */

enum state { CLOSED, FILLED, CLOSED_OR_FILLED, ANY_REFUSED };

static void right_value(const struct story *story, unsigned i, bool is_hit, char value[LARGE + 1])
{
    if (!is_hit)
        value_now(value, i);
    else if (story->is_of_cells)
        value_refilled(value, i);
    else
        value_then(value, i);
}

static void assert_row(struct story *story, unsigned i, enum state state)
{
    char key[8], value[LARGE + 1], right[LARGE + 16] = "";
    struct buffer text = {0};
    key_of(key, i);
    bool is_hit = story->is_of_cells ? story->is_closed[i] : was_hit(&story->hit, key);
    right_value(story, i, is_hit, value);
    if (value[0] != '\0')
        snprintf(right, sizeof right, "%s=%s", key, value);
    bool is_read = read_one(&story->f, key, &text);
    if (is_read)
        assert_string_equal((const char *)text.data, right);
    bool must_be_read = state == FILLED || (!is_hit && state != ANY_REFUSED);
    bool must_be_refused = is_hit && state == CLOSED;
    if ((must_be_read && !is_read) || (must_be_refused && is_read))
        fail_msg("%s is read: %d, is hit: %d, in state %d", key, is_read, is_hit, state);
    buffer_free(&text);
}

static void assert_rows(struct story *story, enum state state)
{
    for (unsigned i = 0; i < ROWS; i++)
        assert_row(story, i, state);
}

static status repair(struct story *story)
{
    const struct table_repair_options options = {.lost = ignore_lost, .source = &story->source};
    return table_repair(story->f.table, &options);
}

static status count_hit_rows(struct story *story, uint64_t *count)
{
    return refill_count(&story->source, bytes_make(story->hit.from, story->hit.from_size),
                        bytes_make(story->hit.to, story->hit.to_size), count);
}

/* The rows that were hit, before any repair. */
static void find_rows(struct story *story)
{
    find_hit(&story->f, &story->hit);
    for (unsigned i = 0; i < ROWS; i++) {
        char key[8];
        struct buffer text = {0};
        key_of(key, i);
        story->is_closed[i] = !read_one(&story->f, key, &text);
        buffer_free(&text);
    }
    assert_rows(story, CLOSED);
}

/* --- the story --- */

static void use_repaired(struct story *story)
{
    struct cluster_fixture *f = &story->f;
    char key[8], value[LARGE + 1];
    for (unsigned i = 0; i < ROWS; i++) {
        key_of(key, i);
        value_of(value, i + ROWS);
        delete_row(f, key);
        set_cell(f, key, value);
    }
    end_life(f);
    begin_without_damage(f);
    for (unsigned i = 0; i < ROWS; i++) {
        struct buffer text = {0};
        char right[LARGE + 16];
        key_of(key, i);
        value_of(value, i + ROWS);
        snprintf(right, sizeof right, "%s=%s", key, value);
        assert_true(read_one(f, key, &text));
        assert_string_equal((const char *)text.data, right);
        buffer_free(&text);
    }
    end_life(f);
}

/* The next start, and a repair without faults. */
static void recover(struct story *story, enum state state)
{
    struct cluster_fixture *f = &story->f;
    begin_life(f);
    assert_ok(cluster_look_for_damage(f->cluster));
    assert_rows(story, state);
    assert_ok(repair(story));
    assert_rows(story, FILLED);
    end_life(f);
    begin_without_damage(f);
    assert_rows(story, FILLED);
    use_repaired(story);
}

static bool repair_with_fault(bool is_of_cells, enum fault_operation operation, unsigned pass,
                              enum ending ending)
{
    struct story story;
    enum state state = operation == FAULT_READ ? ANY_REFUSED : CLOSED_OR_FILLED;
    begin_story(&story, is_of_cells);
    faults = fault_fs_create();
    begin_life(&story.f);
    find_rows(&story);
    fault_fs_fail(faults, operation, "", FAULT_IO, pass);
    status s = repair(&story);
    bool failed = !status_is_ok(s);
    bool came = failed || fault_fs_failures(faults) > 0;
    status_free(s);
    if (ending != STOP && failed)
        cut_power(&story.f, story.copy, ending);
    fault_fs_heal(faults);
    if (story.f.options.data_directory == story.f.directory)
        assert_rows(&story, failed ? state : FILLED);
    end_life(&story.f);
    end_faults();
    recover(&story, state);
    end_story(&story);
    return came;
}

static bool repair_rows_with_fault(enum fault_operation operation, unsigned pass,
                                   enum ending ending)
{
    return repair_with_fault(false, operation, pass, ending);
}

static bool repair_cells_with_fault(enum fault_operation operation, unsigned pass,
                                    enum ending ending)
{
    return repair_with_fault(true, operation, pass, ending);
}

static void test_each_write_fails(void **state)
{
    (void)state;
    tell_with_each_fault(FAULT_APPEND, repair_rows_with_fault);
}

static void test_each_sync_fails(void **state)
{
    (void)state;
    tell_with_each_fault(FAULT_SYNC, repair_rows_with_fault);
}

static void test_each_sync_fails_of_cells(void **state)
{
    (void)state;
    tell_with_each_fault(FAULT_SYNC, repair_cells_with_fault);
}

static void fail_each_allocation(bool is_of_cells)
{
    enum { MOST = 4000 };
    struct story story;
    bool is_repaired = false;
    size_t count = 0;
    begin_story(&story, is_of_cells);
    begin_life(&story.f);
    find_rows(&story);
    for (; !is_repaired; count++) {
        assert_true(count < MOST);
        failmalloc_start(count);
        status s = repair(&story);
        bool failed = failmalloc_stop();
        is_repaired = status_is_ok(s);
        assert_true(failed || is_repaired);
        status_free(s);
        if (is_repaired || count % 8 == 0)
            assert_rows(&story, is_repaired ? FILLED : CLOSED_OR_FILLED);
    }
    assert_true(count > 1);
    use_repaired(&story);
    end_story(&story);
}

static void test_each_allocation_fails(void **state)
{
    (void)state;
    fail_each_allocation(false);
}

static void test_each_allocation_fails_of_cells(void **state)
{
    (void)state;
    fail_each_allocation(true);
}

/* --- large cells alone --- */

static void test_large_cells_come_back(void **state)
{
    struct story story;
    unsigned closed = 0, anew = 0, made = 0, beside = 0;
    (void)state;
    begin_story(&story, true);
    begin_life(&story.f);
    find_rows(&story);
    for (unsigned i = 0; i < ROWS; i++) {
        closed += story.is_closed[i];
        anew += story.is_closed[i] && is_large_anew(i) && i % LARGE_EACH == 0;
        made += story.is_closed[i] && is_large_anew(i) && i % LARGE_EACH != 0;
        beside += story.is_closed[i] && has_small_beside(i);
    }
    assert_true(closed > anew + made + beside && anew > 0 && made > 0 && beside > 0);
    assert_ok(repair(&story));
    assert_rows(&story, FILLED);
    end_life(&story.f);
    begin_without_damage(&story.f);
    assert_rows(&story, FILLED);
    use_repaired(&story);
    end_story(&story);
}

/* --- what had been dropped --- */

static void write_all(struct story *story, unsigned salt)
{
    for (unsigned i = 0; i < ROWS; i++) {
        char key[8], value[VALUE + 1];
        key_of(key, i);
        value_of(value, i + salt);
        set_cell(&story->f, key, value);
    }
    assert_ok(keyspace_flush(story->f.table->tablets[0]->keyspace));
}

static void add_to_all(struct story *story, uint8_t amount)
{
    uint8_t state[8] = {[7] = amount};
    for (unsigned i = 0; i < ROWS; i++) {
        char key[8];
        struct row_change *change = row_change_create(story->f.arena);
        assert_non_null(change);
        key_of(key, i);
        row_change_add(change, ENTRY_SUM, FAMILY_SUM, bytes_of("n"), 0,
                       bytes_make(state, sizeof state));
        assert_ok(try_write(&story->f, key, change));
    }
}

/* The copy has the rows in a file, and the drop in its catalog; with `adds` some on both sides. */
static void fill_dropped(struct story *story, bool adds)
{
    struct cluster_fixture *f = &story->f;
    struct checkpoint_facts facts;
    char path[512];
    open_test_cluster(f);
    f->table = create_test_table(f->cluster, NULL);
    if (adds)
        add_to_all(story, 1);
    write_all(story, 0);
    assert_ok(table_drop_rows(f->table, bytes_of("k")));
    if (adds)
        add_to_all(story, 2);
    assert_ok(cluster_checkpoint(f->cluster, story->then, &facts));
    story->source.newest_us = version_time_us(facts.sequence);
    maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(row_drops_count(f->table->spaces[0].drops), 0);
    write_all(story, ROWS);
    end_life(f);
    find_table_file(f->directory, path);
    flip_at(path, FLIPPED_AT);
}

static void read_drops(struct story *story)
{
    struct keyspace *catalog = store_keyspace_find(story->store, CATALOG_KEYSPACE_ID);
    assert_ok(row_drops_create(&story->source.drops));
    assert_ok(drop_records_load(catalog, story->keyspace_id, story->source.drops));
    assert_int_equal(row_drops_count(story->source.drops), 1);
}

static void test_what_had_been_dropped_does_not_come_back(void **state)
{
    struct story story;
    uint64_t count;
    (void)state;
    make_story(&story, false);
    story.f.options.maintenance_by_hand = true;
    fill_dropped(&story, false);
    open_source(&story);
    read_drops(&story);
    begin_life(&story.f);
    find_hit(&story.f, &story.hit);
    assert_ok(count_hit_rows(&story, &count));
    assert_int_equal(count, 0);
    assert_ok(repair(&story));
    for (unsigned i = 0; i < ROWS; i++) {
        char key[8], value[VALUE + 1], right[VALUE + 16];
        struct buffer text = {0};
        key_of(key, i);
        value_of(value, i + ROWS);
        snprintf(right, sizeof right, "%s=%s", key, value);
        assert_true(read_one(&story.f, key, &text));
        assert_string_equal((const char *)text.data, was_hit(&story.hit, key) ? "" : right);
        buffer_free(&text);
    }
    end_life(&story.f);
    row_drops_destroy(story.source.drops);
    end_story(&story);
}

/* What was added before is not in the sums that come back. */
static void test_sums_begin_at_the_drop(void **state)
{
    struct story story;
    unsigned count = 0;
    (void)state;
    make_story(&story, false);
    story.f.options.maintenance_by_hand = true;
    fill_dropped(&story, true);
    open_source(&story);
    read_drops(&story);
    begin_life(&story.f);
    find_hit(&story.f, &story.hit);
    assert_ok(repair(&story));
    for (unsigned i = 0; i < ROWS; i++) {
        char key[8];
        struct buffer text = {0};
        key_of(key, i);
        assert_true(read_one(&story.f, key, &text));
        if (was_hit(&story.hit, key)) {
            assert_int_equal(text.data[strlen("k0000=") + 7], 2);
            count++;
        }
        buffer_free(&text);
    }
    assert_true(count > 0);
    end_life(&story.f);
    row_drops_destroy(story.source.drops);
    end_story(&story);
}

/* Before the drop: a large cell that nothing replaces, or a small one. */
static void write_what_goes(struct story *story)
{
    char key[8], value[LARGE + 1];
    for (unsigned i = 0; i < ROWS; i++) {
        key_of(key, i);
        large_value(value, i);
        if (i % 2 == 0)
            assert_ok(try_write(&story->f, key, setting(&story->f, FAMILY_F, "a", 1, value)));
        else
            set_cell(&story->f, key, "gone");
    }
    assert_ok(keyspace_flush(story->f.table->tablets[0]->keyspace));
}

/* Behind the drop. */
static void write_large(struct story *story, unsigned first, unsigned each)
{
    char key[8], value[LARGE + 1];
    for (unsigned i = first; i < ROWS; i += each) {
        key_of(key, i);
        large_value(value, i + ROWS);
        set_cell(&story->f, key, "replaced");
        set_cell(&story->f, key, value);
    }
    assert_ok(keyspace_flush(story->f.table->tablets[0]->keyspace));
}

/* Every fourth row: small cells, which upkeep takes out of the record, in the place of what went.
 */
static void write_moved(struct story *story)
{
    char key[8], value[VALUE + 1];
    for (unsigned i = 3; i < ROWS; i += 4) {
        key_of(key, i);
        value_of(value, i + ROWS);
        set_cell(&story->f, key, value);
        assert_ok(try_write(&story->f, key, setting(&story->f, FAMILY_F, "r", 1, value)));
        assert_ok(row_jobs_maintain(story->f.table, bytes_of(key)));
    }
}

/* The copy has the large cells of the one half of the rows, and the drop. */
static void fill_dropped_cells(struct story *story)
{
    struct cluster_fixture *f = &story->f;
    struct checkpoint_facts facts;
    char path[512];
    open_test_cluster(f);
    f->table = create_test_table(f->cluster, NULL);
    write_what_goes(story);
    assert_ok(table_drop_rows(f->table, bytes_of("k")));
    write_large(story, 0, 2);
    assert_ok(cluster_checkpoint(f->cluster, story->then, &facts));
    story->source.newest_us = version_time_us(facts.sequence);
    write_large(story, 1, 4);
    maintenance_run_once(f->cluster->maintenance);
    assert_int_equal(row_drops_count(f->table->spaces[0].drops), 0);
    write_moved(story);
    assert_ok(keyspace_compact(f->table->spaces[0].keyspace, bytes_of(""), bytes_of("")));
    end_life(f);
    off_t size = find_table_file(f->directory, path);
    flip_at(path, size * 3 / 4);
}

/* Of a row of which the copy has nothing that counts a cell is there, or is lost. */
static void assert_refilled_cells(struct story *story)
{
    for (unsigned i = 0; i < ROWS; i++) {
        char key[8], value[LARGE + 1], right[LARGE + 16];
        struct buffer text = {0};
        key_of(key, i);
        if (i % 4 == 3)
            value_of(value, i + ROWS);
        else
            large_value(value, i + ROWS);
        snprintf(right, sizeof right, "%s=%s", key, value);
        assert_true(read_one(&story->f, key, &text));
        if (i % 2 == 0 || !story->is_closed[i] || text.data[0] != '\0')
            assert_string_equal((const char *)text.data, right);
        buffer_free(&text);
    }
}

static void test_nor_do_large_cells_that_had_been(void **state)
{
    struct story story;
    unsigned closed[4] = {0};
    (void)state;
    make_story(&story, true);
    story.f.options.maintenance_by_hand = true;
    fill_dropped_cells(&story);
    open_source(&story);
    read_drops(&story);
    begin_life(&story.f);
    find_hit(&story.f, &story.hit);
    for (unsigned i = 0; i < ROWS; i++) {
        char key[8];
        struct buffer text = {0};
        key_of(key, i);
        story.is_closed[i] = !read_one(&story.f, key, &text);
        closed[i % 4] += story.is_closed[i];
        buffer_free(&text);
    }
    assert_true(closed[0] > 0 && closed[1] > 0 && closed[3] > 0);
    assert_ok(repair(&story));
    assert_refilled_cells(&story);
    end_life(&story.f);
    row_drops_destroy(story.source.drops);
    end_story(&story);
}

static bool is_noted(struct story *story, const char *from, const char *to)
{
    struct shard *home = story->f.cluster->home;
    const struct damage_record record = {
        .keyspace_id = story->keyspace_id, .from = bytes_of("Rk0100"), .to = bytes_of("Rk0200")};
    row_locks_acquire_all(home->locks);
    home->refilling.record = &record;
    home->refilling.is_dropped = false;
    refill_note_drop(home, story->f.table->spaces[0].keyspace, bytes_of(from), bytes_of(to));
    bool is_so = home->refilling.is_dropped;
    home->refilling.record = NULL;
    home->refilling.is_dropped = false;
    row_locks_release_all(home->locks, 0);
    return is_so;
}

/* Rows that are deleted while they are filled again: what is filled in goes by these. */
static void test_drops_meanwhile_are_noted(void **state)
{
    struct story story;
    (void)state;
    begin_story(&story, false);
    begin_life(&story.f);
    assert_true(is_noted(&story, "Rk0150", "Rk0151"));
    assert_true(is_noted(&story, "R", "Rk0101"));
    assert_true(is_noted(&story, "Rk0199", "S"));
    assert_false(is_noted(&story, "Rk0000", "Rk0100"));
    assert_false(is_noted(&story, "Rk0200", "S"));
    story.keyspace_id++;
    assert_false(is_noted(&story, "R", "S"));
    end_life(&story.f);
    end_story(&story);
}

/* --- what is hit otherwise --- */

static void test_rows_of_the_source_are_counted(void **state)
{
    struct story story;
    uint64_t count, right = 0;
    (void)state;
    begin_story(&story, false);
    begin_life(&story.f);
    find_rows(&story);
    for (unsigned i = 0; i < ROWS; i++) {
        char key[8];
        key_of(key, i);
        right += was_hit(&story.hit, key);
    }
    assert_ok(count_hit_rows(&story, &count));
    assert_int_equal(count, right);
    assert_true(right > 8); /* some of them with large cells */
    const struct store_damage closed = {.keyspace_id = story.keyspace_id,
                                        .file = 1,
                                        .is_whole = true,
                                        .from = bytes_of("R"),
                                        .to = bytes_of("S"),
                                        .what = "closed",
                                        .is_remembered = true};
    assert_ok(keyspace_close_range(story.source.keyspace, &closed));
    assert_status(count_hit_rows(&story, &count), STATUS_DATA_LOSS);
    assert_status(repair(&story), STATUS_DATA_LOSS);
    assert_rows(&story, CLOSED);
    end_life(&story.f);
    end_story(&story);
}

static void test_another_table_is_refused(void **state)
{
    struct story story;
    (void)state;
    begin_story(&story, false);
    begin_life(&story.f);
    find_rows(&story);
    struct keyspace *own = story.source.keyspace;
    story.record.id++;
    /* Any other: with its own it is a table that was claimed. */
    story.source.keyspace = cluster_catalog(story.f.cluster);
    assert_status(repair(&story), STATUS_FAILED_PRECONDITION);
    story.record.id--;
    story.source.keyspace = own;
    story.source.newest_us += INT64_C(3600) * 1000000;
    assert_status(repair(&story), STATUS_FAILED_PRECONDITION);
    assert_rows(&story, CLOSED);
    end_life(&story.f);
    end_story(&story);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_had_been_dropped_does_not_come_back),
        cmocka_unit_test(test_sums_begin_at_the_drop),
        cmocka_unit_test(test_nor_do_large_cells_that_had_been),
        cmocka_unit_test(test_drops_meanwhile_are_noted),
        cmocka_unit_test(test_rows_of_the_source_are_counted),
        cmocka_unit_test(test_another_table_is_refused),
        cmocka_unit_test(test_large_cells_come_back),
        cmocka_unit_test(test_each_write_fails),
        cmocka_unit_test(test_each_sync_fails),
        cmocka_unit_test(test_each_allocation_fails),
        cmocka_unit_test(test_each_sync_fails_of_cells),
        cmocka_unit_test(test_each_allocation_fails_of_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
