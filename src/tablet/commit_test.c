#include "row/row_key.h"
#include "tablet/commit_private.h"
#include "tablet/testing/testing.h"

#include <endian.h>
#include <pthread.h>

/* --- a gate: holds the commit thread before its next batch --- */

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_shut;
    bool is_reached;
    status answer; /* what admit says */
};

static status pass_gate(void *context)
{
    struct gate *gate = context;
    pthread_mutex_lock(&gate->lock);
    gate->is_reached = true;
    pthread_cond_broadcast(&gate->changed);
    while (gate->is_shut)
        pthread_cond_wait(&gate->changed, &gate->lock);
    gate->is_reached = false;
    status answer = status_copy(gate->answer);
    pthread_mutex_unlock(&gate->lock);
    return answer;
}

static void shut(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->is_shut = true;
    pthread_mutex_unlock(&gate->lock);
}

static void await_commit_thread(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    while (!gate->is_reached)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void open_gate(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->is_shut = false;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static struct gate *gate_of(struct tablet_fixture *f)
{
    return f->options.admit_context;
}

static int setup(void **state)
{
    struct tablet_fixture *f = tablet_fixture_create();
    struct gate *gate = calloc(1, sizeof *gate);
    assert_non_null(gate);
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->changed, NULL);
    close_queue(f);
    f->options.admit = pass_gate;
    f->options.admit_context = gate;
    open_queue(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct gate *gate = gate_of(*state);
    status_free(gate->answer);
    tablet_fixture_destroy(*state);
    free(gate);
    return 0;
}

static void reopen(struct tablet_fixture *f)
{
    close_queue(f);
    open_queue(f);
}

/* --- commits that several of are under way at once --- */

struct pending {
    struct commit commit;
    struct packed_change change;
    unsigned *turn;
    unsigned done_at; /* 0: not yet */
};

static void note_done(struct task *task)
{
    struct pending *pending = (struct pending *)LIST_ENTRY(&task->link, struct commit, done.link);
    pending->done_at = ++*pending->turn;
}

static void submit(struct tablet_fixture *f, struct pending *pending, const char *row_key,
                   struct packed_change change, unsigned *turn)
{
    pending->change = change;
    pending->commit = commit_of(f, row_key, &pending->change);
    pending->commit.done.run = note_done;
    pending->turn = turn;
    pending->done_at = 0;
    assert_ok(commit_submit(f->queue, &pending->commit));
}

/* With this empty commit all before it are done. */
static void wait_for_all(struct tablet_fixture *f)
{
    struct commit barrier = {.kind = COMMIT_BARRIER};
    assert_ok(commit_and_wait(f->queue, &barrier));
}

/* --- what is acknowledged is there --- */

static void a_change_can_be_read_and_survives(void **state)
{
    struct tablet_fixture *f = *state;
    write_change(f, "row", set_cell(f, FAMILY_F, "q", 5, "value"));
    assert_row(f, "row", "f:q@5=value");
    reopen(f);
    assert_row(f, "row", "f:q@5=value");
}

static void commits_are_acknowledged_in_order(void **state)
{
    struct tablet_fixture *f = *state;
    struct pending pending[100];
    unsigned turn = 0;
    for (unsigned i = 0; i < 100; i++)
        submit(f, &pending[i], "row", add_to_cell(f, "q", 1), &turn);
    wait_for_all(f);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(pending[i].done_at, i + 1);
        assert_ok(pending[i].commit.result);
        assert_true(i == 0 || pending[i].commit.version > pending[i - 1].commit.version);
        buffer_free(&pending[i].change.fragment);
    }
    assert_true(commit_applied(f->queue) >= pending[99].commit.sequence);
    assert_true(commit_queue_load(f->queue) == 0);
    assert_row(f, "row", "sum:q@0=100");
}

static void changes_of_one_row_fold_in_the_batch(void **state)
{
    struct tablet_fixture *f = *state;
    struct pending first, adds[1000], other;
    unsigned turn = 0;
    shut(gate_of(f));
    submit(f, &first, "first", set_cell(f, FAMILY_F, "q", 1, "x"), &turn);
    await_commit_thread(gate_of(f));
    for (unsigned i = 0; i < 1000; i++)
        submit(f, &adds[i], "row", add_to_cell(f, "q", 2), &turn);
    submit(f, &other, "other", set_cell(f, FAMILY_F, "q", 1, "y"), &turn);
    open_gate(gate_of(f));
    wait_for_all(f);
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(adds[i].commit.is_folded, i > 0);
        buffer_free(&adds[i].change.fragment);
    }
    assert_false(other.commit.is_folded);
    assert_row(f, "row", "sum:q@0=2000");
    assert_row(f, "other", "f:q@1=y");
    buffer_free(&first.change.fragment);
    buffer_free(&other.change.fragment);
}

static void get_record(struct tablet_fixture *f, const char *row_key, struct store_value *value,
                       enum store_presence *presence)
{
    struct buffer key = {0};
    row_record_key(&key, bytes_of(row_key));
    assert_ok(store_get(f->rows, NULL, buffer_bytes(&key), STORE_READ_ANY, value, presence));
    buffer_free(&key);
}

/* To a row of three operands. */
static void change_with_record(struct tablet_fixture *f, struct row_change *change)
{
    struct store_value value;
    enum store_presence presence;
    struct packed_change packed = pack(change, SIZE_MAX);
    struct commit commit = commit_of(f, "row", &packed);
    get_record(f, "row", &value, &presence);
    assert_int_equal(value.folded.count, 3);
    commit.record = value.bytes;
    assert_ok(commit_and_wait(f->queue, &commit));
    assert_true(commit.is_folded);
    buffer_free(&packed.fragment);
    store_value_release(&value);
}

static void a_change_with_its_record_replaces_it(void **state)
{
    struct tablet_fixture *f = *state;
    struct store_value value;
    enum store_presence presence;
    for (int i = 1; i <= 3; i++)
        write_change(f, "row", set_cell(f, FAMILY_F, "q", i, "old"));
    struct row_change *change = new_change(f);
    row_change_set(change, FAMILY_F, bytes_of("q"), 4, bytes_of("new"));
    row_change_delete_column(change, FAMILY_F, bytes_of("q"), 1, 3);
    change_with_record(f, change);
    get_record(f, "row", &value, &presence);
    assert_int_equal(value.folded.count, 0);
    assert_false(fragment_has_tombstones(value.bytes));
    store_value_release(&value);
    assert_row(f, "row", "f:q@4=new f:q@3=old");
    write_change(f, "row", set_cell(f, FAMILY_F, "q", 5, "newest"));
    assert_row(f, "row", "f:q@5=newest f:q@4=new f:q@3=old");
}

static void a_change_that_leaves_nothing_of_its_record_deletes_it(void **state)
{
    struct tablet_fixture *f = *state;
    struct store_value value;
    enum store_presence presence;
    for (int i = 1; i <= 3; i++)
        write_change(f, "row", set_cell(f, FAMILY_F, "q", i, "old"));
    struct row_change *change = new_change(f);
    row_change_delete_row(change);
    change_with_record(f, change);
    get_record(f, "row", &value, &presence);
    assert_int_equal(presence, STORE_ABSENT);
    store_value_release(&value);
}

/* In one batch with the row's next change, which it must not undo. */
static void a_rewrite_keeps_its_place(void **state)
{
    struct tablet_fixture *f = *state;
    struct pending first, after, rewrite = {.done_at = 0};
    struct store_value value;
    enum store_presence presence;
    unsigned turn = 0;
    for (int i = 1; i <= 3; i++)
        write_change(f, "row", set_cell(f, FAMILY_F, "q", i, "old"));
    get_record(f, "row", &value, &presence);
    shut(gate_of(f));
    submit(f, &first, "first", set_cell(f, FAMILY_F, "q", 1, "x"), &turn);
    await_commit_thread(gate_of(f));
    rewrite.commit = commit_of(f, "row", NULL);
    rewrite.commit.kind = COMMIT_REWRITE;
    rewrite.commit.record = value.bytes;
    rewrite.commit.done.run = note_done;
    rewrite.turn = &turn;
    assert_true(commit_offer(f->queue, &rewrite.commit));
    submit(f, &after, "row", set_cell(f, FAMILY_F, "q", 3, "new"), &turn);
    open_gate(gate_of(f));
    wait_for_all(f);
    store_value_release(&value);
    get_record(f, "row", &value, &presence);
    assert_int_equal(value.folded.count, 1); /* upon the record */
    assert_row(f, "row", "f:q@3=new f:q@2=old f:q@1=old");
    store_value_release(&value);
    buffer_free(&first.change.fragment);
    buffer_free(&after.change.fragment);
}

/* More rows in a batch than its table of rows starts with, each of them twice. */
static void a_batch_holds_many_rows(void **state)
{
    enum { ROWS = 1000 };
    struct tablet_fixture *f = *state;
    struct pending first, *pending = calloc(2 * ROWS, sizeof *pending);
    char(*keys)[8] = calloc(ROWS, sizeof *keys);
    unsigned turn = 0;
    assert_non_null(pending);
    assert_non_null(keys);
    shut(gate_of(f));
    submit(f, &first, "first", set_cell(f, FAMILY_F, "q", 1, "x"), &turn);
    await_commit_thread(gate_of(f));
    for (unsigned i = 0; i < 2 * ROWS; i++) {
        snprintf(keys[i % ROWS], sizeof keys[0], "%u", i % ROWS);
        submit(f, &pending[i], keys[i % ROWS], add_to_cell(f, "q", 3), &turn);
    }
    open_gate(gate_of(f));
    wait_for_all(f);
    for (unsigned i = 0; i < 2 * ROWS; i++) {
        assert_ok(pending[i].commit.result);
        assert_int_equal(pending[i].commit.is_folded, i >= ROWS);
        assert_row(f, keys[i % ROWS], "sum:q@0=6");
        buffer_free(&pending[i].change.fragment);
    }
    buffer_free(&first.change.fragment);
    free(pending);
    free(keys);
}

/* --- extensions --- */

static void delete_all_rows(struct commit *commit, struct store_batch *batch)
{
    store_batch_delete_range(batch, commit->keyspace, bytes_of("R"), bytes_of("S"));
}

/* In one batch: what was submitted before it is gone, what was submitted after it stays. */
static void an_extension_keeps_its_place(void **state)
{
    struct tablet_fixture *f = *state;
    struct pending first, before, after;
    unsigned turn = 0;
    struct pending drop = {.turn = &turn,
                           .commit = {.kind = COMMIT_DROP,
                                      .keyspace = f->rows,
                                      .extend = delete_all_rows,
                                      .done.run = note_done}};
    shut(gate_of(f));
    submit(f, &first, "first", set_cell(f, FAMILY_F, "q", 1, "x"), &turn);
    await_commit_thread(gate_of(f));
    submit(f, &before, "row", add_to_cell(f, "q", 1), &turn);
    assert_ok(commit_submit(f->queue, &drop.commit));
    submit(f, &after, "row", add_to_cell(f, "q", 2), &turn);
    open_gate(gate_of(f));
    wait_for_all(f);
    assert_int_equal(drop.done_at, 3);
    assert_false(after.commit.is_folded);
    assert_row(f, "first", "");
    assert_row(f, "row", "sum:q@0=2");
    buffer_free(&first.change.fragment);
    buffer_free(&before.change.fragment);
    buffer_free(&after.change.fragment);
}

static void big_cells_get_records_of_their_own(void **state)
{
    struct tablet_fixture *f = *state;
    struct row_change *change = new_change(f);
    row_change_set(change, FAMILY_F, bytes_of("big"), 9, bytes_of("0123456789"));
    row_change_set(change, FAMILY_F, bytes_of("small"), 8, bytes_of("s"));
    write_change(f, "row", pack(change, 10));
    assert_row(f, "row", "f:big@9=0123456789 f:small@8=s");
    struct store_value value;
    enum store_presence presence;
    assert_ok(store_get(f->rows, NULL, bytes_of("Rrow"), STORE_READ_ANY, &value, &presence));
    assert_true(fragment_has_overflow(value.bytes));
    store_value_release(&value);
    write_change(f, "row", set_cell(f, FAMILY_F, "big", 9, "newer"));
    assert_row(f, "row", "f:big@9=newer f:small@8=s");
}

static status note_kind(void *context, const struct store_change *change)
{
    unsigned *kinds = context;
    if (change->key.data[0] == OVERFLOW_SPACE)
        *kinds |= 1u << (change->kind + (change->value.size >= STORE_LARGE_VALUE ? 8 : 0));
    return status_ok();
}

/* As an operand a compaction would hold it twice more. */
static void large_cells_are_put(void **state)
{
    struct tablet_fixture *f = *state;
    struct row_change *change = new_change(f);
    struct commit_batch batch;
    unsigned kinds = 0;
    uint8_t *large = calloc(1, STORE_LARGE_VALUE);
    assert_non_null(large);
    row_change_set(change, FAMILY_F, bytes_of("big"), 9, bytes_of("an operand"));
    row_change_set(change, FAMILY_F, bytes_of("large"), 9, bytes_make(large, STORE_LARGE_VALUE));
    struct packed_change packed = pack(change, 10);
    struct commit commit = commit_of(f, "row", &packed);
    commit.sequence = commit.version = 1;
    assert_ok(commit_batch_init(&batch, f->store, NULL, 0));
    commit_batch_add(&batch, &commit);
    commit_batch_finish(&batch);
    assert_ok(store_batch_visit(f->store, batch.store_batch, note_kind, &kinds));
    assert_int_equal(kinds, 1u << STORE_MERGE | 1u << (STORE_PUT + 8));
    commit_batch_free(&batch);
    buffer_free(&packed.fragment);
    free(large);
}

/* What an overflow moves behind a newer cell that was put has its own version. */
static void a_large_cell_stays_above_older_ones(void **state)
{
    struct tablet_fixture *f = *state;
    struct row_change *change = new_change(f);
    uint8_t *large = calloc(1, STORE_LARGE_VALUE);
    struct buffer key = {0}, older = {0};
    assert_non_null(large);
    row_change_set(change, FAMILY_F, bytes_of("q"), 9, bytes_make(large, STORE_LARGE_VALUE));
    write_change(f, "row", pack(change, 10));
    overflow_cell_key(&key, bytes_of("row"), FAMILY_F, bytes_of("q"), 9);
    overflow_cell_write(&older, ENTRY_CELL, 1, 0, bytes_of("older"));
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    store_batch_merge(batch, f->rows, buffer_bytes(&key), buffer_bytes(&older));
    assert_ok(store_write(f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
    for (int looks = 0; looks < 2; looks++) {
        struct store_value value;
        enum store_presence presence;
        assert_ok(store_get(f->rows, NULL, buffer_bytes(&key), STORE_READ_ANY, &value, &presence));
        assert_true(value.bytes.size >= STORE_LARGE_VALUE);
        store_value_release(&value);
        assert_ok(keyspace_compact(f->rows, bytes_of(""), bytes_of("")));
    }
    buffer_free(&key);
    buffer_free(&older);
    free(large);
}

/* --- versions --- */

static uint64_t read_ceiling(struct tablet_fixture *f)
{
    struct store_value value;
    enum store_presence presence;
    uint64_t ceiling;
    assert_ok(store_get(f->options.catalog, NULL, bytes_of("version-ceiling"), STORE_READ_ANY,
                        &value, &presence));
    assert_int_equal(presence, STORE_FOUND);
    memcpy(&ceiling, value.bytes.data, sizeof ceiling);
    store_value_release(&value);
    return be64toh(ceiling);
}

#define DAY_US (INT64_C(86400) * 1000000)

/* A queue whose clocks stand until the test moves them. */
static struct hands_clock *turn_by_hand(struct tablet_fixture *f)
{
    static struct hands_clock hands = {.clock = HANDS_CLOCK};
    close_queue(f);
    atomic_store(&hands.wall_us, f->clock.wall_us);
    atomic_store(&hands.steady_us, DAY_US);
    f->options.clock = &hands.clock;
    open_queue(f);
    return &hands;
}

static void versions_follow_the_clock(void **state)
{
    struct tablet_fixture *f = *state;
    struct hands_clock *hands = turn_by_hand(f);
    int64_t now = atomic_load(&hands->wall_us);
    assert_int_equal(write_change(f, "row", add_to_cell(f, "q", 1)), version_at(now));
    assert_int_equal(write_change(f, "row", add_to_cell(f, "q", 1)),
                     version_at(now) + VERSION_STEP);
    atomic_store(&hands->wall_us, now + 10);
    assert_int_equal(write_change(f, "row", add_to_cell(f, "q", 1)), version_at(now + 10));
    assert_int_equal(commit_version_us(f->queue), now + 10);
    assert_int_equal(commit_clock_lead_us(f->queue), 0);
}

static void a_clock_set_back_changes_no_order(void **state)
{
    struct tablet_fixture *f = *state;
    struct hands_clock *hands = turn_by_hand(f);
    int64_t now = atomic_load(&hands->wall_us);
    uint64_t before = write_change(f, "row", set_cell(f, FAMILY_F, "q", 1, "old"));
    atomic_store(&hands->wall_us, now - DAY_US);
    assert_int_equal(commit_version_us(f->queue), now);
    assert_int_equal(write_change(f, "row", set_cell(f, FAMILY_F, "q", 1, "new")),
                     before + VERSION_STEP);
    assert_row(f, "row", "f:q@1=new");
}

/* Time stood still while the wall clock was behind: cells written seconds apart got one timestamp
 * from the server, each replacing the one before. Now it goes on half as fast as the steady clock,
 * so that it never stands, and a lead of a day is gone after two. */
static void time_goes_on_while_the_wall_clock_is_behind(void **state)
{
    struct tablet_fixture *f = *state;
    struct hands_clock *hands = turn_by_hand(f);
    int64_t now = atomic_load(&hands->wall_us);
    assert_int_equal(commit_version_us(f->queue), now);
    atomic_store(&hands->wall_us, now - DAY_US);
    atomic_fetch_add(&hands->steady_us, 300000);
    assert_int_equal(commit_version_us(f->queue), now + 150000);
    assert_int_equal(write_change(f, "row", add_to_cell(f, "q", 1)), version_at(now + 150000));
    assert_int_equal(commit_clock_lead_us(f->queue), DAY_US + 150000);
    atomic_fetch_add(&hands->wall_us, 2 * DAY_US);
    atomic_fetch_add(&hands->steady_us, 2 * DAY_US - 300000);
    assert_int_equal(commit_version_us(f->queue), now + DAY_US);
    atomic_fetch_add(&hands->wall_us, 1);
    assert_int_equal(commit_version_us(f->queue), now + DAY_US + 1);
    assert_int_equal(commit_clock_lead_us(f->queue), 0);
}

static void time_goes_on_from_the_ceiling_after_a_restart(void **state)
{
    struct tablet_fixture *f = *state;
    struct hands_clock *hands = turn_by_hand(f);
    int64_t now = atomic_load(&hands->wall_us);
    uint64_t before = write_change(f, "row", add_to_cell(f, "q", 1));
    atomic_store(&hands->wall_us, now - DAY_US);
    atomic_store(&hands->steady_us, 5); /* that of another run of the machine */
    reopen(f);
    int64_t begun = commit_version_us(f->queue);
    assert_true(version_at(begun) > read_ceiling(f) && read_ceiling(f) > before);
    assert_true(begun <= now + 1000001);
    atomic_fetch_add(&hands->steady_us, 2000);
    assert_int_equal(commit_version_us(f->queue), begun + 1000);
}

/* Datastore's moments went on by a microsecond a commit while the wall clock was behind, versions
 * by a 4096th of one, and only these moved the ceiling: after a restart moments began below those
 * of stored cells, and acknowledged commits were hidden behind older ones. A commit that says what
 * time its cells have takes the ceiling along. */
static void a_commit_is_not_before_the_time_of_its_cells(void **state)
{
    struct tablet_fixture *f = *state;
    struct hands_clock *hands = turn_by_hand(f);
    int64_t now = atomic_load(&hands->wall_us), at = now + 5000000;
    write_change(f, "row", add_to_cell(f, "q", 1));
    struct packed_change change = add_to_cell(f, "q", 1);
    struct commit commit = commit_of(f, "row", &change);
    commit.least_us = at;
    assert_ok(commit_and_wait(f->queue, &commit));
    assert_int_equal(commit.version, version_at(at));
    assert_true(read_ceiling(f) > version_at(at));
    assert_int_equal(commit_version_us(f->queue), at);
    atomic_fetch_add(&hands->steady_us, 10);
    assert_int_equal(commit_version_us(f->queue), at + 5);
    commit.least_us = at - 1;
    assert_ok(commit_and_wait(f->queue, &commit));
    assert_int_equal(commit.version, version_at(at + 5));
    reopen(f);
    assert_true(commit_version_us(f->queue) > at + 5);
    buffer_free(&change.fragment);
}

static void versions_from_elsewhere_are_passed(void **state)
{
    struct tablet_fixture *f = *state;
    struct hands_clock *hands = turn_by_hand(f);
    int64_t at = atomic_load(&hands->wall_us) + 60000000;
    assert_ok(commit_raise_version(f->queue, version_at(at) + 7));
    assert_int_equal(write_change(f, "row", add_to_cell(f, "q", 1)),
                     version_at(at) + 2 * VERSION_STEP);
    atomic_fetch_add(&hands->steady_us, 2000);
    assert_int_equal(commit_version_us(f->queue), at + 1000);
    reopen(f);
    assert_true(commit_version_us(f->queue) > at + 1000);
}

/* As after a kill: nothing was written at the end, and what is durable must do. */
static void a_clock_set_back_over_a_restart_changes_no_order(void **state)
{
    struct tablet_fixture *f = *state;
    int64_t now = atomic_load(&f->clock.wall_us);
    uint64_t newest = 0;
    for (int i = 0; i < 5; i++) {
        atomic_store(&f->clock.wall_us, now + i * INT64_C(700000));
        newest = write_change(f, "row", set_cell(f, FAMILY_F, "q", 1, "old"));
        assert_true(newest < read_ceiling(f));
    }
    assert_true(read_ceiling(f) <= newest + version_at(1000000));
    atomic_store(&f->clock.wall_us, now - DAY_US);
    reopen(f);
    assert_true(write_change(f, "row", set_cell(f, FAMILY_F, "q", 1, "new")) > newest);
    assert_true(commit_version_us(f->queue) >= now);
    assert_row(f, "row", "f:q@1=new");
}

/* --- refusals --- */

static void what_is_not_admitted_is_not_written(void **state)
{
    struct tablet_fixture *f = *state;
    struct packed_change change = set_cell(f, FAMILY_F, "q", 1, "x");
    struct commit refused = commit_of(f, "row", &change);
    struct commit freeing = commit_of(f, "other", &change);
    freeing.frees_space = true;
    gate_of(f)->answer = status_make(STATUS_RESOURCE_EXHAUSTED, "no space");
    assert_status(commit_and_wait(f->queue, &refused), STATUS_RESOURCE_EXHAUSTED);
    assert_ok(commit_and_wait(f->queue, &freeing));
    wait_for_all(f);
    assert_row(f, "row", "");
    assert_row(f, "other", "f:q@1=x");
    status_free(gate_of(f)->answer);
    gate_of(f)->answer = status_ok();
    assert_ok(commit_and_wait(f->queue, &refused));
    assert_row(f, "row", "f:q@1=x");
    buffer_free(&change.fragment);
}

static void the_queue_is_bounded(void **state)
{
    struct tablet_fixture *f = *state;
    struct pending first;
    unsigned turn = 0;
    close_queue(f);
    f->options.queue_limit_bytes = 10;
    open_queue(f);
    shut(gate_of(f));
    submit(f, &first, "first", set_cell(f, FAMILY_F, "q", 1, "too big, but alone"), &turn);
    struct packed_change change = set_cell(f, FAMILY_F, "q", 1, "x");
    struct commit refused = commit_of(f, "row", &change);
    status s = commit_submit(f->queue, &refused);
    assert_true(status_details(s).size > 0);
    assert_status(s, STATUS_RESOURCE_EXHAUSTED);
    assert_true(commit_queue_load(f->queue) == 1);
    assert_false(commit_offer(f->queue, &refused));
    open_gate(gate_of(f));
    while ((s = commit_and_wait(f->queue, &refused)).code == STATUS_RESOURCE_EXHAUSTED)
        status_free(s); /* until the first is through */
    assert_ok(s);
    assert_row(f, "row", "f:q@1=x");
    buffer_free(&change.fragment);
    buffer_free(&first.change.fragment);
}

/* Two that are less than a batch, and together more, would take the memory of both. */
static void what_a_batch_has_no_room_for_is_of_the_next(void **state)
{
    enum { SIZE = 10 << 20, FEW = 3 };
    static const char *const rows[FEW] = {"a", "b", "c"};
    struct tablet_fixture *f = *state;
    struct pending pending[FEW];
    unsigned turn = 0;
    char *value = malloc(SIZE + 1);
    assert_non_null(value);
    memset(value, 'x', SIZE);
    value[SIZE] = 0;
    shut(gate_of(f));
    submit(f, &pending[0], rows[0], set_cell(f, FAMILY_F, "q", 1, "x"), &turn);
    await_commit_thread(gate_of(f));
    for (size_t i = 1; i < FEW; i++)
        submit(f, &pending[i], rows[i], set_cell(f, FAMILY_F, "q", 1, value), &turn);
    open_gate(gate_of(f));
    wait_for_all(f);
    assert_true(pending[1].commit.times.written_us != pending[2].commit.times.written_us);
    for (size_t i = 0; i < FEW; i++)
        buffer_free(&pending[i].change.fragment);
    free(value);
}

/* --- acknowledgements --- */

struct on_loop {
    struct commit commit;
    struct loop *loop;
    unsigned *left;
};

/* Behind a batch that does not end, neither new nor waiting commits stay without an answer. */
static void a_stall_is_told(void **state)
{
    struct tablet_fixture *f = *state;
    struct pending pending[2];
    unsigned turn = 0;
    shut(gate_of(f));
    submit(f, &pending[0], "under way", set_cell(f, FAMILY_F, "q", 1, "x"), &turn);
    await_commit_thread(gate_of(f));
    submit(f, &pending[1], "waits", set_cell(f, FAMILY_F, "q", 1, "x"), &turn);
    atomic_fetch_add(&f->clock.ahead_us, TEST_STALL_US + 1);
    assert_true(commit_under_way_us(f->queue) > TEST_STALL_US);
    assert_true(commit_queue_load(f->queue) == 1);
    struct packed_change change = set_cell(f, FAMILY_F, "q", 1, "x");
    struct commit comes = commit_of(f, "comes", &change);
    status s = commit_submit(f->queue, &comes);
    assert_true(status_details(s).size > 0); /* RetryInfo */
    assert_status(s, STATUS_UNAVAILABLE);
    assert_int_equal(pending[1].done_at, 1);
    assert_true(status_details(pending[1].commit.result).size > 0);
    assert_status(pending[1].commit.result, STATUS_UNAVAILABLE);
    open_gate(gate_of(f));
    while ((s = commit_and_wait(f->queue, &comes)).code == STATUS_UNAVAILABLE)
        status_free(s); /* until the batch is through */
    assert_ok(s);
    assert_ok(pending[0].commit.result);
    assert_row(f, "under way", "f:q@1=x");
    assert_row(f, "waits", "");
    assert_row(f, "comes", "f:q@1=x");
    buffer_free(&change.fragment);
    buffer_free(&pending[0].change.fragment);
    buffer_free(&pending[1].change.fragment);
}

static void note_on_loop(struct task *task)
{
    struct on_loop *self = (struct on_loop *)LIST_ENTRY(&task->link, struct commit, done.link);
    assert_true(loop_is_current(self->loop));
    assert_ok(self->commit.result);
    if (--*self->left == 0)
        loop_stop(self->loop);
}

static void owners_are_told_on_their_loops(void **state)
{
    struct tablet_fixture *f = *state;
    struct loop *loop;
    struct on_loop commits[10];
    struct packed_change change = add_to_cell(f, "q", 1);
    unsigned left = 10;
    assert_ok(loop_create(&f->clock.clock, &loop));
    for (unsigned i = 0; i < 10; i++) {
        commits[i] =
            (struct on_loop){.commit = commit_of(f, "row", &change), .loop = loop, .left = &left};
        commits[i].commit.loop = loop;
        commits[i].commit.done.run = note_on_loop;
        if (i % 2 != 0) {
            commits[i].commit.kind = COMMIT_BARRIER;
            commits[i].commit.change = NULL;
        }
        assert_ok(commit_submit(f->queue, &commits[i].commit));
        wait_for_all(f);
    }
    loop_run(loop);
    assert_int_equal(left, 0);
    assert_row(f, "row", "sum:q@0=5");
    wait_for_all(f); /* the commit thread may just be leaving loop_post_list */
    loop_destroy(loop);
    buffer_free(&change.fragment);
}

/* --- disks that fail --- */

static int setup_faults(void **state)
{
    setup(state);
    struct tablet_fixture *f = *state;
    close_queue(f);
    f->faults = fault_fs_create();
    assert_non_null(f->faults);
    f->options.durability = STORE_SYNCED;
    open_queue(f);
    return 0;
}

static void nothing_is_acknowledged_after_a_failed_sync(void **state)
{
    struct tablet_fixture *f = *state;
    struct packed_change change = set_cell(f, FAMILY_F, "q", 1, "x");
    struct commit commit = commit_of(f, "row", &change);
    assert_ok(commit_and_wait(f->queue, &commit));
    fault_fs_fail(f->faults, FAULT_SYNC, ".log", FAULT_IO, 0);
    assert_status(commit_and_wait(f->queue, &commit), STATUS_UNAVAILABLE);
    fault_fs_heal(f->faults);
    assert_status(commit_and_wait(f->queue, &commit), STATUS_UNAVAILABLE);
    wait_for_all(f);
    assert_row(f, "row", "f:q@1=x");
    buffer_free(&change.fragment);
}

static void a_full_disk_refuses_until_there_is_space(void **state)
{
    struct tablet_fixture *f = *state;
    struct packed_change change = set_cell(f, FAMILY_F, "q", 1, "x");
    struct commit commit = commit_of(f, "row", &change);
    char large[4001] = {0};
    memset(large, 'v', sizeof large - 1);
    struct packed_change filler = set_cell(f, FAMILY_F, "q", 1, large);
    struct commit filling = commit_of(f, "filler", &filler);
    status s = status_ok();
    assert_ok(commit_and_wait(f->queue, &commit)); /* takes room for more */
    fault_fs_fail(f->faults, FAULT_ALLOCATE, ".log", FAULT_NO_SPACE, 0);
    for (int i = 0; i < 10000 && status_is_ok(s); i++)
        s = commit_and_wait(f->queue, &filling); /* until the log is full */
    assert_status(s, STATUS_RESOURCE_EXHAUSTED);
    s = status_ok();
    for (int i = 0; i < 10000 && status_is_ok(s); i++)
        s = commit_and_wait(f->queue, &commit);
    assert_status(s, STATUS_RESOURCE_EXHAUSTED);
    assert_row(f, "row", "f:q@1=x");
    fault_fs_heal(f->faults);
    uint64_t refused_version = commit.version;
    while ((s = commit_and_wait(f->queue, &commit)).code == STATUS_RESOURCE_EXHAUSTED)
        status_free(s); /* the store recovers by itself */
    assert_ok(s);
    assert_true(commit.version > refused_version);
    assert_true(read_ceiling(f) > commit.version);
    buffer_free(&change.fragment);
    buffer_free(&filler.fragment);
}

/* What it loses of rewrites is still there in pieces; what was acknowledged after one is not lost,
 * nor the rewrite then. */
static void a_power_cut_may_take_rewrites_alone(void **state)
{
    struct tablet_fixture *f = *state;
    struct store_value value;
    enum store_presence presence;
    char *copy = make_directory();
    for (int i = 1; i <= 3; i++)
        write_change(f, "row", set_cell(f, FAMILY_F, "q", i, "x"));
    for (int cuts = 0; cuts < 2; cuts++) {
        get_record(f, "row", &value, &presence);
        struct commit rewrite = commit_of(f, "row", NULL);
        rewrite.kind = COMMIT_REWRITE;
        rewrite.record = value.bytes;
        assert_ok(commit_and_wait(f->queue, &rewrite));
        store_value_release(&value);
        assert_int_equal(fault_fs_unsynced(f->faults, ".log") > 0, true);
        if (cuts == 1)
            write_change(f, "other", set_cell(f, FAMILY_F, "q", 1, "y"));
        remove_directory(copy);
        copy = make_directory();
        fault_fs_cut_power(f->faults, f->directory, copy, 0);
        struct store_options options = test_options(copy);
        struct tablet_fixture after = *f;
        options.fold = &row_fold;
        assert_ok(store_open(&options, &after.store));
        after.rows = store_keyspace_find(after.store, ROWS_KEYSPACE);
        get_record(&after, "row", &value, &presence);
        assert_int_equal(value.folded.count, cuts == 0 ? 3 : 0);
        store_value_release(&value);
        assert_row(&after, "row", "f:q@3=x f:q@2=x f:q@1=x");
        assert_row(&after, "other", cuts == 0 ? "" : "f:q@1=y");
        store_close(after.store);
    }
    remove_directory(copy);
}

/* --- holding --- */

static void what_is_submitted_while_commits_are_held_waits(void **state)
{
    struct tablet_fixture *f = *state;
    struct pending early, late;
    unsigned turn = 0;
    uint64_t applied;
    submit(f, &early, "row", set_cell(f, FAMILY_F, "q", 5, "early"), &turn);
    wait_for_all(f);
    commit_hold(f->queue, &applied);
    assert_true(applied >= early.commit.version);
    submit(f, &late, "row", set_cell(f, FAMILY_F, "q", 6, "late"), &turn);
    assert_true(late.commit.version > applied);
    assert_true(commit_applied(f->queue) == applied);
    assert_row(f, "row", "f:q@5=early");
    commit_release(f->queue);
    wait_for_all(f);
    assert_row(f, "row", "f:q@6=late f:q@5=early");
    buffer_free(&early.change.fragment);
    buffer_free(&late.change.fragment);
}

/* The batch that is under way is in the store when the hold begins. */
struct holding {
    struct tablet_fixture *f;
    uint64_t applied;
};

static void *hold_and_release(void *argument)
{
    struct holding *holding = argument;
    commit_hold(holding->f->queue, &holding->applied);
    commit_release(holding->f->queue);
    return NULL;
}

static void a_hold_waits_for_the_batch_under_way(void **state)
{
    struct tablet_fixture *f = *state;
    struct gate *gate = gate_of(f);
    struct holding holding = {.f = f};
    struct pending pending;
    pthread_t thread;
    unsigned turn = 0;
    shut(gate);
    submit(f, &pending, "row", set_cell(f, FAMILY_F, "q", 5, "v"), &turn);
    await_commit_thread(gate);
    assert_int_equal(pthread_create(&thread, NULL, hold_and_release, &holding), 0);
    open_gate(gate);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(holding.applied >= pending.commit.version);
    assert_row(f, "row", "f:q@5=v");
    wait_for_all(f);
    buffer_free(&pending.change.fragment);
}

/* --- what is out of service --- */

static void assert_refused(struct tablet_fixture *f, const char *row_key, bool is_refused)
{
    struct packed_change change = set_cell(f, FAMILY_F, "q", 1, "x");
    struct commit commit = commit_of(f, row_key, &change);
    status s = commit_and_wait(f->queue, &commit);
    assert_int_equal(s.code, is_refused ? STATUS_DATA_LOSS : STATUS_OK);
    status_free(s);
    buffer_free(&change.fragment);
}

static void close_keys(struct tablet_fixture *f, bytes from, bytes to)
{
    static uint64_t file = 100;
    const struct store_damage damage = {
        .keyspace_id = ROWS_KEYSPACE, .file = file++, .from = from, .to = to, .what = "damaged"};
    assert_ok(keyspace_close_range(f->rows, &damage));
}

/* Large cells of a row begin with it, 00 and 01; keys of an index lie anywhere between. */
static void rows_beside_what_is_closed_take_writes(void **state)
{
    struct tablet_fixture *f = *state;
    close_keys(f, bytes_of("Sk2"), bytes_make("Sk4\0", 4));
    close_keys(f, bytes_make("Sk6\0\2", 5), bytes_of("Sk8"));
    close_keys(f, bytes_of("Rm2"), bytes_of("Rm4"));
    static const char *const refused[] = {"k2", "k3", "k7", "m2", "m3"};
    static const char *const taken[] = {"k1", "k4", "k6", "k8", "m1", "m4"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_refused(f, refused[i], true);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        assert_refused(f, taken[i], false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_change_can_be_read_and_survives, setup, teardown),
        cmocka_unit_test_setup_teardown(commits_are_acknowledged_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(changes_of_one_row_fold_in_the_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(a_change_with_its_record_replaces_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_change_that_leaves_nothing_of_its_record_deletes_it,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_rewrite_keeps_its_place, setup, teardown),
        cmocka_unit_test_setup_teardown(a_batch_holds_many_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(an_extension_keeps_its_place, setup, teardown),
        cmocka_unit_test_setup_teardown(big_cells_get_records_of_their_own, setup, teardown),
        cmocka_unit_test_setup_teardown(large_cells_are_put, setup, teardown),
        cmocka_unit_test_setup_teardown(a_large_cell_stays_above_older_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(versions_follow_the_clock, setup, teardown),
        cmocka_unit_test_setup_teardown(a_clock_set_back_changes_no_order, setup, teardown),
        cmocka_unit_test_setup_teardown(time_goes_on_while_the_wall_clock_is_behind, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(time_goes_on_from_the_ceiling_after_a_restart, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_commit_is_not_before_the_time_of_its_cells, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(versions_from_elsewhere_are_passed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_clock_set_back_over_a_restart_changes_no_order, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_not_admitted_is_not_written, setup, teardown),
        cmocka_unit_test_setup_teardown(the_queue_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_batch_has_no_room_for_is_of_the_next, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_stall_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(owners_are_told_on_their_loops, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_submitted_while_commits_are_held_waits, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_hold_waits_for_the_batch_under_way, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_beside_what_is_closed_take_writes, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_acknowledged_after_a_failed_sync, setup_faults,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_full_disk_refuses_until_there_is_space, setup_faults,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_power_cut_may_take_rewrites_alone, setup_faults,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
