/* What a filter needs of a row: see filter.h, filter_scope and filter_rejects_key.
 *
 * Reading less than everything is right only as long as the filter cannot tell. So a chain narrows
 * what is read only up to the first filter that looks at other cells than the one it judges (a
 * limit, a condition, an interleave): "the first cell of the row, if its family is f" is not "the
 * first cell of family f". An interleave needs what any of its branches needs, a condition what its
 * predicate or a branch needs. When in doubt, everything is read. */
#include "row/filter_private.h"
#include "row/row_key.h"

/* --- what a filter depends on --- */

static bool is_composite(const struct filter *filter)
{
    return filter->kind == FILTER_CHAIN || filter->kind == FILTER_INTERLEAVE ||
           filter->kind == FILTER_CONDITION;
}

/* Judges each cell by itself, so that what it drops need not be read. */
static bool is_cellwise(const struct filter *filter)
{
    switch (filter->kind) {
    case FILTER_SINK:
    case FILTER_ROW_OFFSET:
    case FILTER_ROW_LIMIT:
    case FILTER_COLUMN_LIMIT:
        return false;
    default:
        return !is_composite(filter);
    }
}

/* Passes all cells of a column or none, so that the newest of a column stay the newest. */
static bool is_columnwise(const struct filter *filter)
{
    switch (filter->kind) {
    case FILTER_PASS:
    case FILTER_BLOCK:
    case FILTER_KEY_REGEX:
    case FILTER_FAMILY_REGEX:
    case FILTER_QUALIFIER_REGEX:
    case FILTER_COLUMN_RANGE:
    case FILTER_STRIP_VALUE:
    case FILTER_LABEL:
    case FILTER_ROW_SAMPLE:
        return true;
    default:
        return false;
    }
}

/* Passes all cells of a row or none. */
static bool is_rowwise(const struct filter *filter)
{
    return is_columnwise(filter) && filter->kind != FILTER_FAMILY_REGEX &&
           filter->kind != FILTER_QUALIFIER_REGEX && filter->kind != FILTER_COLUMN_RANGE;
}

static bool looks_at_values(const struct filter *filter)
{
    return filter_looks_at_values(filter) || filter_contains(filter, FILTER_SINK);
}

/* --- scopes --- */

/* Changed in place. `families` NULL: all, so that filters that narrow nothing cost nothing. */
struct scope {
    struct family_scope *families;
    int32_t cells_per_column;
    int32_t cells_per_row;
    bool wants_values;
};

struct scoping {
    const struct schema *schema;
    struct arena *arena;
    struct family_scope *spare; /* an array that is not in use any more; or NULL */
};

static status need(struct scoping *scoping, const struct filter *filter, struct scope *out);

static void need_everything(struct scope *out)
{
    *out = (struct scope){
        .cells_per_column = INT32_MAX, .cells_per_row = INT32_MAX, .wants_values = true};
}

/* Gives the scope an array of its own, in which every family has the same scope. */
static status need_each(struct scoping *scoping, struct family_scope each, struct scope *out)
{
    size_t count = scoping->schema->family_count;
    out->families = scoping->spare;
    scoping->spare = NULL;
    if (out->families == NULL)
        out->families = arena_alloc(scoping->arena, count * sizeof *out->families);
    if (out->families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        out->families[i] = each;
    return status_ok();
}

static status need_nothing(struct scoping *scoping, struct scope *out)
{
    return need_each(scoping, (struct family_scope){.is_wanted = false}, out);
}

static const struct family_scope all_of_family = {.is_wanted = true};

/* Narrows `a` to what both want. */
static void intersect_family(struct family_scope *a, const struct family_scope *b)
{
    a->is_wanted = a->is_wanted && b->is_wanted;
    if (bytes_compare(a->from, b->from) < 0)
        a->from = b->from;
    if (b->has_to && (!a->has_to || bytes_compare(b->to, a->to) < 0)) {
        a->has_to = true;
        a->to = b->to;
    }
    if (a->has_to && bytes_compare(a->from, a->to) >= 0)
        a->is_wanted = false;
}

/* Widens `a` to one range that spans what either wants. */
static void unite_family(struct family_scope *a, const struct family_scope *b)
{
    if (!b->is_wanted)
        return;
    if (!a->is_wanted) {
        *a = *b;
        return;
    }
    if (bytes_compare(b->from, a->from) < 0)
        a->from = b->from;
    a->has_to = a->has_to && b->has_to;
    if (a->has_to && bytes_compare(a->to, b->to) < 0)
        a->to = b->to;
}

static int32_t lesser(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t greater(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static void intersect_families(struct scoping *scoping, struct scope *a, struct scope *b)
{
    if (a->families == NULL) {
        a->families = b->families;
        b->families = NULL;
    }
    for (size_t i = 0; b->families != NULL && i < scoping->schema->family_count; i++)
        intersect_family(&a->families[i], &b->families[i]);
}

static void unite_families(struct scoping *scoping, struct scope *a, const struct scope *b)
{
    for (size_t i = 0; a->families != NULL && i < scoping->schema->family_count; i++)
        unite_family(&a->families[i], b->families == NULL ? &all_of_family : &b->families[i]);
}

static void unite(struct scoping *scoping, struct scope *a, const struct scope *b)
{
    unite_families(scoping, a, b);
    a->cells_per_column = greater(a->cells_per_column, b->cells_per_column);
    a->cells_per_row = greater(a->cells_per_row, b->cells_per_row);
    a->wants_values = a->wants_values || b->wants_values;
}

/* The scope's array may be used again. */
static void give_back(struct scoping *scoping, const struct scope *scope)
{
    if (scope->families != NULL)
        scoping->spare = scope->families;
}

/* --- single filters --- */

static status need_families(struct scoping *scoping, const struct regex *regex, struct scope *out)
{
    TRY(need_nothing(scoping, out));
    for (size_t i = 0; i < scoping->schema->family_count; i++)
        out->families[i].is_wanted = regex_matches(regex, scoping->schema->families[i].name);
    return status_ok();
}

static status need_qualifier(struct scoping *scoping, const struct regex *regex, struct scope *out)
{
    struct family_scope each = {.is_wanted = true, .has_to = true};
    if (!regex_literal(regex, &each.from))
        return status_ok();
    if (!key_successor(scoping->arena, each.from, &each.to))
        return status_out_of_memory();
    return need_each(scoping, each, out);
}

/* An open start reads one column more than it needs. */
static status need_columns(struct scoping *scoping, const struct filter *filter, struct scope *out)
{
    const struct byte_range *range = &filter->range;
    struct family_scope columns = {.is_wanted = true, .has_to = range->has_end};
    if (range->has_start)
        columns.from = range->start;
    if (range->has_end && range->end_is_open)
        columns.to = range->end;
    else if (range->has_end && !key_successor(scoping->arena, range->end, &columns.to))
        return status_out_of_memory();
    TRY(need_nothing(scoping, out));
    for (size_t i = 0; i < scoping->schema->family_count; i++)
        if (bytes_equal(scoping->schema->families[i].name, filter->family))
            out->families[i] = columns;
    return status_ok();
}

/* --- filters of filters --- */

/* What is known of the filters of a chain that came before the present one. */
struct chain_state {
    bool is_cellwise;
    bool is_columnwise;
    bool is_rowwise;
    bool knows_values; /* it is settled whether values are needed */
};

static void narrow(struct scoping *scoping, struct scope *scope, struct scope *child,
                   const struct chain_state *before)
{
    if (before->is_cellwise)
        intersect_families(scoping, scope, child);
    if (before->is_columnwise)
        scope->cells_per_column = lesser(scope->cells_per_column, child->cells_per_column);
    if (before->is_rowwise)
        scope->cells_per_row = lesser(scope->cells_per_row, child->cells_per_row);
    if (!before->knows_values)
        scope->wants_values = child->wants_values;
    give_back(scoping, child);
}

static status need_chain(struct scoping *scoping, const struct filter *filter, struct scope *out)
{
    struct chain_state before = {.is_cellwise = true, .is_columnwise = true, .is_rowwise = true};
    for (size_t i = 0; i < filter->child_count; i++) {
        const struct filter *at = filter->children[i];
        struct scope child;
        TRY(need(scoping, at, &child));
        narrow(scoping, out, &child, &before);
        before.is_cellwise = before.is_cellwise && is_cellwise(at);
        before.is_columnwise = before.is_columnwise && is_columnwise(at);
        before.is_rowwise = before.is_rowwise && is_rowwise(at);
        before.knows_values = before.knows_values || !out->wants_values || looks_at_values(at);
    }
    return status_ok();
}

static status need_any(struct scoping *scoping, const struct filter *filter, struct scope *out)
{
    TRY(need_nothing(scoping, out));
    out->cells_per_column = out->cells_per_row = 0;
    out->wants_values = false;
    for (size_t i = 0; i < filter->child_count; i++) {
        struct scope child;
        if (filter->children[i] == NULL)
            continue;
        TRY(need(scoping, filter->children[i], &child));
        unite(scoping, out, &child);
        give_back(scoping, &child);
    }
    return status_ok();
}

static status need(struct scoping *scoping, const struct filter *filter, struct scope *out)
{
    need_everything(out);
    switch (filter->kind) {
    case FILTER_BLOCK:
        return need_nothing(scoping, out);
    case FILTER_CHAIN:
        return need_chain(scoping, filter, out);
    case FILTER_INTERLEAVE:
    case FILTER_CONDITION:
        return need_any(scoping, filter, out);
    case FILTER_FAMILY_REGEX:
        return need_families(scoping, filter->regex, out);
    case FILTER_QUALIFIER_REGEX:
        return need_qualifier(scoping, filter->regex, out);
    case FILTER_COLUMN_RANGE:
        return need_columns(scoping, filter, out);
    case FILTER_COLUMN_LIMIT:
        out->cells_per_column = filter->count;
        return status_ok();
    case FILTER_ROW_LIMIT:
        out->cells_per_row = filter->count;
        return status_ok();
    case FILTER_STRIP_VALUE:
        out->wants_values = false;
        return status_ok();
    default:
        return status_ok();
    }
}

status filter_scope(const struct filter *filter, const struct schema *schema, struct arena *arena,
                    struct read_scope *out)
{
    *out = (struct read_scope){
        .cells_per_column = INT32_MAX, .cells_per_row = INT32_MAX, .wants_values = true};
    if (filter == NULL)
        return status_ok();
    struct scoping scoping = {.schema = schema, .arena = arena};
    struct scope scope;
    TRY(need(&scoping, filter, &scope));
    *out = (struct read_scope){.families = scope.families,
                               .cells_per_column = scope.cells_per_column,
                               .cells_per_row = scope.cells_per_row,
                               .wants_values = scope.wants_values};
    return status_ok();
}

/* --- keys --- */

/* Whether no cell of the row can come out, whatever its cells are; no sink is inside. */
static bool rejects(const struct filter *filter, bytes row_key)
{
    if (filter == NULL) /* a branch that is missing */
        return true;
    switch (filter->kind) {
    case FILTER_BLOCK:
        return true;
    case FILTER_KEY_REGEX:
        return !regex_matches(filter->regex, row_key);
    case FILTER_CHAIN:
        for (size_t i = 0; i < filter->child_count; i++)
            if (rejects(filter->children[i], row_key))
                return true;
        return false;
    case FILTER_INTERLEAVE:
        for (size_t i = 0; i < filter->child_count; i++)
            if (!rejects(filter->children[i], row_key))
                return false;
        return true;
    case FILTER_CONDITION:
        return rejects(filter->children[CONDITION_OTHERWISE], row_key) &&
               (rejects(filter->children[CONDITION_THEN], row_key) ||
                rejects(filter->children[CONDITION_PREDICATE], row_key));
    default:
        return false;
    }
}

bool filter_rejects_key(const struct filter *filter, bytes row_key)
{
    return filter != NULL && !filter_contains(filter, FILTER_SINK) && rejects(filter, row_key);
}
