/* Observers of the commit queue: what they are told, when, and that what they put into a batch is
 * there with the commit. (cluster/observer_test.c has the long form, with kills.) */
#include "tablet/commit_observer.h"

#include "tablet/testing/testing.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static status admit(void *context)
{
    const bool *is_full = context;
    return *is_full ? status_make(STATUS_RESOURCE_EXHAUSTED, "no space") : status_ok();
}

static int setup(void **state)
{
    *state = tablet_fixture_create();
    return 0;
}

static int teardown(void **state)
{
    tablet_fixture_destroy(*state);
    return 0;
}

static void delete_all_rows(struct commit *commit, struct store_batch *batch)
{
    store_batch_delete_range(batch, commit->keyspace, bytes_of("R"), bytes_of("S"));
}

/* What an observer was told, a letter each: "b" begin, "p" prepare, "c" cancel, "s" see, "e" end,
 * "w" written, "f" failed, "a" applied. */
struct watching {
    struct tablet_fixture *f;
    char told[64];
    size_t count;
    uint64_t last;       /* version of what was seen */
    const char *refused; /* a row for which it has no memory */
    bool puts;           /* a record of the catalog with the version of what was seen */
};

static void tell(struct watching *watching, char what)
{
    assert_true(watching->count + 1 < sizeof watching->told);
    watching->told[watching->count++] = what;
    watching->told[watching->count] = 0;
}

static bool begin_watching(void *context, struct store_batch *batch)
{
    assert_true(store_batch_size(batch) <= 16); /* nothing yet */
    tell(context, 'b');
    return false;
}

static bool prepare_watching(void *context, const struct commit *commit,
                             const struct store_batch *records)
{
    struct watching *watching = context;
    assert_true((records == NULL) == (commit->kind == COMMIT_ROWS));
    tell(watching, 'p');
    return watching->refused == NULL || !bytes_equal(commit->row_key, bytes_of(watching->refused));
}

static void cancel_watching(void *context, const struct commit *commit)
{
    (void)commit;
    tell(context, 'c');
}

static void see_watching(void *context, const struct commit *commit,
                         const struct store_batch *records, struct store_batch *batch)
{
    struct watching *watching = context;
    (void)records;
    tell(watching, 's');
    assert_true(commit->version > watching->last);
    watching->last = commit->version;
    if (watching->puts)
        store_batch_put(batch, watching->f->options.catalog, bytes_of("seen"),
                        bytes_make(&commit->version, sizeof commit->version));
}

static void end_watching(void *context, struct store_batch *batch)
{
    (void)batch;
    tell(context, 'e');
}

static void note_written(void *context, bool is_written)
{
    tell(context, is_written ? 'w' : 'f');
}

static void note_applied(void *context, const struct commit *commit)
{
    assert_int_equal(commit->kind, COMMIT_ROWS);
    tell(context, 'a');
}

static struct commit_observer observer_of(struct watching *watching)
{
    return (struct commit_observer){.context = watching,
                                    .begin = begin_watching,
                                    .prepare = prepare_watching,
                                    .cancel = cancel_watching,
                                    .see = see_watching,
                                    .end = end_watching,
                                    .written = note_written,
                                    .applied = note_applied};
}

static void assert_told(struct watching *watching, const char *expected)
{
    assert_string_equal(watching->told, expected);
    watching->count = 0;
    watching->told[0] = 0;
}

static void open_watched(struct tablet_fixture *f, struct commit_observer *observers, size_t count)
{
    close_queue(f);
    f->options.observers = observers;
    f->options.observer_count = count;
    open_queue(f);
}

static void observers_see_each_commit_before_its_acknowledgement(void **state)
{
    struct tablet_fixture *f = *state;
    struct watching watching = {.f = f, .puts = true};
    struct commit_observer observer = observer_of(&watching);
    struct store_value seen = {0};
    enum store_presence presence;
    open_watched(f, &observer, 1);
    uint64_t version = write_change(f, "row", add_to_cell(f, "q", 1));
    assert_told(&watching, "bpsewa");
    assert_ok(
        store_get(f->options.catalog, NULL, bytes_of("seen"), STORE_READ_ANY, &seen, &presence));
    assert_int_equal(presence, STORE_FOUND);
    assert_memory_equal(seen.bytes.data, &version, sizeof version);
    store_value_release(&seen);
    struct commit drop = {.kind = COMMIT_DROP, .keyspace = f->rows, .extend = delete_all_rows};
    assert_ok(commit_and_wait(f->queue, &drop));
    assert_told(&watching, "bpsew");
    struct commit barrier = {.kind = COMMIT_BARRIER}; /* is not seen */
    assert_ok(commit_and_wait(f->queue, &barrier));
    assert_told(&watching, "bew");
    assert_ok(commit_raise_version(f->queue, 1)); /* asks no observer for memory */
    assert_told(&watching, "bsew");
}

static void refused_commits_are_not_seen(void **state)
{
    struct tablet_fixture *f = *state;
    struct watching first = {.f = f}, second = {.f = f, .refused = "refused"};
    struct commit_observer observers[] = {observer_of(&first), observer_of(&second)};
    struct packed_change change = add_to_cell(f, "q", 1);
    bool is_full = false;
    f->options.admit = admit;
    f->options.admit_context = &is_full;
    open_watched(f, observers, 2);
    struct commit refused = commit_of(f, "refused", &change);
    assert_status(commit_and_wait(f->queue, &refused), STATUS_RESOURCE_EXHAUSTED);
    assert_told(&first, "bpcew");
    assert_told(&second, "bpew");
    assert_row(f, "refused", "");
    is_full = true;
    struct commit other = commit_of(f, "other", &change);
    assert_status(commit_and_wait(f->queue, &other), STATUS_RESOURCE_EXHAUSTED);
    assert_told(&first, "bew");
    buffer_free(&change.fragment);
}

static void malformed_commits_end_the_process(void **state)
{
    struct tablet_fixture *f = *state;
    struct packed_change change = add_to_cell(f, "q", 1);
    struct commit commits[] = {
        commit_of(f, "row", NULL),
        {.change = &change, .keyspace = f->rows},
        {.kind = COMMIT_BARRIER, .change = &change, .keyspace = f->rows},
        {.kind = COMMIT_REWRITE, .keyspace = f->rows},
        {.kind = COMMIT_UPKEEP, .keyspace = f->rows},
        {.kind = COMMIT_CATALOG},
        {.kind = COMMIT_ROWS, .change = &change, .extend = delete_all_rows, .keyspace = f->rows},
    };
    for (size_t i = 0; i < sizeof commits / sizeof commits[0]; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            signal(SIGABRT, SIG_DFL);
            close(STDERR_FILENO);
            status_ignore(commit_submit(f->queue, &commits[i]));
            _exit(0);
        }
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT);
    }
    buffer_free(&change.fragment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(observers_see_each_commit_before_its_acknowledgement, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(refused_commits_are_not_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(malformed_commits_end_the_process, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
