/* The archive: a server that keeps one, killed now and then, and restored to many moments. */
#include "archive/verify.h"
#include "cluster/testing/archive_testing.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

enum { CYCLES = 5, STEPS = 60, RESTORES = 8 };
static_assert(MOST_MOMENTS > CYCLES * (STEPS + 1) + 2, "a moment for each step");

/* --- what is done to it --- */

static void delete_table(struct fixture *t, unsigned number)
{
    char name[64];
    assert_ok(cluster_delete_table(t->f.cluster, bytes_of(model_table_name(number, name)), NULL));
    t->now.tables[number] = (struct model_table){0};
}

static void delete_row(struct fixture *t, unsigned row, struct model_row *model)
{
    char key[8];
    struct row_change *change = new_change(t);
    row_change_delete_row(change);
    assert_ok(try_write(&t->f, model_row_key(row, key), change));
    *model = (struct model_row){0};
}

/* Four rows begin with each letter. */
static void drop_rows(struct fixture *t, struct model_table *model)
{
    unsigned letter = choose(t, MODEL_ROWS / 4);
    const char prefix[] = {(char)('a' + letter), 0};
    assert_ok(table_drop_rows(t->f.table, bytes_of(prefix)));
    memset(&model->rows[4 * letter], 0, 4 * sizeof model->rows[0]);
}

static void split_or_merge(struct fixture *t)
{
    const char key[] = {(char)('a' + choose(t, MODEL_ROWS / 4)), 0};
    if (table_tablet_count(t->f.table) < 3 || key[0] == 'a')
        split_at(&t->f, key);
    else
        merge_at(&t->f, key);
}

static void change_table(struct fixture *t, struct model_table *model)
{
    unsigned row = choose(t, MODEL_ROWS), action = choose(t, 25);
    if (action < 12)
        set_value(t, row, &model->rows[row]);
    else if (action < 17)
        add_to_sum(t, row, &model->rows[row]);
    else if (action < 20)
        delete_row(t, row, &model->rows[row]);
    else if (action < 21)
        drop_rows(t, model);
    else if (action < 23)
        split_or_merge(t);
    else if (action < 24)
        add_late(t, row, model);
    else
        assert_ok(keyspace_flush(t->f.table->tablets[0]->keyspace));
}

static void do_something(struct fixture *t)
{
    unsigned number = choose(t, MODEL_TABLES);
    char name[64];
    if (!t->now.tables[number].exists) {
        create_table(t, number);
        return;
    }
    if (choose(t, 40) == 0) {
        delete_table(t, number);
        return;
    }
    assert_ok(cluster_table(t->f.cluster, bytes_of(model_table_name(number, name)), &t->f.table));
    change_table(t, &t->now.tables[number]);
    table_release(t->f.table);
}

/* --- to many moments --- */

/* In a child: it ends by SIGKILL, with commits, flushes and perhaps a put under way. */
static void serve_and_be_killed(struct fixture *t)
{
    open_server(t);
    note_moment(t);
    unsigned steps = 1 + choose(t, STEPS);
    for (unsigned i = 0; i < steps; i++) {
        do_something(t);
        note_moment(t);
        if (choose(t, 8) == 0)
            assert_ok(archiver_step(t->f.cluster->home->archiver, true));
    }
    atomic_store(&t->place->loses_word, choose(t, 2) == 0);
    if (choose(t, 2) == 0)
        status_ignore(archiver_step(t->f.cluster->home->archiver, true));
    kill(getpid(), SIGKILL);
}

static void run_child(struct fixture *t)
{
    int outcome;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        serve_and_be_killed(t);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &outcome, 0), child);
    assert_true(WIFSIGNALED(outcome));
    assert_int_equal(WTERMSIG(outcome), SIGKILL);
    next_random(&t->random);
    t->last_value += 1000; /* what the child has given is not known here */
}

static void a_killed_server_is_restored_to_any_moment(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX";
    t->random = 7;
    assert_non_null(mkdtemp(base));
    run_child(t);
    copy_directory(t->f.directory, base);
    size_t first = t->history->count;
    for (int i = 1; i < CYCLES; i++)
        run_child(t);
    open_server(t);
    note_moment(t);
    if (!t->now.tables[0].exists)
        create_table(t, 0);
    size_t count = t->history->count;
    finish(t);
    assert_true(count > first + RESTORES);
    for (int i = 0; i < RESTORES; i++)
        assert_restores(&t->f, base, &t->place->place,
                        &t->history->moments[first + choose(t, (unsigned)(count - first))]);
    remove_test_directory(base);
}

/* --- a place that fails --- */

static bool has_reason(struct fixture *t, enum reason reason)
{
    struct condition_view view;
    condition_look(t->f.cluster->condition, &view);
    for (size_t i = 0; i < view.count; i++)
        if (view.reasons[i].reason == reason)
            return true;
    return false;
}

/* With what went wrong, which a start does not know yet; never with nothing behind a colon. */
static void expect_gap(struct fixture *t, const char *ending)
{
    struct condition_view view;
    condition_look(cluster_condition(t->f.cluster), &view);
    for (size_t i = 0; i < view.count; i++) {
        const char *text = view.reasons[i].text;
        if (view.reasons[i].reason != REASON_archive_gap)
            continue;
        assert_true(strlen(text) > strlen(ending));
        assert_string_equal(text + strlen(text) - strlen(ending), ending);
        return;
    }
    fail();
}

static void note_base(struct fixture *t, uint64_t version)
{
    const struct archive_base base = {
        .stream = state_of_log(t).stream, .version = version, .place = "place", .name = "base"};
    assert_ok(cluster_note_whole_backup(t->f.cluster, &base));
}

/* What the restore says that it cannot do; freed by the caller. */
static char *refusal_of(struct fixture *t, const char *base, const struct archive_reach *read_tier,
                        enum status_code code)
{
    char copy[] = "/tmp/trestle-restored-XXXXXX";
    struct archive_restored restored;
    assert_non_null(mkdtemp(copy));
    copy_directory(base, copy);
    status s = restore_known(copy, &t->place->place, read_tier, NULL, &t->f.log, &restored);
    assert_int_equal(s.code, code);
    char *words = strdup(status_message(s));
    assert_non_null(words);
    status_free(s);
    remove_test_directory(copy);
    return words;
}

static char *refusal(struct fixture *t, const char *base, uint64_t until, enum status_code code)
{
    const struct archive_reach read_tier = {.until = until};
    return refusal_of(t, base, &read_tier, code);
}

static void assert_refused(struct fixture *t, const char *base, uint64_t until,
                           enum status_code code, const char *part)
{
    char *words = refusal(t, base, until, code);
    if (strstr(words, part) == NULL)
        fail_msg("%s", words);
    free(words);
}

static void a_missing_place_stops_no_writes(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX";
    begin(t, base);
    size_t before = t->history->count;
    atomic_store(&t->place->is_gone, true);
    write_some(t, 5);
    assert_status(step(t), STATUS_UNAVAILABLE);
    write_some(t, 5);
    atomic_store(&t->place->is_gone, false);
    assert_ok(step(t));
    assert_int_equal(state_of_log(t).taken, change_log_newest(t->f.cluster->home->log));
    assert_false(has_reason(t, REASON_archive_gap));
    finish(t);
    for (size_t i = before; i < t->history->count; i += 3)
        assert_restores(&t->f, base, &t->place->place, &t->history->moments[i]);
    remove_test_directory(base);
}

/* What can be had on both sides of the gap is named, to the version. */
static void assert_nearest(struct fixture *t, uint64_t stream, const struct moment *before,
                           const struct moment *within)
{
    const struct archive_reach read_tier = {.stream = stream,
                                            .from = before->sequence,
                                            .until = within->sequence,
                                            .next = within->sequence + 1};
    char nearest[2][64];
    status s = archive_check(&t->place->place, &read_tier);
    assert_int_equal(s.code, STATUS_FAILED_PRECONDITION);
    snprintf(nearest[0], 64, "(version %llu), and", (unsigned long long)before->sequence);
    snprintf(nearest[1], 64, "(version %llu)", (unsigned long long)within->sequence + 1);
    assert_non_null(strstr(status_message(s), nearest[0]));
    assert_non_null(strstr(status_message(s), nearest[1]));
    status_free(s);
}

static void a_log_beyond_its_bound_becomes_a_gap(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX", later[] = "/tmp/trestle-later-XXXXXX";
    t->f.options.archive.buffer_bytes = 10000;
    begin(t, base);
    write_some(t, 2);
    assert_ok(step(t));
    struct moment last = {.sequence = state_of_log(t).taken, .model = t->now};
    atomic_store(&t->place->is_gone, true);
    write_some(t, 200);
    assert_false(change_log_is_on(t->f.cluster->home->log));
    assert_status(step(t), STATUS_UNAVAILABLE);
    assert_true(has_reason(t, REASON_archive_gap));
    struct moment within = t->history->moments[t->history->count - 1];
    close_server(t); /* the gap is known after a restart, too */
    open_server(t);
    assert_false(change_log_is_on(t->f.cluster->home->log));
    expect_gap(t, "what waited was too much, or is damaged");
    atomic_store(&t->place->is_gone, false);
    assert_ok(step(t));
    assert_true(change_log_is_on(t->f.cluster->home->log));
    assert_true(has_reason(t, REASON_archive_gap));
    close_server(t);
    assert_non_null(mkdtemp(later));
    copy_directory(t->f.directory, later);
    open_server(t);
    note_base(t, state_of_log(t).taken);
    assert_false(has_reason(t, REASON_archive_gap));
    write_some(t, 5);
    struct moment after = t->history->moments[t->history->count - 1];
    uint64_t stream = state_of_log(t).stream;
    finish(t);
    assert_nearest(t, stream, &last, &within);

    assert_restores(&t->f, base, &t->place->place, &last);
    assert_refused(t, base, within.sequence, STATUS_FAILED_PRECONDITION, "has a gap before");
    assert_refused(t, base, after.sequence, STATUS_FAILED_PRECONDITION, "has a gap before");
    assert_refused(t, base, ARCHIVE_END, STATUS_FAILED_PRECONDITION, "has a gap before");
    assert_restores(&t->f, later, &t->place->place, &after);
    assert_refused(t, later, within.sequence, STATUS_FAILED_PRECONDITION, "take an older one");
    remove_test_directory(base);
    remove_test_directory(later);
}

/* The piece is stored, but the answer that says so is lost. */
static void a_put_whose_answer_is_lost_is_found_again(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX";
    begin(t, base);
    uint64_t pieces = state_of_log(t).pieces, stream = state_of_log(t).stream;
    atomic_store(&t->place->loses_word, true);
    write_some(t, 3);
    assert_status(step(t), STATUS_UNAVAILABLE);
    close_server(t);
    atomic_store(&t->place->loses_word, false);
    open_server(t);
    write_some(t, 3); /* not in the piece that is there */
    assert_ok(step(t));
    assert_int_equal(state_of_log(t).stream, stream);
    assert_int_equal(state_of_log(t).pieces, pieces + 2);
    finish(t);
    assert_restores(&t->f, base, &t->place->place, &t->history->moments[t->history->count - 1]);
    remove_test_directory(base);
}

/* --- what is not the archive of this data --- */

static void an_older_copy_begins_an_archive_of_its_own(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX";
    begin(t, base);
    uint64_t stream = state_of_log(t).stream;
    for (int i = 0; i < 2; i++) {
        write_some(t, 2);
        assert_ok(step(t));
    }
    struct moment last = t->history->moments[t->history->count - 1];
    finish(t);

    struct cluster_fixture copy = t->f;
    snprintf(copy.directory, sizeof copy.directory, "/tmp/trestle-copied-XXXXXX");
    assert_non_null(mkdtemp(copy.directory));
    copy_directory(base, copy.directory);
    copy.options.data_directory = copy.directory;
    assert_ok(pool_create(2, 64, "test", &copy.pool));
    copy.options.pool = copy.pool;
    open_test_cluster(&copy);
    assert_ok(archiver_step(copy.cluster->home->archiver, true));
    struct change_log_state state_of_copy;
    change_log_look(copy.cluster->home->log, &state_of_copy);
    assert_int_not_equal(state_of_copy.stream, stream);
    close_test_cluster(&copy);
    pool_destroy(copy.pool);
    remove_test_directory(copy.directory);

    assert_restores(&t->f, base, &t->place->place, &last);
    remove_test_directory(base);
}

static void writing_without_the_log_ends_the_archive(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX";
    begin(t, base);
    uint64_t stream = state_of_log(t).stream;
    close_server(t);
    t->f.options.archive.place = NULL;
    open_server(t);
    write_some(t, 1);
    struct moment unseen = t->history->moments[t->history->count - 1];
    close_server(t);
    t->f.options.archive.place = &t->place->place;
    open_server(t);
    assert_int_not_equal(state_of_log(t).stream, stream);
    assert_ok(step(t));
    close_server(t);
    assert_refused(t, base, unseen.sequence, STATUS_FAILED_PRECONDITION, "the archive ends");
    remove_test_directory(base);
}

static void a_backup_without_a_log_is_refused(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX";
    t->f.options.archive.place = NULL;
    open_server(t);
    create_table(t, 0);
    close_server(t);
    assert_non_null(mkdtemp(base));
    copy_directory(t->f.directory, base);
    assert_refused(t, base, ARCHIVE_END, STATUS_FAILED_PRECONDITION, "kept no archive");
    remove_test_directory(base);
}

/* --- a clock that is set --- */

static atomic_llong clock_set_us;

static int64_t set_wall_us(struct clock *clock)
{
    (void)clock;
    return clock_wall_us(clock_system()) + atomic_load(&clock_set_us);
}

static int64_t true_steady_us(struct clock *clock)
{
    (void)clock;
    return clock_steady_us(clock_system());
}

static struct clock settable_clock = {.wall_us = set_wall_us, .steady_us = true_steady_us};

/* Sequences rise whatever it does, and moments are told by them. */
static void a_clock_that_is_set_disorders_nothing(void **state)
{
    static const long long steps_us[] = {-3600000000, 7200000000, -60000000, 30000000};
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX";
    t->f.options.clock = &settable_clock;
    begin(t, base);
    size_t first = t->history->count;
    for (size_t i = 0; i < sizeof steps_us / sizeof *steps_us; i++) {
        atomic_fetch_add(&clock_set_us, steps_us[i]);
        write_some(t, 2);
        assert_ok(step(t));
        close_server(t);
        open_server(t);
        write_some(t, 1);
    }
    finish(t);
    const struct moment *moments = t->history->moments;
    for (size_t i = 1; i < t->history->count; i++)
        assert_true(moments[i].sequence > moments[i - 1].sequence);
    for (size_t i = first; i < t->history->count; i += 3)
        assert_restores(&t->f, base, &t->place->place, &moments[i]);
    remove_test_directory(base);
}

/* --- one table --- */

static uint64_t keyspace_of(struct fixture *t, unsigned number)
{
    char name[64];
    struct table *table;
    assert_ok(cluster_table(t->f.cluster, bytes_of(model_table_name(number, name)), &table));
    uint64_t id = keyspace_id(table->tablets[0]->keyspace);
    table_release(table);
    return id;
}

/* The one that was restored, and the others as they were in the copy. */
static void one_table_is_taken_on(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX", copy[] = "/tmp/trestle-restored-XXXXXX";
    struct archive_restored restored;
    struct model model;
    begin(t, base);
    struct model expected = t->now;
    create_table(t, 1);
    write_some(t, 10);
    expected.tables[1].exists = true; /* the catalog is of that moment; its rows are left out */
    expected.tables[0] = t->now.tables[0];
    uint64_t keyspace = keyspace_of(t, 0);
    struct moment moment = t->history->moments[t->history->count - 1];
    write_some(t, 5);
    assert_ok(step(t));
    close_server(t);
    assert_non_null(mkdtemp(copy));
    copy_directory(base, copy);
    assert_ok(
        restore_part(copy, &t->place->place, moment.sequence, &keyspace, &t->f.log, &restored));
    read_directory(&t->f, copy, &model);
    assert_same_model(&model, &expected);
    remove_test_directory(copy);
    remove_test_directory(base);
}

/* --- damage --- */

struct finding {
    char name[PIECE_NAME_SIZE];
    uint64_t number;
};

static status find_piece(void *context, const struct place_entry *entry)
{
    struct finding *finding = context;
    struct piece piece;
    if (piece_name_parse(entry->name, &piece) && piece.number == finding->number)
        snprintf(finding->name, sizeof finding->name, "%.100s", entry->name);
    return status_ok();
}

static void path_of_piece(struct fixture *t, uint64_t stream, uint64_t number, char path[256])
{
    struct finding finding = {.number = number};
    char folder[PIECE_NAME_SIZE];
    stream_folder(stream, folder);
    assert_ok(place_list(t->place->target, folder, find_piece, &finding));
    assert_true(finding.name[0] != 0);
    snprintf(path, 256, "%s/%s/%s", t->place_directory, folder, finding.name);
}

static void flip_byte(const char *path, long at, int whence)
{
    FILE *file = fopen(path, "r+e");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, whence), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, at, whence), 0);
    assert_int_not_equal(fputc(byte ^ 1, file), EOF);
    assert_int_equal(fclose(file), 0);
}

/* What reading all of the archive has found. */
struct verdict {
    struct archive_verified counts;
    char damage[512];      /* the last */
    uint64_t bounds[4][2]; /* of stretches of moments */
    size_t stretches;
    uint64_t paced; /* bytes */
};

static bool take_pace(void *context, uint64_t bytes)
{
    struct verdict *verdict = context;
    verdict->paced += bytes;
    return true;
}

static bool end_at_once(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
    return false;
}

static void take_damage(void *context, const char *what)
{
    struct verdict *verdict = context;
    snprintf(verdict->damage, sizeof verdict->damage, "%s", what);
}

static void take_moments(void *context, uint64_t after, uint64_t last)
{
    struct verdict *verdict = context;
    assert_true(verdict->stretches < 4);
    verdict->bounds[verdict->stretches][0] = after;
    verdict->bounds[verdict->stretches++][1] = last;
}

static struct verdict verify_archive(struct fixture *t, uint64_t stream)
{
    struct verdict verdict = {.stretches = 0};
    struct store_pacer pacer = {.go_on = take_pace, .context = &verdict};
    const struct archive_verifying verifying = {.place = &t->place->place,
                                                .stream = stream,
                                                .damage = take_damage,
                                                .moments = take_moments,
                                                .context = &verdict,
                                                .pacer = &pacer};
    assert_ok(archive_verify(&verifying, &verdict.counts));
    assert_int_equal(verdict.paced, verdict.counts.bytes);
    pacer.go_on = end_at_once;
    struct verdict ended = verdict;
    status s = archive_verify(&verifying, &ended.counts);
    assert_int_equal(s.code, verdict.paced > 0 ? STATUS_CANCELLED : STATUS_OK);
    status_free(s);
    return verdict;
}

/* What was made by three steps: the last sequence of each, and the second one's piece. */
struct three_steps {
    uint64_t stream;
    uint64_t number; /* of the first's */
    uint64_t last[3];
    char path[256];
};

static struct three_steps take_three_steps(struct fixture *t)
{
    struct three_steps steps = {.stream = state_of_log(t).stream,
                                .number = state_of_log(t).pieces + 1};
    for (int i = 0; i < 3; i++) {
        write_some(t, 1);
        assert_ok(step(t));
        steps.last[i] = state_of_log(t).taken;
    }
    path_of_piece(t, steps.stream, steps.number + 1, steps.path);
    return steps;
}

/* Moments of the second step cannot be had, and it is said which can. */
static void assert_second_is_lost(struct fixture *t, const struct three_steps *steps,
                                  const char *base, const char *wrong)
{
    char before[64], after[64];
    struct verdict verdict = verify_archive(t, steps->stream);
    assert_int_equal(verdict.counts.damages, 1);
    assert_non_null(strstr(verdict.damage, wrong));
    assert_int_equal(verdict.stretches, 2);
    assert_int_equal(verdict.bounds[0][1], steps->last[0]);
    assert_int_equal(verdict.bounds[1][0], steps->last[1]);
    assert_int_equal(verdict.bounds[1][1], steps->last[2]);
    snprintf(before, sizeof before, "(version %llu), and, with a whole backup made since,",
             (unsigned long long)steps->last[0]);
    snprintf(after, sizeof after, "(version %llu)", (unsigned long long)steps->last[1]);
    assert_refused(t, base, ARCHIVE_END, STATUS_DATA_LOSS, wrong);
    assert_refused(t, base, steps->last[1], STATUS_DATA_LOSS, before);
    assert_refused(t, base, ARCHIVE_END, STATUS_DATA_LOSS, after);
}

static status check_reach(struct fixture *t, const struct three_steps *steps, uint64_t from)
{
    const struct archive_reach read_tier = {
        .stream = steps->stream, .from = from, .until = steps->last[2]};
    return archive_check(&t->place->place, &read_tier);
}

/* Moments that can be had from a backup are no older than it, and another one may have the next. */
static void assert_second_is_lost_to(struct fixture *t, const struct three_steps *steps,
                                     const char *base)
{
    const struct archive_reach read_tier = {
        .until = ARCHIVE_END, .from = steps->last[0] + 1, .next = steps->last[2] + 7};
    char nearest[2][64];
    char *words = refusal_of(t, base, &read_tier, STATUS_DATA_LOSS);
    snprintf(nearest[0], 64, "(version %llu), and", (unsigned long long)read_tier.from);
    snprintf(nearest[1], 64, "(version %llu)", (unsigned long long)read_tier.next);
    assert_non_null(strstr(words, nearest[0]));
    assert_non_null(strstr(words, nearest[1]));
    assert_null(strstr(words, "made since"));
    free(words);
}

/* Only the last piece is left. */
static void assert_begins_too_late(struct fixture *t, const struct three_steps *steps,
                                   const char *base)
{
    char path[256], nearest[64];
    for (uint64_t number = 1; number < steps->number; number++) {
        path_of_piece(t, steps->stream, number, path);
        assert_int_equal(unlink(path), 0);
    }
    char *words = refusal(t, base, ARCHIVE_END, STATUS_FAILED_PRECONDITION);
    snprintf(nearest, sizeof nearest, "(version %llu)", (unsigned long long)steps->last[1]);
    assert_non_null(strstr(words, "begins after the backup"));
    assert_non_null(strstr(words, nearest));
    free(words);
}

static void a_damaged_archive_is_not_restored(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX", first[256];
    begin(t, base);
    struct three_steps steps = take_three_steps(t);
    struct moment before = t->history->moments[t->history->count - 3];
    close_server(t);
    struct verdict verdict = verify_archive(t, steps.stream);
    assert_int_equal(verdict.counts.damages, 0);
    assert_int_equal(verdict.counts.pieces, steps.number + 2);
    assert_int_equal(verdict.stretches, 1);
    flip_byte(steps.path, -40, SEEK_END);
    assert_second_is_lost(t, &steps, base, "checksum");
    assert_second_is_lost_to(t, &steps, base);
    assert_ok(check_reach(t, &steps, steps.last[0] - 1)); /* only reading shows it */
    assert_int_equal(unlink(steps.path), 0);
    assert_second_is_lost(t, &steps, base, "is missing");
    before.sequence = steps.last[0];
    assert_restores(&t->f, base, &t->place->place, &before);
    /* Known before a backup is copied, of one that was made meanwhile, too. */
    assert_status(check_reach(t, &steps, steps.last[0] - 1), STATUS_DATA_LOSS);
    assert_status(check_reach(t, &steps, steps.last[0] + 1), STATUS_DATA_LOSS);
    assert_ok(check_reach(t, &steps, steps.last[1]));
    path_of_piece(t, steps.stream, steps.number, first);
    assert_int_equal(unlink(first), 0);
    assert_refused(t, base, ARCHIVE_END, STATUS_DATA_LOSS, "pieces ");
    assert_begins_too_late(t, &steps, base);
    remove_test_directory(base);
}

/* The newest table file of the server's directory. */
static void path_of_newest_table(struct fixture *t, char path[256])
{
    unsigned long newest = 0;
    struct dirent *entry;
    DIR *directory = opendir(t->f.directory);
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        char *end;
        unsigned long number = strtoul(entry->d_name, &end, 10);
        if (strcmp(end, ".sst") == 0 && number > newest)
            newest = number;
    }
    closedir(directory);
    assert_true(newest > 0);
    snprintf(path, 256, "%s/%06lu.sst", t->f.directory, newest);
}

/* What waits to be put lies in a table file; its first block is flipped. */
static void damage_what_waits(struct fixture *t, bool is_open)
{
    char path[256];
    write_some(t, 5);
    assert_ok(
        keyspace_flush(store_keyspace_find(t->f.cluster->home->store, state_of_log(t).keyspace)));
    path_of_newest_table(t, path);
    if (!is_open)
        close_server(t);
    flip_byte(path, 20, SEEK_SET);
    if (!is_open)
        open_server(t);
}

/* The start was told that there is a gap; nothing else is missing, then or after one more start. */
static void expect_gap_alone(struct fixture *t, const char *base, uint64_t stream)
{
    struct moment within = t->history->moments[t->history->count - 1];
    assert_ok(step(t));
    assert_true(change_log_is_on(t->f.cluster->home->log));
    assert_true(has_reason(t, REASON_archive_gap));
    for (int i = 0; i < 2; i++) {
        struct model model;
        read_model(t->f.cluster, &model);
        assert_same_model(&model, &t->now);
        write_some(t, 2);
        assert_ok(step(t));
        assert_int_equal(state_of_log(t).stream, stream);
        assert_int_equal(state_of_log(t).taken, change_log_newest(t->f.cluster->home->log));
        close_server(t);
        open_server(t);
    }
    assert_false(has_reason(t, REASON_damaged_range));
    finish(t);
    assert_refused(t, base, within.sequence, STATUS_FAILED_PRECONDITION, "has a gap before");
}

static void a_damaged_change_log_stops_no_start(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX";
    begin(t, base);
    uint64_t stream = state_of_log(t).stream;
    damage_what_waits(t, false);
    assert_false(change_log_is_on(t->f.cluster->home->log));
    expect_gap_alone(t, base, stream);
    remove_test_directory(base);
}

static void a_change_log_that_is_damaged_meanwhile_is_a_gap(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX";
    begin(t, base);
    uint64_t stream = state_of_log(t).stream;
    damage_what_waits(t, true);
    assert_status(step(t), STATUS_UNAVAILABLE);
    for (int i = 0; i < 3000 && !has_reason(t, REASON_damaged_range); i++)
        poll(NULL, 0, 10);
    assert_true(has_reason(t, REASON_damaged_range));
    expect_gap_alone(t, base, stream);
    remove_test_directory(base);
}

/* --- files of restored tables --- */

/* The keyspace is there, as it is between its making and the taking in of its files. */
static void make_keyspace_in(const char *directory, uint64_t id, const struct log *log)
{
    struct store_options options = restore_store_options(directory, log);
    struct store *store;
    assert_ok(store_open(&options, &store));
    assert_ok(store_keyspaces_create(store, id, 1));
    store_close(store);
}

static void a_damaged_file_is_found(struct fixture *t, uint64_t stream, uint64_t keyspace,
                                    const char *base)
{
    char name[PIECE_NAME_SIZE], path[256];
    assert_int_equal(verify_archive(t, stream).counts.damages, 0);
    assert_true(verify_archive(t, stream).counts.files > 0);
    stream_file_name(stream, keyspace, 0, name);
    snprintf(path, sizeof path, "%s/%s", t->place_directory, name);
    flip_byte(path, -40, SEEK_END);
    assert_int_equal(verify_archive(t, stream).counts.damages, 1);
    assert_refused(t, base, ARCHIVE_END, STATUS_DATA_LOSS, "is damaged: the nearest moments are");
    assert_int_equal(unlink(path), 0);
    struct verdict verdict = verify_archive(t, stream);
    assert_non_null(strstr(verdict.damage, "is missing"));
    assert_int_equal(verdict.stretches, 2);
    assert_refused(t, base, ARCHIVE_END, STATUS_DATA_LOSS, "the nearest moments are");
}

static void a_restored_table_is_in_the_archive(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX", directory[128], kept[128];
    begin(t, base);
    write_some(t, 10);
    snprintf(directory, sizeof directory, "%s/backups", t->f.directory);
    struct backups_options options = {
        .cluster = t->f.cluster, .directory = directory, .log = &t->f.log};
    struct backups *backups;
    assert_ok(backups_open(&options, &backups));
    back_up_and_restore(t, backups);
    backups_close(backups);
    struct moment restored = t->history->moments[t->history->count - 1];
    uint64_t keyspace = keyspace_of(t, 1), stream = state_of_log(t).stream;
    close_server(t); /* its files wait through a restart */
    open_server(t);
    assert_ok(step(t));
    write_some(t, 1);
    assert_ok(step(t));
    close_server(t);
    snprintf(kept, sizeof kept, "%s/archive", t->f.directory);
    assert_int_equal(rmdir(kept), 0); /* nothing is left there */
    assert_restores(&t->f, base, &t->place->place, &restored);
    make_keyspace_in(base, keyspace, &t->f.log);
    assert_restores(&t->f, base, &t->place->place, &restored);
    a_damaged_file_is_found(t, stream, keyspace, base);
    remove_test_directory(base);
}

/* Between the linking of files and the commit that names them the archiver may tidy up. */
static void files_stay_that_are_being_taken_in(void **state)
{
    struct fixture *t = *state;
    char file[128], kept[128];
    const char *const paths[] = {file};
    open_server(t);
    create_table(t, 0);
    write_some(t, 1);
    snprintf(file, sizeof file, "%s/FORMAT", t->f.directory);
    snprintf(kept, sizeof kept, "%s/archive/999-0", t->f.directory);
    event_log_begin_taking(t->f.cluster->home);
    assert_ok(event_log_keep_files(t->f.cluster->home, 999, paths, 1));
    assert_ok(step(t));
    assert_int_equal(access(kept, F_OK), 0);
    event_log_end_taking(t->f.cluster->home);
    assert_ok(step(t)); /* it came to nothing */
    assert_int_not_equal(access(kept, F_OK), 0);
    close_server(t);
}

/* --- what goes --- */

static size_t count_pieces(struct fixture *t)
{
    struct piece_list list;
    assert_ok(archive_list_pieces(&t->place->place, state_of_log(t).stream, &list));
    size_t count = list.count;
    piece_list_free(&list);
    return count;
}

static void make_pieces(struct fixture *t, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        write_some(t, 1);
        assert_ok(step(t));
    }
}

/* A start looks at once what expires. Versions are ahead of the clock after some starts: time
 * passes until they are not. */
static void start_again(struct fixture *t, int64_t retention_us)
{
    t->f.options.archive.retention_us = retention_us;
    atomic_fetch_add(&clock_set_us, 10000000);
    close_server(t);
    open_server(t);
    assert_ok(step(t));
}

static enum { BASE_IS_THERE, BASE_IS_GONE, PLACE_IS_AWAY } base_state;

static status look_for_base(const char *place, const char *name, bool *is_there)
{
    assert_string_equal(place, "place");
    assert_string_equal(name, "base");
    *is_there = base_state == BASE_IS_THERE;
    return base_state == PLACE_IS_AWAY ? status_make(STATUS_NOT_FOUND, "away") : status_ok();
}

static status count_base(void *context, const struct archive_base *base)
{
    (void)base;
    ++*(size_t *)context;
    return status_ok();
}

static size_t count_bases(struct fixture *t)
{
    size_t count = 0;
    assert_ok(bases_visit(t->f.cluster->catalog, count_base, &count));
    return count;
}

static void pieces_go_that_no_backup_needs(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX";
    const int64_t day_us = INT64_C(86400) * 1000000;
    t->f.options.archive.look_for = look_for_base;
    t->f.options.clock = &settable_clock;
    base_state = BASE_IS_THERE;
    begin(t, base);
    note_base(t, state_of_log(t).taken);
    size_t before = count_pieces(t);
    make_pieces(t, 4);
    start_again(t, day_us);
    assert_int_equal(count_pieces(t), before + 4); /* none is as old */
    start_again(t, 1);
    assert_in_range(count_pieces(t), 4, 5); /* those behind the backup */
    base_state = PLACE_IS_AWAY;
    start_again(t, 1);
    assert_in_range(count_pieces(t), 4, 5);
    assert_int_equal(count_bases(t), 1);
    finish(t);
    assert_restores(&t->f, base, &t->place->place, &t->history->moments[t->history->count - 1]);

    base_state = BASE_IS_GONE;
    open_server(t);
    start_again(t, 1);
    assert_int_equal(count_pieces(t), 1); /* the newest stays, and all goes on behind it */
    assert_int_equal(count_bases(t), 0);
    make_pieces(t, 1);
    close_server(t);
    assert_refused(t, base, ARCHIVE_END, STATUS_FAILED_PRECONDITION, "begins after the backup");
    remove_test_directory(base);
}

static status count_entry(void *context, const struct place_entry *entry)
{
    (void)entry;
    ++*(size_t *)context;
    return status_ok();
}

static size_t count_files(struct fixture *t)
{
    char folder[PIECE_NAME_SIZE];
    size_t count = 0;
    stream_files_folder(state_of_log(t).stream, folder);
    assert_ok(place_list(&t->place->place, folder, count_entry, &count));
    return count;
}

static void files_go_with_their_piece(void **state)
{
    struct fixture *t = *state;
    char base[] = "/tmp/trestle-base-XXXXXX", directory[128];
    t->f.options.clock = &settable_clock;
    begin(t, base);
    snprintf(directory, sizeof directory, "%s/backups", t->f.directory);
    struct backups_options options = {
        .cluster = t->f.cluster, .directory = directory, .log = &t->f.log};
    struct backups *backups;
    assert_ok(backups_open(&options, &backups));
    back_up_and_restore(t, backups);
    backups_close(backups);
    assert_ok(step(t));
    assert_in_range(count_files(t), 1, 2);
    make_pieces(t, 2);
    start_again(t, 1);
    assert_int_equal(count_files(t), 0);
    close_server(t);
    remove_test_directory(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_killed_server_is_restored_to_any_moment, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_missing_place_stops_no_writes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_log_beyond_its_bound_becomes_a_gap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_put_whose_answer_is_lost_is_found_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_older_copy_begins_an_archive_of_its_own, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(writing_without_the_log_ends_the_archive, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_backup_without_a_log_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_clock_that_is_set_disorders_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_table_is_taken_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_archive_is_not_restored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_change_log_stops_no_start, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_change_log_that_is_damaged_meanwhile_is_a_gap, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_restored_table_is_in_the_archive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_stay_that_are_being_taken_in, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pieces_go_that_no_backup_needs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_go_with_their_piece, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
