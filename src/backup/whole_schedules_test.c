/* Schedules of all, and of parts: what is a list of them, whose turn it is, what is learnt of a
 * place, and what is told of those that are overdue. */
#include "backup/whole_schedules.h"

#include "backup/whole_private.h"
#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TABLE    "projects/p/instances/i/tables/t"
#define INSTANCE "projects/p/instances/i"
#define DATABASE "projects/p/databases/(default)"
static const int64_t SECOND = 1000000, HOUR = INT64_C(3600) * 1000000;

static void make(const char *parts, int64_t period_us, struct whole_schedules *out)
{
    const struct whole_schedule_wish wish = {.period_us = period_us, .keep = 7, .parts = parts};
    assert_ok(whole_schedules_create(&wish, out));
}

/* --- the list --- */

static void assert_part(const struct whole_scheduled *of, const char *scope, int64_t period_us,
                        uint64_t keep)
{
    assert_string_equal(of->scope, scope);
    assert_int_equal(of->schedule.period_us, period_us);
    assert_int_equal(of->schedule.keep, keep);
    assert_false(of->schedule.is_known);
}

static void a_list_has_a_period_and_a_number_for_each(void **state)
{
    struct whole_schedules schedules;
    (void)state;
    make(TABLE "=1h/24," INSTANCE "=30m," DATABASE "=1s/0", 24 * HOUR, &schedules);
    assert_int_equal(schedules.count, 4);
    assert_part(&schedules.all[0], "", 24 * HOUR, 7);
    assert_part(&schedules.all[1], TABLE, HOUR, 24);
    assert_part(&schedules.all[2], INSTANCE, HOUR / 2, 7);
    assert_part(&schedules.all[3], DATABASE, SECOND, 0);
    whole_schedules_free(&schedules);
    make("projects/p/databases/a=b=7d", 0, &schedules); /* the last = counts */
    assert_int_equal(schedules.count, 1);
    assert_part(&schedules.all[0], "projects/p/databases/a=b", 7 * 24 * HOUR, 7);
    whole_schedules_free(&schedules);
    make(NULL, 0, &schedules);
    assert_int_equal(schedules.count, 0);
    whole_schedules_free(&schedules);
}

static void a_malformed_list_is_refused(void **state)
{
    static const struct {
        const char *parts;
        const char *words;
    } cases[] = {
        {"", "\"\" is not NAME=PERIOD or NAME=PERIOD/KEEP"},
        {TABLE, "\"" TABLE "\" is not NAME=PERIOD or NAME=PERIOD/KEEP"},
        {TABLE "=1h,", "\"\" is not NAME=PERIOD or NAME=PERIOD/KEEP"},
        {TABLE "=", TABLE ": \"\" is not a period from 1s to 365d"},
        {TABLE "=0s", TABLE ": \"0s\" is not a period from 1s to 365d"},
        {TABLE "=366d", TABLE ": \"366d\" is not a period from 1s to 365d"},
        {TABLE "=daily", TABLE ": \"daily\" is not a period from 1s to 365d"},
        {TABLE "=1h/", TABLE ": \"\" is not a number of backups to keep, from 0 to 100000"},
        {TABLE "=1h/-1", TABLE ": \"-1\" is not a number of backups to keep, from 0 to 100000"},
        {TABLE "=1h/100001",
         TABLE ": \"100001\" is not a number of backups to keep, from 0 to 100000"},
        {TABLE "=1h/99999999999999999999",
         TABLE ": \"99999999999999999999\" is not a number of backups to keep, from 0 to 100000"},
        {TABLE "=1h," TABLE "=2h", TABLE " is there twice"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct whole_schedules schedules;
        const struct whole_schedule_wish wish = {.parts = cases[i].parts};
        status s = whole_schedules_create(&wish, &schedules);
        assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
        assert_string_equal(status_message(s), cases[i].words);
        status_free(s);
    }
}

static void a_name_is_one_of_a_part(void **state)
{
    static const char *const names[] = {"t=1h", "i/t=1h", "=1h", "projects/p=1h",
                                        "projects/p/instances/i/tables/=1h"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct whole_schedules schedules;
        const struct whole_schedule_wish wish = {.parts = names[i]};
        assert_status(whole_schedules_create(&wish, &schedules), STATUS_INVALID_ARGUMENT);
    }
}

static void a_list_has_a_longest_length(void **state)
{
    struct buffer text = {0};
    struct whole_schedules schedules;
    (void)state;
    for (int i = 0; i < WHOLE_SCHEDULES_MOST; i++)
        buffer_append_format(&text, "%s" TABLE "%d=1h", i > 0 ? "," : "", i);
    buffer_append_byte(&text, 0);
    make((const char *)text.data, 0, &schedules);
    assert_int_equal(schedules.count, WHOLE_SCHEDULES_MOST);
    whole_schedules_free(&schedules);
    const struct whole_schedule_wish wish = {.period_us = HOUR, .parts = (const char *)text.data};
    status s = whole_schedules_create(&wish, &schedules);
    assert_string_equal(status_message(s), "there are more than 65 schedules");
    status_free(s);
    buffer_free(&text);
}

static void read_without_memory(void *context)
{
    const struct whole_schedule_wish wish = {.period_us = HOUR, .parts = TABLE "=1h/2"};
    struct whole_schedules schedules;
    (void)context;
    status s = whole_schedules_create(&wish, &schedules);
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    if (status_is_ok(s))
        whole_schedules_free(&schedules);
    status_free(s);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    failmalloc_each(read_without_memory, NULL);
}

/* --- whose turn it is --- */

static void made(struct whole_schedules *schedules, size_t index, int64_t instant_us)
{
    const struct whole_backup backup = {.instant_us = instant_us, .end_us = instant_us + SECOND};
    whole_schedules_note(schedules, index, status_ok(), &backup, 0);
}

static void failed(struct whole_schedules *schedules, size_t index, const char *why,
                   int64_t steady_us)
{
    const struct whole_backup none = {.instant_us = 0};
    status s = status_make(STATUS_NOT_FOUND, "%s", why);
    whole_schedules_note(schedules, index, s, &none, steady_us);
    status_free(s);
}

static void know_all(struct whole_schedules *schedules)
{
    for (size_t i = 0; i < schedules->count; i++)
        schedules->all[i].schedule.is_known = true;
}

static void each_is_due_by_its_own_period(void **state)
{
    struct whole_schedules schedules;
    size_t index;
    (void)state;
    make(TABLE "=1h," INSTANCE "=2h", 24 * HOUR, &schedules);
    know_all(&schedules);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(whole_schedules_wait_us(&schedules, 100 * HOUR, 0, &index), 0);
        assert_int_equal(index, i);
        made(&schedules, index, 100 * HOUR);
    }
    assert_int_equal(whole_schedules_wait_us(&schedules, 100 * HOUR, 0, &index), HOUR);
    assert_int_equal(whole_schedules_wait_us(&schedules, 101 * HOUR, 0, &index), 0);
    assert_int_equal(index, 1);
    made(&schedules, 1, 101 * HOUR + HOUR / 2);
    assert_int_equal(whole_schedules_wait_us(&schedules, 101 * HOUR + HOUR / 2, 0, &index),
                     HOUR / 2);
    assert_int_equal(index, 2);
    whole_schedules_free(&schedules);
}

static void a_short_period_keeps_no_other_from_its_turn(void **state)
{
    struct whole_schedules schedules;
    size_t index, turns[3] = {0};
    (void)state;
    make(TABLE "=1s," INSTANCE "=1s", SECOND, &schedules);
    know_all(&schedules);
    for (int64_t now_us = HOUR; now_us < HOUR + 12 * 60 * SECOND; now_us += 60 * SECOND) {
        assert_int_equal(whole_schedules_wait_us(&schedules, now_us, now_us, &index), 0);
        turns[index]++;
        made(&schedules, index, now_us);
    }
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(turns[i], 4);
    whole_schedules_free(&schedules);
}

static void a_failed_schedule_delays_no_other(void **state)
{
    struct whole_schedules schedules;
    size_t index;
    (void)state;
    make(TABLE "=2h," INSTANCE "=2h", 0, &schedules);
    know_all(&schedules);
    failed(&schedules, 0, "there is no table", HOUR);
    assert_int_equal(whole_schedules_wait_us(&schedules, 100 * HOUR, HOUR, &index), 0);
    assert_int_equal(index, 1);
    made(&schedules, 1, 100 * HOUR);
    assert_int_equal(whole_schedules_wait_us(&schedules, 100 * HOUR, HOUR, &index), HOUR);
    assert_int_equal(index, 0);
    assert_int_equal(schedules.all[0].failures, 1);
    assert_string_equal(schedules.all[0].error, "there is no table");
    made(&schedules, 0, 101 * HOUR);
    assert_string_equal(schedules.all[0].error, "");
    assert_int_equal(schedules.all[0].failures, 1);
    assert_int_equal(schedules.all[0].end_us, 101 * HOUR + SECOND);
    whole_schedules_free(&schedules);
}

static void without_a_schedule_nothing_is_due(void **state)
{
    struct whole_schedules schedules = {0};
    struct buffer words = {0};
    size_t index;
    (void)state;
    assert_int_equal(whole_schedules_wait_us(&schedules, HOUR, HOUR, &index), INT64_MAX);
    assert_false(whole_schedules_tell_overdue(&schedules, "/p", HOUR, 100, &words));
    buffer_free(&words);
}

/* --- learning --- */

struct fixture {
    char directory[sizeof "/tmp/trestle-schedules-XXXXXX"];
    struct place *place;
    struct arena *arena;
    int64_t instant_us;
    uint64_t version;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->directory, sizeof f->directory, "/tmp/trestle-schedules-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    f->arena = arena_create(1 << 20);
    f->instant_us = 1000 * HOUR;
    assert_ok(place_of_directory(files_of_system(), f->directory, &f->place));
    *state = f;
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    place_close(f->place);
    arena_destroy(f->arena);
    assert_int_equal(nftw(f->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(f);
    return 0;
}

/* A manifest alone: what it refers to is not looked at. One an hour. */
static void put_manifest(struct fixture *f, const char *server, const char *scope,
                         bool is_scheduled)
{
    struct buffer content = {0};
    char object[OBJECT_NAME_SIZE], name[WHOLE_NAME_SIZE];
    const struct whole_backup backup = {.server = server,
                                        .version = ++f->version,
                                        .instant_us = f->instant_us,
                                        .end_us = f->instant_us + SECOND,
                                        .program = "",
                                        .settings = "",
                                        .is_scheduled = is_scheduled,
                                        .scope = scope};
    snprintf(name, sizeof name, "19700211T%06" PRId64 "Z", f->instant_us / HOUR);
    f->instant_us += HOUR;
    assert_ok(whole_prepare(f->place));
    assert_ok(whole_encode(&backup, f->arena, &content));
    assert_ok(manifest_object(name, object));
    assert_ok(place_put(f->place, object, buffer_bytes(&content)));
    buffer_free(&content);
}

static void the_newest_of_each_is_learnt(void **state)
{
    struct fixture *f = *state;
    struct whole_schedules schedules;
    put_manifest(f, "me", TABLE, true); /* 1000 */
    put_manifest(f, "me", "", true);
    put_manifest(f, "me", TABLE, true);
    put_manifest(f, "other", TABLE, true);
    put_manifest(f, "me", TABLE, false);
    put_manifest(f, "me", TABLE "2", true);
    make(TABLE "=1h," INSTANCE "=1h", HOUR, &schedules);
    assert_ok(whole_schedules_learn(&schedules, f->place, "me"));
    assert_int_equal(schedules.all[0].schedule.newest_us, 1001 * HOUR);
    assert_int_equal(schedules.all[1].schedule.newest_us, 1002 * HOUR);
    assert_int_equal(schedules.all[1].end_us, 1002 * HOUR + SECOND);
    assert_int_equal(schedules.all[2].schedule.newest_us, 0);
    for (size_t i = 0; i < 3; i++)
        assert_true(schedules.all[i].schedule.is_known);
    put_manifest(f, "me", TABLE, true); /* what is known is not asked for again */
    assert_ok(whole_schedules_learn(&schedules, f->place, "me"));
    assert_int_equal(schedules.all[1].schedule.newest_us, 1002 * HOUR);
    whole_schedules_free(&schedules);
}

/* The clock was three days ahead. */
static void the_newest_is_learnt_by_what_it_has(void **state)
{
    struct fixture *f = *state;
    struct whole_schedules schedules;
    f->instant_us += 72 * HOUR;
    put_manifest(f, "me", "", true);
    f->instant_us -= 73 * HOUR;
    put_manifest(f, "me", "", true); /* 1000 */
    make(TABLE "=1h", HOUR, &schedules);
    assert_ok(whole_schedules_learn(&schedules, f->place, "me"));
    assert_int_equal(schedules.all[0].schedule.newest_us, 1000 * HOUR);
    assert_int_equal(schedules.all[0].end_us, 1000 * HOUR + SECOND);
    whole_schedules_free(&schedules);
}

static void a_place_that_has_had_none_has_none(void **state)
{
    struct fixture *f = *state;
    struct whole_schedules schedules;
    make(TABLE "=1h", 0, &schedules);
    assert_ok(whole_schedules_learn(&schedules, f->place, "me"));
    assert_true(schedules.all[0].schedule.is_known);
    assert_int_equal(schedules.all[0].schedule.newest_us, 0);
    whole_schedules_free(&schedules);
}

static void schedules_not_learnt_are_a_failed_attempt(void **state)
{
    struct whole_schedules schedules;
    size_t index;
    (void)state;
    make(TABLE "=1h," INSTANCE "=1h", 0, &schedules);
    schedules.all[1].schedule =
        (struct whole_schedule){.period_us = HOUR, .is_known = true, .newest_us = 100 * HOUR};
    status s = status_make(STATUS_UNAVAILABLE, "the share is gone");
    whole_schedules_give_up(&schedules, s, 5 * HOUR);
    status_free(s);
    assert_int_equal(schedules.all[0].failures, 1);
    assert_int_equal(schedules.all[1].failures, 0);
    assert_true(whole_schedule_is_overdue(&schedules.all[0].schedule, 100 * HOUR));
    assert_false(whole_schedule_is_overdue(&schedules.all[1].schedule, 100 * HOUR));
    assert_int_equal(whole_schedules_wait_us(&schedules, 100 * HOUR, 5 * HOUR, &index), HOUR);
    whole_schedules_free(&schedules);
}

/* --- what is overdue --- */

static void assert_told(const struct whole_schedules *schedules, size_t most, const char *expected)
{
    struct buffer words = {0};
    assert_true(whole_schedules_tell_overdue(schedules, "/p", 1000 * HOUR, most, &words));
    buffer_append_byte(&words, 0);
    assert_string_equal((const char *)words.data, expected);
    buffer_free(&words);
}

static void overdue_schedules_are_named(void **state)
{
    struct whole_schedules schedules;
    (void)state;
    make(TABLE "=1h," INSTANCE "=1h," DATABASE "=1h", HOUR, &schedules);
    know_all(&schedules);
    for (size_t i = 0; i < schedules.count; i++)
        made(&schedules, i, 1000 * HOUR);
    failed(&schedules, 1, "there is no table " TABLE, 0);
    assert_told(&schedules, 500,
                "the newest scheduled backup in /p of " TABLE
                ": 1970-02-11T16:00:00Z; there is no table " TABLE);
    schedules.all[0].schedule.newest_us = 0;
    failed(&schedules, 0, "no space", 0);
    made(&schedules, 3, 998 * HOUR); /* late */
    assert_told(&schedules, 500,
                "the newest scheduled backup in /p: none; no space; of " TABLE
                ": 1970-02-11T16:00:00Z; there is no table " TABLE "; of " DATABASE
                ": 1970-02-11T14:00:00Z");
    assert_told(&schedules, 150, "the newest scheduled backup in /p: none; no space; and 2 others");
    whole_schedules_free(&schedules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_has_a_period_and_a_number_for_each),
        cmocka_unit_test(a_malformed_list_is_refused),
        cmocka_unit_test(a_name_is_one_of_a_part),
        cmocka_unit_test(a_list_has_a_longest_length),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(each_is_due_by_its_own_period),
        cmocka_unit_test(a_short_period_keeps_no_other_from_its_turn),
        cmocka_unit_test(a_failed_schedule_delays_no_other),
        cmocka_unit_test(without_a_schedule_nothing_is_due),
        cmocka_unit_test_setup_teardown(the_newest_of_each_is_learnt, setup, teardown),
        cmocka_unit_test_setup_teardown(the_newest_is_learnt_by_what_it_has, setup, teardown),
        cmocka_unit_test_setup_teardown(a_place_that_has_had_none_has_none, setup, teardown),
        cmocka_unit_test(schedules_not_learnt_are_a_failed_attempt),
        cmocka_unit_test(overdue_schedules_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
