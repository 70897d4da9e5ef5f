/* See table_rows.h. */
#include "introspect/table_rows.h"

#include "advisor/sample_rows.h"
#include "base/clock.h"
#include "cluster/ranges.h"
#include "cluster/rows.h"
#include "introspect/table_source.h"

enum {
    COUNTED_ROWS = 10000, /* a table of so many is counted */
    STRETCHES = 8,
    STRETCH_ROWS = 1000,
    SCAN_MEMORY = 1 << 20,
    LEAST_BYTES = 64 << 10, /* of all stretches: what is less may be one block of the store's */
};

#define MOST_US (INT64_C(1000) * 1000)

struct stretch {
    uint64_t rows;
    struct buffer last; /* the key behind which it ends */
    bool is_at_end;     /* of the table */
};

struct counting {
    const struct admin_request *request;
    struct table *table;
    int64_t until_us; /* clock_steady_us */
};

static bool is_row(enum row_outcome outcome)
{
    return outcome == ROW_FOUND || outcome == ROW_TOO_LARGE;
}

/* So many rows, or up to the table's end, or as far as the time goes. */
static status count_on(const struct counting *c, struct scan *scan, uint64_t most,
                       struct stretch *out)
{
    struct scan_row row;
    enum row_outcome outcome;
    while (out->rows < most && clock_steady_us(clock_system()) < c->until_us) {
        TRY(insight_check_call(c->request));
        TRY(scan_next(scan, STORE_READ_ANY, &row, &outcome));
        if (outcome == ROW_END) {
            out->is_at_end = true;
            return status_ok();
        }
        if (!is_row(outcome))
            continue;
        out->rows++;
        buffer_clear(&out->last);
        buffer_append_bytes(&out->last, row.key);
        if (out->last.failed)
            return status_out_of_memory();
    }
    return status_ok();
}

/* The stretch that begins at `from`; `out->last` is to be freed in any case. */
static status count_stretch(const struct counting *c, bytes from, uint64_t most,
                            struct stretch *out)
{
    const struct key_range range = {.from = from};
    const struct read_scope scope = {.cells_per_column = 1, .cells_per_row = 1};
    struct scan *scan;
    *out = (struct stretch){0};
    struct arena *arena = arena_create(SCAN_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    const struct scan_spec spec = {.table = c->table,
                                   .ranges = &range,
                                   .range_count = 1,
                                   .schema = table_schema(c->table),
                                   .scope = &scope,
                                   .is_background = true,
                                   .size_limit = SAMPLE_ROW_MOST,
                                   .arena = arena};
    status s = scan_create(&spec, &scan);
    if (status_is_ok(s)) {
        s = count_on(c, scan, most, out);
        scan_destroy(scan);
    }
    arena_destroy(arena);
    return s;
}

/* A stretch's rows, and what those before its last one take. */
static status measure_stretch(const struct counting *c, bytes from, uint64_t *rows, uint64_t *size)
{
    struct stretch stretch;
    uint64_t bytes_stored = 0;
    status s = count_stretch(c, from, STRETCH_ROWS, &stretch);
    if (status_is_ok(s) && stretch.rows > 1)
        s = table_range_size(c->table, from, buffer_bytes(&stretch.last), &bytes_stored);
    if (status_is_ok(s) && bytes_stored > 0) {
        *rows += stretch.rows - 1;
        *size += bytes_stored;
    }
    buffer_free(&stretch.last);
    return s;
}

static status estimate(const struct counting *c, const bytes *starts, size_t start_count,
                       uint64_t table_bytes, struct table_rows *out)
{
    uint64_t rows = 0, size = 0;
    for (size_t i = 0; i < STRETCHES && start_count > 0; i++)
        TRY(measure_stretch(c, starts[i * start_count / STRETCHES], &rows, &size));
    if (size >= LEAST_BYTES)
        out->count = (uint64_t)((double)table_bytes / (double)size * (double)rows);
    return status_ok();
}

status table_count_rows(const struct admin_request *request, struct table *table,
                        const bytes *starts, size_t start_count, uint64_t table_bytes,
                        struct table_rows *out)
{
    const int64_t now_us = clock_steady_us(clock_system());
    struct counting c = {.request = request, .table = table, .until_us = now_us + MOST_US / 2};
    struct stretch first;
    *out = (struct table_rows){0};
    status s = count_stretch(&c, bytes_make(NULL, 0), COUNTED_ROWS, &first);
    buffer_free(&first.last);
    TRY(s);
    out->is_exact = first.is_at_end;
    if (!first.is_at_end) {
        c.until_us = now_us + MOST_US;
        TRY(estimate(&c, starts, start_count, table_bytes, out));
    }
    if (out->count < first.rows)
        out->count = first.rows;
    return status_ok();
}
