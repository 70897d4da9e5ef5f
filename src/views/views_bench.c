/* What upkeep costs: the process's processor time for each changed source row, with all that the
 * store does for it, beside that of the write itself. Not a test: build/src/views/views_bench.
 *
 *     views_bench [ROWS [PART]]     default 200,000, and all parts: groups, few, index,
 *                            five, five-few, populate
 *
 * Writes go into the commit queue without any network, so their figure is below a MutateRow's: that
 * one's is in docs/internals/speed.md. */
#include "views/testing/views_testing.h"

#include <sys/resource.h>

enum { AT_ONCE = 1000, CELLS = 1 };

static int64_t cpu_us(void)
{
    struct rusage used;
    assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * INT64_C(1000000) +
           used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

struct load {
    struct views_fixture *v;
    struct test_write *writes;
    char (*keys)[24];
    char (*values)[104];
};

/* `rows` changes of rows from 0 to `distinct`, in a scattered order; of `groups` values. */
static void write_rows(struct load *load, size_t rows, size_t distinct, size_t groups,
                       unsigned salt)
{
    for (size_t i = 0; i < rows; i += AT_ONCE) {
        struct event event;
        event_init(&event);
        struct arena *arena = load->v->f->arena;
        load->v->f->arena = arena_create(SIZE_MAX / 2);
        for (size_t k = 0; k < AT_ONCE; k++) {
            size_t row = (i + k) * 7919 % distinct;
            snprintf(load->keys[k], sizeof load->keys[k], "user%012zu", row);
            snprintf(load->values[k], sizeof load->values[k], "g%0100zu",
                     (row * 31 + salt * 17) % groups);
            post_write(load->v->f, &load->writes[k], bytes_of(load->keys[k]),
                       setting(load->v->f, FAMILY_F, "q", 1000, load->values[k]), &event);
        }
        assert_ok(event_wait(&event, AT_ONCE));
        arena_destroy(load->v->f->arena);
        load->v->f->arena = arena;
    }
}

static void measure(struct load *load, const char *what, size_t rows, size_t distinct,
                    size_t groups, unsigned salt, unsigned views)
{
    views_hold(load->v->views, true);
    int64_t before_us = cpu_us();
    write_rows(load, rows, distinct, groups, salt);
    int64_t written_us = cpu_us();
    views_hold(load->v->views, false);
    assert_ok(views_settle(load->v->views));
    double upkeep_us = (double)(cpu_us() - written_us) / (double)rows;
    print_message("%-44s %u view(s): write %5.2f us, upkeep %6.2f us a change\n", what, views,
                  (double)(written_us - before_us) / (double)rows, upkeep_us);
}

/* With a server's settings: with those of tests a write buffer is full after some thousand rows. */
static struct views_fixture *open_as_a_server(void)
{
    struct views_fixture *v = views_fixture_create(true);
    v->f->options.write_buffer_bytes = 64 << 20;
    v->f->options.cache_bytes = 256 << 20;
    v->f->options.open_files = 512;
    v->f->options.overflow_bytes = 64 << 10;
    reopen_views(v);
    return v;
}

static void begin(struct load *load, unsigned views, const char *query)
{
    char name[64];
    load->v = open_as_a_server();
    for (unsigned i = 0; i < views; i++) {
        snprintf(name, sizeof name, TEST_VIEW_OF("v%u"), i);
        create_view(load->v, name, query);
    }
    assert_ok(views_settle(load->v->views));
}

static void run(struct load *load, size_t rows, unsigned views, const char *query)
{
    begin(load, views, query);
    measure(load, "new rows, all groups differ", rows, rows, rows, 0, views);
    measure(load, "rows overwritten, all groups differ", rows, rows, rows, 1, views);
    measure(load, "the same, of which 1,000 are left", rows, rows, 1000, 2, views);
    views_fixture_destroy(load->v);
}

/* Of a view that has had a thousand groups from the start. */
static void run_few(struct load *load, size_t rows, unsigned views, const char *query)
{
    begin(load, views, query);
    measure(load, "new rows, 1,000 groups", rows, rows, 1000, 0, views);
    measure(load, "rows overwritten, 1,000 groups", rows, rows, 1000, 1, views);
    measure(load, "the same again", rows, rows, 1000, 2, views);
    measure(load, "each of a tenth ten times, 1,000 groups", rows, rows / 10, 1000, 3, views);
    views_fixture_destroy(load->v);
}

static void populate(struct load *load, size_t rows)
{
    load->v = open_as_a_server();
    write_rows(load, rows, rows, 1000, 0);
    int64_t before_us = cpu_us();
    create_view(load->v, TEST_VIEW_OF("v0"), "SELECT f['q'] AS q, COUNT(*) AS n FROM t GROUP BY q");
    assert_ok(views_settle(load->v->views));
    print_message("populated with %.2f us a row\n", (double)(cpu_us() - before_us) / (double)rows);
    views_fixture_destroy(load->v);
}

static bool is_asked_for(const char *asked, const char *part)
{
    return asked == NULL || strcmp(asked, part) == 0;
}

int main(int argc, char **argv)
{
    size_t rows = argc > 1 ? strtoul(argv[1], NULL, 10) : 200000;
    const char *part = argc > 2 ? argv[2] : NULL;
    struct load load = {.writes = calloc(AT_ONCE, sizeof *load.writes),
                        .keys = calloc(AT_ONCE, sizeof *load.keys),
                        .values = calloc(AT_ONCE, sizeof *load.values)};
    static const char groups[] = "SELECT f['q'] AS q, COUNT(*) AS n FROM t GROUP BY q";
    if (is_asked_for(part, "groups"))
        run(&load, rows, 1, groups);
    if (is_asked_for(part, "few"))
        run_few(&load, rows, 1, groups);
    if (is_asked_for(part, "index"))
        run(&load, rows, 1, "SELECT f['q'] AS q, _key AS k FROM t ORDER BY q, k");
    if (is_asked_for(part, "five"))
        run(&load, rows, 5, groups);
    if (is_asked_for(part, "five-few"))
        run_few(&load, rows, 5, groups);
    if (is_asked_for(part, "populate"))
        populate(&load, rows);
    free(load.writes);
    free(load.keys);
    free(load.values);
    return 0;
}
