/* Faults that are planted: each breaks an invariant that a file's head states, or a rule of a
 * function's comment, and a self check must end the process and name it. (cluster/planted_test.c
 * has those of cluster/.) */
#include "base/testing/testing_planted.h"
#include "tablet/change_log_private.h"
#include "tablet/commit_private.h"
#include "tablet/foreign_change.h"
#include "tablet/tablet.h"
#include "tablet/testing/testing.h"

static const uint64_t HASH = 17;

/* In the child, which cleans up nothing else. */
static struct tablet_fixture *begin(void)
{
    struct tablet_fixture *f = tablet_fixture_create();
    remove_directory(f->directory);
    return f;
}

/* --- row_locks.h: a change of a row holds its stripe --- */

static void a_stripe_is_released_that_nobody_holds(void)
{
    struct row_locks *locks;
    assert_ok(row_locks_create(&locks));
    row_lock_release(locks, HASH);
}

static void a_sequence_is_noted_without_the_lock(void)
{
    struct row_locks *locks;
    assert_ok(row_locks_create(&locks));
    row_lock_note_sequence(locks, HASH, 1);
}

static void a_sequence_is_read_without_the_lock(void)
{
    struct row_locks *locks;
    assert_ok(row_locks_create(&locks));
    (void)row_lock_sequence(locks, HASH);
}

static void locks_end_while_one_is_held(void)
{
    struct row_locks *locks;
    assert_ok(row_locks_create(&locks));
    assert_true(row_lock_try(locks, HASH));
    row_locks_destroy(locks);
}

static void many_are_released_that_were_not_taken(void)
{
    struct row_locks *locks;
    uint64_t hashes[] = {HASH, HASH + 1};
    size_t count = 1;
    assert_ok(row_locks_create(&locks));
    row_locks_acquire_many(locks, hashes, &count);
    hashes[1] = hashes[0] + 1;
    row_locks_release_many(locks, hashes, 2, 1);
}

/* --- commit.h: a commit has what its kind has --- */

static void rows_have_no_change(void)
{
    struct tablet_fixture *f = begin();
    struct commit commit = commit_of(f, "row", NULL);
    status_ignore(commit_submit(f->queue, &commit));
}

static void extend_nothing(struct commit *commit, struct store_batch *batch)
{
    (void)commit, (void)batch;
}

static void apply_nothing(const struct catalog_change *change)
{
    (void)change;
}

static void a_split_has_one_half(void)
{
    struct tablet_fixture *f = begin();
    struct table *table = NULL;
    struct tablet *tablet = NULL;
    const struct catalog_change change = {.apply = apply_nothing,
                                          .tables = &table,
                                          .table_count = 1,
                                          .former = &tablet,
                                          .former_count = 1,
                                          .fresh = &tablet,
                                          .fresh_count = 1};
    struct commit commit = {.kind = COMMIT_SPLIT, .extend = extend_nothing, .catalog = &change};
    status_ignore(commit_submit(f->queue, &commit));
}

/* --- commit.h: one holds the queue, and lets go of it --- */

static void the_queue_is_held_twice(void)
{
    struct tablet_fixture *f = begin();
    uint64_t applied;
    commit_hold(f->queue, &applied);
    commit_hold(f->queue, &applied);
}

static void the_queue_is_released_that_is_not_held(void)
{
    commit_release(begin()->queue);
}

/* --- commit.h, 9: a change is in the tablet that has its row --- */

static struct tablet *wrong;

static status route_wrongly(struct table *table, bytes row_key, struct tablet **out)
{
    (void)table, (void)row_key;
    *out = wrong;
    return status_ok();
}

/* A write whose tablet is in the map no more is routed to one of those keys. */
static void route_to(struct tablet_fixture *f, struct keyspace *keyspace, const char *from,
                     bool is_former)
{
    struct tablet *former;
    struct packed_change change = add_to_cell(f, "q", 1);
    commit_queue_destroy(f->queue);
    f->options.route = route_wrongly;
    assert_ok(commit_queue_create(&f->options, &f->queue));
    assert_ok(tablet_create(1, NULL, f->rows, bytes_of(""), bytes_of(""), &former));
    assert_ok(tablet_create(2, NULL, keyspace, bytes_of(from), bytes_of(""), &wrong));
    former->is_former = true;
    wrong->is_former = is_former;
    struct commit commit = commit_of(f, "row", &change);
    commit.tablet = former;
    status_ignore(commit_and_wait(f->queue, &commit));
}

static void a_write_is_routed_to_another_keyspace(void)
{
    struct tablet_fixture *f = begin();
    route_to(f, f->options.catalog, "", false);
}

static void a_write_is_routed_beside_its_row(void)
{
    struct tablet_fixture *f = begin();
    route_to(f, f->rows, "s", false);
}

static void a_write_is_routed_to_what_was(void)
{
    struct tablet_fixture *f = begin();
    route_to(f, f->rows, "", true);
}

/* --- commit_private.h: a batch --- */

static void begin_batch(struct tablet_fixture *f, struct commit_batch *batch)
{
    assert_ok(commit_batch_init(batch, f->store, NULL, 0));
    commit_batch_clear(batch);
}

static void a_row_has_the_hash_of_another(void)
{
    struct tablet_fixture *f = begin();
    struct commit_batch batch;
    struct packed_change change = add_to_cell(f, "q", 1);
    struct commit commit = commit_of(f, "row", &change);
    commit.row_hash++;
    commit.sequence = commit.version = 1;
    begin_batch(f, &batch);
    commit_batch_add(&batch, &commit);
}

static void sequences_do_not_rise(void)
{
    struct tablet_fixture *f = begin();
    struct commit_batch batch;
    struct packed_change changes[] = {add_to_cell(f, "q", 1), add_to_cell(f, "q", 1)};
    begin_batch(f, &batch);
    for (size_t i = 0; i < 2; i++) {
        struct commit *commit = arena_alloc(f->arena, sizeof *commit);
        assert_non_null(commit);
        *commit = commit_of(f, i == 0 ? "a" : "b", &changes[i]);
        commit->sequence = 5;
        commit->version = 5 + i;
        commit_batch_add(&batch, commit);
    }
}

static void a_late_change_follows_another_of_its_row(void)
{
    struct tablet_fixture *f = begin();
    struct commit_batch batch;
    struct foreign_change foreign = {0};
    struct packed_change changes[] = {add_to_cell(f, "q", 1), add_to_cell(f, "q", 1)};
    struct commit first = commit_of(f, "row", &changes[0]);
    struct commit late = commit_of(f, "row", &changes[1]);
    first.sequence = first.version = 5;
    late.sequence = 6;
    late.version = late.given_version = 3;
    late.foreign = &foreign;
    begin_batch(f, &batch);
    commit_batch_add(&batch, &first);
    commit_batch_add(&batch, &late);
}

/* --- event.h, change_log.h: events rise --- */

static void an_event_is_not_behind_the_one_before_it(void)
{
    struct buffer entry = {0};
    struct event_writer writer;
    event_writer_start(&writer, &entry);
    event_begin(&writer, EVENT_UPKEEP, 5, 5);
    event_end(&writer);
    event_begin(&writer, EVENT_UPKEEP, 5, 6);
}

static void an_entry_is_not_behind_the_newest(void)
{
    struct tablet_fixture *f = begin();
    const struct change_log_options options = {
        .store = f->store, .catalog = f->options.catalog, .limit_bytes = 1 << 20};
    const struct change_log_state state = {
        .keyspace = ROWS_KEYSPACE, .stream = 1, .began = 7, .taken = 7, .is_on = true};
    struct store_batch *batch = store_batch_create();
    struct change_log *log;
    assert_non_null(batch);
    assert_ok(change_log_open(&options, &state, &log));
    change_log_append(log, batch, 7, bytes_of("entry"));
}

static const struct planted faults[] = {
    PLANTED(a_stripe_is_released_that_nobody_holds, "is_held(stripe)", true),
    PLANTED(a_sequence_is_noted_without_the_lock, "is_held(stripe)", false),
    PLANTED(a_sequence_is_read_without_the_lock, "is_held(stripe)", false),
    PLANTED(locks_end_while_one_is_held, "!is_held(&locks->stripes[i])", true),
    PLANTED(many_are_released_that_were_not_taken, "is_held(stripe)", false),
    PLANTED(rows_have_no_change, "commit_is_well_formed(commit)", true),
    PLANTED(a_split_has_one_half, "commit_is_well_formed(commit)", true),
    PLANTED(the_queue_is_held_twice, "!queue->is_held", true),
    PLANTED(the_queue_is_released_that_is_not_held, "queue->is_held", true),
    PLANTED(a_write_is_routed_to_another_keyspace, "tablet->keyspace == commit->keyspace", true),
    PLANTED(a_write_is_routed_beside_its_row, "is_in_tablet(commit)", false),
    PLANTED(a_write_is_routed_to_what_was, "is_in_tablet(commit)", false),
    PLANTED(a_row_has_the_hash_of_another, "has_own_hash(commit)", false),
    PLANTED(sequences_do_not_rise, "commit->sequence > batch->newest_sequence", false),
    PLANTED(a_late_change_follows_another_of_its_row, "*slot_of(batch, commit) ==", false),
    PLANTED(an_event_is_not_behind_the_one_before_it,
            "writer->is_first || sequence > writer->sequence", true),
    PLANTED(an_entry_is_not_behind_the_newest, "first_sequence >", false),
};

static void each_planted_fault_is_caught_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        assert_caught(&faults[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_planted_fault_is_caught_by_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
