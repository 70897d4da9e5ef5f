/* What is served, and what is accepted, of a directory whose manifest is gone, with its copy. */
#include "store/testing/fault_memory.h"
#include "store/testing/log_ends_testing.h"

#include <dirent.h>

/* --- what happens to a directory --- */

static void remove_all(struct fixture *f, const char *wanted)
{
    char pattern[PATH_MAX];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/%s", f->copy, wanted);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            assert_int_equal(unlink(found.gl_pathv[i]), 0);
    globfree(&found);
}

/* The copy is what a kill leaves, without a list of tables. */
static void lose_list(struct fixture *f)
{
    cut_power(f, ALL);
    remove_all(f, "MANIFEST*");
}

static void delete_range(struct store *store, struct keyspace *keyspace, const char *from,
                         const char *to)
{
    struct store_batch *batch = store_batch_create();
    store_batch_delete_range(batch, keyspace, bytes_of(from), bytes_of(to));
    assert_ok(store_write(store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
}

static void delete (struct store *store, struct keyspace *keyspace, const char *key)
{
    assert_ok(write_one(store, keyspace, DELETE, key, NULL, STORE_SYNCED));
}

static void is_refused(struct fixture *f)
{
    expect_loss(f, "nobody knows which tables count");
    expect_loss(f, "--accept-old-data");
}

static void serve(struct fixture *f)
{
    f->of_copy.salvage = true;
    expect(f, STORE_LOG_WHOLE);
    const char *words = store_old_data(f->other);
    assert_non_null(words);
    assert_non_null(strstr(words, "may show deleted data"));
}

static void accept(struct fixture *f)
{
    f->of_copy.salvage = f->of_copy.accepts_old_data = true;
    assert_ok(open_copy(f));
    close_copy(f);
    f->of_copy.salvage = f->of_copy.accepts_old_data = false;
    assert_ok(store_accept_old_data(f->copy));
    expect(f, STORE_LOG_WHOLE);
    assert_null(store_old_data(f->other));
}

/* Names and sizes of what is in the directory itself, in an order of their own. */
static char *listing(const char *directory)
{
    struct dirent **names;
    struct stat st;
    char *all = strdup("");
    int count = scandir(directory, &names, NULL, alphasort);
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        char *longer, *path;
        assert_true(asprintf(&path, "%s/%s", directory, names[i]->d_name) > 0);
        assert_int_equal(stat(path, &st), 0);
        if (S_ISREG(st.st_mode) && strcmp(names[i]->d_name, "LOCK") != 0) {
            assert_true(asprintf(&longer, "%s%s %lld %lld\n", all, names[i]->d_name,
                                 (long long)st.st_size, (long long)st.st_mtim.tv_nsec) > 0);
            free(all);
            all = longer;
        }
        free(path);
        free(names[i]);
    }
    free(names);
    return all;
}

/* --- tables and logs --- */

/* Fills the store, and stops: what a log has of which keyspace is on record soon, and at a stop. */
static void fill(struct fixture *f)
{
    struct keyspace *other = make_keyspace(f->store, 9);
    keyspace_set_name(other, "another table");
    put(f->store, f->keyspace, "a", "1");
    put(f->store, f->keyspace, "b", "1");
    put(f->store, f->keyspace, "c", "1");
    merge(f->store, f->keyspace, "d", "x");
    put(f->store, other, "in the log", "1");
    assert_ok(keyspace_flush(f->keyspace));
    put(f->store, f->keyspace, "a", "2");
    delete (f->store, f->keyspace, "b");
    merge(f->store, f->keyspace, "d", "y");
    delete_range(f->store, f->keyspace, "c", "d");
    assert_ok(keyspace_flush(f->keyspace));
    put(f->store, f->keyspace, "a", "3");
    merge(f->store, f->keyspace, "d", "z");
    stop(f);
}

/* In tables, whose properties have its name, and in the log, where a number stands. */
static void the_kind_of_a_keyspace_is_known(void **state)
{
    struct fixture *f = *state;
    assert_ok(store_log_keyspace_create(f->store, 9));
    assert_ok(store_log_keyspace_create(f->store, 10));
    put(f->store, store_keyspace_find(f->store, 9), "in a table", "1");
    assert_ok(keyspace_flush(store_keyspace_find(f->store, 9)));
    put(f->store, store_keyspace_find(f->store, 10), "in the log", "1");
    put(f->store, f->keyspace, "a", "1");
    stop(f);
    lose_list(f);
    accept(f);
    for (uint64_t id = 9; id <= 10; id++) {
        assert_non_null(store_keyspace_find(f->other, id));
        assert_int_equal(keyspace_kind(store_keyspace_find(f->other, id)), KEYSPACE_LOG);
    }
    assert_int_equal(keyspace_kind(of_copy(f)), KEYSPACE_ROWS);
    assert_value(store_keyspace_find(f->other, 9), "in a table", "1");
    assert_value(store_keyspace_find(f->other, 10), "in the log", "1");
}

static void expect_all(struct fixture *f)
{
    struct keyspace *other = store_keyspace_find(f->other, 9);
    assert_non_null(other);
    assert_value(of_copy(f), "a", "3");
    assert_value(of_copy(f), "b", NULL);
    assert_value(of_copy(f), "c", NULL);
    assert_value(of_copy(f), "d", "xyz");
    assert_value(other, "in the log", "1");
}

static void what_tables_and_logs_have_is_served(void **state)
{
    struct fixture *f = *state;
    fill(f);
    lose_list(f);
    char *before = listing(f->copy);
    is_refused(f);
    for (int i = 0; i < 2; i++) {
        serve(f);
        expect_all(f);
        close_copy(f);
        char *after = listing(f->copy);
        assert_string_equal(before, after);
        free(after);
    }
    f->of_copy.salvage = false;
    is_refused(f);
    free(before);
}

static void old_data_can_be_sealed(void **state)
{
    struct fixture *f = *state;
    fill(f);
    lose_list(f);
    serve(f);
    store_seal(f->other, "it is so");
    assert_status(write_one(f->other, of_copy(f), PUT, "a", "4", STORE_SYNCED),
                  STATUS_FAILED_PRECONDITION);
    assert_status(store_keyspaces_create(f->other, 30, 1), STATUS_FAILED_PRECONDITION);
    assert_status(store_keyspace_drop(f->other, of_copy(f)), STATUS_FAILED_PRECONDITION);
    status s = store_health(f->other);
    assert_non_null(strstr(status_message(s), "it is so"));
    assert_status(s, STATUS_FAILED_PRECONDITION);
    expect_all(f);
}

static void accepted_old_data_is_a_store_again(void **state)
{
    struct fixture *f = *state;
    fill(f);
    lose_list(f);
    accept(f);
    for (int i = 0; i < 2; i++) {
        expect_all(f);
        put(f->other, of_copy(f), "e", "new");
        close_copy(f);
        expect(f, STORE_LOG_WHOLE);
        assert_value(of_copy(f), "e", "new");
    }
    assert_ok(keyspace_compact(of_copy(f), bytes_of(""), bytes_of("")));
    expect_all(f);
    char *replaced = path_in_copy(f, "replaced/FORMAT");
    assert_int_equal(access(replaced, F_OK), 0);
    free(replaced);
}

static void the_state_of_old_data_is_told(void **state)
{
    struct fixture *f = *state;
    enum store_old_data_state how;
    struct buffer words = {0};
    fill(f);
    cut_power(f, ALL);
    assert_ok(store_look_for_old_data(&f->of_copy, &words, &how));
    assert_int_equal(how, STORE_OLD_DATA_NONE);
    assert_int_equal(words.size, 0);
    lose_list(f);
    assert_ok(store_look_for_old_data(&f->of_copy, &words, &how));
    assert_int_equal(how, STORE_OLD_DATA_NEEDED);
    buffer_append_byte(&words, '\0');
    assert_non_null(strstr((const char *)words.data, "There are 2 table files of 2 keyspaces"));
    buffer_free(&words);
    f->of_copy.directory = "/nowhere/at all";
    assert_ok(store_look_for_old_data(&f->of_copy, &words, &how));
    assert_int_equal(how, STORE_OLD_DATA_NONE);
    f->of_copy.directory = f->copy;
}

/* Rows of a keyspace that nothing names are in one of their own; those of others are where they
 * were, by what their tables say. */
static void without_synced_as_well_there_is_less(void **state)
{
    struct fixture *f = *state;
    fill(f);
    lose_list(f);
    take_away(path_in_copy(f, "SYNCED"));
    take_away(path_in_copy(f, "CURRENT"));
    f->of_copy.salvage = true;
    expect(f, STORE_LOG_LOST);
    assert_value(of_copy(f), "a", "3");
    assert_value(of_copy(f), "c", NULL);
    assert_null(store_keyspace_find(f->other, 9));
    struct keyspace *nameless = store_keyspace_find(f->other, (uint64_t)1 << 32);
    assert_non_null(nameless);
    assert_value(nameless, "in the log", "1");
    assert_non_null(strstr(store_old_data(f->other), "the logs do not say of which keyspace"));
}

/* Killed at once: whose rows the log has is on record since the keyspace was made. */
static void a_keyspace_is_known_since_it_was_made(void **state)
{
    struct fixture *f = *state;
    put(f->store, make_keyspace(f->store, 9), "in the log", "1");
    lose_list(f);
    serve(f);
    struct keyspace *made = store_keyspace_find(f->other, 9);
    assert_non_null(made);
    assert_value(made, "in the log", "1");
}

static void a_table_that_is_damaged_is_named(void **state)
{
    struct fixture *f = *state;
    char pattern[PATH_MAX];
    glob_t tables;
    fill(f);
    lose_list(f);
    snprintf(pattern, sizeof pattern, "%s/*.sst", f->copy);
    assert_int_equal(glob(pattern, 0, NULL, &tables), 0);
    flip(strdup(tables.gl_pathv[0]), -5, 1); /* its footer */
    serve(f);
    assert_non_null(strstr(store_old_data(f->other), strrchr(tables.gl_pathv[0], '/') + 1));
    assert_non_null(strstr(store_old_data(f->other), "is missing: its footer"));
    assert_value(of_copy(f), "a", "3");
    assert_value(of_copy(f), "d", "yz");
    globfree(&tables);
}

/* Restored from a backup, and not compacted since. */
static void tables_that_were_taken_in_are_kept(void **state)
{
    struct fixture *f = *state;
    struct table_writer *writer;
    struct keyspace *taken;
    char *path = NULL;
    assert_true(asprintf(&path, "%s/backup", f->directory) > 0);
    assert_ok(table_writer_create(f->store, path, &writer));
    assert_ok(table_writer_add(writer, bytes_of("k"), bytes_of("restored")));
    assert_ok(table_writer_finish(writer));
    table_writer_destroy(writer);
    assert_ok(store_keyspace_import(f->store, 20, (const char *const *)&path, 1, &taken));
    free(path);
    lose_list(f);
    serve(f);
    struct keyspace *nameless = store_keyspace_find(f->other, (uint64_t)1 << 32);
    assert_non_null(nameless);
    assert_value(nameless, "k", "restored");
    assert_non_null(strstr(store_old_data(f->other), "restored from a backup"));
}

/* --- the order of tables --- */

/* So many entries a scan finds. */
static void assert_count(struct keyspace *keyspace, unsigned expected)
{
    const struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    unsigned found = 0;
    assert_ok(store_cursor_create(keyspace, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor))
        found++;
    assert_ok(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
    assert_int_equal(found, expected);
}

static void compact(struct fixture *f, const char *from, const char *to)
{
    assert_ok(keyspace_compact(f->keyspace, bytes_of(from), bytes_of(to)));
}

static bool is_at_rest(struct fixture *f)
{
    struct store_statistics statistics;
    char pattern[PATH_MAX];
    glob_t tables;
    store_statistics(f->store, &statistics);
    uint64_t live = 0;
    for (size_t i = 0; i < STORE_LEVELS; i++)
        live += statistics.level_files[i];
    snprintf(pattern, sizeof pattern, "%s/*.sst", f->directory);
    assert_int_equal(glob(pattern, 0, NULL, &tables), 0);
    bool is_alone = tables.gl_pathc == live;
    globfree(&tables);
    return is_alone && statistics.compactions_running == 0;
}

/* What compactions have replaced is gone, and none is about to begin. */
static void wait_for_rest(struct fixture *f)
{
    unsigned waits = 0;
    for (unsigned rests = 0; rests < 3; rests = is_at_rest(f) ? rests + 1 : 0) {
        assert_in_range(waits++, 0, WAITS);
        poll(NULL, 0, 10);
    }
}

/* Two tables at the bottom, a to c and k to z, so that a compaction of z leaves alone what is above
 * both. */
static void lay_two(struct fixture *f)
{
    put(f->store, f->keyspace, "a", "1");
    put(f->store, f->keyspace, "c", "1");
    compact(f, "", "d");
    put(f->store, f->keyspace, "k", "1");
    put(f->store, f->keyspace, "z", "1");
    compact(f, "k", "");
}

/* Puts z once more, and compacts that with all that is below it. */
static void compact_z(struct fixture *f)
{
    put(f->store, f->keyspace, "z", "2");
    assert_ok(keyspace_flush(f->keyspace));
    compact(f, "y", "");
}

/* The same as assert_value, when it is got together with others. */
static void assert_many(struct keyspace *keyspace, const char *key, const char *expected)
{
    const bytes keys[] = {bytes_of("a"), bytes_of(key)};
    struct store_value values[2];
    enum store_presence presences[2];
    assert_ok(store_get_many(keyspace, NULL, keys, 2, STORE_READ_ANY, values, presences));
    assert_int_equal(presences[1], expected != NULL ? STORE_FOUND : STORE_ABSENT);
    if (expected != NULL)
        assert_true(bytes_equal(values[1].bytes, bytes_of(expected)));
    store_value_release(&values[0]);
    store_value_release(&values[1]);
}

/* Served, and accepted. */
static void expect_both(struct fixture *f, const char *k)
{
    for (int accepted = 0; accepted < 2; accepted++) {
        lose_list(f);
        accepted ? accept(f) : serve(f);
        assert_value(of_copy(f), "a", "1");
        assert_value(of_copy(f), "c", "2");
        assert_value(of_copy(f), "k", k);
        assert_value(of_copy(f), "z", "2");
        assert_many(of_copy(f), "k", k);
        close_copy(f);
    }
}

/* A table whose greatest sequence number is above another's, and that has an older value of a key
 * that both have. */
static void a_newer_table_may_have_an_older_value(void **state)
{
    struct fixture *f = *state;
    lay_two(f);
    struct store_snapshot *snapshot =
        store_snapshot_create(f->store); /* so that sequence numbers stay */
    put(f->store, f->keyspace, "c", "2");
    put(f->store, f->keyspace, "k", "2");
    assert_ok(keyspace_flush(f->keyspace));
    compact_z(f);
    expect_both(f, "2");
    store_snapshot_release(snapshot);
}

/* Of two tables that interleave one deletes k by a range, and the other has it. The snapshot is the
 * caller's. */
static struct store_snapshot *delete_beside(struct fixture *f)
{
    lay_two(f);
    struct store_snapshot *snapshot = store_snapshot_create(f->store);
    put(f->store, f->keyspace, "c", "2");
    delete_range(f->store, f->keyspace, "k", "l");
    put(f->store, f->keyspace, "m", "2"); /* a range is believed as far as its table's keys go */
    assert_ok(keyspace_flush(f->keyspace));
    compact_z(f);
    wait_for_rest(f);
    return snapshot;
}

/* Only a compaction holds deleted ranges against sequence numbers. */
static void a_newer_table_may_have_what_was_deleted(void **state)
{
    struct fixture *f = *state;
    struct store_snapshot *snapshot = delete_beside(f);
    expect_both(f, NULL);
    store_snapshot_release(snapshot);
}

/* As an owner answers that is not open yet. */
static bool forget_damage(void *context, const struct store_damage *damage)
{
    (void)context, (void)damage;
    return false;
}

/* A keyspace that has to be compacted, and one of whose tables is damaged. */
static void damaged_tables_are_left_out_of_accepted_data(void **state)
{
    struct fixture *f = *state;
    struct store_value value;
    enum store_presence presence;
    char pattern[PATH_MAX];
    glob_t tables;
    struct store_snapshot *snapshot = delete_beside(f);
    lose_list(f);
    snprintf(pattern, sizeof pattern, "%s/*.sst", f->copy);
    assert_int_equal(glob(pattern, 0, NULL, &tables), 0);
    assert_int_equal(tables.gl_pathc, 3);
    flip(strdup(tables.gl_pathv[1]), 4, 1); /* with the deleted range */
    globfree(&tables);
    serve(f);
    assert_non_null(strstr(store_old_data(f->other), "cannot be put in order"));
    status s = store_get(of_copy(f), NULL, bytes_of("c"), STORE_READ_ANY, &value, &presence);
    assert_status(s, STATUS_DATA_LOSS);
    store_value_release(&value);
    close_copy(f);
    f->of_copy.on_damage = forget_damage;
    accept(f);
    assert_value(of_copy(f), "a", "1");
    assert_value(of_copy(f), "z", "2");
    put(f->other, of_copy(f), "x", "3");
    assert_value(of_copy(f), "x", "3");
    store_snapshot_release(snapshot);
}

/* Links the tables that `from` has and `to` has not. */
static void add_tables(const char *from, const char *to)
{
    char pattern[PATH_MAX], path[PATH_MAX];
    glob_t tables;
    snprintf(pattern, sizeof pattern, "%s/*.sst", from);
    assert_int_equal(glob(pattern, 0, NULL, &tables), 0);
    for (size_t i = 0; i < tables.gl_pathc; i++) {
        snprintf(path, sizeof path, "%s%s", to, strrchr(tables.gl_pathv[i], '/'));
        if (access(path, F_OK) != 0)
            assert_int_equal(link(tables.gl_pathv[i], path), 0);
    }
    globfree(&tables);
}

/* A directory of its own with what the store's has now. */
static char *keep_tables(struct fixture *f)
{
    char *kept = make_directory();
    add_tables(f->directory, kept);
    return kept;
}

/* Its table was replaced, and has equal keys, without sequence numbers. */
static void a_table_that_was_replaced_is_left_out(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "k", "1");
    put(f->store, f->keyspace, "m", "1");
    put(f->store, f->keyspace, "z", "1");
    compact(f, "", "");
    char *kept = keep_tables(f);
    put(f->store, f->keyspace, "k", "2");
    delete (f->store, f->keyspace, "z");
    compact(f, "", "");
    stop(f);
    for (int accepted = 0; accepted < 2; accepted++) {
        lose_list(f);
        add_tables(kept, f->copy);
        accepted ? accept(f) : serve(f);
        assert_count(of_copy(f), 2);
        assert_value(of_copy(f), "k", "2");
        assert_value(of_copy(f), "m", "1");
        assert_value(of_copy(f), "z", NULL);
        close_copy(f);
    }
    remove_directory(kept);
}

/* A kill: what it was made of is all there, and what follows it has no end. */
static void a_table_that_was_not_finished_is_left_out(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "k", "1");
    put(f->store, f->keyspace, "m", "1");
    put(f->store, f->keyspace, "z", "1");
    compact(f, "", "");
    put(f->store, f->keyspace, "k", "2");
    cut_power(f, ALL);
    delete (f->store, f->keyspace, "z");
    compact(f, "", "");
    remove_all(f, "MANIFEST*");
    add_tables(f->directory, f->copy);
    char *unfinished = path_in_copy(f, "000900.sst");
    fclose(fopen(unfinished, "w"));
    free(unfinished);
    serve(f);
    assert_count(of_copy(f), 3);
    assert_value(of_copy(f), "k", "2");
    assert_value(of_copy(f), "z", "1");
}

/* More tables of one key than there are levels, which RocksDB would compact if it was let. */
static void old_data_is_not_compacted_by_itself(void **state)
{
    struct fixture *f = *state;
    enum { TABLES = STORE_LEVELS + 5 };
    struct store_snapshot *snapshots[TABLES]; /* so that sequence numbers stay */
    char *kept = make_directory();
    for (unsigned i = 0; i < TABLES; i++) {
        put(f->store, f->keyspace, "k", "1");
        assert_ok(keyspace_flush(f->keyspace));
        snapshots[i] = store_snapshot_create(f->store);
        add_tables(f->directory, kept);
    }
    lose_list(f);
    add_tables(kept, f->copy);
    serve(f);
    assert_value(of_copy(f), "k", "1");
    assert_ok(keyspace_compact(of_copy(f), bytes_of(""), bytes_of("")));
    struct store_statistics statistics;
    store_statistics(f->other, &statistics);
    assert_int_equal(statistics.compactions + statistics.compactions_running, 0);
    for (unsigned i = 0; i < TABLES; i++)
        store_snapshot_release(snapshots[i]);
    remove_directory(kept);
}

enum { KEYS = 10, GROUND = 5, STEPS = 3, HISTORIES = 30, FIRST_ID = 100 };

/* Of a keyspace of its own: all come back together. */
struct model {
    unsigned state;
    uint64_t keyspace_id;
    struct store_snapshot *snapshot; /* so that sequence numbers stay, up to the end; may be NULL */
    bool is_there[KEYS];
    unsigned value[KEYS];
};

static unsigned draw(struct model *model, unsigned below)
{
    model->state = model->state * 1103515245u + 12345u;
    return (model->state >> 16) % below;
}

static const char *key_of(unsigned i, char key[8])
{
    snprintf(key, 8, "k%02u", i);
    return key;
}

static void put_one(struct fixture *f, struct model *model, unsigned i, unsigned step)
{
    char key[8], value[16];
    snprintf(value, sizeof value, "%u", step);
    assert_ok(write_one(f->store, f->keyspace, PUT, key_of(i, key), value, STORE_ASYNC));
    model->is_there[i] = true;
    model->value[i] = step;
}

/* Several tables at the bottom, so that a compaction need not take all that is above them. */
static void lay_ground(struct fixture *f, struct model *model)
{
    char from[8], to[8];
    for (unsigned i = 0; i < KEYS; i++) {
        put_one(f, model, i, 0);
        if (i % GROUND == GROUND - 1)
            compact(f, key_of(i + 1 - GROUND, from), key_of(i + 1, to));
    }
}

static void delete_one(struct fixture *f, struct model *model, unsigned i)
{
    char key[8];
    delete (f->store, f->keyspace, key_of(i, key));
    model->is_there[i] = false;
}

static void delete_some(struct fixture *f, struct model *model, unsigned from, unsigned to)
{
    char first[8], end[8];
    delete_range(f->store, f->keyspace, key_of(from, first), key_of(to, end));
    for (unsigned i = from; i < to; i++)
        model->is_there[i] = false;
}

/* A table that may lie above two others, which a compaction of one of them leaves alone. */
static void change_some(struct fixture *f, struct model *model, bool deletes_ranges, unsigned step)
{
    unsigned from = draw(model, KEYS - GROUND), to = from + 1 + draw(model, GROUND);
    put_one(f, model, from, step);
    if (deletes_ranges && draw(model, 2) == 0)
        delete_some(f, model, from + draw(model, 2), to);
    if (draw(model, 4) > 0)
        put_one(f, model, to, step);
    if (draw(model, 4) > 0)
        assert_ok(keyspace_flush(f->keyspace));
}

/* A change of a store that may be compacted without that. */
static void change_one(struct fixture *f, struct model *model, unsigned step)
{
    char from[8], to[8];
    unsigned i = draw(model, KEYS);
    draw(model, 8) > 0 ? put_one(f, model, i, step) : delete_one(f, model, i);
    if (draw(model, 4) > 0)
        assert_ok(keyspace_flush(f->keyspace));
    if (draw(model, 2) == 0)
        compact(f, key_of(i, from), key_of(i + 1, to));
}

static void live(struct fixture *f, struct model *model, bool deletes_ranges)
{
    lay_ground(f, model);
    for (unsigned step = 1; step <= STEPS; step++) {
        if (draw(model, 2) == 0) {
            store_snapshot_release(model->snapshot);
            model->snapshot = draw(model, 4) > 0 ? store_snapshot_create(f->store) : NULL;
        }
        change_some(f, model, deletes_ranges, step);
        change_one(f, model, step);
    }
}

/* What is there is there, and has its latest value; how much there is that had been deleted. */
static unsigned compare_gets(struct keyspace *keyspace, const struct model *model)
{
    unsigned shown = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        char key[8], value[16];
        struct store_value got;
        enum store_presence presence;
        snprintf(value, sizeof value, "%u", model->value[i]);
        if (model->is_there[i]) {
            assert_value(keyspace, key_of(i, key), value);
            continue;
        }
        assert_ok(
            store_get(keyspace, NULL, bytes_of(key_of(i, key)), STORE_READ_ANY, &got, &presence));
        shown += presence == STORE_FOUND;
        store_value_release(&got);
    }
    return shown;
}

/* A scan finds as many as are got. */
static unsigned compare(struct fixture *f, const struct model *model)
{
    struct keyspace *keyspace = store_keyspace_find(f->other, model->keyspace_id);
    unsigned shown = compare_gets(keyspace, model), expected = shown;
    for (unsigned i = 0; i < KEYS; i++)
        expected += model->is_there[i];
    assert_count(keyspace, expected);
    return shown;
}

static void live_all(struct fixture *f, struct model models[HISTORIES])
{
    for (unsigned i = 0; i < HISTORIES; i++) {
        models[i] = (struct model){.state = i + 1, .keyspace_id = FIRST_ID + i};
        f->keyspace = make_keyspace(f->store, models[i].keyspace_id);
        live(f, &models[i], i % 2 == 0);
    }
    wait_for_rest(f);
}

/* Whatever compactions have made of levels. No table was left that had been replaced, so nothing
 * that was deleted need be shown, but where the bounds of tables are lost. */
static void random_histories_come_back(void **state)
{
    struct fixture *f = *state;
    struct model models[HISTORIES];
    live_all(f, models);
    for (int accepted = 0; accepted < 2; accepted++) {
        unsigned shown = 0;
        lose_list(f);
        accepted ? accept(f) : serve(f);
        for (unsigned i = 0; i < HISTORIES; i++)
            shown += compare(f, &models[i]);
        close_copy(f);
        assert_in_range(shown, 0, HISTORIES * KEYS / 20);
    }
    for (unsigned i = 0; i < HISTORIES; i++)
        store_snapshot_release(models[i].snapshot);
}

/* --- faults --- */

static const enum fault_operation operations[] = {FAULT_CREATE, FAULT_APPEND, FAULT_SYNC,
                                                  FAULT_SYNC_DIRECTORY, FAULT_READ};

/* From the one after `pass` on they fail. Whether any did. */
static bool serve_with_failures(struct fixture *f, enum fault_operation operation, unsigned pass)
{
    struct fault_fs *fs = fault_fs_create();
    fault_fs_fail(fs, operation, "", FAULT_IO, pass);
    f->of_copy.salvage = true;
    status s = fault_fs_open(fs, &f->of_copy, &f->other);
    bool has_failed = fault_fs_failures(fs) > 0;
    if (status_is_ok(s))
        close_copy(f);
    status_free(s);
    fault_fs_destroy(fs);
    return has_failed;
}

static void an_opening_that_fails_begins_again(void **state)
{
    struct fixture *f = *state;
    fill(f);
    lose_list(f);
    char *before = listing(f->copy);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        bool has_failed = true;
        for (unsigned pass = 0; has_failed; pass += 1 + pass / 8) {
            assert_in_range(pass, 0, 1000);
            has_failed = serve_with_failures(f, operations[i], pass);
        }
        char *after = listing(f->copy);
        assert_string_equal(before, after);
        free(after);
    }
    serve(f);
    expect_all(f);
    free(before);
}

/* RocksDB leaks what it had when its own memory ran out, and what it had opened. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:librocksdb.so\nleak:__alloc_dir\n";
}

/* Up to where a database is opened, which RocksDB does not survive. */
static void without_memory_nothing_is_opened(void **state)
{
    struct fixture *f = *state;
    fill(f);
    lose_list(f);
    f->of_copy.salvage = true;
    for (unsigned n = 4; n <= 400; n += 1 + n / 16) {
        enum store_old_data_state how;
        struct buffer words = {0};
        fault_memory_fail(n);
        status s = store_look_for_old_data(&f->of_copy, &words, &how);
        fault_memory_fail(0);
        if (status_is_ok(s))
            assert_int_equal(how, STORE_OLD_DATA_NEEDED);
        else
            assert_status(s, STATUS_RESOURCE_EXHAUSTED);
        buffer_free(&words);
    }
    serve(f);
    expect_all(f);
}

static void is_cut_short(struct fixture *f)
{
    enum store_old_data_state how;
    assert_ok(store_look_for_old_data(&f->of_copy, NULL, &how));
    assert_int_equal(how, STORE_OLD_DATA_BEGUN);
    status s = open_copy(f);
    assert_non_null(strstr(status_message(s), "cut short"));
    assert_status(s, STATUS_FAILED_PRECONDITION);
}

static void an_acceptance_goes_on_where_it_was(void **state)
{
    struct fixture *f = *state;
    bool has_failed = true;
    fill(f);
    for (unsigned pass = 0; has_failed; pass++) {
        assert_in_range(pass, 0, 20);
        lose_list(f);
        f->of_copy.salvage = f->of_copy.accepts_old_data = true;
        assert_ok(open_copy(f));
        close_copy(f);
        f->of_copy.salvage = f->of_copy.accepts_old_data = false;
        struct fault_fs *fs = fault_fs_create();
        fault_fs_fail(fs, FAULT_SYNC_DIRECTORY, "", FAULT_IO, pass);
        status s = fault_fs_accept(fs, f->copy);
        has_failed = !status_is_ok(s);
        status_free(s);
        fault_fs_destroy(fs);
        /* In the end only the directory that was emptied is gone, or not: the store is whole. */
        char *moving = path_in_copy(f, "old-data.moving");
        char *accepted = path_in_copy(f, "old-data.accepted");
        if (has_failed && (access(moving, F_OK) == 0 || access(accepted, F_OK) == 0)) {
            is_cut_short(f);
            assert_ok(store_accept_old_data(f->copy));
        }
        free(moving);
        free(accepted);
        expect(f, STORE_LOG_WHOLE);
        expect_all(f);
        close_copy(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_tables_and_logs_have_is_served),
        TEST(the_kind_of_a_keyspace_is_known),
        TEST(old_data_can_be_sealed),
        TEST(accepted_old_data_is_a_store_again),
        TEST(the_state_of_old_data_is_told),
        TEST(without_synced_as_well_there_is_less),
        TEST(a_keyspace_is_known_since_it_was_made),
        TEST(a_table_that_is_damaged_is_named),
        TEST(tables_that_were_taken_in_are_kept),
        TEST(a_newer_table_may_have_an_older_value),
        TEST(a_newer_table_may_have_what_was_deleted),
        TEST(a_table_that_was_replaced_is_left_out),
        TEST(a_table_that_was_not_finished_is_left_out),
        TEST(old_data_is_not_compacted_by_itself),
        TEST(damaged_tables_are_left_out_of_accepted_data),
        TEST(random_histories_come_back),
        TEST(an_opening_that_fails_begins_again),
        TEST(without_memory_nothing_is_opened),
        TEST(an_acceptance_goes_on_where_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
