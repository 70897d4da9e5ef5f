/* The feed of a table that a view reads has each change of a row once, at its commit, in order:
 * random histories of writes, groups of rows, deletions, drops, collections of garbage, changes of
 * rules, splits, merges, flushes, compactions and new segments of the log, with kills amid writes.
 *
 *     feed_history_test [HISTORIES] [CHANGES] [SEED]   default 4 histories of 150 steps, 100 of 400
 *                                                     with TRESTLE_LONG=all
 *
 * An observer of the test's own notes what each commit does, in memory that outlives the process,
 * and what of it was written. The upkeep of a view reads on in the feed in small pieces, holds each
 * change against the notes, and commits how far it has come, as a record and as a row. So after a
 * kill
 *  - record and row say the same: of a commit of a view both are there, or neither;
 *  - from there on the feed has what was noted: all that was written, and nothing that was not. */
#include "base/testing/testing_clock.h"
#include "cluster/gc_pass.h"
#include "cluster/row_group.h"
#include "cluster/stream/stream_upkeep.h"
#include "cluster/testing/lives_testing.h"
#include "cluster/testing/view_testing.h"
#include "tablet/commit_observer.h"

enum {
    ROWS = 20,
    KEY_SIZE = 3,
    TABLETS = 5,
    MOST_NOTES = 1 << 16,
    BURST = 12, /* writes that are under way together */
    GROUP = 3,
    HOURS_AHEAD = 1, /* of the clock, for a new segment */
};

static const int64_t HOUR_US = INT64_C(3600) * 1000000;

/* What a commit does to the feed. */
struct note {
    uint64_t sequence;
    uint32_t ordinal;
    bool is_range;
    bool is_drop;
    char key[KEY_SIZE + 1];
    char end[KEY_SIZE + 1];
};

struct history {
    struct lives lives;
    int64_t ahead_us; /* of the clock */
    char dropping[KEY_SIZE + 1];
    char dropping_to[KEY_SIZE + 1];
    bool changes_rules;
    atomic_bool follows;   /* whether it is known what a life began with: commits are noted */
    atomic_size_t seen;    /* notes of commits that were seen */
    atomic_size_t written; /* of those that are in the store for certain */
    struct note notes[MOST_NOTES];
    struct cluster_fixture *f; /* of the present life */
    struct table *view;
    size_t kinds[8]; /* how often a step of each kind was taken, for the report */
};

static struct test_run run = {.rounds = 4, .changes = 150, .seed = 1};
static const struct test_run many = {.rounds = 100, .changes = 400, .seed = 1};
static struct ahead_clock test_clock = {.clock = AHEAD_CLOCK};

static unsigned at_random(struct history *h, unsigned end)
{
    return lives_random(&h->lives, end);
}

static void row_name(unsigned row, char name[KEY_SIZE + 1])
{
    snprintf(name, KEY_SIZE + 1, "r%02u", row);
}

/* --- what commits do --- */

static void note(struct history *h, const struct note *what, bytes key)
{
    assert_true(h->seen < MOST_NOTES);
    struct note *out = &h->notes[h->seen];
    *out = *what;
    if (key.size > 0)
        memcpy(out->key, key.data, key.size);
    h->seen++;
}

static void note_rows(struct history *h, const struct commit *commit)
{
    struct note row = {.sequence = commit->sequence};
    note(h, &row, commit->row_key);
    for (size_t i = 0; i < commit->other_count; i++) {
        row.ordinal++;
        note(h, &row, commit->others[i].row_key);
    }
}

static void see(void *context, const struct commit *commit, const struct store_batch *records,
                struct store_batch *batch)
{
    struct history *h = context;
    struct note range = {.sequence = commit->sequence, .is_range = true};
    (void)records, (void)batch;
    if (!h->follows)
        return;
    if (commit_changes_rows(commit->kind) && strcmp(table_name(commit->table), TEST_TABLE) == 0)
        note_rows(h, commit);
    if (commit->kind == COMMIT_CHANGE_TABLE && h->changes_rules)
        note(h, &range, bytes_of(""));
    if (commit->kind != COMMIT_DROP_ROWS)
        return;
    range.is_drop = true;
    memcpy(range.end, h->dropping_to, sizeof range.end);
    note(h, &range, bytes_of(h->dropping));
}

static void written(void *context, bool is_written)
{
    struct history *h = context;
    if (!h->follows)
        return;
    if (is_written)
        h->written = (size_t)h->seen;
    else
        h->seen = (size_t)h->written;
}

/* --- the view --- */

struct progress {
    size_t notes; /* so many of them were met */
    struct stream_position position;
};

static struct progress progress_of(struct history *h)
{
    struct progress progress = {0};
    struct buffer value = {0};
    char text[32] = "";
    bool is_there;
    assert_ok(view_records_get(h->view, bytes_of("P"), &value, &is_there));
    if (is_there)
        memcpy(&progress, value.data, sizeof progress);
    buffer_free(&value);
    if (is_there)
        snprintf(text, sizeof text, "n=%zu", progress.notes);
    struct table *table = h->f->table;
    h->f->table = h->view;
    assert_scan(h->f, "", "", false, text);
    h->f->table = table;
    return progress;
}

static void put_progress(struct history *h, const struct progress *progress)
{
    struct view_commit *commit;
    char text[32];
    snprintf(text, sizeof text, "%zu", progress->notes);
    assert_ok(view_commit_begin(h->view, NULL, &commit));
    change_view_row(h->f, commit, "n", text);
    view_commit_put(commit, bytes_of("P"), bytes_make(progress, sizeof *progress));
    assert_ok(view_commit_write(commit, NULL));
    view_feed_keep(h->view, progress->position.sequence);
}

struct following {
    struct history *h;
    struct progress progress;
    bool rests; /* now and then, amid what a batch has left */
};

static void assert_is_noted(const struct note *note, const struct view_change *change)
{
    assert_int_equal(change->position.sequence, note->sequence);
    assert_int_equal(change->position.ordinal, note->ordinal);
    assert_int_equal(change->is_range, note->is_range);
    assert_int_equal(change->is_drop, note->is_drop);
    assert_true(bytes_equal(change->from, bytes_of(note->key)));
    assert_true(bytes_equal(change->to, bytes_of(note->end)));
}

static status meet(void *context, const struct view_change *change, bool *enough)
{
    struct following *following = context;
    *enough = following->rests && at_random(following->h, 6) == 0;
    assert_true(following->progress.notes < following->h->seen);
    assert_is_noted(&following->h->notes[following->progress.notes++], change);
    return status_ok();
}

/* A round of upkeep; whether there is more. */
static bool follow(struct history *h)
{
    struct following following = {.h = h, .progress = progress_of(h), .rests = true};
    bool is_end;
    size_t most = at_random(h, 200);
    assert_ok(view_feed_read(h->f->table, following.progress.position, most, meet, &following,
                             &following.progress.position, &is_end));
    put_progress(h, &following.progress);
    return !is_end;
}

static void follow_all(struct history *h)
{
    while (follow(h))
        ;
    assert_int_equal(progress_of(h).notes, h->seen);
}

/* --- changes --- */

static struct row_change *random_change(struct history *h)
{
    char value[8];
    if (at_random(h, 4) == 0) {
        struct row_change *change = row_change_create(h->f->arena);
        row_change_delete_row(change);
        return change;
    }
    snprintf(value, sizeof value, "%u", at_random(h, 1000));
    char *copy = arena_string(h->f->arena, bytes_of(value));
    return setting(h->f, FAMILY_F, "q", 1 + at_random(h, 5), copy);
}

static void begin_burst(struct history *h, struct burst *burst)
{
    char key[KEY_SIZE + 1];
    burst_begin(burst);
    for (unsigned left = 1 + at_random(h, BURST); left > 0; left--) {
        row_name(at_random(h, ROWS), key);
        burst_post(burst, h->f, key, random_change(h));
    }
}

static void write_some(struct history *h)
{
    struct burst burst;
    begin_burst(h, &burst);
    burst_await(&burst);
}

static void write_group(struct history *h)
{
    struct grouped_row rows[GROUP];
    char names[GROUP][KEY_SIZE + 1];
    struct row_group group = {
        .table = h->f->table, .rows = rows, .count = GROUP, .arena = h->f->arena};
    unsigned first = at_random(h, ROWS);
    for (unsigned i = 0; i < GROUP; i++) {
        row_name((first + 7 * i) % ROWS, names[i]);
        rows[i] = (struct grouped_row){.row_key = bytes_of(names[i])};
        assert_ok(row_change_pack(random_change(h), SIZE_MAX, &rows[i].change));
    }
    assert_ok(row_group_write(&group));
}

static void drop_some(struct history *h)
{
    unsigned ten = at_random(h, ROWS / 10);
    snprintf(h->dropping, sizeof h->dropping, "r%u", ten);
    snprintf(h->dropping_to, sizeof h->dropping_to, "r%u", ten + 1);
    assert_ok(table_drop_rows(h->f->table, bytes_of(h->dropping)));
}

static void reshape(struct history *h)
{
    char name[KEY_SIZE + 1];
    row_name(1 + at_random(h, ROWS - 1), name);
    struct tablet *tablet = table_route(h->f->table, bytes_of(name));
    bool is_first = tablet->start.size == 0;
    tablet_release(tablet);
    if (is_first || table_tablet_count(h->f->table) < TABLETS)
        split_at(h->f, name);
    else
        merge_at(h->f, name);
}

static status change_rule(void *context, const struct table_info *now, struct arena *arena,
                          struct table_change *next)
{
    struct gc_rule *rule = arena_zalloc(arena, sizeof *rule);
    struct family *families = arena_alloc(arena, now->schema->family_count * sizeof *families);
    assert_non_null(rule);
    assert_non_null(families);
    for (size_t i = 0; i < now->schema->family_count; i++)
        families[i] = now->schema->families[i];
    *rule = (struct gc_rule){.kind = GC_MAX_VERSIONS, .max_versions = 1};
    if (families[0].gc != NULL && families[0].gc->max_versions == 1)
        rule->max_versions = 2;
    families[0].gc = rule;
    *next = (struct table_change){
        .families = families, .family_count = now->schema->family_count, .extra = now->extra};
    (void)context;
    return status_ok();
}

static void change_rules(struct history *h)
{
    h->changes_rules = true;
    assert_ok(table_change_schema(h->f->table, h->f->arena, change_rule, NULL));
    h->changes_rules = false;
}

static void collect(struct history *h)
{
    h->f->table->gc.due_us = 1;
    maintenance_run_once(h->f->cluster->maintenance);
}

/* The log's next segment begins amid writes. */
static void rest_of_an_hour(struct history *h)
{
    struct burst burst;
    h->ahead_us += HOURS_AHEAD * HOUR_US + HOUR_US / 60;
    atomic_store(&test_clock.wall_ahead_us, h->ahead_us);
    begin_burst(h, &burst);
    stream_upkeep_run(h->f->cluster);
    burst_await(&burst);
}

static void settle(struct history *h)
{
    struct keyspace *keyspace = h->f->table->spaces[0].keyspace;
    assert_ok(keyspace_flush(keyspace));
    if (at_random(h, 4) == 0)
        assert_ok(keyspace_compact(keyspace, bytes_of(""), bytes_of("")));
}

static void take_step(struct history *h)
{
    static void (*const steps[])(struct history *) = {write_some,      write_group,  drop_some,
                                                      reshape,         change_rules, collect,
                                                      rest_of_an_hour, settle};
    static const unsigned weights[] = {10, 4, 2, 4, 1, 2, 1, 1};
    unsigned kind = 0, at = at_random(h, 25);
    while (at >= weights[kind])
        at -= weights[kind++];
    h->kinds[kind]++;
    steps[kind](h);
    if (at_random(h, 3) == 0)
        (void)follow(h);
}

/* --- lives --- */

/* From here on all is noted, and in the feed. */
static void begin_view(struct history *h)
{
    struct progress progress = {0};
    h->f->table = create_test_table(h->f->cluster, NULL);
    h->view = create_view(h->f, TEST_VIEW);
    assert_ok(view_feed_end(h->f->table, &progress.position));
    put_progress(h, &progress);
}

static void open_life(struct history *h)
{
    static struct commit_observer observer;
    observer = (struct commit_observer){.context = h, .see = see, .written = written};
    h->f = cluster_fixture_create_at(h->lives.directory);
    atomic_store(&test_clock.wall_ahead_us, h->ahead_us);
    h->f->options.clock = &test_clock.clock;
    h->f->options.maintenance_by_hand = true;
    h->f->options.observers = &observer;
    h->f->options.observer_count = 1;
    open_test_cluster(h->f);
    if (h->lives.count++ == 0) {
        begin_view(h);
        return;
    }
    assert_ok(cluster_table(h->f->cluster, bytes_of(TEST_TABLE), &h->f->table));
    h->view = find_view(h->f, TEST_VIEW);
}

/* What was seen and is not there was in a batch that a kill took: of the notes it is taken, too. */
static void find_end(struct history *h)
{
    struct following following = {.h = h, .progress = progress_of(h)};
    bool is_end = false;
    while (!is_end)
        assert_ok(view_feed_read(h->f->table, following.progress.position, 1 << 20, meet,
                                 &following, &following.progress.position, &is_end));
    assert_true(following.progress.notes >= h->written);
    h->seen = following.progress.notes;
    h->written = following.progress.notes;
    h->follows = true;
    view_feed_keep(h->view, progress_of(h).position.sequence);
}

static void live(struct lives *lives)
{
    struct history *h = (struct history *)(void *)lives;
    h->changes_rules = false;
    h->follows = false;
    open_life(h);
    find_end(h);
    while (h->lives.step < h->lives.run.changes) {
        h->lives.step++;
        take_step(h);
        if (at_random(h, 30) == 0) {
            struct burst burst;
            begin_burst(h, &burst);
            kill(getpid(), SIGKILL);
        }
    }
    follow_all(h);
    for (size_t i = 0; i < 6 && h->lives.run.changes >= 100; i++)
        assert_true(h->kinds[i] > 0);
    table_release(h->view);
    cluster_fixture_destroy(h->f);
}

/* The first test (lives_testing.h). */
static void the_feed_has_each_change_once_in_order(void **state)
{
    (void)state;
    lives_tell("feed_history_test", &run, sizeof(struct history), live);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_feed_has_each_change_once_in_order),
    };
    take_test_run(&run, many, argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
