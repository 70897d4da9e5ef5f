/* `trestle import csv`, `jsonl` and `avro`: rows of files. */
#include "cmd/command.h"
#include "cmd/transfer/file_options.h"
#include "cmd/transfer/import.h"
#include "transfer/file_source.h"

#include "base/clock.h"

enum duplicates { DUPLICATES_REJECT, DUPLICATES_LAST };

enum { SETUP_LIMIT = 64 << 20, MILLISECOND = 1000 };

struct import_options {
    struct target_options target;
    struct transfer_options transfer;
    struct file_options file;
    const char *const *sources;
    size_t source_count;
    const char *table;
    const char *families; /* names, joined by commas */
    const char *row_key;
    const char *timestamp;
    const char *time;
    int duplicates; /* enum duplicates */
};

/* --- options --- */

#define ROW(kind_, member_, preset_, unit_, sentence_)                                             \
    {                                                                                              \
        .member = #member_, .kind = OPTION_##kind_,                                                \
        .offset = offsetof(struct import_options, member_), .preset = preset_, .unit = unit_,      \
        .sentence = sentence_                                                                      \
    }

static const struct option rows[] = {
    TARGET_OPTION_ROWS(struct import_options, target),
    ROW(STRING, table, NULL, "NAME", "The table."),
    ROW(STRING, families, NULL, "NAMES",
        "The column families of a table that is not there, and is made with them."),
    ROW(STRING, row_key, NULL, "TEMPLATE",
        "What row keys are made of, \"{customer}#{order}\": the file has records of fields."),
    FILE_OPTION_ROWS(struct import_options, file),
    ROW(STRING, timestamp, NULL, "NAME",
        "Of fields, the one that says when: seconds, milliseconds or microseconds since 1970, or "
        "RFC 3339."),
    ROW(STRING, time, NULL, "TIME",
        "The timestamp of cells that have none, written the same ways; by default now."),
    ROW(ENUM, duplicates, "reject", "reject|last",
        "Of fields, what becomes of a record whose row key and timestamp one before it has: it is "
        "rejected, or overwrites what they both have."),
    TRANSFER_OPTION_ROWS(struct import_options, transfer),
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle import csv|jsonl|avro SOURCE…"};

static void write_help(struct buffer *out)
{
    options_write_help(&table, out);
}

static status check(const struct import_options *options)
{
    bool has_fields = options->row_key != NULL;
    int form = options->file.form;
    if (options->table == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "--table is missing");
    if (form == ROWS_FIELDS && !has_fields)
        return status_make(STATUS_INVALID_ARGUMENT, "--row-key is missing");
    if (has_fields && (form == ROWS_CELLS || form == ROWS_CBT))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "--row-key is for the form fields: in the others rows have keys");
    if (has_fields && options->file.columns == NULL && options->file.family == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "--family is missing, or --columns");
    for (size_t i = 0; i < options->source_count; i++)
        if (strcmp(options->sources[i], "-") == 0 && options->transfer.verify == VERIFY_FULL)
            return status_make(STATUS_INVALID_ARGUMENT,
                               "--verify full reads the sources twice, which - cannot be");
    bool has_words =
        options->file.columns != NULL || options->file.types != NULL || options->timestamp != NULL;
    if (has_words && !has_fields)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "--columns, --types and --timestamp need --row-key");
    return status_ok();
}

static status read_options(const char *const *arguments, struct import_options *out)
{
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = out, .origins = origins};
    const char *const no_environment[] = {NULL};
    *out = (struct import_options){.sources = arguments};
    while (arguments[out->source_count] != NULL &&
           strncmp(arguments[out->source_count], "--", 2) != 0)
        out->source_count++;
    if (out->source_count == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "the sources come first: files, or -");
    TRY(options_read(&table, arguments + out->source_count, no_environment, &values));
    TRY(check(out));
    return target_options_resolve(&table, origins, &out->target);
}

/* --- what they ask for --- */

static status find_time(const char *text, int64_t *out)
{
    *out = clock_wall_us(clock_system()) / MILLISECOND * MILLISECOND;
    return text == NULL || field_to_time(bytes_of(text), out)
               ? status_ok()
               : status_make(STATUS_INVALID_ARGUMENT, "--time: %s is no time", text);
}

static void add_family(struct move_family *families, size_t *count, const char *name,
                       uint32_t versions)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(families[i].name, name) == 0)
            return;
    families[(*count)++] = (struct move_family){.name = name, .versions = versions};
}

/* Finds the families that are named: in a list, of columns, of all other fields. Of fields, tables
 * that are made keep one version. */
static status find_families(const struct import_options *options, const struct field_layout *layout,
                            struct arena *arena, struct import_target *out)
{
    const char *list = options->families == NULL ? "" : options->families;
    const uint32_t versions = layout->key_count > 0;
    struct move_family *families =
        arena_alloc(arena, (strlen(list) + layout->column_count + 1) * sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    out->families = families;
    while (*list != '\0') {
        size_t size = strcspn(list, ",");
        const char *family = arena_string(arena, bytes_make(list, size));
        if (family == NULL)
            return status_out_of_memory();
        if (size > 0)
            add_family(families, &out->family_count, family, versions);
        list += size + (list[size] == ',');
    }
    for (size_t i = 0; i < layout->column_count; i++)
        add_family(families, &out->family_count, layout->columns[i].family, versions);
    if (layout->column_count == 0 && layout->family != NULL)
        add_family(families, &out->family_count, layout->family, versions);
    return status_ok();
}

static const char *or_nothing(const char *text)
{
    return text == NULL ? "" : text;
}

/* The identity of an import: a checkpoint of the same one may be gone on with. */
static status name_identity(const struct import_options *o, enum row_kind kind, struct buffer *out)
{
    const struct target_options *target = &o->target;
    buffer_append_format(out, "%s", file_kind_name(kind));
    for (size_t i = 0; i < o->source_count; i++)
        buffer_append_format(out, " %s", o->sources[i]);
    buffer_append_format(out, " to %s projects/%s/instances/%s/tables/%s", target->server.address,
                         target->project, target->instance, o->table);
    file_options_append(&o->file, out);
    buffer_append_format(out, "; %s; %s %s", or_nothing(o->row_key), or_nothing(o->timestamp),
                         or_nothing(o->time));
    buffer_append_format(out, "%s%c", o->duplicates == DUPLICATES_LAST ? "; the last" : "", 0);
    return out->failed ? status_out_of_memory() : status_ok();
}

/* --- the import --- */

struct import_plan {
    struct arena *arena;
    struct row_format format;
    struct import_target target;
    struct buffer identity;
};

/* Fails for options that make no sense, before anything is looked at. */
static status prepare(const struct import_options *options, enum row_kind kind,
                      struct import_plan *plan)
{
    plan->arena = arena_create(SETUP_LIMIT);
    if (plan->arena == NULL)
        return status_out_of_memory();
    plan->target.server = &options->target;
    plan->target.table_id = options->table;
    TRY(file_options_resolve(&options->file, kind, options->row_key, options->timestamp,
                             plan->arena, &plan->format));
    TRY(find_time(options->time, &plan->format.layout.default_us));
    TRY(find_families(options, &plan->format.layout, plan->arena, &plan->target));
    TRY(name_identity(options, kind, &plan->identity));
    plan->target.identity = (const char *)plan->identity.data;
    plan->target.records_add = true;
    return status_ok();
}

/* Records of fields are rows as they were at one moment; those of other forms are cells, of which
 * several may make one row. */
static enum transfer_unique uniqueness(const struct import_options *options)
{
    if (options->row_key == NULL)
        return UNIQUE_NOTHING;
    return options->duplicates == DUPLICATES_LAST ? UNIQUE_LAST : UNIQUE_VERSIONS;
}

static status run(const struct import_options *options, const struct import_plan *plan,
                  bool *is_perfect)
{
    struct file_source *source;
    TRY(file_source_create(options->sources, options->source_count, &plan->format, &source));
    file_source_set_unique(source, uniqueness(options));
    const struct transfer_source records = file_source_interface(source);
    status s = import_run(&options->transfer, &plan->target, &records, is_perfect);
    file_source_destroy(source);
    return s;
}

static int import_file(enum row_kind kind, const char *const *arguments)
{
    struct import_options options;
    struct import_plan plan = {0};
    bool is_perfect = false;
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    status s = read_options(arguments, &options);
    if (status_is_ok(s))
        s = prepare(&options, kind, &plan);
    bool is_sensible = status_is_ok(s);
    if (is_sensible)
        s = run(&options, &plan, &is_perfect);
    arena_destroy(plan.arena);
    buffer_free(&plan.identity);
    return is_sensible ? command_end("import", s, is_perfect) : command_refuse("import", s);
}

int import_csv_command(const char *const *arguments)
{
    return import_file(ROWS_CSV, arguments);
}

int import_jsonl_command(const char *const *arguments)
{
    return import_file(ROWS_JSONL, arguments);
}

int import_avro_command(const char *const *arguments)
{
    return import_file(ROWS_AVRO, arguments);
}
