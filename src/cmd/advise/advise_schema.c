/* See advise_schema.h. The advice about a description is always the same: its clock stands at
 * SCHEMA_NOW_US, and the seed is 1 unless another one is given. */
#include "cmd/advise/advise_schema.h"

#include "design/made_kind.h"
#include "design/made_source.h"
#include "design/show.h"
#include "os/file.h"

#define MEMORY_LIMIT  ((size_t)1 << 30)
#define SCHEMA_NOW_US ((int64_t)1767225600 * 1000 * 1000) /* 2026 begins */

struct looking {
    const struct advise_options *options;
    const struct design *design;
    status (*take)(void *context, struct advise_described *described);
    void *context;
};

static uint64_t seed_of(const struct advise_options *options)
{
    return options->seed != 0 ? options->seed : 1;
}

/* Values are made up: none of them is personal. */
static status advise_on(const struct looking *looking, const struct made_table *made,
                        struct advise_described *out)
{
    const struct advise_options *options = looking->options;
    struct made_source source = {.design = looking->design, .made = made, .load = &out->load};
    struct gather_options wanted = {.table_id = made->table->name,
                                    .now_us = made->now_us,
                                    .places = options->places,
                                    .rows = options->rows,
                                    .bytes = UINT64_MAX,
                                    .time_limit_us = INT64_MAX,
                                    .seed = made->seed,
                                    .shows_values = true};
    made_source_init(&source, made->arena, &wanted.source);
    TRY(load_play(made, &out->load));
    TRY(gather(&wanted, &out->report.seen, &out->report.sample));
    out->report.sample.is_made = true;
    out->report.sample.name = made->table->name;
    TRY(advice_find(&out->report.seen, made->arena, &out->report.advice));
    show_place_findings(made->table, options->schema, &out->report.advice);
    return looking->take(looking->context, out);
}

static status look_at_table(const struct looking *looking, const struct design_table *table)
{
    struct advise_described described = {.table = table};
    struct made_table made;
    struct arena *arena = arena_create(MEMORY_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    status s = made_table_create(table, seed_of(looking->options), SCHEMA_NOW_US, arena, &made);
    made.events = design_events(looking->design);
    if (status_is_ok(s))
        s = advise_on(looking, &made, &described);
    arena_destroy(arena);
    return s;
}

static status advise_on_kind(const struct looking *looking, struct made_kind *made)
{
    struct advise_described described = {.kind = made->kind};
    struct advise_report *report = &described.report;
    TRY(made_kind_look(made));
    TRY(advice_find_in_database(&made->seen, &made->database, made->arena, &report->advice));
    TRY(made_kind_place(made, looking->options->schema, &report->advice));
    report->seen = made->seen;
    report->seen.row_count = made->database.entity_count;
    report->sample = made->sample;
    return looking->take(looking->context, &described);
}

static status look_at_kind(const struct looking *looking, const struct design_kind *kind)
{
    struct made_kind made = {.kind = kind,
                             .arena = arena_create(MEMORY_LIMIT),
                             .seed = seed_of(looking->options),
                             .now_us = SCHEMA_NOW_US};
    if (made.arena == NULL)
        return status_out_of_memory();
    status s = advise_on_kind(looking, &made);
    arena_destroy(made.arena);
    return s;
}

/* With the file's name in front of line and column. */
static status read_design(const char *file, struct arena *arena, struct design *out)
{
    struct buffer text = {0};
    TRY(file_read(file, DESIGN_BYTES_MOST, 0, &text));
    status s = design_read(buffer_bytes(&text), arena, out);
    buffer_free(&text);
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status placed = status_make(STATUS_INVALID_ARGUMENT, "%s:%s", file, status_message(s));
    status_free(s);
    return placed;
}

status advise_look_at_schema(const struct advise_options *options,
                             status (*take)(void *context, struct advise_described *described),
                             void *context)
{
    struct design design;
    const struct looking looking = {
        .options = options, .design = &design, .take = take, .context = context};
    struct arena *arena = arena_create(MEMORY_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    status s = read_design(options->schema, arena, &design);
    for (size_t i = 0; status_is_ok(s) && i < design.count; i++)
        s = look_at_table(&looking, &design.tables[i]);
    for (size_t i = 0; status_is_ok(s) && i < design.kind_count; i++)
        s = look_at_kind(&looking, &design.kinds[i]);
    arena_destroy(arena);
    return s;
}
