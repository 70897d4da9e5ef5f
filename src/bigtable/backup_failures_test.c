/* Failures of backups by table and cause: what the metrics say of them. */
#include "bigtable/backup_failures.h"

#include "base/limits.h"
#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"

#include <stdio.h>

struct found {
    size_t series;
    double sum;
    double others;
    double wanted; /* of t1 by its policy */
};

static void look_at(void *context, const struct metric_sample *sample)
{
    struct found *found = context;
    if (strcmp(sample->name, "trestle_table_backup_failures_total") != 0)
        return;
    found->series++;
    found->sum += sample->value;
    if (strcmp(sample->labels[0].value, "other") == 0)
        found->others += sample->value;
    if (strcmp(sample->labels[0].value, "t1") == 0 &&
        strcmp(sample->labels[1].value, "policy") == 0)
        found->wanted += sample->value;
}

static struct found look(struct metrics *metrics)
{
    struct found found = {0};
    metrics_visit(metrics, look_at, &found);
    return found;
}

static void each_table_and_cause_has_a_series(void **state)
{
    struct metrics *metrics;
    struct backup_failures *failures;
    (void)state;
    assert_ok(metrics_create(&metrics));
    assert_ok(backup_failures_create(metrics, &failures));
    assert_int_equal(look(metrics).series, 0);
    backup_failures_note(failures, "t1", true);
    backup_failures_note(failures, "t1", true);
    backup_failures_note(failures, "t1", false);
    backup_failures_note(failures, "t2", true);
    backup_failures_note(failures, NULL, false);
    struct found found = look(metrics);
    assert_int_equal(found.series, 4);
    assert_true(found.wanted == 2);
    assert_true(found.sum == 5);
    assert_int_equal(metrics_value(metrics, METRIC_backup_failures_total), 5);
    backup_failures_destroy(failures);
    metrics_destroy(metrics);
}

static void there_are_so_many_series_and_no_more(void **state)
{
    struct metrics *metrics;
    struct backup_failures *failures;
    char table[32];
    (void)state;
    assert_ok(metrics_create(&metrics));
    assert_ok(backup_failures_create(metrics, &failures));
    for (unsigned i = 0; i < LIMIT_TABLE_METRICS + 20; i++) {
        snprintf(table, sizeof table, "table%u", i);
        backup_failures_note(failures, table, true);
    }
    struct found found = look(metrics);
    assert_int_equal(found.series, LIMIT_TABLE_METRICS + 1);
    assert_true(found.sum == LIMIT_TABLE_METRICS + 20);
    assert_true(found.others == 20);
    backup_failures_destroy(failures);
    metrics_destroy(metrics);
}

static void note(void *context)
{
    struct backup_failures *failures = NULL;
    status s = backup_failures_create(context, &failures);
    if (status_is_ok(s))
        backup_failures_note(failures, "t1", true);
    failmalloc_stop();
    status_free(s);
    backup_failures_destroy(failures);
}

static void every_allocation_may_fail(void **state)
{
    struct metrics *metrics;
    (void)state;
    assert_ok(metrics_create(&metrics));
    failmalloc_each(note, metrics);
    assert_true(look(metrics).wanted == 1);
    metrics_destroy(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_table_and_cause_has_a_series),
        cmocka_unit_test(there_are_so_many_series_and_no_more),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
