/* See show.h. */
#include "design/show.h"

#include "advisor/report.h"
#include "wire/json.h"

enum { SECONDS_A_MINUTE = 60 };

/* --- lines --- */

#define KIND(kind) (1u << (kind))

/* That of the first part of one of these kinds; without one, of the key. */
static size_t line_of_part(const struct design_key *key, unsigned kinds)
{
    for (size_t i = 0; i < key->count; i++)
        if (kinds & KIND(key->parts[i].kind))
            return key->parts[i].line;
    return key->line;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* By the rule's name, which tells what it is about. */
static size_t line_of(const struct design_table *table, const char *rule)
{
    static const struct {
        const char *rule;
        unsigned kinds;
    } of_parts[] = {
        {"key-time-first", KIND(PART_TIME) | KIND(PART_UUID)},
        {"key-sequential", KIND(PART_NUMBER) | KIND(PART_TIME)},
        {"key-hashed", KIND(PART_HASH) | KIND(PART_UUID) | KIND(PART_BYTES)},
        {"key-binary", KIND(PART_BYTES)},
        {"key-padding", KIND(PART_NUMBER)},
        {"key-domain", KIND(PART_DOMAIN)},
        {"personal-data", KIND(PART_EMAIL) | KIND(PART_PHONE)},
        {"key-", 0},
    };
    static const char *const of_families[] = {"family-", "gc-"};
    static const char *const of_columns[] = {"row-size",   "cell-size",  "row-columns",
                                             "qualifier-", "tiny-cells", "default-values"};
    static const char *const of_accesses[] = {"hot-", "ramp", "cell-rewrites", "filtered-scans",
                                              "whole-scans"};
    for (size_t i = 0; i < sizeof of_parts / sizeof *of_parts; i++)
        if (begins(rule, of_parts[i].rule))
            return line_of_part(&table->key, of_parts[i].kinds);
    for (size_t i = 0; i < sizeof of_families / sizeof *of_families; i++)
        if (begins(rule, of_families[i]))
            return table->families_line;
    for (size_t i = 0; i < sizeof of_columns / sizeof *of_columns; i++)
        if (begins(rule, of_columns[i]))
            return table->columns_line;
    for (size_t i = 0; i < sizeof of_accesses / sizeof *of_accesses; i++)
        if (begins(rule, of_accesses[i]) && table->access_count > 0)
            return table->accesses_line;
    return table->line;
}

void show_place_findings(const struct design_table *table, const char *file, struct advice *advice)
{
    for (size_t i = 0; i < advice->count; i++) {
        struct advice_finding *finding = &advice->findings[i];
        finding->file = file;
        finding->line = line_of(table, finding->rule->id);
    }
}

/* --- accesses --- */

static const char *name_of(enum design_access_kind kind)
{
    static const char *const names[] = {
        [ACCESS_WRITE_NEW] = "write new",   [ACCESS_WRITE_EXISTING] = "write existing",
        [ACCESS_READ_ROW] = "read row",     [ACCESS_READ_RANGE] = "read range",
        [ACCESS_READ_TABLE] = "read table",
    };
    return names[kind];
}

/* Whether it looks at rows that it has no use for: what it knows is not how keys begin. */
static bool has_to_search(const struct design_access *access)
{
    return access->kind == ACCESS_READ_RANGE && !access->is_ordered;
}

static void write_access(const struct design_access *access, const struct load_cost *cost,
                         struct buffer *out)
{
    buffer_append_format(out, "  line %zu: %s, %s", access->line, name_of(access->kind),
                         access->rate_text);
    if (access->kind == ACCESS_READ_RANGE || access->kind == ACCESS_READ_TABLE)
        buffer_append_format(out, ", about %.0f rows each", cost->rows);
    if (has_to_search(access))
        buffer_append_format(out, ", most of them in vain: %s of the key is known%s",
                             access->leading == 0 ? "nothing at the beginning"
                                                  : "not all at the beginning",
                             access->leading == 0 ? ", so that the whole table is read" : "");
    buffer_append_byte(out, '\n');
}

/* --- the map as text --- */

struct shade {
    const struct load *load;
    size_t offset; /* of the numbers in a range: what is shown */
    size_t rows;
    double most; /* of one row and minute */
};

static double number_of(const struct load_range *range, size_t offset, size_t minute)
{
    const double *numbers = (const double *)(const void *)((const char *)range + offset);
    return numbers[minute];
}

static size_t first_range(const struct shade *shade, size_t row)
{
    return shade->load->count * row / shade->rows;
}

static double sum_of(const struct shade *shade, size_t row, size_t minute)
{
    double sum = 0;
    for (size_t i = first_range(shade, row); i < first_range(shade, row + 1); i++)
        sum += number_of(&shade->load->ranges[i], shade->offset, minute);
    return sum;
}

static void find_most(struct shade *shade)
{
    for (size_t row = 0; row < shade->rows; row++)
        for (size_t minute = 0; minute < LOAD_MINUTES; minute++) {
            double sum = sum_of(shade, row, minute);
            shade->most = sum > shade->most ? sum : shade->most;
        }
}

static void write_row(const struct shade *shade, size_t row, struct buffer *out)
{
    static const char shades[] = " .:-=+*#%@";
    const double darkest = sizeof shades - 2;
    bytes start = shade->load->ranges[first_range(shade, row)].start;
    buffer_append_bytes(out, bytes_of("  |"));
    for (size_t minute = 0; minute < LOAD_MINUTES; minute++) {
        double level = sum_of(shade, row, minute) / shade->most * darkest;
        size_t at = level <= 0 ? 0 : level < 1 ? 1 : (size_t)(level + 0.5);
        buffer_append_byte(out, (uint8_t)shades[at]);
    }
    buffer_append_bytes(out, bytes_of("| "));
    if (start.size == 0)
        buffer_append_bytes(out, bytes_of("(the first key)"));
    else
        advice_write_key(start, out);
    buffer_append_byte(out, '\n');
}

static void write_map(const struct load *load, const char *what, size_t offset, struct buffer *out)
{
    struct shade shade = {
        .load = load, .offset = offset, .rows = load->count < SHOW_ROWS ? load->count : SHOW_ROWS};
    find_most(&shade);
    if (shade.most <= 0)
        return;
    buffer_append_format(out, "\n  rows %s, @ is %.4g a second:\n", what,
                         shade.most / SECONDS_A_MINUTE);
    for (size_t row = 0; row < shade.rows; row++)
        write_row(&shade, row, out);
}

void show_text(const struct design_table *table, const struct load *load, struct buffer *out)
{
    if (table->access_count == 0)
        return;
    buffer_append_bytes(out, bytes_of("\nWhat will be asked for:\n"));
    for (size_t i = 0; i < table->access_count; i++)
        write_access(&table->accesses[i], &load->costs[i], out);
    buffer_append_bytes(out,
                        bytes_of("\nThe heat map of an hour, a minute a column, the first keys "
                                 "above:\n"));
    write_map(load, "written", offsetof(struct load_range, written), out);
    write_map(load, "read", offsetof(struct load_range, read), out);
}

/* --- JSON --- */

static void append_accesses(const struct design_table *table, const struct load *load,
                            struct buffer *out)
{
    for (size_t i = 0; i < table->access_count; i++) {
        const struct design_access *access = &table->accesses[i];
        buffer_append_format(out,
                             "%s\n    {\"line\": %zu, \"kind\": \"%s\", \"requestsPerSecond\": "
                             "%.6g, \"rowsEach\": %.6g, \"searches\": %s}",
                             i == 0 ? "" : ",", access->line, name_of(access->kind), access->rate,
                             load->costs[i].rows, has_to_search(access) ? "true" : "false");
    }
}

static void append_starts(const struct load *load, struct buffer *out)
{
    struct buffer key = {0};
    for (size_t i = 0; i < load->count; i++) {
        buffer_clear(&key);
        advice_write_key(load->ranges[i].start, &key);
        buffer_append_bytes(out, bytes_of(i == 0 ? "" : ", "));
        json_encode_string(buffer_bytes(&key), out);
        out->failed |= key.failed;
    }
    buffer_free(&key);
}

/* A list for each range, which has a number for each minute. */
static void append_numbers(const struct load *load, const char *name, size_t offset,
                           struct buffer *out)
{
    buffer_append_format(out, ",\n    \"%s\": [", name);
    for (size_t i = 0; i < load->count; i++) {
        buffer_append_bytes(out, bytes_of(i == 0 ? "\n      [" : ",\n      ["));
        for (size_t minute = 0; minute < LOAD_MINUTES; minute++)
            buffer_append_format(out, "%s%.4g", minute == 0 ? "" : ", ",
                                 number_of(&load->ranges[i], offset, minute) / SECONDS_A_MINUTE);
        buffer_append_byte(out, ']');
    }
    buffer_append_byte(out, ']');
}

void show_json(const struct design_table *table, const struct load *load, struct buffer *out)
{
    if (table->access_count == 0)
        return;
    buffer_append_bytes(out, bytes_of(",\n  \"accesses\": ["));
    append_accesses(table, load, out);
    buffer_append_format(out, "],\n  \"heat\": {\"minutes\": %d, \"starts\": [", LOAD_MINUTES);
    append_starts(load, out);
    buffer_append_byte(out, ']');
    append_numbers(load, "rowsWrittenPerSecond", offsetof(struct load_range, written), out);
    append_numbers(load, "rowsReadPerSecond", offsetof(struct load_range, read), out);
    buffer_append_byte(out, '}');
}

/* --- kinds of Datastore --- */

static const char *name_of_call(enum design_access_kind kind)
{
    static const char *const names[] = {
        [ACCESS_WRITE_NEW] = "write new",  [ACCESS_WRITE_EXISTING] = "write existing",
        [ACCESS_READ_ROW] = "read entity", [ACCESS_READ_RANGE] = "read query",
        [ACCESS_READ_TABLE] = "read kind",
    };
    return names[kind];
}

void show_kind_text(const struct design_kind *kind, struct buffer *out)
{
    if (kind->call_count == 0)
        return;
    buffer_append_bytes(out, bytes_of("\nWhat will be asked for:\n"));
    for (size_t i = 0; i < kind->call_count; i++)
        buffer_append_format(out, "  line %zu: %s, %s\n", kind->calls[i].line,
                             name_of_call(kind->calls[i].kind), kind->calls[i].rate_text);
}

void show_kind_json(const struct design_kind *kind, struct buffer *out)
{
    if (kind->call_count == 0)
        return;
    buffer_append_bytes(out, bytes_of(",\n  \"accesses\": ["));
    for (size_t i = 0; i < kind->call_count; i++)
        buffer_append_format(
            out, "%s\n    {\"line\": %zu, \"kind\": \"%s\", \"requestsPerSecond\": %.6g}",
            i == 0 ? "" : ",", kind->calls[i].line, name_of_call(kind->calls[i].kind),
            kind->calls[i].rate);
    buffer_append_byte(out, ']');
}
