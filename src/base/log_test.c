/* Tests of logging: both forms, escaping, levels, and lines that are too long. */
#include "base/log.h"

#include "base/testing/testing.h"
#include "base/utf8.h"

#include <unistd.h>

static int64_t fixed_us(struct clock *clock)
{
    (void)clock;
    return 1763633730123456; /* 2025-11-20T10:15:30.123456Z */
}

struct fixture {
    struct clock clock;
    struct log log;
    int pipe[2];
    char text[8192];
};

static int set_up(void **state)
{
    static struct fixture f;
    f.clock = (struct clock){.wall_us = fixed_us, .steady_us = fixed_us};
    assert_int_equal(pipe(f.pipe), 0);
    f.log = (struct log){.fd = f.pipe[1], .level = LOG_INFO, .clock = &f.clock};
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    close(f->pipe[0]);
    if (f->pipe[1] >= 0)
        close(f->pipe[1]);
    return 0;
}

/* The text logged since the last call. */
static const char *logged(struct fixture *f)
{
    static const char end = '\n'; /* so that reading never waits */
    assert_int_equal(write(f->pipe[1], &end, 1), 1);
    ssize_t size = read(f->pipe[0], f->text, sizeof f->text - 1);
    assert_true(size > 0);
    f->text[size - 1] = '\0';
    return f->text;
}

static void logfmt(void **state)
{
    struct fixture *f = *state;
    log_info(&f->log, "table created", LOG_STR("table", "t1"), LOG_INT("tablets", -3));
    assert_string_equal(logged(f), "time=2025-11-20T10:15:30.123456Z level=info "
                                   "msg=\"table created\" table=t1 tablets=-3\n");
}

static void json(void **state)
{
    struct fixture *f = *state;
    f->log.format = LOG_JSON;
    log_warn(&f->log, "slow", LOG_STR("key", "a\"b"), LOG_INT("ms", 70));
    assert_string_equal(logged(f), "{\"time\":\"2025-11-20T10:15:30.123456Z\",\"level\":\"warn\","
                                   "\"msg\":\"slow\",\"key\":\"a\\\"b\",\"ms\":70}\n");
}

/* A client's bytes cannot forge a line or a field. */
static void bytes_are_escaped(void **state)
{
    struct fixture *f = *state;
    log_error(&f->log, "m", LOG_BYTES("key", bytes_make("a\nb=\0\\\xff", 7)), LOG_STR("empty", ""));
    assert_string_equal(logged(f), "time=2025-11-20T10:15:30.123456Z level=error msg=m "
                                   "key=\"a\\u000ab=\\u0000\\\\\\u00ff\" empty=\"\"\n");
}

static void names_stay_readable(void **state)
{
    struct fixture *f = *state;
    log_error(&f->log, "m", LOG_STR("place", "/pl\xc3\xbc"), LOG_STR("euro", "\xe2\x82\xac \"1\""),
              LOG_STR("clef", "\xf0\x9d\x84\x9e"));
    assert_string_equal(logged(f), "time=2025-11-20T10:15:30.123456Z level=error msg=m "
                                   "place=\"/pl\xc3\xbc\" euro=\"\xe2\x82\xac \\\"1\\\"\" "
                                   "clef=\"\xf0\x9d\x84\x9e\"\n");
    f->log.format = LOG_JSON;
    log_error(&f->log, "m", LOG_STR("place", "pl\xc3\xbc"));
    assert_non_null(strstr(logged(f), ",\"place\":\"pl\xc3\xbc\"}\n"));
}

/* They might make a terminal do something: U+0085, U+009B, DEL. */
static void control_characters_are_escaped(void **state)
{
    struct fixture *f = *state;
    log_error(&f->log, "m", LOG_STR("name", "a\nb\xc2\x85\xc2\x9b\x7f\xc2\xa0"));
    assert_string_equal(logged(f), "time=2025-11-20T10:15:30.123456Z level=error msg=m "
                                   "name=\"a\\u000ab\\u0085\\u009b\\u007f\xc2\xa0\"\n");
}

static void invalid_utf8_is_told_as_bytes(void **state)
{
    struct fixture *f = *state;
    log_error(&f->log, "m", LOG_STR("name", "\xc3\xbc\xff"),
              LOG_BYTES("key", bytes_make("\xc3\xbc", 2)));
    assert_string_equal(logged(f), "time=2025-11-20T10:15:30.123456Z level=error msg=m "
                                   "name=\"\\u00c3\\u00bc\\u00ff\" key=\"\\u00c3\\u00bc\"\n");
}

static void lesser_levels_are_silent(void **state)
{
    struct fixture *f = *state;
    log_debug(&f->log, "detail");
    assert_string_equal(logged(f), "");
    f->log.level = LOG_ERROR;
    log_warn(&f->log, "hint");
    assert_string_equal(logged(f), "");
}

static void a_long_line_is_cut_and_ended(void **state)
{
    struct fixture *f = *state;
    char text[6000];
    memset(text, 'x', sizeof text);
    log_info(&f->log, "long", LOG_BYTES("text", bytes_make(text, sizeof text)));
    const char *line = logged(f);
    assert_int_equal(strlen(line), 4096);
    assert_int_equal(line[4095], '\n');
}

/* Wherever the text begins. */
static void no_character_is_cut(void **state)
{
    struct fixture *f = *state;
    char text[6000];
    for (size_t from = 0; from < 4; from++) {
        memset(text, 'x', from);
        for (size_t at = from; at + 4 < sizeof text; at += 4)
            memcpy(text + at, "\xf0\x9d\x84\x9e", 5);
        log_info(&f->log, "long", LOG_STR("text", text));
        const char *line = logged(f);
        size_t size = strlen(line);
        assert_in_range(size, 4093, 4096);
        assert_int_equal(line[size - 1], '\n');
        assert_true(utf8_is_valid(bytes_of(line)));
    }
}

static void a_closed_log_is_no_error(void **state)
{
    struct fixture *f = *state;
    close(f->pipe[1]);
    f->pipe[1] = -1;
    f->log.fd = -1;
    log_info(&f->log, "nobody hears");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(logfmt, set_up, tear_down),
        cmocka_unit_test_setup_teardown(json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytes_are_escaped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_stay_readable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(control_characters_are_escaped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(invalid_utf8_is_told_as_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lesser_levels_are_silent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_long_line_is_cut_and_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_character_is_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_closed_log_is_no_error, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
