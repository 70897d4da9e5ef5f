/* Tests of settings: every source, their precedence, and each way to be refused. */
#include "base/settings.h"

#include "base/log.h"
#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"

#include <stdio.h>
#include <unistd.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

/* Reads settings that are expected to be fine. */
static void read_fine(struct settings *settings, const char *const *arguments,
                      const char *const *environment)
{
    assert_ok(settings_read(arguments, environment, settings));
}

static void assert_refused(const char *const *arguments, const char *const *environment,
                           const char *words)
{
    struct settings settings;
    status s = settings_read(arguments, environment, &settings);
    assert_string_equal(status_message(s), words);
    assert_status(s, STATUS_INVALID_ARGUMENT);
    settings_free(&settings);
}

/* A configuration file in the test's working directory, removed by the caller. */
static char *write_file(const char *text)
{
    static char name[] = "settings_test.conf";
    FILE *file = fopen(name, "we");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) >= 0, 1);
    assert_int_equal(fclose(file), 0);
    return name;
}

static void presets_hold(void **state)
{
    (void)state;
    struct settings settings;
    read_fine(&settings, LIST(), LIST());
    assert_string_equal(settings.listen, "127.0.0.1:8086");
    assert_string_equal(settings.data_dir, "data");
    assert_null(settings.config);
    assert_null(settings.tls_cert);
    assert_int_equal(settings.durability, DURABILITY_SYNC);
    assert_int_equal(settings.cache, 512 << 20);
    assert_int_equal(settings.drain_timeout, 30 * 1000000);
    assert_true(settings.gc_on_read);
    assert_false(settings.insecure);
    settings_free(&settings);
}

static void flags_of_every_kind(void **state)
{
    (void)state;
    struct settings settings;
    read_fine(&settings,
              LIST("--listen", "[::1]:0", "--durability=async", "--cache", "1GB", "--threads=3",
                   "--gc-interval", "90s", "--insecure", "--gc-on-read=false", "--log-format",
                   "json", "--overflow-threshold=256"),
              LIST());
    assert_string_equal(settings.listen, "[::1]:0");
    assert_int_equal(settings.durability, DURABILITY_ASYNC);
    assert_int_equal(settings.cache, 1u << 30);
    assert_int_equal(settings.threads, 3);
    assert_int_equal(settings.gc_interval, 90 * 1000000);
    assert_true(settings.insecure);
    assert_false(settings.gc_on_read);
    assert_int_equal(settings.log_format, LOG_JSON);
    assert_int_equal(settings.overflow_threshold, 256);
    settings_free(&settings);
}

static void assert_former_name(const char *flag, const char *variable)
{
    struct settings settings;
    size_t at = 0;
    read_fine(&settings, flag != NULL ? LIST(flag) : LIST(),
              variable != NULL ? LIST(variable) : LIST());
    assert_int_equal(settings.overflow_threshold, 512);
    const struct option_alias *alias = settings_next_alias(&settings, &at);
    assert_non_null(alias);
    assert_string_equal(alias->former, "spill_threshold");
    assert_string_equal(alias->member, "overflow_threshold");
    assert_null(settings_next_alias(&settings, &at));
    settings_free(&settings);
}

static void former_names_are_taken_and_told(void **state)
{
    (void)state;
    assert_former_name("--spill-threshold=512", NULL);
    assert_former_name(NULL, "TRESTLE_SPILL_THRESHOLD=512");
    struct settings settings;
    size_t at = 0;
    read_fine(&settings, LIST("--overflow-threshold=512"), LIST());
    assert_null(settings_next_alias(&settings, &at));
    settings_free(&settings);
    assert_refused(LIST("--spill-threshold=512", "--overflow-threshold=512"), LIST(),
                   "--overflow-threshold: is given twice");
}

static void flag_over_environment_over_file(void **state)
{
    (void)state;
    char *name = write_file("# all three\n"
                            "cache = 100MB\n"
                            "\n"
                            "  threads=7   # two give this one\n"
                            "data-dir = /srv/a b#c\n");
    struct settings settings;
    read_fine(&settings, LIST("--config", name, "--cache", "300MB"),
              LIST("HOME=/root", "TRESTLE_CACHE=200MB", "TRESTLE_THREADS=8"));
    assert_int_equal(settings.cache, 300u << 20);
    assert_int_equal(settings.threads, 8);
    assert_string_equal(settings.data_dir, "/srv/a b#c");
    settings_free(&settings);
    unlink(name);
}

static void the_environment_may_name_the_file(void **state)
{
    (void)state;
    char *name = write_file("log-level = error");
    struct settings settings;
    read_fine(&settings, LIST(), LIST("TRESTLE_CONFIG=settings_test.conf"));
    assert_int_equal(settings.log_level, LOG_ERROR);
    settings_free(&settings);
    unlink(name);
}

static void flags_are_refused(void **state)
{
    (void)state;
    assert_refused(LIST("--cach", "1GB"), LIST(),
                   "--cach: no such setting; see trestle serve --help");
    assert_refused(LIST("--cache", "12XB"), LIST(),
                   "--cache: \"12XB\" is not a size from 8MB to 16TB");
    assert_refused(LIST("--cache", "-1"), LIST(), "--cache: \"-1\" is not a size from 8MB to 16TB");
    assert_refused(LIST("--cache", "99999999999999999999"), LIST(),
                   "--cache: \"99999999999999999999\" is not a size from 8MB to 16TB");
    assert_refused(LIST("--overflow-threshold=255"), LIST(),
                   "--overflow-threshold: \"255\" is not a size from 256 to 16MB");
    assert_refused(LIST("--threads", "1025"), LIST(),
                   "--threads: \"1025\" is not a whole number from 0 to 1024");
    assert_refused(LIST("--drain-timeout", "5"), LIST(),
                   "--drain-timeout: \"5\" is not a duration from 0 to 1d");
    assert_refused(LIST("--durability", "maybe"), LIST(),
                   "--durability: \"maybe\" is not one of sync|async");
    assert_refused(LIST("--durability=syn"), LIST(),
                   "--durability: \"syn\" is not one of sync|async");
    assert_refused(LIST("--insecure=yes"), LIST(), "--insecure: \"yes\" is not true or false");
    assert_refused(LIST("--data-dir="), LIST(), "--data-dir: \"\" is not a possible DIR");
    assert_refused(LIST("--cache"), LIST(), "--cache: its value is missing");
    assert_refused(LIST("--cache", "1GB", "--cache=1GB"), LIST(), "--cache: is given twice");
    assert_refused(LIST("data"), LIST(), "unexpected argument \"data\"");
}

static void variables_are_refused(void **state)
{
    (void)state;
    assert_refused(LIST("--threads=1"), LIST("TRESTLE_THREADS=many"),
                   "TRESTLE_THREADS: \"many\" is not a whole number from 0 to 1024");
}

static void unknown_variables_are_named(void **state)
{
    (void)state;
    const char *const *environment =
        LIST("HOME=/", "TRESTLE_CACH=1GB", "TRESTLE_CACHE=1GB", "TRESTLE_PORT=tcp://10.0.0.1:8086");
    struct settings settings;
    read_fine(&settings, LIST(), environment);
    assert_int_equal(settings.cache, 1 << 30);
    settings_free(&settings);
    assert_string_equal(settings_unknown_variable(&environment), "TRESTLE_CACH=1GB");
    assert_string_equal(settings_unknown_variable(&environment),
                        "TRESTLE_PORT=tcp://10.0.0.1:8086");
    assert_null(settings_unknown_variable(&environment));
}

static void assert_file_refused(const char *text, const char *words)
{
    char *name = write_file(text);
    assert_refused(LIST("--config", name), LIST(), words);
    unlink(name);
}

static void files_are_refused(void **state)
{
    (void)state;
    assert_file_refused("\n\ncache = lots",
                        "settings_test.conf:3: cache: \"lots\" is not a size from 8MB to 16TB");
    assert_file_refused("cache = 1GB\ncache = 1GB\n",
                        "settings_test.conf:2: cache: is given twice");
    assert_file_refused("speed = 1\n", "settings_test.conf:1: speed: no such setting in a file; "
                                       "see trestle serve --help");
    assert_file_refused("config = other\n",
                        "settings_test.conf:1: config: no such setting in a file; "
                        "see trestle serve --help");
    assert_file_refused("cache\n", "settings_test.conf:1: a line is \"key = value\"");
    assert_refused(LIST("--config=no/such"), LIST(),
                   "cannot open no/such: No such file or directory");
}

static void settings_that_contradict_are_refused(void **state)
{
    (void)state;
    assert_refused(LIST("--tls-cert", "a"), LIST(), "--tls-cert: needs tls-key beside it");
    assert_refused(LIST(), LIST("TRESTLE_TLS_KEY=a"), "TRESTLE_TLS_KEY: needs tls-cert beside it");
    assert_refused(LIST("--peer-ca", "a"), LIST(), "--peer-ca: needs tls-cert beside it");
    assert_refused(LIST("--peer-cert", "a"), LIST(), "--peer-cert: needs peer-ca beside it");
    assert_refused(LIST("--peer-key", "a"), LIST(), "--peer-key: needs peer-cert beside it");
    assert_refused(LIST("--tls-cert", "a", "--tls-key", "b", "--peer-ca", "c", "--peer-cert", "d"),
                   LIST(), "--peer-cert: needs peer-key beside it");
}

static void a_location_is_a_zone(void **state)
{
    (void)state;
    static const char *const fine[] = {
        "a", "local", "us-east1-b", "z9",
        "a23456789-123456789-123456789-123456789-123456789-1234567890123"};
    static const char *const wrong[] = {
        "-a",        "a-",
        "9a",        "Us-east1",
        "a/b",       "a b",
        "z\xc3\xa4", "a23456789-123456789-123456789-123456789-123456789-12345678901234"};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        struct settings settings;
        read_fine(&settings, LIST("--location", fine[i]), LIST());
        assert_string_equal(settings.location, fine[i]);
        settings_free(&settings);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct settings settings;
        const char *const arguments[] = {"--location", wrong[i], NULL};
        const char *const environment[] = {NULL};
        status s = settings_read(arguments, environment, &settings);
        assert_non_null(strstr(status_message(s), "is no zone"));
        assert_status(s, STATUS_INVALID_ARGUMENT);
        settings_free(&settings);
    }
}

static void users_refuse_by_origin(void **state)
{
    (void)state;
    struct settings settings;
    read_fine(&settings, LIST(), LIST("TRESTLE_LISTEN=nowhere"));
    status s = settings_refuse(&settings, "listen", "no port in \"%s\"", settings.listen);
    assert_string_equal(status_message(s), "TRESTLE_LISTEN: no port in \"nowhere\"");
    assert_status(s, STATUS_INVALID_ARGUMENT);
    s = settings_refuse(&settings, "cache", "no");
    assert_string_equal(status_message(s), "cache: no");
    status_free(s);
    settings_free(&settings);
}

static void sizes_and_durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t size; /* -1: none */
        int64_t duration;
    } cases[] = {
        {"0", 0, 0},
        {"1", 1, -1},
        {"4096", 4096, -1},
        {"64KB", 65536, -1},
        {"2TB", 2ll << 40, -1},
        {"64 KB", -1, -1},
        {"", -1, -1},
        {"KB", -1, -1},
        {"1kb", -1, -1},
        {"500us", -1, 500},
        {"100ms", -1, 100000},
        {"2h", -1, 7200ll * 1000000},
        {"7d", -1, 7 * 86400ll * 1000000},
        {"9223372036854775807", INT64_MAX, -1},
        {"9223372036854775808", -1, -1},
        {"8388607TB", 8388607ll << 40, -1},
        {"8388608TB", -1, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t size = 0;
        int64_t duration = 0;
        assert_int_equal(options_parse_size(cases[i].text, &size), cases[i].size >= 0);
        if (cases[i].size >= 0)
            assert_int_equal(size, cases[i].size);
        assert_int_equal(options_parse_duration(cases[i].text, &duration), cases[i].duration >= 0);
        if (cases[i].duration >= 0)
            assert_int_equal(duration, cases[i].duration);
    }
}

static bool contains(const struct buffer *text, const char *part)
{
    return memmem(text->data, text->size, part, strlen(part)) != NULL;
}

static void help_comes_from_the_table(void **state)
{
    (void)state;
    struct buffer help = {0}, page = {0};
    settings_write_help(&help);
    settings_write_markdown(&page);
    assert_false(help.failed || page.failed);
    assert_true(contains(&help, "  --data-dir DIR\n"));
    assert_true(contains(&help, "Default: 64KB (256 to 16MB).\n"));
    assert_true(contains(&help, "  --insecure[=true|false]\n"));
    assert_true(
        contains(&page, "| `durability` | sync\\|async | sync |  | `TRESTLE_DURABILITY` |"));
    buffer_free(&help);
    buffer_free(&page);
}

static void read_in_need(void *context)
{
    const char *name = context;
    struct settings settings;
    status s = settings_read(LIST("--config", name, "--cache=1GB"), LIST(), &settings);
    if (status_is_ok(s))
        assert_int_equal(settings.threads, 7);
    assert_true(s.code == STATUS_OK || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    settings_free(&settings);
}

static void refuse_in_need(void *context)
{
    (void)context;
    struct settings settings;
    status s = settings_read(LIST("--cache=lots"), LIST(), &settings);
    assert_true(s.code == STATUS_INVALID_ARGUMENT || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    settings_free(&settings);
}

static void memory_runs_out_anywhere(void **state)
{
    (void)state;
    char *name = write_file("threads = 7\n");
    failmalloc_each(read_in_need, name);
    failmalloc_each(refuse_in_need, NULL);
    unlink(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_hold),
        cmocka_unit_test(flags_of_every_kind),
        cmocka_unit_test(former_names_are_taken_and_told),
        cmocka_unit_test(flag_over_environment_over_file),
        cmocka_unit_test(the_environment_may_name_the_file),
        cmocka_unit_test(flags_are_refused),
        cmocka_unit_test(variables_are_refused),
        cmocka_unit_test(unknown_variables_are_named),
        cmocka_unit_test(files_are_refused),
        cmocka_unit_test(settings_that_contradict_are_refused),
        cmocka_unit_test(a_location_is_a_zone),
        cmocka_unit_test(users_refuse_by_origin),
        cmocka_unit_test(sizes_and_durations),
        cmocka_unit_test(help_comes_from_the_table),
        cmocka_unit_test(memory_runs_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
