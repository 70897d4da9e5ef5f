/* Explanations: see query_explain.h. */
#include "datastore/query/query_explain.h"

#include "wire/timestamps.h"

#include <inttypes.h>
#include <stdio.h>

/* --- structs of texts --- */

static status make_struct(size_t room, struct arena *arena, Pb__Struct **out)
{
    PROTO_NEW(arena, *out, PB__STRUCT__INIT);
    (*out)->fields = arena_alloc(arena, room * sizeof(Pb__Struct__FieldsEntry *));
    return (*out)->fields == NULL ? status_out_of_memory() : status_ok();
}

static status add_text(Pb__Struct *to, const char *name, const char *text, struct arena *arena)
{
    Pb__Struct__FieldsEntry *field;
    PROTO_NEW(arena, field, PB__STRUCT__FIELDS_ENTRY__INIT);
    PROTO_NEW(arena, field->value, PB__VALUE__INIT);
    field->key = name;
    field->value->kind_case = PB__VALUE__KIND_STRING_VALUE;
    field->value->string_value = text;
    to->fields[to->n_fields++] = field;
    return status_ok();
}

static status add_number(Pb__Struct *to, const char *name, int64_t number, struct arena *arena)
{
    enum { MOST = 24 };
    char *text = arena_alloc(arena, MOST);
    if (text == NULL)
        return status_out_of_memory();
    snprintf(text, MOST, "%" PRId64, number);
    return add_text(to, name, text, arena);
}

/* --- indexes --- */

static void append_property(struct buffer *out, const char *name, enum ds_flip flip)
{
    buffer_append_format(out, "%s %s, ", name, flip == DS_DESCENDING ? "DESC" : "ASC");
}

/* "(a ASC, b DESC, __name__ ASC)" */
static status describe(const struct ds_scan_plan *scan, struct arena *arena, const char **out)
{
    struct buffer text = {0};
    const struct ds_index *index = scan->index;
    buffer_append_byte(&text, '(');
    if (scan->property != NULL)
        append_property(&text, scan->property, scan->flip);
    for (size_t i = 0; index != NULL && i < index->shape.values; i++)
        append_property(&text, index->properties[i], index->shape.flips[i]);
    bool is_down = index != NULL && index->shape.key_flip == DS_DESCENDING;
    buffer_append_format(&text, "__name__ %s)", is_down ? "DESC" : "ASC");
    *out = arena_string(arena, buffer_bytes(&text));
    bool failed = text.failed || *out == NULL;
    buffer_free(&text);
    return failed ? status_out_of_memory() : status_ok();
}

static bool is_known(const Ds__PlanSummary *summary, const char *properties)
{
    for (size_t i = 0; i < summary->n_indexes_used; i++)
        if (strcmp(summary->indexes_used[i]->fields[1]->value->string_value, properties) == 0)
            return true;
    return false;
}

static status add_index(Ds__PlanSummary *summary, const struct ds_query *query,
                        const struct ds_scan_plan *scan, struct arena *arena)
{
    const char *properties;
    Pb__Struct *used;
    TRY(describe(scan, arena, &properties));
    if (is_known(summary, properties))
        return status_ok();
    bool has_ancestors = scan->index != NULL && scan->index->shape.has_ancestors;
    TRY(make_struct(2, arena, &used));
    TRY(add_text(used, "query_scope",
                 has_ancestors         ? "Includes ancestors"
                 : query->kind == NULL ? "Database"
                                       : "Collection group",
                 arena));
    TRY(add_text(used, "properties", properties, arena));
    summary->indexes_used[summary->n_indexes_used++] = used;
    return status_ok();
}

static size_t count_scans(const struct ds_plan *plan)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->branch_count; i++)
        count += plan->branches[i].scan_count;
    return count;
}

status ds_explain_plan(const struct ds_query *query, const struct ds_plan *plan,
                       struct arena *arena, Ds__ExplainMetrics **out)
{
    Ds__PlanSummary *summary;
    PROTO_NEW(arena, *out, DS__EXPLAIN_METRICS__INIT);
    PROTO_NEW(arena, summary, DS__PLAN_SUMMARY__INIT);
    (*out)->plan_summary = summary;
    summary->indexes_used = arena_alloc(arena, count_scans(plan) * sizeof(Pb__Struct *));
    if (summary->indexes_used == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < plan->branch_count; i++)
        for (size_t j = 0; j < plan->branches[i].scan_count; j++)
            TRY(add_index(summary, query, &plan->branches[i].scans[j], arena));
    return status_ok();
}

/* --- what it took --- */

enum { ENTRIES_AN_OPERATION = 1000 }; /* of indexes, as production bills what it aggregates */

static int64_t count_operations(const struct ds_reads *reads, enum ds_billing billing)
{
    int64_t operations = reads->entities;
    if (billing == DS_BILLED_AGGREGATION)
        operations += (reads->rows + ENTRIES_AN_OPERATION - 1) / ENTRIES_AN_OPERATION;
    return operations > 0 ? operations : 1;
}

/* Adds the numbers that production would bill. */
static status add_billing(const struct ds_reads *reads, enum ds_billing billing, int64_t results,
                          struct arena *arena, Pb__Struct *to)
{
    int64_t entries = billing == DS_BILLED_AGGREGATION ? reads->rows : 0;
    Pb__Struct__FieldsEntry *field;
    Pb__Struct *details;
    PROTO_NEW(arena, field, PB__STRUCT__FIELDS_ENTRY__INIT);
    PROTO_NEW(arena, field->value, PB__VALUE__INIT);
    TRY(make_struct(4, arena, &details));
    TRY(add_number(details, "documents_billable", reads->entities, arena));
    TRY(add_number(details, "index_entries_billable", entries, arena));
    TRY(add_number(details, "small_ops", billing == DS_BILLED_SMALL ? results : 0, arena));
    TRY(add_number(details, "min_query_cost", reads->entities + entries == 0, arena));
    field->key = "billing_details";
    field->value->kind_case = PB__VALUE__KIND_STRUCT_VALUE;
    field->value->struct_value = details;
    to->fields[to->n_fields++] = field;
    return status_ok();
}

status ds_explain_run(const struct ds_reads *reads, enum ds_billing billing, int64_t results,
                      int64_t duration_us, struct arena *arena, Ds__ExplainMetrics *metrics)
{
    Ds__ExecutionStats *stats;
    PROTO_NEW(arena, stats, DS__EXECUTION_STATS__INIT);
    TRY(duration_message(duration_us, arena, &stats->execution_duration));
    stats->results_returned = results;
    stats->read_operations = count_operations(reads, billing);
    TRY(make_struct(3, arena, &stats->debug_stats));
    TRY(add_number(stats->debug_stats, "index_entries_scanned", reads->rows, arena));
    TRY(add_number(stats->debug_stats, "documents_scanned", reads->entities, arena));
    TRY(add_billing(reads, billing, results, arena, stats->debug_stats));
    metrics->execution_stats = stats;
    return status_ok();
}
