/* How far a job of ten hours has come, where stderr is no terminal: a line now and then. */
#include "transfer/progress.h"

#include "base/testing/testing.h"
#include "base/testing/testing_clock.h"

#include <stdio.h>
#include <unistd.h>

enum { SECOND = 1000 * 1000, HOURS = 10 };

/* What is written to stderr meanwhile; between `catch_stderr` and `let_go`. */
struct caught {
    int was;
    FILE *file;
};

static void catch_stderr(struct caught *caught)
{
    caught->file = tmpfile();
    assert_non_null(caught->file);
    fflush(stderr);
    caught->was = dup(STDERR_FILENO);
    assert_true(dup2(fileno(caught->file), STDERR_FILENO) >= 0);
}

static void let_go(struct caught *caught, char *text, size_t size)
{
    fflush(stderr);
    dup2(caught->was, STDERR_FILENO);
    close(caught->was);
    assert_int_equal(fseek(caught->file, 0, SEEK_SET), 0);
    text[fread(text, 1, size - 1, caught->file)] = '\0';
    fclose(caught->file);
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

/* Looks each second for so long, with a million records then. */
static size_t lines_of(int seconds, bool is_quiet, char *text, size_t size)
{
    struct turned_clock clock = {.clock = TURNED_CLOCK};
    struct transfer_counts counts = {0};
    struct progress progress;
    struct caught caught;
    catch_stderr(&caught);
    progress_begin(&progress, &clock.clock, "rows", is_quiet);
    for (int i = 0; i < seconds; i++) {
        clock.now_us += SECOND;
        counts.records += 1000;
        counts.bytes += 1 << 20;
        progress_show(&progress, &counts, (uint64_t)seconds << 20);
    }
    progress_end(&progress, &counts, (uint64_t)seconds << 20);
    let_go(&caught, text, size);
    return count_lines(text);
}

static void a_line_every_ten_seconds(void **state)
{
    static char text[1 << 20];
    (void)state;
    assert_int_equal(lines_of(9, false, text, sizeof text), 1);
    assert_int_equal(lines_of(60, false, text, sizeof text), 6 + 1);
    assert_non_null(strstr(text, "10000 rows, 10.0 MB of 60.0 MB, 1000 rows/s, 0:00:50 left\n"));
    assert_int_equal(lines_of(HOURS * 3600, false, text, sizeof text), HOURS * 360 + 1);
    assert_null(strchr(text, '\r'));
}

static void a_quiet_job_writes_no_line(void **state)
{
    static char text[1 << 10];
    (void)state;
    assert_int_equal(lines_of(60, true, text, sizeof text), 0);
}

/* Following shows at once that it does, and then a line every ten seconds. */
static void following_shows_how_far_it_is_behind(void **state)
{
    static char text[1 << 10];
    struct turned_clock clock = {.clock = TURNED_CLOCK};
    struct follow_counts counts = {.changes = 500, .partitions = 3, .behind_us = -SECOND};
    struct progress progress;
    struct caught caught;
    (void)state;
    catch_stderr(&caught);
    progress_begin_following(&progress, &clock.clock, 500, false);
    for (int i = 0; i < 19; i++) {
        clock.now_us += SECOND;
        progress_show_following(&progress, &counts);
        counts.changes += 100;
        counts.behind_us = SECOND + SECOND / 2;
    }
    progress_end_following(&progress);
    let_go(&caught, text, sizeof text);
    assert_string_equal(text, "500 changes, 0 changes/s, 0.0 s behind, 3 partitions\n"
                              "1500 changes, 91 changes/s, 1.5 s behind, 3 partitions\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_every_ten_seconds),
        cmocka_unit_test(a_quiet_job_writes_no_line),
        cmocka_unit_test(following_shows_how_far_it_is_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
