/* The audit log's lines: their form, how many there are about refusals, what was changed. That
 * calls leave lines is tests/e2e/test_audit.py's. */
#include "access/audit.h"

#include "base/testing/testing.h"
#include "base/testing/testing_clock.h"
#include "base/testing/testing_log.h"

#include <jansson.h>
#include <stdio.h>

enum { SECOND_US = 1000000, PATH_MOST = 64, TEXT_MOST = 1 << 20 };

struct fixture {
    char path[PATH_MOST];
    struct log log;
    struct turned_clock clock;
    struct metrics *metrics;
    struct audit *audit;
};

enum { PERIOD_US = 60 * SECOND_US };

static int open_with(void **state, bool has_file)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->path, sizeof f->path, "audit-test-XXXXXX");
    int fd = mkstemp(f->path);
    assert_true(fd >= 0);
    close(fd);
    f->log = testing_log();
    f->clock = (struct turned_clock){.clock = TURNED_CLOCK, .now_us = SECOND_US};
    assert_ok(metrics_create(&f->metrics));
    const struct audit_options options = {.path = has_file ? f->path : NULL,
                                          .file_bytes = TEXT_MOST,
                                          .older_files = 1,
                                          .refusals_most = 3,
                                          .data_us = PERIOD_US,
                                          .log = &f->log,
                                          .clock = &f->clock.clock,
                                          .metrics = f->metrics};
    assert_ok(audit_open(&options, &f->audit));
    *state = f;
    return 0;
}

static int set_up(void **state)
{
    return open_with(state, true);
}

static int set_up_without_file(void **state)
{
    return open_with(state, false);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    audit_close(f->audit);
    metrics_destroy(f->metrics);
    close(f->log.fd);
    unlink(f->path);
    free(f);
    return 0;
}

/* The next line of the file, as JSON, which is the caller's; NULL after the last. */
static json_t *next_line(FILE *file)
{
    static char line[TEXT_MOST];
    json_error_t error;
    if (fgets(line, sizeof line, file) == NULL)
        return NULL;
    json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL)
        print_error("%s\n%s\n", line, error.text);
    assert_non_null(json);
    return json;
}

static FILE *open_lines(const struct fixture *f)
{
    FILE *file = fopen(f->path, "r");
    assert_non_null(file);
    return file;
}

static void has_text(const json_t *json, const char *name, const char *expected)
{
    const char *text = json_string_value(json_object_get(json, name));
    assert_non_null(text);
    assert_string_equal(text, expected);
}

static void refuse(struct fixture *f, const char *principal)
{
    status s = status_make(STATUS_PERMISSION_DENIED, "not for \"%s\"", principal);
    audit_refused_page(f->audit, "metrics", bytes_of(principal), "127.0.0.1:1", s);
    status_free(s);
}

static void a_refusal_is_one_json_object(void **state)
{
    struct fixture *f = *state;
    refuse(f, "user:a\n\xc3\xa4\xff");
    FILE *file = open_lines(f);
    json_t *line = next_line(file);
    has_text(line, "time", "1970-01-01T00:00:01.000000Z");
    has_text(line, "event", "refusal");
    has_text(line, "principal", "user:a\n\\xc3\\xa4\\xff");
    has_text(line, "page", "metrics");
    has_text(line, "status", "PERMISSION_DENIED");
    has_text(line, "peer", "127.0.0.1:1");
    json_decref(line);
    assert_null(next_line(file));
    fclose(file);
}

static void a_status_that_is_no_refusal_has_no_line(void **state)
{
    struct fixture *f = *state;
    status s = status_out_of_memory();
    audit_refused_page(f->audit, "metrics", bytes_of("user:a"), "127.0.0.1:1", s);
    status_free(s);
    audit_refused_page(f->audit, "metrics", bytes_of("user:a"), "127.0.0.1:1", status_ok());
    FILE *file = open_lines(f);
    assert_null(next_line(file));
    fclose(file);
}

static void refusals_beyond_the_rate_are_counted(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 10; i++)
        refuse(f, "user:a");
    f->clock.now_us += SECOND_US;
    refuse(f, "user:b");
    refuse(f, "user:c");
    FILE *file = open_lines(f);
    for (int i = 0; i < 3; i++) {
        json_t *line = next_line(file);
        has_text(line, "principal", "user:a");
        assert_null(json_object_get(line, "untold"));
        json_decref(line);
    }
    json_t *line = next_line(file);
    has_text(line, "principal", "user:b");
    assert_int_equal(json_integer_value(json_object_get(line, "untold")), 7);
    json_decref(line);
    line = next_line(file);
    has_text(line, "principal", "user:c");
    assert_null(json_object_get(line, "untold"));
    json_decref(line);
    assert_null(next_line(file));
    fclose(file);
}

/* A tick tells of lines that were left out, as no line comes after them that could. */
static void a_tick_tells_how_many_were_left_out(void **state)
{
    struct fixture *f = *state;
    audit_tick(f->audit);
    for (int i = 0; i < 5; i++)
        refuse(f, "user:a");
    audit_tick(f->audit); /* the second has not passed */
    f->clock.now_us += SECOND_US;
    audit_tick(f->audit);
    audit_tick(f->audit);
    FILE *file = open_lines(f);
    for (int i = 0; i < 3; i++)
        json_decref(next_line(file));
    json_t *line = next_line(file);
    has_text(line, "event", "untold");
    assert_int_equal(json_integer_value(json_object_get(line, "untold")), 2);
    json_decref(line);
    assert_null(next_line(file));
    fclose(file);
}

/* --- changes --- */

static const struct access_binding standing[] = {
    {"roles/a", (const char *const[]){"user:1", "user:2"}, 2},
    {"roles/b", (const char *const[]){"user:1"}, 1},
};
static const struct access_binding wanted[] = {
    {"roles/b", (const char *const[]){"user:1"}, 1},
    {"roles/a", (const char *const[]){"user:2", "user:3", "user:2"}, 3},
};

static void compare(struct audit_changes *changes)
{
    struct audit_grant before[3], after[4];
    assert_int_equal(audit_grant_count(standing, 2), 3);
    assert_int_equal(audit_grant_count(wanted, 2), 4);
    audit_grants_of(bytes_of("projects/p"), standing, 2, before);
    audit_grants_of(bytes_of("projects/p"), wanted, 2, after);
    audit_compare_grants(before, 3, after, 4, changes);
}

static void a_reload_says_what_it_changed(void **state)
{
    struct fixture *f = *state;
    struct audit_changes changes = {0};
    compare(&changes);
    audit_reload(f->audit, "access control", status_ok(), &changes);
    FILE *file = open_lines(f);
    json_t *line = next_line(file);
    has_text(line, "event", "reload");
    has_text(line, "status", "OK");
    const json_t *list = json_object_get(line, "changes");
    assert_int_equal(json_array_size(list), 2);
    has_text(json_array_get(list, 0), "action", "REMOVE");
    has_text(json_array_get(list, 0), "role", "roles/a");
    has_text(json_array_get(list, 0), "member", "user:1");
    has_text(json_array_get(list, 0), "resource", "projects/p");
    has_text(json_array_get(list, 1), "action", "ADD");
    has_text(json_array_get(list, 1), "member", "user:3");
    assert_null(json_object_get(line, "further_changes"));
    json_decref(line);
    fclose(file);
}

static void further_changes_are_counted(void **state)
{
    struct fixture *f = *state;
    struct audit_changes changes = {0};
    for (int i = 0; i < AUDIT_CHANGES_MOST + 5; i++)
        AUDIT_CHANGE(&changes, LOG_STR("action", "ADD"), LOG_STR("token", "user:a"));
    audit_reload(f->audit, "access control", status_ok(), &changes);
    FILE *file = open_lines(f);
    json_t *line = next_line(file);
    assert_int_equal(json_array_size(json_object_get(line, "changes")), AUDIT_CHANGES_MOST);
    assert_int_equal(json_integer_value(json_object_get(line, "further_changes")), 5);
    json_decref(line);
    fclose(file);
}

static void without_a_file_lines_go_to_the_log(void **state)
{
    struct fixture *f = *state;
    struct audit_changes changes = {0};
    char text[4096];
    f->log.level = LOG_ERROR; /* which it was not when the audit log was opened */
    compare(&changes);
    audit_reload(f->audit, "access control", status_ok(), &changes);
    refuse(f, "user:a");
    testing_log_take(&f->log, text, sizeof text);
    assert_non_null(strstr(text, "msg=audit event=reload"));
    assert_non_null(strstr(text, "REMOVE role=roles/a member=user:1 resource=projects/p; ADD "));
    assert_non_null(strstr(text, "event=refusal principal=user:a page=metrics"));
}

static void a_line_that_cannot_be_written_is_counted(void **state)
{
    struct fixture *f = *state;
    struct audit *audit;
    struct buffer page = {0};
    const struct audit_options options = {.path = "/dev/full",
                                          .older_files = 1,
                                          .refusals_most = 3,
                                          .log = &f->log,
                                          .clock = &f->clock.clock,
                                          .metrics = f->metrics};
    assert_ok(audit_open(&options, &audit));
    audit_reload(audit, "TLS", status_ok(), NULL);
    metrics_write(f->metrics, false, &page);
    buffer_append_byte(&page, '\0');
    assert_non_null(strstr((const char *)page.data, "trestle_audit_lines_lost_total 1\n"));
    buffer_free(&page);
    audit_close(audit);
}

/* --- calls for data --- */

static void call(struct fixture *f, const char *principal, enum status_code code)
{
    static const struct grpc_method method = {.name = "ReadRows"};
    static const struct grpc_service service = {.name = "data"};
    const struct access_caller caller = {
        .principal = bytes_of(principal), .resource = bytes_of("t"), .address = "127.0.0.1:1"};
    const struct grpc_call_record record = {.service = &service,
                                            .method = &method,
                                            .code = code,
                                            .items = 2,
                                            .request_bytes = 7,
                                            .response_bytes = 30};
    audit_call(f->audit, &caller, &record);
}

static void has_number(const json_t *json, const char *name, int64_t expected)
{
    assert_int_equal(json_integer_value(json_object_get(json, name)), expected);
}

/* Not before, and once; a refusal has a line of its own, and is in no sum. */
static void calls_for_data_are_told_when_the_period_ends(void **state)
{
    struct fixture *f = *state;
    assert_true(audit_wants_data(f->audit));
    call(f, "user:a", STATUS_OK);
    call(f, "user:a", STATUS_NOT_FOUND);
    call(f, "user:a", STATUS_PERMISSION_DENIED);
    f->clock.now_us += PERIOD_US - 1;
    audit_tick(f->audit);
    f->clock.now_us += 1;
    audit_tick(f->audit);
    audit_tick(f->audit);
    FILE *file = open_lines(f);
    json_t *line = next_line(file);
    has_text(line, "event", "refusal");
    json_decref(line);
    line = next_line(file);
    has_text(line, "event", "data");
    has_text(line, "principal", "user:a");
    has_text(line, "service", "data");
    has_text(line, "method", "ReadRows");
    has_text(line, "resource", "t");
    has_number(line, "calls", 2);
    has_number(line, "failed", 1);
    has_number(line, "rows", 4);
    has_number(line, "request_bytes", 14);
    has_number(line, "answer_bytes", 60);
    has_number(line, "period_ms", PERIOD_US / 1000);
    json_decref(line);
    assert_null(next_line(file));
    fclose(file);
}

static void the_last_sums_are_told_at_the_end(void **state)
{
    struct fixture *f = *state;
    call(f, "", STATUS_OK);
    audit_close(f->audit);
    f->audit = NULL;
    FILE *file = open_lines(f);
    json_t *line = next_line(file);
    has_text(line, "event", "data");
    has_text(line, "principal", "-");
    json_decref(line);
    assert_null(next_line(file));
    fclose(file);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_refusal_is_one_json_object),
        TEST(a_status_that_is_no_refusal_has_no_line),
        TEST(refusals_beyond_the_rate_are_counted),
        TEST(a_tick_tells_how_many_were_left_out),
        TEST(a_reload_says_what_it_changed),
        TEST(further_changes_are_counted),
        cmocka_unit_test_setup_teardown(without_a_file_lines_go_to_the_log, set_up_without_file,
                                        tear_down),
        TEST(a_line_that_cannot_be_written_is_counted),
        TEST(calls_for_data_are_told_when_the_period_ends),
        TEST(the_last_sums_are_told_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
