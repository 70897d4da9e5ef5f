/* Tests of how `trestle status --since` shows what is remembered. */
#include "cmd/status/status_history.h"

#include "base/testing/testing.h"

#include <math.h>

enum { POINTS = 3, LINES = 3 };

/* Of three points, from noon on 2026-11-29, a minute each. */
struct remembered {
    Insight__MetricHistory history;
    Pb__Duration retention;
    Pb__Timestamp times[POINTS];
    Pb__Timestamp *time_pointers[POINTS];
    Insight__MetricHistory__Line lines[LINES];
    Insight__MetricHistory__Line *line_pointers[LINES];
    double values[LINES][POINTS];
};

static void fill(struct remembered *r)
{
    static const char *const names[LINES] = {"requests", "p99_seconds", "processors"};
    static const double values[LINES][POINTS] = {
        {1234.5, 0, NAN}, {0.0123, NAN, 2.5}, {0.5, 0, 1.999}};
    *r = (struct remembered){.history = INSIGHT__METRIC_HISTORY__INIT,
                             .retention = PB__DURATION__INIT};
    r->retention.seconds = 86400;
    r->history.retention = &r->retention;
    for (size_t i = 0; i < POINTS; i++) {
        r->times[i] = (Pb__Timestamp)PB__TIMESTAMP__INIT;
        r->times[i].seconds = 1795953600 + 60 * (int64_t)i;
        r->time_pointers[i] = &r->times[i];
    }
    for (size_t i = 0; i < LINES; i++) {
        r->lines[i] = (Insight__MetricHistory__Line)INSIGHT__METRIC_HISTORY__LINE__INIT;
        r->lines[i].name = names[i];
        memcpy(r->values[i], values[i], sizeof values[i]);
        r->lines[i].values = r->values[i];
        r->lines[i].n_values = POINTS;
        r->line_pointers[i] = &r->lines[i];
    }
    r->history.times = r->time_pointers;
    r->history.n_times = POINTS;
    r->history.lines = r->line_pointers;
    r->history.n_lines = LINES;
}

#define HEAD                                                                                       \
    " from                 | requests/s | errors/s | median | p99     | received/s | sent/s "      \
    "| tables | free | processors\n"                                                               \
    "----------------------+------------+----------+--------+---------+------------+--------"      \
    "+--------+------+------------\n"
#define FIRST                                                                                      \
    " 2026-11-29T12:00:00Z |      1,234 |        - |      - | 12.3 ms |          - |      - "      \
    "|      - |    - |       0.50\n"
#define SECOND                                                                                     \
    " 2026-11-29T12:01:00Z |          0 |        - |      - |       - |          - |      - "      \
    "|      - |    - |       "
#define THIRD                                                                                      \
    " 2026-11-29T12:02:00Z |          - |        - |      - |   2.5 s |          - |      - "      \
    "|      - |    - |       "

static void assert_shown(const struct remembered *r, const char *expected)
{
    struct buffer out = {0};
    history_write_text(&r->history, &out);
    buffer_append_byte(&out, 0);
    assert_string_equal((const char *)out.data, expected);
    buffer_free(&out);
}

static void a_point_is_a_line_and_what_is_not_known_a_dash(void **state)
{
    (void)state;
    struct remembered r;
    fill(&r);
    assert_shown(&r, HEAD FIRST SECOND "0.00\n" THIRD "2.00\n");
}

/* Of a server of another version, or where the answer was cut. */
static void a_line_with_fewer_values_than_times_is_not_read_beyond(void **state)
{
    (void)state;
    struct remembered r;
    fill(&r);
    r.lines[2].n_values = 1;
    assert_shown(&r, HEAD FIRST SECOND "   -\n" THIRD "   -\n");
}

static void why_there_are_no_points_is_said(void **state)
{
    (void)state;
    struct remembered r;
    fill(&r);
    r.history.n_times = 0;
    assert_shown(&r, "nothing is remembered of that time\n");
    r.history.trouble = "the disk is full";
    assert_shown(&r, "nothing is remembered at present: the disk is full\n"
                     "nothing is remembered of that time\n");
    r.history.trouble = "";
    r.retention.seconds = 0;
    assert_shown(&r, "the server remembers no metrics (--metrics-retention 0)\n");
    r.history.retention = NULL; /* as a message has it that says 0 */
    assert_shown(&r, "the server remembers no metrics (--metrics-retention 0)\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_point_is_a_line_and_what_is_not_known_a_dash),
        cmocka_unit_test(a_line_with_fewer_values_than_times_is_not_read_beyond),
        cmocka_unit_test(why_there_are_no_points_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
