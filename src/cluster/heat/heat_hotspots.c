/* See heat_hotspots.h. */
#include "cluster/heat/heat_hotspots.h"

#include "base/limits.h"
#include "cluster/cluster_private.h"
#include "cluster/heat/heat_choice.h"
#include "cluster/heat/heat_lasting.h"
#include "cluster/heat/heat_matrix.h"
#include "cluster/heat/heat_part.h"

#include <stdlib.h>

#define BIT(number) (1u << (number))

enum { MOST_HOTSPOTS = 8 };

static const double MOST = 0.75;        /* of the rising keys, at a frontier */
static const double FRONTIER = 0.5;     /* of the writes, that rise */
static const double HOT_KEY = 0.1;      /* of the requests for single rows */
static const double READ_PERCENT = 50;  /* of all processors */
static const double COARSE_PART = 0.25; /* of the data, that is counted as one range */
static const double COARSE = 0.5;       /* of the rows, that are of that */

/* The rows that a hot range has at least, in so small a part at most (heat_part.h). */
static const struct {
    double share;
    double part;
} HOT[] = {{0.75, 0.1}, {0.66, 0.075}};

struct finding {
    const struct heat_record *heat;
    const struct heat_ranges *data;
    heat_section *section_of;
    struct arena *arena;
    struct heat_hotspot *hotspots;
    size_t count;
};

/* --- sentences --- */

static void append_range(struct buffer *out, bytes start, bytes end)
{
    buffer_append_bytes(out, bytes_of(start.size == 0 ? "from the first row" : "from "));
    if (start.size > 0)
        buffer_append_quoted(out, start, LIMIT_ROW_KEY_BYTES);
    buffer_append_bytes(out, bytes_of(end.size == 0 ? " to the last" : " up to "));
    if (end.size > 0)
        buffer_append_quoted(out, end, LIMIT_ROW_KEY_BYTES);
}

static int percent(double share)
{
    return (int)(share * 100 + 0.5);
}

/* Takes the sentence, which is freed. */
static status add_hotspot(struct finding *finding, const struct heat_hotspot *hotspot,
                          struct buffer *sentence)
{
    bool failed = sentence->failed;
    char *text = failed ? NULL : arena_string(finding->arena, buffer_bytes(sentence));
    buffer_free(sentence);
    if (text == NULL)
        return status_out_of_memory();
    if (finding->count == MOST_HOTSPOTS)
        return status_ok();
    finding->hotspots[finding->count] = *hotspot;
    finding->hotspots[finding->count++].sentence = text;
    return status_ok();
}

/* --- ranges --- */

static struct heat_run run_of(const struct finding *finding, unsigned numbers, double share)
{
    return heat_busiest_run(finding->heat, 0, finding->heat->count - 1, numbers, share);
}

static struct heat_hotspot hotspot_at(const struct finding *finding, enum heat_hotspot_kind kind,
                                      const struct heat_run *run)
{
    bytes start = finding->heat->entries[run->first].start;
    bytes end = finding->heat->entries[run->last].end;
    return (struct heat_hotspot){.kind = kind,
                                 .start = start,
                                 .end = end,
                                 .share = (double)run->sum / (double)run->total,
                                 .total = run->total,
                                 .part = heat_part_of_data(finding->data, start, end)};
}

/* --- keys --- */

static bool is_digit(bytes key, size_t at)
{
    return at < key.size && key.data[at] >= '0' && key.data[at] <= '9';
}

static size_t digits_at(bytes key, size_t at)
{
    size_t count = 0;
    while (is_digit(key, at + count))
        count++;
    return count;
}

static double number_at(bytes key, size_t at, size_t digits)
{
    double number = 0;
    for (size_t i = 0; i < digits; i++)
        number = 10 * number + (key.data[at + i] - '0');
    return number;
}

/* Seconds, milliseconds, microseconds or nanoseconds since 1970, within a few years of now; or a
 * year, a month and a day. */
static bool is_time(bytes key, size_t at, int64_t now_us)
{
    enum { SECONDS = 10, NANOSECONDS = 19, YEARS = 5, DATE = 8 };
    size_t digits = digits_at(key, at);
    double now_s = (double)now_us / 1e6, years_s = YEARS * 365.25 * 86400;
    if (digits >= SECONDS && digits <= NANOSECONDS && (digits - SECONDS) % 3 == 0) {
        double seconds = number_at(key, at, SECONDS);
        return seconds > now_s - years_s && seconds < now_s + years_s;
    }
    bool has_dashes =
        digits == 4 && at + 4 < key.size && key.data[at + 4] == '-' && digits_at(key, at + 5) == 2;
    double year = digits == 4 || digits >= DATE ? number_at(key, at, 4) : 0;
    double now_year = 1970 + now_s / (365.25 * 86400);
    return (has_dashes || digits == DATE || digits == 14) && year > now_year - YEARS &&
           year < now_year + YEARS;
}

/* Where a time begins in the key; its size if there is none. */
static size_t find_time(bytes key, int64_t now_us)
{
    for (size_t at = 0; at < key.size; at++)
        if (is_digit(key, at) && (at == 0 || !is_digit(key, at - 1)) && is_time(key, at, now_us))
            return at;
    return key.size;
}

static const char *kind_of_key(bytes key, int64_t now_us)
{
    size_t at = find_time(key, now_us);
    if (at == 0)
        return "the keys begin with a time";
    if (at < key.size)
        return "the keys have a time behind what they begin with";
    return "the keys are numbered in sequence, or made of a clock";
}

/* --- hotspots --- */

static bytes newest_of(const struct finding *finding, const struct heat_run *run)
{
    bytes newest = bytes_make(NULL, 0);
    for (size_t i = run->first; i <= run->last; i++)
        if (bytes_compare(finding->heat->entries[i].sum.newest, newest) > 0)
            newest = finding->heat->entries[i].sum.newest;
    return newest;
}

/* The key may be missing: where borders differ, a count is shared out among parts, and the newest
 * key lies in one of them. */
static void append_newest(struct buffer *text, bytes key, int64_t now_us)
{
    if (key.size == 0)
        return;
    buffer_append_bytes(text, bytes_of(", the last "));
    buffer_append_quoted(text, key, LIMIT_ROW_KEY_BYTES);
    buffer_append_format(text, ": %s", kind_of_key(key, now_us));
}

static status find_frontier(struct finding *finding, bool *found)
{
    struct heat_run writes = run_of(finding, BIT(HEAT_WRITES), 1);
    struct heat_run rising = run_of(finding, BIT(HEAT_RISING), MOST);
    *found = writes.total >= HEAT_HOTSPOT_LEAST_ROWS &&
             (double)rising.sum >= FRONTIER * (double)writes.total;
    if (!*found)
        return status_ok();
    struct heat_hotspot hotspot = hotspot_at(finding, HEAT_HOTSPOT_WRITE_FRONTIER, &rising);
    struct buffer text = {0};
    hotspot.share = (double)rising.sum / (double)writes.total;
    hotspot.total = writes.total;
    hotspot.key = newest_of(finding, &rising);
    buffer_append_format(&text, "Write frontier: %d %% of the writes go to rising keys ",
                         percent(hotspot.share));
    append_range(&text, hotspot.start, hotspot.end);
    append_newest(&text, hotspot.key, finding->heat->until_us);
    buffer_append_format(&text, ", so one tablet takes them all.");
    return add_hotspot(finding, &hotspot, &text);
}

/* Whether one row has most of the run: that is a hotspot of its own. */
static bool is_one_row(const struct finding *finding, const struct heat_run *run)
{
    const struct heat_sum *sum = &finding->heat->entries[run->first].sum;
    return run->first == run->last && 2 * sum->votes > run->sum;
}

static status add_hot_range(struct finding *finding, const struct heat_hotspot *hotspot,
                            const char *what)
{
    struct buffer text = {0};
    buffer_append_format(&text, "Hot range: %d %% of the %s are of rows ", percent(hotspot->share),
                         what);
    append_range(&text, hotspot->start, hotspot->end);
    buffer_append_format(&text, ", which have %.2g %% of the data.", 100 * hotspot->part);
    return add_hotspot(finding, hotspot, &text);
}

static status find_hot_range(struct finding *finding, enum heat_hotspot_kind kind, unsigned numbers,
                             const char *what)
{
    for (size_t i = 0; i < sizeof HOT / sizeof *HOT; i++) {
        struct heat_run run = run_of(finding, numbers, HOT[i].share);
        if (run.total < HEAT_HOTSPOT_LEAST_ROWS || is_one_row(finding, &run))
            return status_ok();
        struct heat_hotspot hotspot = hotspot_at(finding, kind, &run);
        double part;
        TRY(heat_part_of_sections(finding->data, finding->section_of, hotspot.start, hotspot.end,
                                  &part));
        if (part <= HOT[i].part && hotspot.part <= HOT[i].part)
            return add_hot_range(finding, &hotspot, what);
    }
    return status_ok();
}

static status find_hot_keys(struct finding *finding)
{
    const unsigned timed = BIT(HEAT_TIMED_READS) | BIT(HEAT_TIMED_WRITES);
    uint64_t requests = run_of(finding, timed, 1).total;
    for (size_t i = 0; i < finding->heat->count && requests >= HEAT_HOTSPOT_LEAST_ROWS; i++) {
        const struct heat_entry *entry = &finding->heat->entries[i];
        struct heat_hotspot hotspot = {.kind = HEAT_HOTSPOT_HOT_KEY,
                                       .start = entry->start,
                                       .end = entry->end,
                                       .key = entry->sum.favourite,
                                       .share = (double)entry->sum.votes / (double)requests,
                                       .total = requests};
        struct buffer text = {0};
        if (hotspot.share < HOT_KEY)
            continue;
        buffer_append_format(&text, "Hot key: one row takes %d %% or more of the requests, ",
                             percent(hotspot.share));
        buffer_append_quoted(&text, hotspot.key, LIMIT_ROW_KEY_BYTES);
        buffer_append_format(&text, "%s. A row cannot be split.",
                             hotspot.key.size < HEAT_KEY_BYTES ? "" : " (its key begins so)");
        TRY(add_hotspot(finding, &hotspot, &text));
    }
    return status_ok();
}

static status find_read_pressure(struct finding *finding)
{
    const struct heat_record *heat = finding->heat;
    uint64_t reads = run_of(finding, BIT(HEAT_READS), 1).total;
    uint64_t writes = run_of(finding, BIT(HEAT_WRITES), 1).total;
    if (reads < HEAT_HOTSPOT_LEAST_ROWS)
        return status_ok();
    double taken = heat->cpu_percent * (double)reads / (double)(reads + writes);
    struct heat_run run = run_of(finding, BIT(HEAT_READ_BYTES), FRONTIER);
    if (taken < READ_PERCENT || run.total == 0)
        return status_ok();
    struct heat_hotspot hotspot = hotspot_at(finding, HEAT_HOTSPOT_READ_PRESSURE, &run);
    struct buffer text = {0};
    buffer_append_format(&text,
                         "Read pressure: reads take %.0f %% of all processors, and %d %% of what "
                         "they read is of rows ",
                         taken, percent(hotspot.share));
    append_range(&text, hotspot.start, hotspot.end);
    buffer_append_format(&text, ", %.3g KB a row.", (double)run.total / (double)reads / 1e3);
    return add_hotspot(finding, &hotspot, &text);
}

static status find_large_rows(struct finding *finding)
{
    const struct heat_record *heat = finding->heat;
    struct heat_run run = {.total = 1};
    uint64_t largest = 0;
    for (size_t i = 0; i < heat->count; i++) {
        uint64_t size = heat->entries[i].sum.numbers[HEAT_LARGEST_ROW];
        if (size <= largest)
            continue;
        largest = size;
        run.first = run.last = i;
    }
    if (largest < HEAT_HOTSPOT_LARGE_ROW)
        return status_ok();
    struct heat_hotspot hotspot = hotspot_at(finding, HEAT_HOTSPOT_LARGE_ROWS, &run);
    struct buffer text = {0};
    buffer_append_format(&text, "Large rows: one of %.0f MB was read, ", (double)largest / 1e6);
    append_range(&text, hotspot.start, hotspot.end);
    buffer_append_format(&text, "; more than 100 MB is more than a row should have.");
    return add_hotspot(finding, &hotspot, &text);
}

/* A hot range in it would not be seen: silence says nothing. */
static status find_few_ranges(struct finding *finding)
{
    const unsigned rows = BIT(HEAT_READS) | BIT(HEAT_WRITES);
    const struct heat_run all = run_of(finding, rows, 1);
    for (size_t i = 0; i < finding->heat->count; i++) {
        const struct heat_entry *entry = &finding->heat->entries[i];
        struct heat_run run = {.first = i,
                               .last = i,
                               .sum =
                                   entry->sum.numbers[HEAT_READS] + entry->sum.numbers[HEAT_WRITES],
                               .total = all.total};
        bool is_coarse = run.total >= HEAT_HOTSPOT_COARSE_ROWS &&
                         finding->data->count >= HEAT_HOTSPOT_COARSE_DATA &&
                         (double)run.sum >= COARSE * (double)run.total &&
                         heat_part_of_data(finding->data, entry->start, entry->end) >= COARSE_PART;
        if (!is_coarse)
            continue;
        struct heat_hotspot hotspot = hotspot_at(finding, HEAT_HOTSPOT_FEW_RANGES, &run);
        struct buffer text = {0};
        buffer_append_format(&text,
                             "Too few ranges: %d %% of the rows that were asked for are "
                             "counted as one range, ",
                             percent(hotspot.share));
        append_range(&text, hotspot.start, hotspot.end);
        buffer_append_format(&text, "; which part of it is hot cannot be told.");
        return add_hotspot(finding, &hotspot, &text);
    }
    return status_ok();
}

status heat_hotspots_of(const struct heat_record *heat, const struct heat_ranges *data,
                        heat_section *section_of, struct arena *arena, struct heat_hotspot **out,
                        size_t *count)
{
    struct finding finding = {.heat = heat, .data = data, .section_of = section_of, .arena = arena};
    bool has_frontier;
    *count = 0;
    *out = finding.hotspots =
        arena_alloc(arena, (MOST_HOTSPOTS + HEAT_LASTING_HOTSPOTS) * sizeof *finding.hotspots);
    if (*out == NULL)
        return status_out_of_memory();
    if (heat->count == 0)
        return status_ok();
    TRY(find_frontier(&finding, &has_frontier));
    if (!has_frontier)
        TRY(find_hot_range(&finding, HEAT_HOTSPOT_HOT_WRITES, BIT(HEAT_WRITES), "writes"));
    TRY(find_hot_range(&finding, HEAT_HOTSPOT_HOT_READS, BIT(HEAT_READS), "reads"));
    TRY(find_hot_keys(&finding));
    TRY(find_read_pressure(&finding));
    TRY(find_large_rows(&finding));
    TRY(find_few_ranges(&finding));
    *count = finding.count;
    return status_ok();
}

static status find_hotspots(const struct heat_matrix *matrix, const struct heat_ranges *data,
                            const struct heat_looking *looking, struct arena *arena,
                            struct heat_hotspot **out, size_t *count)
{
    struct heat_record heat;
    size_t lasting;
    TRY(heat_matrix_sum(matrix, arena, &heat));
    TRY(heat_hotspots_of(&heat, data, looking->section_of, arena, out, count));
    if (!looking->wants_lasting)
        return status_ok();
    TRY(heat_lasting_hotspots(matrix, data, looking->section_of, arena, *out + *count, &lasting));
    *count += lasting;
    return status_ok();
}

status heat_hotspots_of_matrix(struct table *table, const struct heat_matrix *matrix,
                               const struct heat_looking *looking, struct arena *arena,
                               struct heat_hotspot **out, size_t *count)
{
    struct heat_ranges *data;
    TRY(heat_table_data(table, looking->most_ranges, looking->most_walked, &data));
    status s = find_hotspots(matrix, data, looking, arena, out, count);
    heat_ranges_destroy(data);
    return s;
}

status heat_hotspots_read(struct table *table, int64_t from_us, int64_t until_us,
                          struct arena *arena, struct heat_hotspot **out, size_t *count)
{
    const struct heat_looking looking = {.most_ranges = HEAT_MOST_RANGES,
                                         .most_walked = HEAT_MOST_WALKED};
    struct heat_matrix matrix;
    TRY(heat_matrix_read(table, from_us, until_us, HEAT_MOST_RANGES, arena, &matrix));
    return heat_hotspots_of_matrix(table, &matrix, &looking, arena, out, count);
}
