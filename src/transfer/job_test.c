/* A job over a source of numbers and a sink that keeps their sum. */
#include "transfer/job.h"

#include "base/testing/testing.h"

#include <stdio.h>
#include <unistd.h>

enum { NUMBERS = 10, BAD = 3, REFUSED = 7 };

struct numbers {
    char directory[64];
    char checkpoint[96];
    char rejects[96];
    uint64_t next; /* of the source */
    uint64_t sum;  /* of the sink */
    uint64_t flushed;
    bool is_killed; /* behind the run */
    bool claims_place;
    bool source_fails;
    bool finish_fails;
    bool is_finished;
    bool refuses;
    struct transfer_refusal refusal;
};

/* --- source --- */

static status next(void *context, struct arena *arena, struct transfer_record *out, bool *is_end)
{
    struct numbers *n = context;
    (void)arena;
    if (n->source_fails)
        return status_make(STATUS_UNAVAILABLE, "not now");
    *is_end = n->next == NUMBERS;
    if (*is_end)
        return status_ok();
    out->tag = n->next++;
    out->text = bytes_of("\"text\"");
    if (out->tag == BAD)
        out->failure = status_make(STATUS_INVALID_ARGUMENT, "unlucky");
    return status_ok();
}

static json_t *save(void *context)
{
    const struct numbers *n = context;
    return json_integer((json_int_t)n->next);
}

static status restore(void *context, const json_t *position)
{
    struct numbers *n = context;
    if (!json_is_integer(position))
        return status_make(STATUS_DATA_LOSS, "no number");
    n->next = (uint64_t)json_integer_value(position);
    return status_ok();
}

static void describe(void *context, uint64_t tag, struct transfer_place *out)
{
    (void)context;
    *out = (struct transfer_place){.file = "numbers", .line = tag + 1};
}

static void progress(void *context, struct transfer_progress *out)
{
    const struct numbers *n = context;
    *out = (struct transfer_progress){.bytes = 8 * n->next, .total = 8ull * NUMBERS};
}

static struct transfer_source source_of(struct numbers *n)
{
    return (struct transfer_source){.context = n,
                                    .noun = "numbers",
                                    .next = next,
                                    .save = save,
                                    .restore = restore,
                                    .describe = describe,
                                    .progress = progress};
}

/* --- sink --- */

static status add(void *context, const struct transfer_record *record)
{
    struct numbers *n = context;
    if (n->refuses && record->tag == REFUSED) {
        status why = status_make(STATUS_INVALID_ARGUMENT, "too late");
        n->refusal.refused(n->refusal.context, record->tag, record->text, why);
        status_free(why);
        return status_ok();
    }
    n->sum += record->tag;
    return status_ok();
}

static status flush(void *context)
{
    struct numbers *n = context;
    n->flushed = n->sum;
    return status_ok();
}

static json_t *save_sum(void *context)
{
    const struct numbers *n = context;
    return json_integer((json_int_t)n->flushed);
}

static status restore_sum(void *context, const json_t *position)
{
    struct numbers *n = context;
    n->sum = (uint64_t)json_integer_value(position);
    return status_ok();
}

static status finish(void *context)
{
    struct numbers *n = context;
    n->is_finished = !n->finish_fails;
    return n->finish_fails ? status_make(STATUS_UNAVAILABLE, "the disk is full") : status_ok();
}

static const struct transfer_sink sink_functions = {
    .add = add, .flush = flush, .save = save_sum, .restore = restore_sum, .finish = finish};

/* --- fixture --- */

static int setup(void **state)
{
    struct numbers *n = calloc(1, sizeof *n);
    assert_non_null(n);
    snprintf(n->directory, sizeof n->directory, "/tmp/trestle-job-XXXXXX");
    assert_non_null(mkdtemp(n->directory));
    snprintf(n->checkpoint, sizeof n->checkpoint, "%s/c", n->directory);
    snprintf(n->rejects, sizeof n->rejects, "%s/r", n->directory);
    *state = n;
    return 0;
}

static int teardown(void **state)
{
    struct numbers *n = *state;
    unlink(n->checkpoint);
    unlink(n->rejects);
    assert_int_equal(rmdir(n->directory), 0);
    free(n);
    return 0;
}

static status run_as(struct numbers *n, const char *identity, bool dry_run,
                     struct transfer_result *out)
{
    const struct transfer_options options = {
        .checkpoint = n->checkpoint, .rejects = n->rejects, .dry_run = dry_run, .quiet = true};
    const struct transfer_source source = source_of(n);
    struct transfer_sink sink = sink_functions;
    struct transfer_job *job;
    sink.context = n;
    sink.claims_place = n->claims_place;
    TRY(transfer_job_create(&options, "t", identity, &source, &job));
    n->refusal = transfer_job_refusal(job);
    status s = transfer_job_run(job, dry_run ? NULL : &sink, NULL, out);
    if (status_is_ok(s) && !n->is_killed)
        s = transfer_job_end(job);
    transfer_job_destroy(job);
    return s;
}

static void assert_file(const char *path, const char *expected)
{
    char text[512] = {0};
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(size, strlen(expected));
    assert_string_equal(text, expected);
}

#define LINE(number, reason)                                                                       \
    "{\"file\":\"numbers\",\"line\":" number ",\"reason\":\"" reason                               \
    "\",\"record\":\"\\\"text\\\"\"}\n"
static const char bad_line[] = LINE("4", "unlucky");
static const char both_lines[] = LINE("4", "unlucky") LINE("8", "too late");

/* --- tests --- */

static void all_but_the_bad_arrive(void **state)
{
    struct numbers *n = *state;
    struct transfer_result result = {0};
    assert_ok(run_as(n, "job", false, &result));
    assert_int_equal(result.counts.records, NUMBERS);
    assert_int_equal(result.counts.rejected, 1);
    assert_int_equal(result.counts.bytes, 8 * NUMBERS);
    assert_int_equal(n->sum, 45 - BAD);
    assert_int_equal(n->flushed, n->sum);
    assert_true(n->is_finished);
    assert_file(n->rejects, bad_line);
    assert_int_not_equal(access(n->checkpoint, F_OK), 0);
}

static void what_a_sink_refuses_is_rejected(void **state)
{
    struct numbers *n = *state;
    struct transfer_result result = {0};
    n->refuses = true;
    assert_ok(run_as(n, "job", false, &result));
    assert_int_equal(result.counts.rejected, 2);
    assert_int_equal(n->sum, 45 - BAD - REFUSED);
    assert_file(n->rejects, both_lines);
}

static void a_dry_run_leaves_no_checkpoint(void **state)
{
    struct numbers *n = *state;
    struct transfer_result result = {0};
    assert_ok(run_as(n, "job", true, &result));
    assert_int_equal(result.counts.records, NUMBERS);
    assert_int_equal(n->sum, 0);
    assert_int_not_equal(access(n->checkpoint, F_OK), 0);
}

/* Both positions, the counts and the rejects are those of the checkpoint. */
static void a_job_goes_on_where_it_was(void **state)
{
    struct numbers *n = *state;
    struct transfer_result result = {0};
    n->finish_fails = true;
    assert_status(run_as(n, "job", false, &result), STATUS_UNAVAILABLE);
    n->finish_fails = false;
    n->next = 0;
    n->sum = 0;
    FILE *rejects = fopen(n->rejects, "a");
    assert_non_null(rejects);
    assert_true(fputs("after the checkpoint\n", rejects) >= 0);
    assert_int_equal(fclose(rejects), 0);
    assert_ok(run_as(n, "job", false, &result));
    assert_int_equal(n->next, NUMBERS);
    assert_int_equal(n->sum, 45 - BAD);
    assert_int_equal(result.counts.records, NUMBERS);
    assert_int_equal(result.counts.rejected, 1);
    assert_file(n->rejects, bad_line);
}

static void a_place_that_is_claimed_is_noted_first(void **state)
{
    struct numbers *n = *state;
    struct transfer_result result = {0};
    n->source_fails = true;
    assert_status(run_as(n, "job", false, &result), STATUS_UNAVAILABLE);
    assert_int_not_equal(access(n->checkpoint, F_OK), 0);
    n->claims_place = true;
    assert_status(run_as(n, "job", false, &result), STATUS_UNAVAILABLE);
    assert_int_equal(access(n->checkpoint, F_OK), 0);
    n->source_fails = false;
    assert_ok(run_as(n, "job", false, &result));
    assert_int_equal(n->sum, 45 - BAD);
}

/* A verification that is cut short is made again, not all that was before it. */
static void a_finished_run_is_not_made_again(void **state)
{
    struct numbers *n = *state;
    struct transfer_result result = {0};
    n->is_killed = true;
    assert_ok(run_as(n, "job", false, &result));
    assert_int_equal(access(n->checkpoint, F_OK), 0);
    n->is_killed = n->is_finished = false;
    n->next = n->sum = n->flushed = 0;
    assert_ok(run_as(n, "job", false, &result));
    assert_true(n->is_finished);
    assert_int_equal(n->flushed, 45 - BAD);
    assert_int_equal(result.counts.records, NUMBERS);
    assert_int_equal(result.counts.rejected, 1);
    assert_file(n->rejects, bad_line);
    assert_int_not_equal(access(n->checkpoint, F_OK), 0);
}

static void a_checkpoint_is_of_one_job(void **state)
{
    struct numbers *n = *state;
    struct transfer_result result = {0};
    n->finish_fails = true;
    assert_status(run_as(n, "job", false, &result), STATUS_UNAVAILABLE);
    assert_status(run_as(n, "another", false, &result), STATUS_FAILED_PRECONDITION);
    assert_int_equal(access(n->checkpoint, F_OK), 0);
}

static void a_damaged_checkpoint_is_refused(void **state)
{
    struct numbers *n = *state;
    struct transfer_result result = {0};
    static const char wrong_source[] =
        "{\"transfer\":\"job\",\"records\":1,\"rejected\":0,\"bytes\":0,\"rejects_bytes\":0,"
        "\"source\":\"x\"}";
    static const char *const texts[] = {"{", "{}", "[1]", wrong_source};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        FILE *file = fopen(n->checkpoint, "w");
        assert_non_null(file);
        assert_true(fputs(texts[i], file) >= 0);
        assert_int_equal(fclose(file), 0);
        assert_status(run_as(n, "job", false, &result), STATUS_DATA_LOSS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_but_the_bad_arrive, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_sink_refuses_is_rejected, setup, teardown),
        cmocka_unit_test_setup_teardown(a_dry_run_leaves_no_checkpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(a_job_goes_on_where_it_was, setup, teardown),
        cmocka_unit_test_setup_teardown(a_place_that_is_claimed_is_noted_first, setup, teardown),
        cmocka_unit_test_setup_teardown(a_finished_run_is_not_made_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_checkpoint_is_of_one_job, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_checkpoint_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
