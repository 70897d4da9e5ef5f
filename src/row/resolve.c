/* Resolving a row: see resolve.h.
 *
 * Most records are simple: they hold cells alone, and are read straight through. If there are
 * overflow cells or tombstones, record and overflow cells are merged through a combiner. Both end
 * in take_cell, which decides what is visible. */
#include "row/resolve.h"

#include "base/check.h"
#include "row/combine.h"
#include "row/string_set.h"

enum stop { GO_ON, IS_COMPLETE, IS_TOO_LARGE, IS_OUT_OF_MEMORY };

struct resolver {
    const struct resolve_request *request;
    const struct schema *schema;
    struct cell_list *out;
    size_t first;   /* of the row's cells in `out` */
    uint64_t size;  /* of their qualifiers and values */
    bool wants_any; /* one cell, whichever */
    enum stop stop;
    /* the family it is in */
    uint32_t family_id;
    const struct family *family; /* NULL: not wanted */
    const struct family_scope *scope;
    const struct gc_rule *gc;
    int32_t most; /* cells of a column that may be visible */
    /* the column it is in */
    bytes qualifier;
    bool in_range;
    int32_t newer; /* cells of the column before this one */
};

static int32_t lesser(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static const struct family_scope *scope_of(const struct resolve_request *request,
                                           const struct family *family)
{
    if (request->scope == NULL || request->scope->families == NULL)
        return NULL;
    return &request->scope->families[family - request->schema->families];
}

/* The family if the reader wants something of it. */
static const struct family *wanted_family(const struct resolve_request *request, uint32_t id)
{
    const struct family *family = schema_family(request->schema, id);
    if (family == NULL)
        return NULL;
    const struct family_scope *scope = scope_of(request, family);
    return scope == NULL || scope->is_wanted ? family : NULL;
}

static bool is_visible(const struct family_scope *scope, bytes qualifier)
{
    return scope == NULL || scope->visible == NULL || string_set_has(scope->visible, qualifier);
}

static bool is_in_range(const struct family_scope *scope, bytes qualifier)
{
    return scope == NULL || (bytes_compare(qualifier, scope->from) >= 0 &&
                             (!scope->has_to || bytes_compare(qualifier, scope->to) < 0) &&
                             is_visible(scope, qualifier));
}

/* As those behind it in its column: newer cells come first. */
static bool is_too_old(const struct family_scope *scope, const struct entry *cell)
{
    return scope != NULL && cell->timestamp_us < scope->least_us;
}

static void enter_column(struct resolver *resolver, bytes qualifier)
{
    DCHECK(resolver->family != NULL);
    resolver->qualifier = qualifier;
    resolver->in_range = is_in_range(resolver->scope, qualifier);
    resolver->newer = 0;
}

static void enter_family(struct resolver *resolver, uint32_t id)
{
    const struct resolve_request *request = resolver->request;
    resolver->family_id = id;
    resolver->family = wanted_family(request, id);
    if (resolver->family == NULL)
        return;
    resolver->scope = scope_of(request, resolver->family);
    resolver->gc = request->apply_gc ? resolver->family->gc : NULL;
    resolver->most = lesser(gc_most_versions(resolver->gc),
                            request->scope == NULL ? INT32_MAX : request->scope->cells_per_column);
}

static bool stop(struct resolver *resolver, enum stop why)
{
    resolver->stop = why;
    return false;
}

/* Cells come by families' numbers: the first of them are the first by name only if both have the
 * same order. */
static bool has_enough(const struct resolver *resolver)
{
    DCHECK(resolver->out->count >= resolver->first);
    const struct read_scope *scope = resolver->request->scope;
    size_t count = resolver->out->count - resolver->first;
    return resolver->wants_any || (scope != NULL && resolver->schema->names_follow_ids &&
                                   count >= (size_t)scope->cells_per_row);
}

static bool add_cell(struct resolver *resolver, const struct entry *entry)
{
    DCHECK(resolver->family != NULL && entry->family == resolver->family_id);
    const struct resolve_request *request = resolver->request;
    struct cell cell = {.family = resolver->family,
                        .qualifier = entry->qualifier,
                        .timestamp_us = entry->timestamp_us,
                        .value = entry->value};
    resolver->size += entry->qualifier.size + entry->value.size;
    if (resolver->size > request->size_limit)
        return stop(resolver, IS_TOO_LARGE);
    if (!cell_list_add(resolver->out, &cell))
        return stop(resolver, IS_OUT_OF_MEMORY);
    return has_enough(resolver) ? stop(resolver, IS_COMPLETE) : true;
}

/* Takes the next cell of the row, in fragment order; false when there is no need for more. */
static bool take_cell(struct resolver *resolver, const struct entry *entry)
{
    bool is_new_family = entry->family != resolver->family_id;
    if (is_new_family)
        enter_family(resolver, entry->family);
    if (resolver->family == NULL)
        return true;
    if (is_new_family || !bytes_equal(entry->qualifier, resolver->qualifier))
        enter_column(resolver, entry->qualifier);
    int32_t newer = resolver->newer++;
    if (!resolver->in_range || newer >= resolver->most || is_too_old(resolver->scope, entry) ||
        (resolver->gc != NULL &&
         gc_condemns(resolver->gc, entry->timestamp_us, newer, resolver->request->now_us)))
        return true;
    return add_cell(resolver, entry);
}

/* --- a record by itself --- */

static status bad_record(void)
{
    return status_make(STATUS_DATA_LOSS, "the row's record does not parse");
}

/* Nothing more of the family is in range. */
static bool is_behind(const struct resolver *resolver)
{
    const struct family_scope *scope = resolver->scope;
    return !resolver->in_range && scope != NULL && scope->has_to &&
           bytes_compare(resolver->qualifier, scope->to) >= 0;
}

static status read_simple(struct resolver *resolver)
{
    struct fragment_reader reader;
    struct entry entry;
    if (!fragment_reader_start(&reader, resolver->request->record))
        return bad_record();
    while (fragment_reader_next(&reader, &entry) && take_cell(resolver, &entry))
        if (resolver->family == NULL || is_behind(resolver))
            fragment_reader_seek_family(&reader, entry.family + 1);
    return reader.is_bad ? bad_record() : status_ok();
}

/* --- record and overflow cells --- */

/* Overflow cells of one column that are passed one by one before it is left by a seek. */
enum { NEXTS_BEFORE_SEEK = 8 };

struct merge {
    struct resolver *resolver;
    struct combiner combiner;
    struct fragment_reader reader;
    bool has_hot;
    struct entry hot; /* the record's next entry */
    uint64_t moved;   /* by the record's mark: its own cells up to there are overflow cells now */
    struct overflow_source *source;
    bool has_cold;
    struct entry cold; /* the next overflow cell */
    const struct family_scope *cold_scope;
    bytes qualifier; /* of the last overflow cell that was added, in the arena */
    int skipped;     /* cells of its column in a row */
    uint64_t kept;   /* bytes of overflow values in the arena */
};

static bool take_entry(void *context, const struct entry *entry)
{
    struct resolver *resolver = context;
    if (!entry_is_cell(entry->kind))
        return true;
    struct entry cell = *entry;
    if (cell.kind != ENTRY_CELL) {
        cell.value = arena_copy(resolver->out->arena, cell.value);
        if (cell.value.data == NULL)
            return stop(resolver, IS_OUT_OF_MEMORY);
    }
    return take_cell(resolver, &cell);
}

static void advance_hot(struct merge *merge)
{
    merge->has_hot = fragment_reader_next(&merge->reader, &merge->hot);
}

/* Moves the source to the first wanted cell of a family with this number or a greater one; without
 * such a family there are no more overflow cells. */
static status seek_family(struct merge *merge, uint64_t least)
{
    const struct resolve_request *request = merge->resolver->request;
    const struct schema *schema = request->schema;
    for (size_t i = 0; i < schema->family_count; i++) {
        uint32_t id = schema->families[schema->by_id[i]].id;
        const struct family *family = id < least ? NULL : wanted_family(request, id);
        if (family == NULL)
            continue;
        const struct family_scope *scope = scope_of(request, family);
        return merge->source->seek(merge->source, id,
                                   scope == NULL ? bytes_make(NULL, 0) : scope->from);
    }
    merge->source = NULL;
    return status_ok();
}

/* Moves the source from a cell that is not visible to the next column that may be. */
static status seek_visible(struct merge *merge, const struct family_scope *scope)
{
    const struct string_range *next = string_set_seek(scope->visible, merge->cold.qualifier);
    if (next == NULL)
        return seek_family(merge, (uint64_t)merge->cold.family + 1);
    return merge->source->seek(merge->source, merge->cold.family, next->from);
}

/* Reads the next overflow cell in scope. */
static status advance_cold(struct merge *merge)
{
    const struct resolve_request *request = merge->resolver->request;
    merge->has_cold = false;
    while (merge->source != NULL && !merge->has_cold) {
        bool found;
        TRY(merge->source->next(merge->source, &merge->cold, &found));
        if (!found) {
            merge->source = NULL;
            break;
        }
        const struct family *family = wanted_family(request, merge->cold.family);
        const struct family_scope *scope = family == NULL ? NULL : scope_of(request, family);
        if (family == NULL || (scope != NULL && scope->has_to &&
                               bytes_compare(merge->cold.qualifier, scope->to) >= 0))
            TRY(seek_family(merge, (uint64_t)merge->cold.family + 1));
        else if (!is_visible(scope, merge->cold.qualifier))
            TRY(seek_visible(merge, scope));
        else
            merge->has_cold = true;
        merge->cold_scope = scope;
    }
    return status_ok();
}

/* The failure when the combiner gave up; OK if it was take_cell, which has set `stop`. */
static status combiner_failure(const struct merge *merge)
{
    if (merge->combiner.out_of_memory)
        return status_out_of_memory();
    return merge->resolver->stop == GO_ON ? bad_record() : status_ok();
}

static bool has_enough_of_column(const struct resolver *resolver, const struct entry *cell)
{
    return cell->family == resolver->family_id && resolver->newer >= resolver->most &&
           bytes_equal(cell->qualifier, resolver->qualifier);
}

/* Leaves the column of the overflow cell: by a seek, if a few steps have not done it. */
static status skip_cold(struct merge *merge)
{
    CHECK(merge->source != NULL); /* it gave the cell */
    if (++merge->skipped > NEXTS_BEFORE_SEEK) {
        bytes after;
        if (!key_successor(merge->resolver->out->arena, merge->cold.qualifier, &after))
            return status_out_of_memory();
        merge->skipped = 0;
        TRY(merge->source->seek(merge->source, merge->cold.family, after));
    }
    return advance_cold(merge);
}

/* Whether the value is to stay in the store. The combiner looks at the data of aggregates only. */
static bool defers(const struct merge *merge, const struct entry *cell)
{
    uint64_t after = merge->resolver->request->defer_after;
    return after > 0 && cell->kind == ENTRY_CELL && merge->kept + cell->value.size > after;
}

static bool keep_value(struct merge *merge, struct entry *cell)
{
    const struct read_scope *scope = merge->resolver->request->scope;
    bool is_plain = cell->kind == ENTRY_CELL;
    if (is_plain && scope != NULL && !scope->wants_values) {
        cell->value = bytes_make(NULL, 0);
        return true;
    }
    if (defers(merge, cell)) {
        cell->value.data = NULL;
        return true;
    }
    merge->kept += cell->value.size;
    cell->value = arena_copy(merge->resolver->out->arena, cell->value);
    return cell->value.data != NULL; /* without memory an empty one, which must not be believed */
}

/* Copies the slices of the overflow cell, which the source will take back, into the arena. */
static bool keep_slices(struct merge *merge, struct entry *cell)
{
    if (!bytes_equal(cell->qualifier, merge->qualifier) || merge->qualifier.data == NULL)
        merge->qualifier = arena_copy(merge->resolver->out->arena, cell->qualifier);
    cell->qualifier = merge->qualifier;
    bool ok = cell->qualifier.data != NULL && keep_value(merge, cell);
    return ok || stop(merge->resolver, IS_OUT_OF_MEMORY);
}

static status take_cold(struct merge *merge)
{
    struct resolver *resolver = merge->resolver;
    uint64_t tombstone;
    if (is_too_old(merge->cold_scope, &merge->cold) || has_enough_of_column(resolver, &merge->cold))
        return skip_cold(merge);
    merge->skipped = 0;
    if (!combiner_tombstone_over(&merge->combiner, &merge->cold, &tombstone))
        return combiner_failure(merge);
    if (merge->cold.version >= tombstone) {
        struct entry cell = merge->cold;
        if (!keep_slices(merge, &cell) || !combiner_add(&merge->combiner, &cell))
            return combiner_failure(merge);
    }
    return advance_cold(merge);
}

/* The mark is not for the combiner, which would ignore the overflow cells, too. */
static status take_hot(struct merge *merge)
{
    const struct entry *hot = &merge->hot;
    bool has_moved = entry_is_cell(hot->kind) && merge->moved != 0 && hot->version <= merge->moved;
    if (hot->kind == ENTRY_OVERFLOW_MARK)
        merge->moved = hot->moved;
    else if (!has_moved && !combiner_add(&merge->combiner, hot))
        return combiner_failure(merge);
    advance_hot(merge);
    return status_ok();
}

static status merge_all(struct merge *merge)
{
    struct resolver *resolver = merge->resolver;
    if (merge->source != NULL)
        TRY(seek_family(merge, 0));
    TRY(advance_cold(merge));
    while (resolver->stop == GO_ON && (merge->has_hot || merge->has_cold)) {
        bool hot_first =
            merge->has_hot && (!merge->has_cold || entry_compare(&merge->hot, &merge->cold) <= 0);
        TRY(hot_first ? take_hot(merge) : take_cold(merge));
    }
    if (merge->reader.is_bad)
        return bad_record();
    if (resolver->stop == GO_ON && !combiner_finish(&merge->combiner))
        return combiner_failure(merge);
    return status_ok();
}

static status read_merged(struct resolver *resolver)
{
    struct merge merge = {.resolver = resolver, .source = resolver->request->overflow};
    bytes record = resolver->request->record;
    if (record.size > 0 && !fragment_reader_start(&merge.reader, record))
        return bad_record();
    advance_hot(&merge);
    combiner_start(&merge.combiner, take_entry, resolver);
    combiner_drop_row(&merge.combiner, resolver->request->dropped);
    status result = merge_all(&merge);
    combiner_free(&merge.combiner);
    return result;
}

/* --- the row --- */

/* None of them is newer than the mark. */
bool record_has_overflow(bytes record, uint64_t dropped)
{
    struct fragment_reader reader;
    struct entry mark;
    if (!fragment_has_overflow(record) || dropped == 0)
        return fragment_has_overflow(record);
    return fragment_reader_start(&reader, record) && fragment_reader_next(&reader, &mark) &&
           mark.version >= dropped;
}

bool record_has_older(bytes record, uint64_t version)
{
    struct fragment_reader reader;
    struct entry entry;
    if (version == 0)
        return false;
    if (!fragment_reader_start(&reader, record))
        return true;
    while (fragment_reader_next(&reader, &entry))
        if (entry.version < version)
            return true;
    return reader.is_bad;
}

/* Fragments are sorted by family number, readers want families by name. */
static bool order_by_name(struct resolver *resolver)
{
    struct group {
        size_t first;
        size_t count;
    };
    const struct schema *schema = resolver->schema;
    struct arena *arena = resolver->out->arena;
    struct cell *cells = resolver->out->items + resolver->first;
    size_t count = resolver->out->count - resolver->first;
    struct group *groups = arena_zalloc(arena, schema->family_count * sizeof *groups);
    struct cell *copy = arena_alloc(arena, count * sizeof *copy);
    if (groups == NULL || copy == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct group *group = &groups[cells[i].family - schema->families];
        if (group->count++ == 0)
            group->first = i;
    }
    memcpy(copy, cells, count * sizeof *copy);
    for (size_t i = 0; i < schema->family_count; i++) {
        if (groups[i].count > 0)
            memcpy(cells, copy + groups[i].first, groups[i].count * sizeof *cells);
        cells += groups[i].count;
    }
    return true;
}

static status finish(struct resolver *resolver, bool *too_large)
{
    if (resolver->stop == IS_TOO_LARGE) {
        *too_large = true;
        return status_make(STATUS_FAILED_PRECONDITION, "the row is larger than %llu bytes",
                           (unsigned long long)resolver->request->size_limit);
    }
    bool in_order =
        resolver->schema->names_follow_ids || resolver->out->count - resolver->first < 2;
    if (resolver->stop == IS_OUT_OF_MEMORY || (!in_order && !order_by_name(resolver)))
        return status_out_of_memory();
    return status_ok();
}

static status resolve(const struct resolve_request *request, bool wants_any, struct cell_list *out,
                      bool *too_large)
{
    struct resolver resolver = {.request = request,
                                .schema = request->schema,
                                .out = out,
                                .first = out->count,
                                .wants_any = wants_any};
    bytes record = request->record;
    bool is_simple =
        request->overflow == NULL && request->dropped == 0 && fragment_is_simple(record);
    *too_large = false;
    if (record.size == 0 && request->overflow == NULL)
        return status_ok();
    TRY(is_simple ? read_simple(&resolver) : read_merged(&resolver));
    return finish(&resolver, too_large);
}

/* Gives any one cell of the row, without its value if that costs something. */
static status resolve_presence(const struct resolve_request *request, struct cell_list *out,
                               bool *too_large)
{
    const struct read_scope any = {.cells_per_column = 1, .cells_per_row = 1};
    struct resolve_request again = *request;
    again.scope = &any;
    return resolve(&again, true, out, too_large);
}

status row_resolve(const struct resolve_request *request, struct cell_list *out, bool *too_large)
{
    size_t before = out->count;
    TRY(resolve(request, false, out, too_large));
    if (out->count > before || request->scope == NULL || !request->scope->wants_presence)
        return status_ok();
    return resolve_presence(request, out, too_large);
}
