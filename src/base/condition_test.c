/* Tests of condition.h: the level, its metrics, and what is logged when. */
#include "base/condition.h"

#include "base/testing/testing_clock.h"
#include "base/testing/testing_log.h"

#define SECOND_US INT64_C(1000000)

struct fixture {
    struct hands_clock clock;
    struct log log;
    struct metrics *metrics;
    struct condition *condition;
    char text[4096];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->clock = (struct hands_clock){.clock = HANDS_CLOCK, .wall_us = 1000, .steady_us = 7000};
    f->log = testing_log();
    assert_ok(metrics_create(&f->metrics));
    assert_ok(condition_create(&f->log, &f->clock.clock, f->metrics, &f->condition));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    condition_destroy(f->condition);
    metrics_destroy(f->metrics);
    close(f->log.fd);
    free(f);
    return 0;
}

/* The text logged since the last call. */
static const char *logged(struct fixture *f)
{
    return testing_log_take(&f->log, f->text, sizeof f->text);
}

static void assert_level(struct fixture *f, enum health_level level)
{
    struct condition_view view;
    condition_look(f->condition, &view);
    assert_int_equal(view.level, level);
    assert_int_equal(metrics_value(f->metrics, METRIC_health_level), level);
    assert_int_equal(metrics_value(f->metrics, METRIC_store_healthy), level != HEALTH_NO_WRITES);
}

static void the_worst_reason_is_the_level(void **state)
{
    struct fixture *f = *state;
    struct condition_view view;
    assert_level(f, HEALTH_OK);
    condition_enter(f->condition, REASON_certificate, "it ends in %d hours", 3);
    assert_level(f, HEALTH_DEGRADED);
    f->clock.wall_us = 2000;
    condition_enter(f->condition, REASON_disk_reserve, "%d MB are free", 12);
    assert_level(f, HEALTH_NO_WRITES);
    condition_look(f->condition, &view);
    assert_int_equal(view.count, 2);
    assert_string_equal(view.reasons[0].name, "disk_reserve");
    assert_string_equal(view.reasons[0].text, "12 MB are free");
    assert_int_equal(view.reasons[0].since_us, 2000);
    assert_string_equal(view.reasons[1].name, "certificate");
    assert_int_equal(view.reasons[1].since_us, 1000);
    assert_int_equal(metrics_value(f->metrics, METRIC_health_disk_reserve), 1);
    assert_int_equal(metrics_value(f->metrics, METRIC_health_certificate), 1);
    assert_int_equal(metrics_value(f->metrics, METRIC_health_fenced), 0);
    condition_leave(f->condition, REASON_disk_reserve);
    assert_level(f, HEALTH_DEGRADED);
    condition_leave(f->condition, REASON_certificate);
    assert_level(f, HEALTH_OK);
    assert_int_equal(metrics_value(f->metrics, METRIC_health_disk_reserve), 0);
}

static void entering_and_leaving_are_logged(void **state)
{
    struct fixture *f = *state;
    condition_leave(f->condition, REASON_fenced);
    assert_string_equal(logged(f), "");
    condition_enter(f->condition, REASON_clock_ahead, "2 minutes");
    assert_non_null(strstr(logged(f), "level=warn msg=degraded reason=clock_ahead "
                                      "why=\"2 minutes\" health=degraded"));
    condition_enter(f->condition, REASON_clock_ahead, "1 minute");
    assert_string_equal(logged(f), "");
    condition_enter(f->condition, REASON_fenced, "EIO");
    assert_non_null(strstr(logged(f), "level=error msg=\"takes no writes\" reason=fenced why=EIO "
                                      "health=no_writes"));
    f->clock.steady_us += 90 * SECOND_US;
    f->clock.wall_us -= 3600 * SECOND_US; /* it is no matter for how long it lasted */
    condition_leave(f->condition, REASON_clock_ahead);
    assert_non_null(strstr(logged(f), "level=info msg=\"no longer so\" reason=clock_ahead "
                                      "seconds=90 health=no_writes"));
}

/* Each change is so at once, but the log is not filled with them. */
static void a_reason_that_comes_and_goes_is_told_now_and_then(void **state)
{
    struct fixture *f = *state;
    condition_enter(f->condition, REASON_disk_reserve, "first");
    condition_leave(f->condition, REASON_disk_reserve);
    assert_non_null(strstr(logged(f), "no longer so"));
    for (int i = 0; i < 100; i++) {
        condition_enter(f->condition, REASON_disk_reserve, "again");
        assert_level(f, HEALTH_NO_WRITES);
        condition_leave(f->condition, REASON_disk_reserve);
        assert_level(f, HEALTH_OK);
    }
    condition_enter(f->condition, REASON_disk_reserve, "to stay");
    assert_string_equal(logged(f), "");
    f->clock.steady_us += 11 * SECOND_US;
    condition_enter(f->condition, REASON_disk_reserve, "to stay");
    assert_non_null(strstr(logged(f), "why=\"to stay\" health=no_writes untold=100"));
    condition_leave(f->condition, REASON_disk_reserve);
    assert_non_null(strstr(logged(f), "seconds=11 health=ok"));
}

static void texts_are_cut_between_characters(void **state)
{
    struct fixture *f = *state;
    struct condition_view view;
    char text[600];
    memset(text, 'a', sizeof text);
    memcpy(text + CONDITION_TEXT_SIZE - 2, "\xc3\xa4", 2);
    text[sizeof text - 1] = '\0';
    condition_enter(f->condition, REASON_fenced, "%s", text);
    condition_look(f->condition, &view);
    assert_int_equal(strlen(view.reasons[0].text), CONDITION_TEXT_SIZE - 2);
    condition_enter(f->condition, REASON_fenced, "%s", "\xff");
    condition_look(f->condition, &view);
    assert_string_equal(view.reasons[0].text, "why is not text: see the log");
}

/* A server with two stores. */
static void the_worst_part_is_the_level(void **state)
{
    struct fixture *f = *state;
    struct condition *first, *second;
    struct condition_view view;
    assert_ok(condition_create_part(f->condition, &first));
    assert_ok(condition_create_part(f->condition, &second));
    condition_enter(second, REASON_fenced, "the second");
    assert_level(f, HEALTH_NO_WRITES);
    condition_leave(first, REASON_fenced); /* says nothing of the second */
    assert_level(f, HEALTH_NO_WRITES);
    condition_enter(first, REASON_fenced, "the first");
    condition_look(f->condition, &view);
    assert_int_equal(view.count, 1);
    assert_string_equal(view.reasons[0].text, "the first");
    condition_enter(second, REASON_fenced, "the second again");
    condition_look(f->condition, &view);
    assert_string_equal(view.reasons[0].text, "the first");
    condition_leave(first, REASON_fenced);
    condition_look(f->condition, &view);
    assert_int_equal(view.count, 1);
    assert_string_equal(view.reasons[0].text, "the second again");
    const char *lines = logged(f);
    assert_non_null(strstr(lines, "the second"));
    assert_null(strstr(lines, "no longer so"));
    condition_leave(second, REASON_fenced);
    assert_level(f, HEALTH_OK);
    assert_non_null(strstr(logged(f), "no longer so"));
    condition_destroy(first);
    condition_destroy(second);
}

static void a_part_that_is_gone_has_no_reasons(void **state)
{
    struct fixture *f = *state;
    struct condition *first, *second;
    assert_ok(condition_create_part(f->condition, &first));
    assert_ok(condition_create_part(f->condition, &second));
    condition_enter(f->condition, REASON_certificate, "soon");
    condition_enter(first, REASON_disk_full, "full");
    condition_enter(first, REASON_fenced, "fenced");
    condition_enter(second, REASON_fenced, "fenced");
    condition_destroy(first);
    assert_level(f, HEALTH_NO_WRITES);
    assert_int_equal(metrics_value(f->metrics, METRIC_health_disk_full), 0);
    assert_int_equal(metrics_value(f->metrics, METRIC_health_fenced), 1);
    condition_destroy(second);
    assert_level(f, HEALTH_DEGRADED);
}

static void nobodys_condition_is_not_noted(void **state)
{
    (void)state;
    condition_enter(NULL, REASON_fenced, "x");
    condition_leave(NULL, REASON_fenced);
    condition_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_worst_reason_is_the_level, set_up, tear_down),
        cmocka_unit_test_setup_teardown(entering_and_leaving_are_logged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reason_that_comes_and_goes_is_told_now_and_then, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(texts_are_cut_between_characters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_worst_part_is_the_level, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_part_that_is_gone_has_no_reasons, set_up, tear_down),
        cmocka_unit_test(nobodys_condition_is_not_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
