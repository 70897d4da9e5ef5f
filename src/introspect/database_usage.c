/* What the server has counted of the calls of a database's clients, and which indexes have answered
 * queries, for the advisor. */
#include "base/clock.h"
#include "cluster/ranges.h"
#include "datastore/admin/ttl.h"
#include "datastore/commit/transaction.h"
#include "datastore/database.h"
#include "datastore/database_name.h"
#include "datastore/usage.h"
#include "datastore/usage_note.h"
#include "introspect/database_look.h"
#include "introspect/database_text.h"
#include "introspect/methods.h"
#include "row/row_key.h"

/* `LEFT_KINDS`: of transactions that are open; those of further kinds are not told. */
enum { LEFT_KINDS = 32 };

#define MINUTE_US (INT64_C(60) * 1000000)
#define LEFT_US   (INT64_C(10) * 1000000)

/* --- transactions that were left --- */

struct left_transactions {
    struct ds_usage_name kinds[LEFT_KINDS];
    uint64_t counts[LEFT_KINDS];
    size_t kind_count;
};

static void count_left(void *context, const struct ds_transaction *transaction)
{
    struct left_transactions *left = context;
    struct ds_usage_name kind;
    size_t i = 0;
    ds_usage_name_transaction(transaction, &kind);
    while (i < left->kind_count && left->kinds[i].hash != kind.hash)
        i++;
    if (i == LEFT_KINDS)
        return;
    if (i == left->kind_count)
        left->kinds[left->kind_count++] = kind;
    left->counts[i]++;
}

/* --- kinds --- */

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static struct advice_kind_usage usage_of(const uint64_t *numbers)
{
    return (struct advice_kind_usage){
        .commits = numbers[DS_COMMITS],
        .aborted = numbers[DS_ABORTED],
        .single_lookups = numbers[DS_SINGLE_LOOKUPS],
        .lookups_in_loops = numbers[DS_LOOKUPS_IN_LOOPS],
        .single_writes = numbers[DS_SINGLE_WRITES],
        .writes_in_loops = numbers[DS_WRITES_IN_LOOPS],
        .queries = numbers[DS_QUERIES],
        .offsets = numbers[DS_OFFSETS],
        .skipped = numbers[DS_SKIPPED],
        .offset_results = numbers[DS_OFFSET_RESULTS],
        .scans = lesser(numbers[DS_SCANS_BEGUN], numbers[DS_SCANS_ENDED]),
        .scanned = numbers[DS_SCANNED],
        .left = numbers[DS_EXPIRED],
    };
}

static status name_kind(struct looking *l, const struct ds_usage_name *name, const char **out)
{
    *out = arena_string(l->arena, bytes_make((const uint8_t *)name->text, name->size));
    return *out == NULL ? status_out_of_memory() : status_ok();
}

/* The server's own kinds are not the application's. */
static bool is_of_server(const struct ds_usage_name *name)
{
    return name->size >= 2 && memcmp(name->text, "__", 2) == 0;
}

static uint64_t take_left(struct left_transactions *left, uint64_t hash)
{
    for (size_t i = 0; i < left->kind_count; i++)
        if (left->kinds[i].hash == hash) {
            uint64_t count = left->counts[i];
            left->counts[i] = 0;
            return count;
        }
    return 0;
}

static status describe_kinds(struct looking *l, const struct ds_usage_view *view,
                             struct left_transactions *left, struct advice_database_usage *out)
{
    struct advice_kind_usage *kinds =
        arena_alloc(l->arena, (view->kind_count + LEFT_KINDS) * sizeof *kinds);
    if (kinds == NULL)
        return status_out_of_memory();
    out->kinds = kinds;
    for (size_t i = 0; i < view->kind_count; i++) {
        if (is_of_server(&view->kinds[i].name))
            continue;
        struct advice_kind_usage *kind = &kinds[out->kind_count++];
        *kind = usage_of(view->kinds[i].numbers);
        kind->open = take_left(left, view->kinds[i].name.hash);
        TRY(name_kind(l, &view->kinds[i].name, &kind->kind));
    }
    for (size_t i = 0; i < left->kind_count; i++) {
        if (left->counts[i] == 0)
            continue;
        struct advice_kind_usage *kind = &kinds[out->kind_count++];
        *kind = (struct advice_kind_usage){.open = left->counts[i]};
        TRY(name_kind(l, &left->kinds[i], &kind->kind));
    }
    return status_ok();
}

/* --- keys --- */

static status describe_key(struct looking *l, const struct ds_usage_top *top,
                           struct advice_counted_key *out)
{
    bytes row = arena_copy(l->arena, bytes_make(top->key.text, top->key.size));
    if (top->count == 0)
        return status_ok();
    if (row.data == NULL)
        return status_out_of_memory();
    out->calls = top->count - top->error;
    return database_row_text(row, l->arena, &out->words);
}

static status describe_usage(struct looking *l, const struct ds_usage_view *view,
                             struct left_transactions *left, struct advice_database_usage *out)
{
    *out = (struct advice_database_usage){
        .span_us = view->span_us, .lookups = view->lookups, .begun = view->begun};
    TRY(describe_kinds(l, view, left, out));
    TRY(describe_key(l, &view->entity, &out->entity));
    TRY(describe_key(l, &view->group, &out->group));
    return describe_key(l, &view->aborted, &out->aborted);
}

/* --- indexes --- */

struct indexing {
    struct looking *l;
    const struct ds_index_marks *marks;
    struct vector fields; /* struct ds_field_name: by which entities expire */
    struct vector uses;   /* struct advice_index_use: rows and bytes are sums at first */
};

/* The end of the minute that is marked. */
static int64_t us_of(uint32_t minute)
{
    return minute == 0 ? 0 : (minute + 1) * MINUTE_US;
}

static int64_t last_use(const struct ds_index_marks *marks, const char *kind, const char *property)
{
    uint32_t up = ds_index_marks_get(
        marks, ds_index_mark_built_in(bytes_of(kind), bytes_of(property), DS_ASCENDING));
    uint32_t down = ds_index_marks_get(
        marks, ds_index_mark_built_in(bytes_of(kind), bytes_of(property), DS_DESCENDING));
    return us_of(up > down ? up : down);
}

static bool is_in_composite(const struct looking *l, const char *kind, const char *property)
{
    for (size_t i = 0; i < l->composite_count; i++) {
        const struct ds_index *index = &l->composites[i];
        for (size_t j = 0; j < index->shape.values && strcmp(index->kind, kind) == 0; j++)
            if (strcmp(index->properties[j], property) == 0)
                return true;
    }
    return false;
}

static bool is_needed(const struct indexing *indexing, const char *kind, const char *property)
{
    const struct ds_field_name *fields = indexing->fields.items;
    for (size_t i = 0; i < indexing->fields.count; i++)
        if (strcmp(fields[i].kind, kind) == 0 && strcmp(fields[i].property, property) == 0)
            return true;
    return strncmp(property, "__", 2) == 0 || is_in_composite(indexing->l, kind, property);
}

/* Kinds and properties are one, in whatever namespace. */
static struct advice_index_use *find_use(const struct indexing *indexing, const char *kind,
                                         const char *name)
{
    struct advice_index_use *uses = indexing->uses.items;
    for (size_t i = 0; i < indexing->uses.count; i++)
        if (strcmp(uses[i].kind, kind) == 0 && strcmp(uses[i].name, name) == 0)
            return &uses[i];
    return NULL;
}

/* Adds the bytes that a part of an index takes: at least the keys that were sampled, for of few
 * rows the store's estimate is none. */
static status add_stored(const struct looking *l, bytes from, bytes to, uint64_t sampled,
                         uint64_t *sum)
{
    uint64_t stored;
    TRY(table_range_size(l->table, from, to, &stored));
    *sum += stored > sampled ? stored : sampled;
    return status_ok();
}

static status add_series(struct indexing *indexing, const struct part *part)
{
    uint64_t stored = 0;
    if (is_needed(indexing, part->kind, part->property))
        return status_ok();
    TRY(add_stored(indexing->l, part->prefix, part->after, part->row_bytes, &stored));
    struct advice_index_use *use = find_use(indexing, part->kind, part->property);
    if (use != NULL) {
        use->rows += (double)part->row_count;
        use->bytes += (double)part->row_bytes;
        use->stored += stored;
        return status_ok();
    }
    const struct advice_index_use made = {.kind = part->kind,
                                          .name = part->property,
                                          .used_us =
                                              last_use(indexing->marks, part->kind, part->property),
                                          .rows = (double)part->row_count,
                                          .bytes = (double)part->row_bytes,
                                          .stored = stored};
    return vector_add(&indexing->uses, indexing->l->arena, &made, sizeof made);
}

/* In the namespaces in which the kind was come upon. */
static status add_stored_composite(struct looking *l, const struct ds_index *index, uint64_t *sum)
{
    const struct part *kinds = l->kinds.items;
    for (size_t i = 0; i < l->kinds.count; i++) {
        struct buffer prefix = {0};
        bytes from, to;
        if (strcmp(kinds[i].kind, index->kind) != 0)
            continue;
        ds_composite_prefix(&prefix, kinds[i].name_space, index->id, bytes_make(NULL, 0));
        from = prefix.failed ? bytes_make(NULL, 0) : arena_copy(l->arena, buffer_bytes(&prefix));
        buffer_free(&prefix);
        if (from.data == NULL || !key_prefix_end(l->arena, from, &to))
            return status_out_of_memory();
        TRY(add_stored(l, from, to, 0, sum));
    }
    return status_ok();
}

static status add_composite(struct indexing *indexing, size_t at)
{
    struct looking *l = indexing->l;
    const struct ds_index *index = &l->composites[at];
    struct advice_index_use use = {
        .kind = index->kind,
        .is_composite = true,
        .used_us = us_of(ds_index_marks_get(indexing->marks, ds_index_mark_composite(index->id))),
        .rows = (double)l->composite_rows[at].count,
        .bytes = (double)l->composite_rows[at].bytes};
    TRY(add_stored_composite(l, index, &use.stored));
    if (use.stored < l->composite_rows[at].bytes)
        use.stored = l->composite_rows[at].bytes;
    TRY(database_composite_words(l, index, &use.name));
    return vector_add(&indexing->uses, l->arena, &use, sizeof use);
}

static size_t entities_of(const struct looking *l, const char *kind)
{
    const struct part *kinds = l->kinds.items;
    size_t count = 0;
    for (size_t i = 0; i < l->kinds.count; i++)
        count += strcmp(kinds[i].kind, kind) == 0 ? kinds[i].entity_count : 0;
    return count;
}

static status find_uses(struct indexing *indexing)
{
    struct looking *l = indexing->l;
    const struct part *series = l->series.items;
    for (size_t i = 0; i < l->series.count; i++)
        TRY(add_series(indexing, &series[i]));
    for (size_t i = 0; i < l->composite_count; i++)
        TRY(add_composite(indexing, i));
    struct advice_index_use *uses = indexing->uses.items;
    for (size_t i = 0; i < indexing->uses.count; i++) {
        size_t entities = entities_of(l, uses[i].kind);
        uses[i].rows /= (double)(entities == 0 ? 1 : entities);
        uses[i].bytes /= (double)(entities == 0 ? 1 : entities);
    }
    return status_ok();
}

static status describe_uses(struct looking *l, struct datastore *datastore,
                            const struct ds_database *database, const struct ds_index_marks *marks,
                            struct advice_database *out)
{
    struct indexing indexing = {.l = l, .marks = marks};
    if (ds_index_marks_is_full(marks))
        return status_ok();
    TRY(ds_ttl_list(datastore->control, database, l->arena, &indexing.fields));
    TRY(find_uses(&indexing));
    out->index_uses = indexing.uses.items;
    out->index_use_count = indexing.uses.count;
    out->uses_since_us = ds_index_marks_since(marks) * MINUTE_US;
    return status_ok();
}

/* --- all of it --- */

status database_read_usage(struct looking *l, const char *name, int64_t since_us,
                           struct advice_database *out)
{
    struct datastore *datastore = insight_of(l->request)->datastore;
    struct ds_open_database *open;
    struct ds_database_name parts;
    struct ds_usage_view view;
    TRY(ds_database_name_parse(name, l->arena, &parts));
    const struct ds_database database = {parts.project, parts.database};
    TRY(ds_database_visit(datastore, &database, &open));
    if (open == NULL || open->usage == NULL)
        return status_ok();
    struct left_transactions *left = arena_zalloc(l->arena, sizeof *left);
    if (left == NULL)
        return status_out_of_memory();
    ds_transactions_visit_left(datastore->transactions, &database,
                               clock_steady_us(datastore->clock) - LEFT_US, count_left, left);
    TRY(ds_usage_look(datastore->usage, open->usage, since_us, l->arena, &view));
    TRY(describe_usage(l, &view, left, &out->usage));
    return describe_uses(l, datastore, &database, ds_usage_marks(open->usage), out);
}
