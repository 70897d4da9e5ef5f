/* See made_kind.h: what is asked for. An hour of it, as a server would count it. */
#include "design/load.h"
#include "design/made_kind_private.h"

enum { SECONDS_AN_HOUR = 3600, SECONDS_A_MINUTE = 60, US_PER_MINUTE = 60 * 1000 * 1000 };

#define UNUSED_FOR_US (INT64_C(30) * 86400 * 1000 * 1000) /* longer than the rule wants it */

static bool is_write(const struct design_call *call)
{
    return call->kind == ACCESS_WRITE_NEW || call->kind == ACCESS_WRITE_EXISTING;
}

static uint64_t within_hour(double rate)
{
    const double most = 1e15;
    double calls = rate * SECONDS_AN_HOUR;
    return (uint64_t)(calls < most ? calls : most);
}

/* --- kinds whose load rises --- */

/* Calls without a ramp are left out: it is not known how their load rose. */
static double rising_calls(const struct design_kind *kind, size_t minute)
{
    double calls = 0;
    for (size_t i = 0; i < kind->call_count; i++) {
        const struct design_call *call = &kind->calls[i];
        bool is_of_entities = is_write(call) || call->kind == ACCESS_READ_ROW;
        if (is_of_entities && call->ramp_us >= 0)
            calls +=
                call->rate * SECONDS_A_MINUTE * load_share_at(call->ramp_us, (double)minute + 0.5);
    }
    return calls;
}

static status describe_minutes(struct made_kind *made)
{
    struct advice_minute *minutes = arena_alloc(made->arena, LOAD_MINUTES * sizeof *minutes);
    struct advice_kind *kind = arena_alloc(made->arena, sizeof *kind);
    if (minutes == NULL || kind == NULL)
        return status_out_of_memory();
    *kind = (struct advice_kind){.name = made->kind->name, .minutes = minutes};
    for (size_t i = 0; i < LOAD_MINUTES; i++) {
        double calls = rising_calls(made->kind, i);
        int64_t minute = made->now_us / US_PER_MINUTE - LOAD_MINUTES + (int64_t)i;
        if (calls > 0)
            minutes[kind->count++] = (struct advice_minute){minute, calls};
    }
    made->database.kinds = kind;
    made->database.kind_count = 1;
    return status_ok();
}

/* --- single entities and groups --- */

/* How many entities have so much to themselves of what is asked for; 0: none have. */
static double hot_entities(const struct design_kind *kind, const struct design_hot *hot)
{
    double rows = hot->rows > 0 ? (double)hot->rows : hot->part * (double)kind->entities;
    return hot->share > 0 && rows < 1 ? 1 : hot->share > 0 ? rows : 0;
}

/* The rate at which the busiest of `all` is asked for. */
static double busiest_rate(const struct design_kind *kind, const struct design_call *call,
                           double all)
{
    double hot = hot_entities(kind, &call->hot), even = call->rate * (1 - call->hot.share) / all;
    if (hot <= 0)
        return even;
    return even + call->rate * call->hot.share / (hot < all ? hot : all);
}

/* Without a parent each entity is a group, and a new one is written once. */
static double busiest_group(const struct design_kind *kind)
{
    double groups = (double)(kind->parent != NULL ? kind->parents : kind->entities), rate = 0;
    for (size_t i = 0; i < kind->call_count; i++) {
        const struct design_call *call = &kind->calls[i];
        bool is_of_group = kind->parent != NULL || call->kind == ACCESS_WRITE_EXISTING;
        if (is_write(call) && is_of_group)
            rate += busiest_rate(kind, call, groups);
    }
    return rate;
}

static double busiest_entity(const struct design_kind *kind)
{
    double rate = 0;
    for (size_t i = 0; i < kind->call_count; i++)
        if (kind->calls[i].kind == ACCESS_READ_ROW)
            rate += busiest_rate(kind, &kind->calls[i], (double)kind->entities);
    return rate;
}

/* --- what is counted --- */

static void count_call(const struct design_kind *kind, const struct design_call *call,
                       struct advice_kind_usage *out)
{
    uint64_t calls = within_hour(call->rate);
    if (is_write(call))
        out->commits += calls;
    if (call->kind == ACCESS_READ_RANGE)
        out->queries += calls;
    if (call->kind == ACCESS_READ_TABLE) {
        out->queries += calls;
        out->scans += calls;
        out->scanned += within_hour(call->rate * (double)kind->entities);
    }
    if (call->offset == 0)
        return;
    double left = (double)kind->entities - (double)call->offset;
    double results = call->results > 0 ? (double)call->results : left > 0 ? left : 0;
    out->offsets += calls;
    out->skipped += within_hour(call->rate * (double)call->offset);
    out->offset_results += within_hour(call->rate * results);
}

/* An entity's root. */
static bytes root_of(const struct made_kind *made, bytes words)
{
    static const char between[] = " / ";
    size_t size = 0;
    if (made->kind->parent == NULL)
        return words;
    while (size < words.size && !bytes_start_with(bytes_from(words, size), bytes_of(between)))
        size++;
    return bytes_make(words.data, size);
}

static status describe_usage(struct made_kind *made)
{
    const struct design_kind *kind = made->kind;
    struct advice_kind_usage *usage = arena_zalloc(made->arena, sizeof *usage);
    struct advice_database_usage *out = &made->database.usage;
    bytes some = made->database.roots->words[0];
    if (usage == NULL)
        return status_out_of_memory();
    usage->kind = kind->name;
    for (size_t i = 0; i < kind->call_count; i++) {
        count_call(kind, &kind->calls[i], usage);
        if (kind->calls[i].kind == ACCESS_READ_ROW)
            out->lookups += within_hour(kind->calls[i].rate);
    }
    out->span_us = (int64_t)SECONDS_AN_HOUR * 1000 * 1000;
    out->kinds = usage;
    out->kind_count = 1;
    out->entity = (struct advice_counted_key){some, within_hour(busiest_entity(kind))};
    out->group =
        (struct advice_counted_key){root_of(made, some), within_hour(busiest_group(kind)) /
                                                             (SECONDS_AN_HOUR / SECONDS_A_MINUTE)};
    return status_ok();
}

/* --- indexes --- */

static bool has_all(const struct design_kind *kind, const bool *properties, const bool *wanted)
{
    for (size_t i = 0; i < kind->property_count; i++)
        if (wanted[i] && !properties[i])
            return false;
    return true;
}

/* A query may take an index whose properties are all among its own. */
static bool is_used(const struct design_kind *kind, const bool *properties)
{
    for (size_t i = 0; i < kind->call_count; i++)
        if (kind->calls[i].kind == ACCESS_READ_RANGE &&
            has_all(kind, kind->calls[i].properties, properties))
            return true;
    return false;
}

static bool is_in_composite(const struct design_kind *kind, size_t property)
{
    for (size_t i = 0; i < kind->index_count; i++)
        if (kind->indexes[i].properties[property])
            return true;
    return false;
}

static bool is_queried(const struct design_kind *kind, size_t property)
{
    for (size_t i = 0; i < kind->call_count; i++)
        if (kind->calls[i].properties[property])
            return true;
    return false;
}

static void add_use(struct made_kind *made, struct advice_index_use *uses, const char *name,
                    bool is_used, double rows)
{
    enum { KEY_BYTES = 40 }; /* about: names and the path are no part of what is described */
    uses[made->database.index_use_count++] =
        (struct advice_index_use){.kind = made->kind->name,
                                  .name = name,
                                  .used_us = is_used ? made->now_us : 0,
                                  .rows = rows,
                                  .bytes = rows * KEY_BYTES};
}

/* Without accesses it is not known what is used. As where requests are counted, what a composite
 * index needs is left out. */
static status describe_uses(struct made_kind *made)
{
    const struct design_kind *kind = made->kind;
    struct advice_index_use *uses =
        arena_alloc(made->arena, (kind->property_count + kind->index_count + 1) * sizeof *uses);
    if (uses == NULL)
        return status_out_of_memory();
    made->database.index_uses = uses;
    made->database.uses_since_us = kind->call_count > 0 ? made->now_us - UNUSED_FOR_US : 0;
    for (size_t i = 0; i < kind->property_count; i++)
        if (kind->properties[i].is_indexed && !is_in_composite(kind, i))
            add_use(made, uses, kind->properties[i].name, is_queried(kind, i),
                    (double)kind->properties[i].count);
    for (size_t i = 0; i < kind->index_count; i++)
        add_use(made, uses, kind->indexes[i].words, is_used(kind, kind->indexes[i].properties),
                made_kind_index_rows(kind, &kind->indexes[i]));
    return status_ok();
}

status made_calls(struct made_kind *made)
{
    TRY(describe_minutes(made));
    TRY(describe_usage(made));
    return describe_uses(made);
}

/* --- where findings are --- */

static size_t line_of_rule(const struct design_kind *kind, const char *rule)
{
    const struct {
        const char *rule;
        size_t line;
    } lines[] = {
        {"entity-keys", kind->key_line},         {"entity-size", kind->properties_line},
        {"index-rising", kind->properties_line}, {"index-rows", kind->properties_line},
        {"index-unused", kind->properties_line}, {"personal-data", kind->properties_line},
        {"index-count", kind->indexes_line},     {"group-writes", kind->calls_line},
        {"kind-ramp", kind->calls_line},         {"query-offsets", kind->calls_line},
        {"kind-scans", kind->calls_line},        {"hot-entity", kind->calls_line},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (strcmp(lines[i].rule, rule) == 0 && lines[i].line > 0)
            return lines[i].line;
    return kind->line;
}

static void append_unused(const struct made_kind *made, struct buffer *out)
{
    enum { NAMED = 5 };
    const struct advice_database *database = &made->database;
    size_t count = 0;
    for (size_t i = 0; i < database->index_use_count; i++)
        count += database->index_uses[i].used_us == 0;
    buffer_append_format(out,
                         "%zu of the %zu indexes of the kind %s answer%s none of the queries "
                         "that are described:",
                         count, database->index_use_count, made->kind->name, count == 1 ? "s" : "");
    for (size_t i = 0, named = 0; i < database->index_use_count && named < NAMED; i++)
        if (database->index_uses[i].used_us == 0)
            buffer_append_format(out, "%s %s", named++ == 0 ? "" : ",",
                                 database->index_uses[i].name);
    if (count > NAMED)
        buffer_append_format(out, " and %zu more", count - NAMED);
    buffer_append_byte(out, '.');
}

/* There was no counting since any time: what is not used follows from the description. */
static status tell_unused(const struct made_kind *made, struct advice_finding *finding)
{
    struct buffer text = {0};
    append_unused(made, &text);
    finding->evidence = text.failed ? NULL : arena_string(made->arena, buffer_bytes(&text));
    buffer_free(&text);
    return finding->evidence == NULL ? status_out_of_memory() : status_ok();
}

status made_kind_place(const struct made_kind *made, const char *file, struct advice *advice)
{
    for (size_t i = 0; i < advice->count; i++) {
        struct advice_finding *finding = &advice->findings[i];
        finding->file = file;
        finding->line = line_of_rule(made->kind, finding->rule->id);
        if (finding->rule == &advice_rules[RULE_index_unused])
            TRY(tell_unused(made, finding));
    }
    return status_ok();
}
