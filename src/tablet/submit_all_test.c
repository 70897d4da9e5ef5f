/* Commits that are submitted together: those that the queue takes, and those that it gives back. */
#include "tablet/testing/testing.h"

enum { MOST = 6 };

struct pending {
    struct commit commit;
    struct packed_change change;
    unsigned *turn;
    unsigned done_at; /* 0: not yet */
};

struct together {
    struct tablet_fixture *f;
    struct pending pending[MOST];
    size_t count;
    unsigned turn;
    struct list commits;
};

static int setup(void **state)
{
    struct together *together = calloc(1, sizeof *together);
    assert_non_null(together);
    together->f = tablet_fixture_create();
    *state = together;
    return 0;
}

static int teardown(void **state)
{
    struct together *together = *state;
    for (size_t i = 0; i < together->count; i++)
        buffer_free(&together->pending[i].change.fragment);
    tablet_fixture_destroy(together->f);
    free(together);
    return 0;
}

static void note_done(struct task *task)
{
    struct pending *pending = (struct pending *)LIST_ENTRY(&task->link, struct commit, done.link);
    pending->done_at = ++*pending->turn;
}

static void add(struct together *together, const char *row_key)
{
    struct pending *pending = &together->pending[together->count++];
    pending->change = add_to_cell(together->f, "q", 1);
    pending->commit = commit_of(together->f, row_key, &pending->change);
    pending->commit.done.run = note_done;
    pending->turn = &together->turn;
    list_append(&together->commits, &pending->commit.link);
}

/* With this empty commit all before it are done. */
static void wait_for_all(const struct together *together)
{
    struct commit barrier = {.kind = COMMIT_BARRIER};
    assert_ok(commit_and_wait(together->f->queue, &barrier));
}

static void assert_given_back(struct together *together, size_t i, enum status_code code)
{
    struct commit *commit = &together->pending[i].commit;
    assert_ptr_equal(list_take(&together->commits), &commit->link);
    assert_int_equal(commit->sequence, 0);
    assert_status(commit->result, code);
}

/* With rows of which each is twice among them: one batch has them all, in their order. */
static void they_are_of_one_batch_in_their_order(void **state)
{
    static const char *const rows[MOST] = {"a", "b", "a", "c", "b", "c"};
    struct together *together = *state;
    const struct pending *first = &together->pending[0];
    for (size_t i = 0; i < MOST; i++)
        add(together, rows[i]);
    commit_submit_all(together->f->queue, &together->commits);
    assert_true(list_is_empty(&together->commits));
    wait_for_all(together);
    for (size_t i = 0; i < MOST; i++) {
        const struct pending *pending = &together->pending[i];
        assert_ok(pending->commit.result);
        assert_int_equal(pending->done_at, i + 1);
        assert_true(i == 0 || pending->commit.version > pending[-1].commit.version);
        assert_true(i == 0 || pending->commit.sequence > pending[-1].commit.sequence);
        assert_int_equal(pending->commit.times.begun_us, first->commit.times.begun_us);
        assert_row(together->f, rows[i], "sum:q@0=2");
    }
    assert_true(together->pending[2].commit.is_folded);
}

/* The first is too big for the queue, but goes in alone. */
static void those_that_find_the_queue_full_are_given_back(void **state)
{
    struct together *together = *state;
    struct tablet_fixture *f = together->f;
    uint64_t applied;
    close_queue(f);
    f->options.queue_limit_bytes = 10;
    open_queue(f);
    add(together, "a");
    add(together, "b");
    add(together, "c");
    commit_hold(f->queue, &applied);
    commit_submit_all(f->queue, &together->commits);
    commit_release(f->queue);
    assert_given_back(together, 1, STATUS_RESOURCE_EXHAUSTED);
    assert_given_back(together, 2, STATUS_RESOURCE_EXHAUSTED);
    assert_true(list_is_empty(&together->commits));
    close_queue(f);
    open_queue(f);
    assert_int_equal(together->pending[0].done_at, 1);
    assert_int_equal(together->turn, 1);
    assert_row(f, "a", "sum:q@0=1");
    assert_row(f, "b", "");
}

static void those_out_of_service_are_given_back(void **state)
{
    struct together *together = *state;
    struct tablet_fixture *f = together->f;
    const struct store_damage damage = {.keyspace_id = ROWS_KEYSPACE,
                                        .file = 100,
                                        .from = bytes_of("Rk2"),
                                        .to = bytes_of("Rk4"),
                                        .what = "damaged"};
    assert_ok(keyspace_close_range(f->rows, &damage));
    add(together, "k1");
    add(together, "k3");
    add(together, "k4");
    commit_submit_all(f->queue, &together->commits);
    assert_given_back(together, 1, STATUS_DATA_LOSS);
    assert_true(list_is_empty(&together->commits));
    wait_for_all(together);
    assert_int_equal(together->turn, 2);
    assert_ok(together->pending[0].commit.result);
    assert_ok(together->pending[2].commit.result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(they_are_of_one_batch_in_their_order, setup, teardown),
        cmocka_unit_test_setup_teardown(those_that_find_the_queue_full_are_given_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(those_out_of_service_are_given_back, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
