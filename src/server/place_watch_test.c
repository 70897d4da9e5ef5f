/* Tests of place_watch.h: what is told, what is not, and which thread waits for which. */
#include "server/place_watch.h"

#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"
#include "base/testing/testing_clock.h"
#include "os/thread.h"

#include <stdatomic.h>
#include <stdio.h>

#define SECOND_US INT64_C(1000000)

/* --- a clock that stands, and disks that answer as they are told --- */

static struct turned_clock turned = {.clock = TURNED_CLOCK};
static atomic_bool hangs; /* so does a call for "/hangs" */
static atomic_bool is_in_there;

static bool has_come_back(void *context)
{
    (void)context;
    return !atomic_load(&hangs);
}

static status ask(const char *path, uint64_t *free_bytes)
{
    *free_bytes = strlen(path);
    if (strcmp(path, "/missing") == 0)
        return status_make(STATUS_NOT_FOUND, "it is not there");
    atomic_store(&is_in_there, strcmp(path, "/hangs") == 0);
    if (strcmp(path, "/hangs") == 0)
        thread_wait_for(has_come_back, NULL, INT64_MAX);
    return status_ok();
}

/* --- looking --- */

static void add_sample(void *context, const struct metric_sample *sample)
{
    if (strcmp(sample->name, "trestle_place_free_bytes") != 0)
        return;
    assert_string_equal(sample->labels[0].name, "place");
    buffer_append_format(context, "%s=%.0f ", sample->labels[0].value, sample->value);
}

/* What is told now; valid until the next call. */
static const char *told(struct place_watch *watch, struct metrics *metrics)
{
    static char text[256];
    struct buffer out = {0};
    place_watch_look(watch);
    metrics_visit(metrics, add_sample, &out);
    assert_false(out.failed);
    snprintf(text, sizeof text, "%.*s", (int)out.size, (const char *)out.data);
    buffer_free(&out);
    return text;
}

struct telling {
    struct place_watch *watch;
    struct metrics *metrics;
    const char *words;
};

static bool is_told(void *context)
{
    const struct telling *telling = context;
    return strcmp(told(telling->watch, telling->metrics), telling->words) == 0;
}

static void wait_for(struct place_watch *watch, struct metrics *metrics, const char *words)
{
    struct telling telling = {watch, metrics, words};
    assert_true(thread_wait_for(is_told, &telling, INT64_MAX));
}

static struct place_watch *start(const char *first, const char *second, struct metrics *metrics)
{
    struct place_watch *watch;
    const struct place_watch_options options = {
        .places = {first, second, NULL}, .metrics = metrics, .clock = &turned.clock, .ask = ask};
    assert_ok(place_watch_start(&options, &watch));
    return watch;
}

static int setup(void **state)
{
    struct metrics *metrics;
    turned.now_us = SECOND_US;
    assert_ok(metrics_create(&metrics));
    *state = metrics;
    return 0;
}

static int teardown(void **state)
{
    metrics_destroy(*state);
    return 0;
}

/* --- tests --- */

static void directories_that_are_there(void **state)
{
    struct place_watch *watch = start("/a", "/bb,s3://bucket/p,/missing,/a,/ccc", *state);
    wait_for(watch, *state, "/a=2 /bb=3 /ccc=4 ");
    place_watch_stop(watch);
}

static void old_answers_are_not_told(void **state)
{
    struct place_watch *watch = start("/a", NULL, *state);
    wait_for(watch, *state, "/a=2 ");
    turned.now_us = 61 * SECOND_US;
    assert_string_equal(told(watch, *state), "/a=2 ");
    turned.now_us = 62 * SECOND_US;
    assert_string_equal(told(watch, *state), "");
    place_watch_stop(watch);
}

static bool somebody_waits(void *context)
{
    return atomic_load((atomic_bool *)context);
}

/* A stop leaves the thread behind; what it touches afterwards is its own. */
static void a_dead_share_holds_no_thread_up(void **state)
{
    atomic_store(&hangs, true);
    struct place_watch *watch = start("/a", "/hangs", *state);
    assert_true(thread_wait_for(somebody_waits, &is_in_there, INT64_MAX));
    assert_string_equal(told(watch, *state), "");
    place_watch_stop(watch);
    atomic_store(&hangs, false);
}

static void start_in_need(void *context)
{
    const struct place_watch_options options = {
        .places = {"/a", "/bb", "/ccc"}, .metrics = context, .clock = &turned.clock, .ask = ask};
    struct place_watch *watch;
    status s = place_watch_start(&options, &watch);
    assert_true(status_is_ok(s) == (watch != NULL));
    if (watch != NULL)
        place_watch_look(watch);
    place_watch_stop(watch);
    status_ignore(s);
}

static void without_memory(void **state)
{
    failmalloc_each(start_in_need, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(directories_that_are_there, setup, teardown),
        cmocka_unit_test_setup_teardown(old_answers_are_not_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_dead_share_holds_no_thread_up, setup, teardown),
        cmocka_unit_test_setup_teardown(without_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
