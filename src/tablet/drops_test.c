/* Drops of rows, from the commit to the compaction: random histories of a store's rows, against a
 * list of what was said of them, by version.
 *
 * Rows are written, updated from a read, put together anew, overflowed, and written late with older
 * versions, as from another cluster; ranges of them are dropped, in between and in the middle of
 * what follows from a read; the store is flushed, compacted, opened anew; somebody holds the drops
 * and reads at a snapshot; and passes forget drops that have done their work. A failure prints the
 * seed. */
#include "row/resolve.h"
#include "store/testing/snapshot_testing.h"
#include "tablet/foreign_change.h"
#include "tablet/key_bounds.h"
#include "tablet/older_rows.h"
#include "tablet/overflow_reader.h"
#include "tablet/row_maintenance.h"
#include "tablet/testing/testing.h"

#include <pthread.h>

enum {
    HISTORIES = 60,
    STEPS = 90,
    ROWS = 5,
    MOST_EVENTS = 4 * STEPS,
    QUALIFIERS = 2,
    TIMES = 3,
    BIG_VALUE = 6,
    OVERFLOW_BYTES = 90,
};

/* --- what was said --- */

enum said { SAID_SET, SAID_ADD, SAID_DELETE_COLUMN, SAID_DELETE_ROW, SAID_DROP };

struct event {
    enum said kind;
    uint64_t version;
    int row; /* a drop: the first of its rows */
    int end; /* a drop: behind the last one */
    int qualifier;
    int time;
    int amount;
    char value[12];
};

struct history {
    struct event events[MOST_EVENTS]; /* by rising version */
    size_t count;
};

/* One row at one instant. */
struct state {
    char values[QUALIFIERS][TIMES][12];
    bool has[QUALIFIERS][TIMES];
    int sum;
    bool has_sum;
};

static void say(struct history *history, const struct event *event)
{
    size_t at = history->count++;
    assert_true(at < MOST_EVENTS);
    for (; at > 0 && history->events[at - 1].version > event->version; at--)
        history->events[at] = history->events[at - 1];
    history->events[at] = *event;
}

static void apply(struct state *state, const struct event *e)
{
    switch (e->kind) {
    case SAID_SET:
        state->has[e->qualifier][e->time] = true;
        memcpy(state->values[e->qualifier][e->time], e->value, sizeof e->value);
        break;
    case SAID_ADD:
        state->has_sum = true;
        state->sum += e->amount;
        break;
    case SAID_DELETE_COLUMN:
        memset(state->has[e->qualifier], 0, sizeof state->has[e->qualifier]);
        break;
    case SAID_DELETE_ROW:
    case SAID_DROP:
        *state = (struct state){.sum = 0};
    }
}

static void row_said(const struct history *history, int row, struct buffer *text)
{
    struct state state = {.sum = 0};
    char word[64];
    for (size_t i = 0; i < history->count; i++) {
        const struct event *e = &history->events[i];
        if (e->kind == SAID_DROP ? row >= e->row && row < e->end : row == e->row)
            apply(&state, e);
    }
    buffer_clear(text);
    for (int q = 0; q < QUALIFIERS; q++)
        for (int t = TIMES - 1; t >= 0; t--)
            if (state.has[q][t]) {
                snprintf(word, sizeof word, "%sf:%c@%d=%s", text->size > 0 ? " " : "", 'p' + q, t,
                         state.values[q][t]);
                buffer_append_bytes(text, bytes_of(word));
            }
    if (state.has_sum) {
        snprintf(word, sizeof word, "%ssum:n@0=%d", text->size > 0 ? " " : "", state.sum);
        buffer_append_bytes(text, bytes_of(word));
    }
    buffer_append_byte(text, 0);
}

/* --- the store --- */

struct world {
    struct tablet_fixture *f;
    uint64_t random;
    uint64_t seed;
    int step;
    bool has_late;          /* changes come late, so that drops stay */
    _Atomic(uint64_t) from; /* as in row_rules */
    struct history history;
    struct history then; /* while somebody holds the drops: as it was */
    struct store_snapshot *snapshot;
    bool is_held;
    uint64_t last_late; /* so that no version is given twice */
};

static uint64_t below(struct world *w, uint64_t end)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (w->random >> 11) % end;
}

static const char *key_of(int row)
{
    static const char *const keys[ROWS] = {"a", "ab", "b", "ba", "c"};
    return keys[row];
}

static struct row_drops *drops_of(const struct world *w)
{
    return w->f->rules.drops;
}

static struct row_read_options options_of(const struct world *w)
{
    struct row_read_options options = read_options_of(w->f);
    options.commits = w->f->queue;
    options.drops = drops_of(w);
    return options;
}

static void compare_text(const struct world *w, int row, const struct history *history,
                         const struct row *found, const char *where)
{
    struct buffer text = {0}, expected = {0};
    row_text(found, &text);
    row_said(history, row, &expected);
    if (strcmp((const char *)text.data, (const char *)expected.data) != 0)
        fail_msg("seed %d, step %d, row %s, %s: \"%s\" where \"%s\" was said", (int)w->seed,
                 w->step, key_of(row), where, (const char *)text.data, (const char *)expected.data);
    buffer_free(&text);
    buffer_free(&expected);
}

static void compare_row(const struct world *w, int row)
{
    struct row_read_options options = options_of(w);
    struct row found = {.cells.arena = arena_create(1 << 20)};
    enum row_outcome outcome;
    assert_ok(
        row_read(w->f->rows, &options, bytes_of(key_of(row)), STORE_READ_ANY, &found, &outcome));
    compare_text(w, row, &w->history, &found, "read");
    row_clear(&found);
    arena_destroy(found.cells.arena);
}

static void compare_scan(const struct world *w)
{
    struct row_read_options options = options_of(w);
    struct row_range_reader *reader;
    struct row found = {.cells.arena = arena_create(1 << 20)};
    const struct row absent = {.cells.arena = found.cells.arena};
    enum row_outcome outcome = ROW_FOUND;
    int next = 0;
    assert_ok(
        row_range_reader_create(w->f->rows, &options, bytes_of(""), bytes_of(""), false, &reader));
    while (outcome != ROW_END) {
        row_clear(&found);
        assert_ok(row_range_reader_next(reader, STORE_READ_ANY, NULL, NULL, 100, &found, &outcome));
        for (; outcome == ROW_FOUND && !bytes_equal(found.key, bytes_of(key_of(next))); next++)
            compare_text(w, next, &w->history, &absent, "scanned");
        if (outcome == ROW_FOUND)
            compare_text(w, next++, &w->history, &found, "scanned");
    }
    for (; next < ROWS; next++)
        compare_text(w, next, &w->history, &absent, "scanned");
    row_clear(&found);
    row_range_reader_destroy(reader);
    arena_destroy(found.cells.arena);
}

/* --- what is read at a snapshot by who holds the drops --- */

static void resolve_then(const struct world *w, struct row *row, bool has_overflow,
                         uint64_t dropped)
{
    struct overflow_reader overflow;
    bool too_large;
    if (has_overflow)
        assert_ok(overflow_reader_open(&overflow, w->f->rows, w->snapshot, row->key, STORE_READ_ANY,
                                       OVERFLOW_BY_RULES));
    const struct resolve_request request = {.schema = w->f->schema,
                                            .record = row->value.bytes,
                                            .overflow = has_overflow ? &overflow.source : NULL,
                                            .dropped = dropped,
                                            .size_limit = UINT64_MAX};
    assert_ok(row_resolve(&request, &row->cells, &too_large));
    if (has_overflow)
        overflow_reader_close(&overflow);
}

static void compare_then(const struct world *w, int row)
{
    struct buffer key = {0};
    struct row found = {.key = bytes_of(key_of(row)), .cells.arena = arena_create(1 << 20)};
    enum store_presence presence;
    row_record_key(&key, found.key);
    uint64_t dropped = row_drops_look(drops_of(w), buffer_bytes(&key)).dropped;
    assert_ok(store_get(w->f->rows, w->snapshot, buffer_bytes(&key), STORE_READ_ANY, &found.value,
                        &presence));
    if (presence == STORE_FOUND)
        resolve_then(w, &found, record_has_overflow(found.value.bytes, dropped), dropped);
    compare_text(w, row, &w->then, &found, "at the snapshot");
    row_clear(&found);
    buffer_free(&key);
    arena_destroy(found.cells.arena);
}

static void let_go(struct world *w)
{
    if (!w->is_held)
        return;
    store_snapshot_release(w->snapshot);
    row_drops_let_go(drops_of(w));
    w->is_held = false;
}

static void hold(struct world *w)
{
    row_drops_hold(drops_of(w));
    w->snapshot = store_snapshot_create(w->f->store);
    assert_non_null(w->snapshot);
    w->then = w->history;
    w->is_held = true;
}

/* --- drops --- */

struct drop {
    struct commit commit;
    struct catalog_change change;
    struct row_drops *drops;
    struct row_drop *drop;
};

static void put_record(struct commit *commit, struct store_batch *batch)
{
    store_batch_put(batch, commit->keyspace, bytes_of("drop"), bytes_of("-"));
}

static void add_drop(const struct catalog_change *change)
{
    struct drop *drop = (struct drop *)((uintptr_t)change - offsetof(struct drop, change));
    row_drops_add(drop->drops, drop->drop, drop->commit.version, drop->commit.sequence);
}

static void make_drop(struct tablet_fixture *f, bytes from, bytes to, struct drop *drop)
{
    *drop = (struct drop){.change = {.apply = add_drop}, .drops = f->rules.drops};
    assert_ok(row_drop_create(from, to, &drop->drop));
    assert_ok(row_drops_reserve(drop->drops));
    drop->commit = (struct commit){.kind = COMMIT_DROP_ROWS,
                                   .keyspace = f->options.catalog,
                                   .extend = put_record,
                                   .catalog = &drop->change};
}

static uint64_t commit_drop(struct world *w, bytes from, bytes to)
{
    struct drop drop;
    make_drop(w->f, from, to, &drop);
    assert_ok(commit_and_wait(w->f->queue, &drop.commit));
    return drop.commit.version;
}

static void drop_rows(struct world *w)
{
    int row = (int)below(w, ROWS), end = row + 1 + (int)below(w, (uint64_t)(ROWS - row));
    struct event event = {.kind = SAID_DROP, .row = row, .end = end};
    event.version = commit_drop(w, row == 0 ? bytes_of("") : bytes_of(key_of(row)),
                                end == ROWS ? bytes_of("") : bytes_of(key_of(end)));
    say(&w->history, &event);
}

/* --- changes --- */

static struct event random_event(struct world *w)
{
    struct event e = {.row = (int)below(w, ROWS),
                      .qualifier = (int)below(w, QUALIFIERS),
                      .time = (int)below(w, TIMES),
                      .amount = 1 + (int)below(w, 9)};
    uint64_t kind = below(w, 10);
    e.kind = kind < 5   ? SAID_SET
             : kind < 8 ? SAID_ADD
             : kind < 9 ? SAID_DELETE_COLUMN
                        : SAID_DELETE_ROW;
    snprintf(e.value, sizeof e.value, "%.*s%d", (int)below(w, 3) * 4, "xxxxxxxx", w->step);
    return e;
}

static struct packed_change change_of(struct world *w, const struct event *e)
{
    const char name[2] = {(char)('p' + e->qualifier)};
    struct row_change *change = new_change(w->f);
    if (e->kind == SAID_ADD)
        return add_to_cell(w->f, "n", (uint8_t)e->amount);
    bytes qualifier = arena_copy(w->f->arena, bytes_of(name));
    if (e->kind == SAID_SET)
        row_change_set(change, FAMILY_F, qualifier, e->time,
                       arena_copy(w->f->arena, bytes_of(e->value)));
    else if (e->kind == SAID_DELETE_COLUMN)
        row_change_delete_column(change, FAMILY_F, qualifier, 0, INT64_MAX);
    else
        row_change_delete_row(change);
    return pack(change, BIG_VALUE);
}

static void write_row(struct world *w)
{
    struct event event = random_event(w);
    event.version = write_change(w->f, key_of(event.row), change_of(w, &event));
    say(&w->history, &event);
}

/* The version lies somewhere in the past, and is another cluster's. */
static uint64_t late_version(struct world *w)
{
    size_t at = below(w, w->history.count);
    uint64_t version = w->history.events[at].version;
    for (size_t i = 0; i < w->history.count; i++)
        if (w->history.events[i].version == version) {
            version++;
            i = 0;
        }
    return version;
}

static void write_late(struct world *w)
{
    struct foreign_change foreign;
    if (!w->has_late || w->history.count == 0)
        return;
    struct event event = random_event(w);
    event.version = late_version(w);
    struct packed_change change = change_of(w, &event);
    struct commit commit = commit_of(w->f, key_of(event.row), &change);
    fragment_set_version(change.fragment.data, event.version);
    commit.read_as_of = commit_applied(w->f->queue);
    assert_ok(foreign_change_prepare(w->f->rows, commit.row_key, &change, &w->f->rules, &foreign));
    commit.given_version = event.version;
    commit.foreign = &foreign;
    commit.drops = drops_of(w);
    assert_ok(commit_and_wait(w->f->queue, &commit));
    foreign_change_free(&foreign);
    buffer_free(&change.fragment);
    say(&w->history, &event);
}

/* Commits what follows from a read of the row, after a drop that may have come in between. */
static void commit_read(struct world *w, struct commit *commit, struct event *event)
{
    size_t drops = row_drops_count(drops_of(w));
    if (below(w, 3) == 0)
        drop_rows(w);
    bool is_dropped = false;
    if (row_drops_count(drops_of(w)) > drops) {
        const struct event *last = &w->history.events[w->history.count - 1];
        is_dropped = event->row >= last->row && event->row < last->end;
    }
    status s = commit_and_wait(w->f->queue, commit);
    assert_int_equal(commit->is_outdated, is_dropped);
    assert_status(s, is_dropped ? STATUS_ABORTED : STATUS_OK);
    event->version = is_dropped ? 0 : commit->version;
}

/* An update that stores the record with its change, or a rewrite of the record alone. */
static void follow_from_read(struct world *w, bool is_rewrite)
{
    struct row_read_options options = options_of(w);
    struct row row = {.cells.arena = arena_create(1 << 20)};
    struct event event = random_event(w);
    enum row_outcome outcome;
    if (is_rewrite)
        event.row = (int)below(w, ROWS);
    assert_ok(row_read(w->f->rows, &options, bytes_of(key_of(event.row)), STORE_READ_ANY, &row,
                       &outcome));
    struct packed_change change = change_of(w, &event);
    struct commit commit = commit_of(w->f, key_of(event.row), &change);
    commit.drops = drops_of(w);
    commit.read_as_of = row.as_of;
    commit.record = row.record;
    if (is_rewrite) {
        commit.kind = COMMIT_REWRITE;
        commit.change = NULL;
    }
    if (row.record.size > 0 || !is_rewrite)
        commit_read(w, &commit, &event);
    if (!is_rewrite && event.version != 0)
        say(&w->history, &event);
    buffer_free(&change.fragment);
    row_clear(&row);
    arena_destroy(row.cells.arena);
}

/* --- upkeep --- */

static void look_after_row(struct world *w, const char *key)
{
    const struct row_maintenance maintenance = {.keyspace = w->f->rows,
                                                .row_key = bytes_of(key),
                                                .row_hash =
                                                    row_lock_hash(ROWS_KEYSPACE, bytes_of(key)),
                                                .locks = w->f->locks,
                                                .commits = w->f->queue,
                                                .overflow_bytes = OVERFLOW_BYTES,
                                                .rules = &w->f->rules,
                                                .drops = drops_of(w)};
    struct row_maintenance_report report;
    row_lock_wait(w->f->locks, maintenance.row_hash);
    assert_ok(row_maintenance_run(&maintenance, &report));
    row_lock_release(w->f->locks, maintenance.row_hash);
}

static void look_after(struct world *w)
{
    look_after_row(w, key_of((int)below(w, ROWS)));
}

static status compact_range(const struct row_range *range)
{
    return rows_compact(range->keyspace, range->from, range->to);
}

/* A drop has done its work when nothing older is left. Whether it has does not depend on snapshots:
 * they may keep something, and then it stays. */
static void pass_over(struct world *w)
{
    struct row_drop_words drop;
    bool found;
    if (w->has_late || !row_drops_next(drops_of(w), 0, &drop) || row_drops_are_held(drops_of(w)))
        return;
    const struct row_range range = {.keyspace = w->f->rows, .from = drop.from, .to = drop.to};
    if (below(w, 4) != 0)
        assert_ok(compact_range(&range));
    assert_ok(rows_find_older(&range, drop.version, &found));
    if (!found)
        assert_true(row_drops_remove(drops_of(w), drop.sequence));
}

static void compact(struct world *w)
{
    const struct row_range all = {.keyspace = w->f->rows};
    assert_ok(compact_range(&all));
}

/* --- opening anew --- */

/* A store that recovers its log folds by no rules yet. */
static void open_anew(struct world *w)
{
    struct row_drops *drops;
    let_go(w);
    close_queue(w->f);
    assert_ok(row_drops_copy(drops_of(w), &drops));
    row_drops_destroy(drops_of(w));
    w->f->rules.drops = drops;
    open_queue(w->f);
}

/* --- histories --- */

static void step(struct world *w)
{
    uint64_t kind = below(w, 40);
    w->f->clock.wall_us += 3;
    if (kind < 14)
        write_row(w);
    else if (kind < 18)
        write_late(w);
    else if (kind < 22)
        follow_from_read(w, kind < 20);
    else if (kind < 26)
        drop_rows(w);
    else if (kind < 29)
        look_after(w);
    else if (kind < 32)
        assert_ok(keyspace_flush(w->f->rows));
    else if (kind < 34)
        compact(w);
    else if (kind < 37)
        pass_over(w);
    else if (kind == 39)
        open_anew(w);
    else if (w->is_held)
        let_go(w);
    else
        hold(w);
}

static void compare_all(struct world *w)
{
    for (int row = 0; row < ROWS; row++)
        compare_row(w, row);
    compare_scan(w);
    for (int row = 0; w->is_held && row < ROWS; row++)
        compare_then(w, row);
}

static void live(bool has_late)
{
    static struct world w;
    for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
        w = (struct world){.random = seed * 0x9e3779b97f4a7c15 + 1 + has_late,
                           .seed = seed,
                           .has_late = has_late,
                           .f = tablet_fixture_create()};
        w.f->rules.tombstones_from = has_late ? 1 : 0;
        w.f->options.tombstones_from = &w.from;
        atomic_init(&w.from, w.f->rules.tombstones_from);
        assert_ok(row_drops_create(&w.f->rules.drops));
        open_anew(&w);
        for (w.step = 0; w.step < STEPS; w.step++) {
            step(&w);
            compare_all(&w);
        }
        let_go(&w);
        struct row_drops *drops = drops_of(&w);
        tablet_fixture_destroy(w.f);
        row_drops_destroy(drops);
    }
}

static void rows_are_what_was_said_of_them(void **state)
{
    (void)state;
    live(false);
}

static void what_comes_late_is_dropped_by_its_version(void **state)
{
    (void)state;
    live(true);
}

/* --- what a drop leaves --- */

static int setup(void **state)
{
    struct tablet_fixture *f = tablet_fixture_create();
    assert_ok(row_drops_create(&f->rules.drops));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct tablet_fixture *f = *state;
    struct row_drops *drops = f->rules.drops;
    tablet_fixture_destroy(f);
    row_drops_destroy(drops);
    return 0;
}

static bool has_older(struct tablet_fixture *f, uint64_t version)
{
    const struct row_range all = {.keyspace = f->rows};
    bool found;
    assert_ok(rows_find_older(&all, version, &found));
    return found;
}

/* A snapshot keeps a table's value away from the compaction, beneath what was written after. */
static void a_view_keeps_what_was_dropped(void **state)
{
    if (!snapshots_keep_values())
        skip();
    struct tablet_fixture *f = *state;
    struct world w = {.f = f};
    const struct row_range all = {.keyspace = f->rows};
    write_change(f, "r", add_to_cell(f, "n", 1));
    assert_ok(compact_range(&all));
    struct store_snapshot *snapshot = store_snapshot_create(f->store);
    assert_non_null(snapshot);
    uint64_t version = commit_drop(&w, bytes_of(""), bytes_of(""));
    write_change(f, "r", add_to_cell(f, "n", 2));
    assert_ok(compact_range(&all));
    assert_true(has_older(f, version));
    store_snapshot_release(snapshot);
    assert_ok(compact_range(&all));
    assert_false(has_older(f, version));
}

static bool after_two(void *context)
{
    return ++*(unsigned *)context > 2;
}

/* It may be long, and somebody wait for its end. */
static void a_look_can_be_given_up(void **state)
{
    struct tablet_fixture *f = *state;
    unsigned asked = 0;
    const struct row_range all = {.keyspace = f->rows, .gives_up = after_two, .context = &asked};
    static const char *const rows[] = {"a", "b", "c", "d"};
    bool found;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        write_change(f, rows[i], add_to_cell(f, "n", 1));
    assert_status(rows_find_older(&all, 1, &found), STATUS_CANCELLED);
    assert_int_equal(asked, 3);
}

static void write_overflow(struct tablet_fixture *f, const char *row_key)
{
    struct row_change *change = new_change(f);
    row_change_set(change, FAMILY_F, bytes_of("big"), 1, bytes_of("0123456789"));
    write_change(f, row_key, pack(change, BIG_VALUE));
}

static void overflowed_cells_are_found_and_compacted_away(void **state)
{
    struct tablet_fixture *f = *state;
    struct world w = {.f = f};
    const struct row_range one = {.keyspace = f->rows, .from = bytes_of("r"), .to = bytes_of("s")};
    write_overflow(f, "q");
    write_overflow(f, "r");
    uint64_t version = commit_drop(&w, bytes_of("r"), bytes_of("s"));
    bool found;
    assert_ok(rows_find_older(&one, version, &found));
    assert_true(found);
    assert_ok(compact_range(&one));
    assert_ok(rows_find_older(&one, version, &found));
    assert_false(found);
    assert_true(has_older(f, version)); /* of the row beside it */
}

/* Takes all overflow cells out of the store's files, and puts them into one of their own. */
static void set_cells_apart(struct tablet_fixture *f)
{
    struct store_batch *deletions = store_batch_create(), *cells = store_batch_create();
    const struct store_cursor_options options = {
        .lower = bytes_of("S"), .upper = bytes_of("T"), .read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    assert_true(deletions != NULL && cells != NULL);
    assert_ok(store_cursor_create(f->rows, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor)) {
        store_batch_delete(deletions, f->rows, store_cursor_key(cursor));
        store_batch_merge(cells, f->rows, store_cursor_key(cursor), store_cursor_value(cursor));
    }
    store_cursor_destroy(cursor);
    assert_ok(store_write(f->store, deletions, STORE_ASYNC));
    assert_ok(keyspace_compact(f->rows, bytes_of(""), bytes_of("")));
    assert_ok(store_write(f->store, cells, STORE_ASYNC));
    assert_ok(keyspace_flush(f->rows));
    store_batch_destroy(deletions);
    store_batch_destroy(cells);
}

/* As in a large table: a compaction of the records does not come by them. */
static void overflowed_cells_in_files_of_their_own_are_compacted_away(void **state)
{
    struct tablet_fixture *f = *state;
    struct world w = {.f = f};
    const struct row_range one = {.keyspace = f->rows, .from = bytes_of("r"), .to = bytes_of("s")};
    write_overflow(f, "r");
    set_cells_apart(f);
    uint64_t version = commit_drop(&w, bytes_of("r"), bytes_of("s"));
    bool found;
    assert_ok(rows_find_older(&one, version, &found));
    assert_true(found);
    assert_ok(compact_range(&one));
    assert_ok(rows_find_older(&one, version, &found));
    assert_false(found);
}

static void do_nothing(struct task *task)
{
    (void)task;
}

static void submit(struct tablet_fixture *f, struct commit *commit)
{
    commit->done.run = do_nothing;
    assert_ok(commit_submit(f->queue, commit));
}

/* Of one batch they would become one operand, and no fold could tell them apart. */
static void adds_on_both_sides_do_not_meet_in_a_batch(void **state)
{
    struct tablet_fixture *f = *state;
    struct packed_change one = add_to_cell(f, "n", 1), two = add_to_cell(f, "n", 2);
    struct commit before = commit_of(f, "r", &one), behind = commit_of(f, "r", &two);
    struct commit last = {.kind = COMMIT_BARRIER};
    struct drop drop;
    uint64_t applied;
    struct row_read_options options = read_options_of(f);
    struct row row = {.cells.arena = arena_create(1 << 20)};
    enum row_outcome outcome;
    make_drop(f, bytes_of("r"), bytes_of("s"), &drop);
    commit_hold(f->queue, &applied);
    submit(f, &before);
    submit(f, &drop.commit);
    submit(f, &behind);
    commit_release(f->queue);
    assert_ok(commit_and_wait(f->queue, &last));
    options.drops = f->rules.drops;
    assert_ok(row_read(f->rows, &options, bytes_of("r"), STORE_READ_ANY, &row, &outcome));
    assert_int_equal(row.cells.count, 1);
    assert_int_equal(row.cells.items[0].value.data[7], 2);
    row_clear(&row);
    arena_destroy(row.cells.arena);
    buffer_free(&one.fragment);
    buffer_free(&two.fragment);
}

/* What was read before a drop that is forgotten is not known to be of other rows. */
static void what_was_read_before_a_forgotten_drop_is_refused(void **state)
{
    struct tablet_fixture *f = *state;
    struct world w = {.f = f};
    struct packed_change change = set_cell(f, FAMILY_F, "q", 1, "v");
    struct commit commit = commit_of(f, "a", &change);
    commit.drops = f->rules.drops;
    commit.read_as_of = commit_applied(f->queue);
    commit_drop(&w, bytes_of("r"), bytes_of("s"));
    struct row_drop_words words;
    assert_true(row_drops_next(f->rules.drops, 0, &words));
    assert_true(row_drops_remove(f->rules.drops, words.sequence));
    assert_status(commit_and_wait(f->queue, &commit), STATUS_ABORTED);
    assert_true(commit.is_outdated);
    commit.read_as_of = commit_applied(f->queue);
    assert_ok(commit_and_wait(f->queue, &commit));
    buffer_free(&change.fragment);
}

/* The record that an update has read, and stores with its change, lies in a table as it was. */
static void an_update_does_not_add_to_what_is_dropped(void **state)
{
    struct tablet_fixture *f = *state;
    struct world w = {.f = f};
    const struct row_range all = {.keyspace = f->rows};
    struct row_read_options options = options_of(&w);
    struct row row = {.cells.arena = arena_create(1 << 20)};
    enum row_outcome outcome;
    write_change(f, "r", add_to_cell(f, "n", 1));
    assert_ok(compact_range(&all));
    commit_drop(&w, bytes_of("r"), bytes_of("s"));
    assert_ok(row_read(f->rows, &options, bytes_of("r"), STORE_READ_ANY, &row, &outcome));
    assert_int_equal(outcome, ROW_ABSENT);
    struct packed_change change = add_to_cell(f, "n", 2);
    struct commit commit = commit_of(f, "r", &change);
    commit.drops = f->rules.drops;
    commit.read_as_of = row.as_of;
    commit.record = row.record;
    assert_true(commit.record.size > 0);
    assert_ok(commit_and_wait(f->queue, &commit));
    row_clear(&row);
    assert_ok(row_read(f->rows, &options, bytes_of("r"), STORE_READ_ANY, &row, &outcome));
    assert_int_equal(row.cells.count, 1);
    assert_int_equal(row.cells.items[0].value.data[7], 2);
    row_clear(&row);
    arena_destroy(row.cells.arena);
    buffer_free(&change.fragment);
}

static void write_version(struct tablet_fixture *f, int64_t timestamp_us)
{
    struct row_change *change = new_change(f);
    row_change_set(change, FAMILY_F, bytes_of("q"), timestamp_us, bytes_of("0123456789"));
    write_change(f, "r", pack(change, BIG_VALUE));
}

/* The dropped cell is the newer one of the column, and lies in a table as it was written. */
static void upkeep_does_not_count_what_is_dropped(void **state)
{
    static const struct gc_rule newest = {.kind = GC_MAX_VERSIONS, .max_versions = 1};
    struct tablet_fixture *f = *state;
    struct world w = {.f = f, .random = 1};
    const struct row_range all = {.keyspace = f->rows};
    schema_destroy(f->schema);
    f->rules.schema = f->schema = test_schema(&newest);
    write_version(f, 9);
    assert_ok(compact_range(&all));
    commit_drop(&w, bytes_of("r"), bytes_of("s"));
    write_version(f, 2);
    look_after_row(&w, "r");
    struct row_read_options options = options_of(&w);
    struct row row = {.cells.arena = arena_create(1 << 20)};
    enum row_outcome outcome;
    assert_ok(row_read(f->rows, &options, bytes_of("r"), STORE_READ_ANY, &row, &outcome));
    assert_int_equal(row.cells.count, 1);
    assert_int_equal(row.cells.items[0].timestamp_us, 2);
    row_clear(&row);
    arena_destroy(row.cells.arena);
}

/* --- readers meanwhile --- */

/* (A reader's snapshot may keep what is compacted: then once more.) */
static void forget_all(struct tablet_fixture *f)
{
    const struct row_range all = {.keyspace = f->rows};
    struct row_drop_words drop;
    bool found;
    assert_ok(compact_range(&all));
    while (row_drops_next(f->rules.drops, 0, &drop)) {
        const struct row_range range = {.keyspace = f->rows, .from = drop.from, .to = drop.to};
        assert_ok(rows_find_older(&range, drop.version, &found));
        if (found)
            assert_ok(compact_range(&all));
        else
            assert_true(row_drops_remove(f->rules.drops, drop.sequence));
    }
}

/* The first of them knows the drop, and the other that one was forgotten. */
static void records_that_are_read_before_a_drop_are_not_there(void **state)
{
    struct tablet_fixture *f = *state;
    struct world w = {.f = f};
    struct row_read_options options = options_of(&w);
    const bytes keys[] = {bytes_of("r"), bytes_of("ra")};
    struct row_records records = {0};
    struct row row = {.cells.arena = arena_create(1 << 20)};
    options.commits = NULL;
    for (size_t i = 0; i < 2; i++)
        write_change(f, (const char *)keys[i].data, add_to_cell(f, "n", 1));
    assert_ok(row_records_read(&records, f->rows, &options, keys, 2));
    commit_drop(&w, bytes_of("r"), bytes_of("s"));
    for (size_t i = 0; i < 2; i++) {
        enum row_outcome outcome;
        assert_ok(row_records_take(&records, i, f->rows, &options, keys[i], &row, &outcome));
        assert_int_equal(outcome, ROW_ABSENT);
        row_clear(&row);
        if (i == 0)
            forget_all(f);
    }
    row_records_free(&records);
    arena_destroy(row.cells.arena);
}

/* The cursor is from before the drop, and still has the rows when the drop is gone. */
static void a_scan_passes_over_what_was_forgotten_under_it(void **state)
{
    struct tablet_fixture *f = *state;
    struct world w = {.f = f};
    struct row_read_options options = options_of(&w);
    struct row_range_reader *reader;
    struct row row = {.cells.arena = arena_create(1 << 20)};
    enum row_outcome outcome = ROW_ABSENT;
    for (int i = 0; i < ROWS; i++)
        write_change(f, key_of(i), set_cell(f, FAMILY_F, "q", 1, "v"));
    forget_all(f); /* in tables, in one piece */
    assert_ok(
        row_range_reader_create(f->rows, &options, bytes_of(""), bytes_of(""), false, &reader));
    assert_ok(row_range_reader_next(reader, STORE_READ_ANY, NULL, NULL, 100, &row, &outcome));
    assert_int_equal(outcome, ROW_FOUND);
    commit_drop(&w, bytes_of("ab"), bytes_of("c"));
    forget_all(f);
    for (outcome = ROW_ABSENT; outcome == ROW_ABSENT;) {
        row_clear(&row);
        assert_ok(row_range_reader_next(reader, STORE_READ_ANY, NULL, NULL, 100, &row, &outcome));
    }
    assert_int_equal(outcome, ROW_FOUND);
    assert_true(bytes_equal(row.key, bytes_of("c")));
    row_clear(&row);
    row_range_reader_destroy(reader);
    arena_destroy(row.cells.arena);
}

enum { ROUNDS = 150, CELLS = 6 };

static void write_whole(struct tablet_fixture *f, int round)
{
    static const char *const names[CELLS] = {"a", "b", "c", "d", "e", "f"};
    struct row_change *change = new_change(f);
    char value[16];
    snprintf(value, sizeof value, "value-%d", round);
    for (int i = 0; i < CELLS; i++) {
        bytes kept = arena_copy(f->arena, bytes_of(i % 2 == 0 ? value + 4 : value));
        row_change_set(change, FAMILY_F, bytes_of(names[i]), 1, kept);
    }
    write_change(f, "r", pack(change, BIG_VALUE + 2));
}

struct reading {
    struct tablet_fixture *f;
    struct row_read_options options;
    atomic_bool is_over;
};

/* Half of the cells are in the record, half beside it, and all of them are of one write. */
static void *read_whole(void *context)
{
    struct reading *reading = context;
    struct row row = {.cells.arena = arena_create(SIZE_MAX / 2)};
    while (!atomic_load(&reading->is_over)) {
        enum row_outcome outcome;
        assert_ok(row_read(reading->f->rows, &reading->options, bytes_of("r"), STORE_READ_ANY, &row,
                           &outcome));
        assert_true(row.cells.count == 0 || row.cells.count == CELLS);
        for (size_t i = 2; i < row.cells.count; i++)
            assert_true(bytes_equal(row.cells.items[i].value, row.cells.items[i - 2].value));
        row_clear(&row);
    }
    arena_destroy(row.cells.arena);
    return NULL;
}

static void a_row_is_read_whole_or_not_at_all(void **state)
{
    struct tablet_fixture *f = *state;
    struct world w = {.f = f};
    struct reading reading = {.f = f, .options = options_of(&w)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_whole, &reading), 0);
    for (int round = 100; round < 100 + ROUNDS; round++) {
        write_whole(f, round);
        commit_drop(&w, bytes_of("q"), bytes_of("s"));
        if (round % 8 == 0)
            forget_all(f);
    }
    atomic_store(&reading.is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_what_was_said_of_them),
        cmocka_unit_test(what_comes_late_is_dropped_by_its_version),
        cmocka_unit_test_setup_teardown(a_view_keeps_what_was_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(a_look_can_be_given_up, setup, teardown),
        cmocka_unit_test_setup_teardown(overflowed_cells_are_found_and_compacted_away, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(overflowed_cells_in_files_of_their_own_are_compacted_away,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(adds_on_both_sides_do_not_meet_in_a_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_read_before_a_forgotten_drop_is_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_update_does_not_add_to_what_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(upkeep_does_not_count_what_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(a_scan_passes_over_what_was_forgotten_under_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_row_is_read_whole_or_not_at_all, setup, teardown),
        cmocka_unit_test_setup_teardown(records_that_are_read_before_a_drop_are_not_there, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
