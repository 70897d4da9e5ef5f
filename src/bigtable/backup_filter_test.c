/* Filters and orders of ListBackups. */
#include "bigtable/backup_filter.h"

#include "base/testing/testing.h"
#include "bigtable/backup_facts.h"

struct fixture {
    struct arena *arena;
    BtAdmin__Backup backup;
    Pb__Timestamp start, end;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->arena = arena_create(1 << 20);
    f->backup = (BtAdmin__Backup)BT_ADMIN__BACKUP__INIT;
    f->start = f->end = (Pb__Timestamp)PB__TIMESTAMP__INIT;
    f->start.seconds = 1767225600; /* 2026-01-01T00:00:00Z */
    f->start.nanos = 500000000;
    f->backup.name = "projects/p/instances/i/clusters/c/backups/Nightly-1";
    f->backup.source_table = "projects/p/instances/i/tables/orders";
    f->backup.start_time = &f->start;
    f->backup.size_bytes = 1000;
    f->backup.state = BT_ADMIN__BACKUP__STATE__CREATING;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    arena_destroy(f->arena);
    free(f);
    return 0;
}

static bool matches(struct fixture *f, const char *text)
{
    const struct backup_filter *filter;
    status s = backup_filter_parse(text, f->arena, &filter);
    if (!status_is_ok(s))
        print_error("%s: %s\n", text, status_message(s));
    assert_ok(s);
    return backup_filter_matches(filter, &f->backup);
}

static void assert_all(struct fixture *f, const char *const *texts, bool expected)
{
    for (; *texts != NULL; texts++) {
        if (matches(f, *texts) != expected)
            print_error("%s\n", *texts);
        assert_int_equal(matches(f, *texts), expected);
    }
}

static void test_filters_that_fit(void **state)
{
    static const char *const texts[] = {
        "",
        "  ",
        "name:nightly",
        "NAME = \"nightly-1\"",
        "name='Nightly-1'",
        "name=projects/p/instances/i/clusters/c/backups/nightly-1",
        "name > projects/p",
        "source_table:order",
        "source_table != \"order\"",
        "state:CREATING",
        "state = creating",
        "size_bytes >= 1000 size_bytes <= 1000 size_bytes = 1000",
        "start_time = \"2026-01-01T00:00:00.5Z\"",
        "start_time > 2025-12-31T23:59:59Z",
        "start_time < 2026-01-01T01:00:01+01:00",
        "end_time != 2026-01-01T00:00:00Z",
        "NOT end_time > 2026-01-01T00:00:00Z",
        "-name:weekly",
        "(name:nightly)(state:CREATING)",
        "(name:nightly) AND (NOT(state:READY))",
        "name:weekly OR name:nightly",
        "name:nightly OR name:weekly AND state:CREATING",
        NULL,
    };
    assert_all(*state, texts, true);
}

static void test_filters_that_do_not_fit(void **state)
{
    static const char *const texts[] = {
        "name:weekly",
        "name:\"nightly\"",
        "name = nightly",
        "name != nightly-1",
        "state:READY",
        "size_bytes > 1000",
        "size_bytes < 1000",
        "end_time < 2030-01-01T00:00:00Z", /* it has none */
        "end_time > 1980-01-01T00:00:00Z",
        "start_time = 2026-01-01T00:00:00Z",
        "NOT name:nightly",
        "name:nightly AND state:READY",
        "name:nightly state:READY",
        "state:CREATING OR name:nightly AND name:weekly", /* OR comes before AND */
        "(name:weekly OR state:READY)",
        NULL,
    };
    assert_all(*state, texts, false);
}

static void test_what_is_no_filter(void **state)
{
    struct fixture *f = *state;
    static const char *const texts[] = {
        "name",
        "name:",
        "name:x)",
        "(name:x",
        "()",
        "colour:red",
        "name ~ x",
        "state:DONE",
        "size_bytes:1MB",
        "size_bytes:",
        "start_time<0",
        "start_time<now",
        "name:\"x",
        "name:\"x\\",
        "AND",
        "name:x AND",
        "name:x OR",
        "NOT",
        "size_bytes > 1x",
        "name:x \"y\"",
        "nameless:x",
        "=x",
        "name:x OR AND",
        NULL,
    };
    for (size_t i = 0; texts[i] != NULL; i++) {
        const struct backup_filter *filter;
        status s = backup_filter_parse(texts[i], f->arena, &filter);
        if (status_is_ok(s))
            print_error("%s\n", texts[i]);
        assert_status(s, STATUS_INVALID_ARGUMENT);
    }
}

static void test_nesting_is_bounded(void **state)
{
    struct fixture *f = *state;
    for (int depth = 20; depth <= 21; depth++) {
        struct buffer text = {0};
        const struct backup_filter *filter;
        for (int i = 0; i < depth; i++)
            buffer_append_byte(&text, '(');
        buffer_append_format(&text, "name:x");
        for (int i = 0; i < depth; i++)
            buffer_append_byte(&text, ')');
        buffer_append_byte(&text, 0);
        status s = backup_filter_parse((const char *)text.data, f->arena, &filter);
        assert_int_equal(s.code, depth <= 20 ? STATUS_OK : STATUS_INVALID_ARGUMENT);
        status_free(s);
        buffer_free(&text);
    }
}

/* --- orders --- */

static int order(struct fixture *f, const char *text, const BtAdmin__Backup *other)
{
    struct backup_ordering ordering;
    assert_ok(backup_ordering_parse(text, &ordering));
    int order = backup_ordering_compare(&ordering, &f->backup, other);
    assert_int_equal(backup_ordering_compare(&ordering, other, &f->backup) < 0, order > 0);
    return order < 0 ? -1 : order > 0;
}

static void test_orders(void **state)
{
    struct fixture *f = *state;
    BtAdmin__Backup other = f->backup;
    Pb__Timestamp later = f->start;
    later.nanos += 1000;
    other.name = "projects/p/instances/i/clusters/c/backups/other";
    other.start_time = &later;
    other.size_bytes = 10;
    assert_int_equal(order(f, "", &other), 1);
    assert_int_equal(order(f, "start_time", &other), -1);
    assert_int_equal(order(f, " start_time  desc ", &other), 1);
    assert_int_equal(order(f, "source_table,SIZE_BYTES", &other), 1);
    assert_int_equal(order(f, "state desc, size_bytes DESC", &other), -1);
    assert_int_equal(order(f, "end_time", &other), -1); /* equal: by name */
    assert_int_equal(order(f, "", &f->backup), 0);
}

static void test_what_is_no_order(void **state)
{
    static const char *const texts[] = {",",       "name,",          "name,name",       "colour",
                                        "name up", "name desc desc", "name;size_bytes", "desc"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct backup_ordering ordering;
        assert_status(backup_ordering_parse(texts[i], &ordering), STATUS_INVALID_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_filters_that_fit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_filters_that_do_not_fit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_no_filter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nesting_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_orders, set_up, tear_down),
        cmocka_unit_test(test_what_is_no_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
