/* Which keys a condition leaves: sets of ranges, put together as the condition is of AND and OR.
 *
 * What is not understood leaves all keys: the condition itself is looked at for each row anyway. So
 * is an operand that has no value (an error that may never come to light). */
#include "base/vector.h"
#include "row/row_key.h"
#include "sql/functions/cast.h"
#include "sql/functions/like.h"
#include "sql/plan/key_schema.h"
#include "sql/plan/optimize.h"

#include <stdlib.h>
#include <strings.h>

enum { MOST_COMBINATIONS = 10000 }; /* of values of the key's parts */

/* Sorted, without overlap, none empty. `to` empty: no bound. */
struct range_set {
    struct sql_key_range *items;
    size_t count;
};

struct reader {
    const struct sql_scan_plan *scan;
    struct sql_frame *frame;
};

/* --- sets --- */

static status set_of(struct reader *reader, bytes from, bytes to, struct range_set *out)
{
    out->items = arena_alloc(reader->frame->arena, sizeof *out->items);
    if (out->items == NULL)
        return status_out_of_memory();
    out->items[0] = (struct sql_key_range){from, to};
    out->count = to.size == 0 || bytes_compare(from, to) < 0;
    return status_ok();
}

static status all_keys(struct reader *reader, struct range_set *out)
{
    return set_of(reader, bytes_make(NULL, 0), bytes_make(NULL, 0), out);
}

static status no_keys(struct range_set *out)
{
    *out = (struct range_set){0};
    return status_ok();
}

static status intersect(struct reader *reader, const struct range_set *a, const struct range_set *b,
                        struct range_set *out)
{
    struct range_set result = {0};
    result.items = arena_alloc(reader->frame->arena, (a->count + b->count) * sizeof *result.items);
    if (result.items == NULL)
        return status_out_of_memory();
    for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        const struct sql_key_range *left = &a->items[i], *right = &b->items[k];
        bool is_left_first = key_ends_before(left->to, right->to);
        struct sql_key_range both = {bytes_compare(left->from, right->from) > 0 ? left->from
                                                                                : right->from,
                                     is_left_first ? left->to : right->to};
        if (both.to.size == 0 || bytes_compare(both.from, both.to) < 0)
            result.items[result.count++] = both;
        i += is_left_first;
        k += !is_left_first;
    }
    *out = result;
    return status_ok();
}

static int compare_ranges(const void *a, const void *b)
{
    return bytes_compare(((const struct sql_key_range *)a)->from,
                         ((const struct sql_key_range *)b)->from);
}

/* Sorts, and joins what overlaps or touches. */
static void normalize(struct range_set *set)
{
    size_t kept = 0;
    if (set->count == 0)
        return;
    qsort(set->items, set->count, sizeof *set->items, compare_ranges);
    for (size_t i = 1; i < set->count; i++) {
        struct sql_key_range *last = &set->items[kept];
        const struct sql_key_range *next = &set->items[i];
        bool is_apart = last->to.size > 0 && bytes_compare(last->to, next->from) < 0;
        if (is_apart)
            set->items[++kept] = *next;
        else if (key_ends_before(last->to, next->to))
            last->to = next->to;
    }
    set->count = kept + 1;
}

static status add_ranges(struct reader *reader, struct vector *ranges, const struct range_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        TRY(vector_add(ranges, reader->frame->arena, &set->items[i], sizeof *set->items));
    return status_ok();
}

static void end_union(const struct vector *ranges, struct range_set *out)
{
    *out = (struct range_set){ranges->items, ranges->count};
    normalize(out);
}

/* --- single keys, prefixes --- */

/* The key that comes right after. */
static status after_key(struct reader *reader, bytes key, bytes *out)
{
    return key_successor(reader->frame->arena, key, out) ? status_ok() : status_out_of_memory();
}

/* The first key after all that begin with the prefix; empty if there is none. */
static status after_prefix(struct reader *reader, bytes prefix, bytes *out)
{
    return key_prefix_end(reader->frame->arena, prefix, out) ? status_ok() : status_out_of_memory();
}

static status one_key(struct reader *reader, bytes key, struct range_set *out)
{
    bytes after;
    TRY(after_key(reader, key, &after));
    return set_of(reader, key, after, out);
}

static status with_prefix(struct reader *reader, bytes prefix, struct range_set *out)
{
    bytes after;
    TRY(after_prefix(reader, prefix, &after));
    return set_of(reader, prefix, after, out);
}

/* --- comparisons --- */

static enum sql_slot_kind slot_kind(const struct reader *reader, const struct sql_expr *column)
{
    return reader->scan->slots[column->index].kind;
}

/* BYTES cast to a STRING have the same order. */
static const struct sql_expr *without_cast(const struct sql_expr *expr)
{
    bool is_cast = expr->kind == SQL_CALL && expr->function == &sql_cast_function &&
                   expr->arg_count == 1 && expr->type->kind == SQL_STRING &&
                   expr->args[0]->type->kind == SQL_BYTES;
    return is_cast ? expr->args[0] : expr;
}

/* `_key`, or CAST(_key AS STRING). */
static bool is_key(const struct reader *reader, const struct sql_expr *expr)
{
    expr = without_cast(expr);
    return expr->kind == SQL_COLUMN && slot_kind(reader, expr) == SQL_SLOT_KEY;
}

/* The same of a part of a structured key. */
static bool is_part(const struct reader *reader, const struct sql_expr *expr, size_t part)
{
    expr = without_cast(expr);
    return expr->kind == SQL_COLUMN && slot_kind(reader, expr) == SQL_SLOT_KEY_PART &&
           reader->scan->slots[expr->index].part == part;
}

/* The operand's value, if it has one that is the same for all rows. */
static bool value_of(struct reader *reader, const struct sql_expr *expr, struct sql_value *out)
{
    if (!sql_expr_is_fixed(expr))
        return false;
    status result = sql_evaluate_expr(expr, reader->frame, out);
    bool is_known = status_is_ok(result);
    status_free(result);
    return is_known;
}

enum relation_kind { LESS, LESS_EQUAL, EQUAL, GREATER_EQUAL, GREATER, PREFIX, PATTERN };

static status compared(struct reader *reader, enum relation_kind kind,
                       const struct sql_value *value, struct range_set *out)
{
    const bytes none = bytes_make(NULL, 0);
    bytes after;
    if (value->is_null)
        return no_keys(out);
    TRY(after_key(reader, value->text, &after));
    switch (kind) {
    case LESS:
        return value->text.size == 0 ? no_keys(out) : set_of(reader, none, value->text, out);
    case LESS_EQUAL:
        return set_of(reader, none, after, out);
    case EQUAL:
        return set_of(reader, value->text, after, out);
    case GREATER_EQUAL:
        return set_of(reader, value->text, none, out);
    case GREATER:
        return set_of(reader, after, none, out);
    default:
        return with_prefix(reader, value->text, out);
    }
}

/* Takes the buffer's bytes into the arena. */
static status keep_bytes(struct reader *reader, struct buffer *buffer, bytes *out)
{
    *out = arena_copy(reader->frame->arena, buffer_bytes(buffer));
    bool failed = buffer->failed || out->data == NULL;
    buffer_free(buffer);
    return failed ? status_out_of_memory() : status_ok();
}

/* What all begin with that match. */
static status pattern_prefix(struct reader *reader, bytes pattern, bytes *out, bool *is_whole)
{
    struct buffer prefix = {0};
    like_prefix(pattern, &prefix, is_whole);
    return keep_bytes(reader, &prefix, out);
}

static status like(struct reader *reader, const struct sql_value *pattern, struct range_set *out)
{
    bytes text;
    bool is_whole;
    if (pattern->is_null)
        return no_keys(out);
    TRY(pattern_prefix(reader, pattern->text, &text, &is_whole));
    return is_whole ? one_key(reader, text, out) : with_prefix(reader, text, out);
}

static bool find_relation(const char *name, enum relation_kind *kind)
{
    static const char *const names[] = {[LESS] = "$less",       [LESS_EQUAL] = "$less_equal",
                                        [EQUAL] = "$equal",     [GREATER_EQUAL] = "$greater_equal",
                                        [GREATER] = "$greater", [PREFIX] = "STARTS_WITH",
                                        [PATTERN] = "$like"};
    for (*kind = LESS; *kind <= PATTERN; ++*kind)
        if (strcmp(names[*kind], name) == 0)
            return true;
    return false;
}

static enum relation_kind mirrored(enum relation_kind kind)
{
    return kind <= GREATER ? GREATER - kind : kind;
}

static status comparison_ranges(struct reader *reader, const struct sql_expr *expr,
                                enum relation_kind kind, struct range_set *out)
{
    struct sql_value value;
    bool is_right = kind <= GREATER && is_key(reader, expr->args[1]); /* 'a' < _key */
    const struct sql_expr *key = expr->args[is_right];
    const struct sql_expr *other = expr->args[!is_right];
    if (!is_key(reader, key) || !value_of(reader, other, &value))
        return all_keys(reader, out);
    if (kind == PATTERN)
        return like(reader, &value, out);
    return compared(reader, is_right ? mirrored(kind) : kind, &value, out);
}

static status between_ranges(struct reader *reader, const struct sql_expr *expr,
                             struct range_set *out)
{
    struct sql_value value;
    struct range_set above, below;
    if (!is_key(reader, expr->args[0]))
        return all_keys(reader, out);
    TRY(value_of(reader, expr->args[1], &value) ? compared(reader, GREATER_EQUAL, &value, &above)
                                                : all_keys(reader, &above));
    TRY(value_of(reader, expr->args[2], &value) ? compared(reader, LESS_EQUAL, &value, &below)
                                                : all_keys(reader, &below));
    return intersect(reader, &above, &below, out);
}

static status keys_among(struct reader *reader, const struct sql_value *values, size_t count,
                         struct range_set *out)
{
    struct vector ranges = {0};
    for (size_t i = 0; i < count; i++) {
        struct range_set one;
        TRY(compared(reader, EQUAL, &values[i], &one));
        TRY(add_ranges(reader, &ranges, &one));
    }
    end_union(&ranges, out);
    return status_ok();
}

/* The values of IN's list, or of its array; `*are_known` false if any is not fixed. */
static status list_values(struct reader *reader, const struct sql_expr *in, bool *are_known,
                          const struct sql_value **out, size_t *count)
{
    struct sql_value array;
    *count = in->arg_count - 1;
    struct sql_value *values = arena_alloc(reader->frame->arena, *count * sizeof *values);
    if (values == NULL)
        return status_out_of_memory();
    *out = values;
    *are_known = true;
    if (strcmp(in->function->name, "$in_array") == 0) {
        *are_known = value_of(reader, in->args[1], &array);
        if (!*are_known)
            return status_ok();
        *out = array.items;
        *count = array.is_null ? 0 : array.count;
        return status_ok();
    }
    for (size_t i = 0; i < *count && *are_known; i++)
        *are_known = value_of(reader, in->args[i + 1], &values[i]);
    return status_ok();
}

static bool is_in(const struct sql_expr *expr)
{
    return expr->kind == SQL_CALL && (strcmp(expr->function->name, "$in") == 0 ||
                                      strcmp(expr->function->name, "$in_array") == 0);
}

static status in_ranges(struct reader *reader, const struct sql_expr *expr, struct range_set *out)
{
    const struct sql_value *values;
    size_t count;
    bool are_known = is_key(reader, expr->args[0]);
    if (are_known)
        TRY(list_values(reader, expr, &are_known, &values, &count));
    return are_known ? keys_among(reader, values, count, out) : all_keys(reader, out);
}

static status call_ranges(struct reader *reader, const struct sql_expr *expr, struct range_set *out)
{
    enum relation_kind kind;
    if (find_relation(expr->function->name, &kind))
        return comparison_ranges(reader, expr, kind, out);
    if (strcmp(expr->function->name, "$between") == 0)
        return between_ranges(reader, expr, out);
    return is_in(expr) ? in_ranges(reader, expr, out) : all_keys(reader, out);
}

/* --- parts of structured keys: their values --- */

/* The values that a part can have: those of an equality, or of IN, among the conditions. */
static status part_values(struct reader *reader, const struct sql_expr *condition, size_t part,
                          bool *are_known, const struct sql_value **out, size_t *count)
{
    *are_known = false;
    if (condition->kind == SQL_AND) {
        for (size_t i = 0; i < condition->arg_count && !*are_known; i++)
            TRY(part_values(reader, condition->args[i], part, are_known, out, count));
        return status_ok();
    }
    bool is_equal = condition->kind == SQL_CALL && strcmp(condition->function->name, "$equal") == 0;
    if (!is_equal && !is_in(condition))
        return status_ok();
    for (size_t side = 0; side <= is_equal; side++) {
        if (!is_part(reader, condition->args[side], part))
            continue;
        if (!is_equal)
            return list_values(reader, condition, are_known, out, count);
        struct sql_value *value = arena_alloc(reader->frame->arena, sizeof *value);
        if (value == NULL)
            return status_out_of_memory();
        *are_known = value_of(reader, condition->args[!side], value);
        *out = value;
        *count = 1;
        return status_ok();
    }
    return status_ok();
}

/* --- parts of structured keys: their bounds --- */

struct part_bounds {
    size_t part;
    const struct sql_type *type;
    struct sql_part_bound lower;
    struct sql_part_bound upper;
    bool is_impossible; /* something is compared with NULL */
};

/* Narrows the bounds on one side, if the value does. */
static status narrow(struct reader *reader, struct part_bounds *bounds, bool is_lower,
                     struct sql_value value, bool is_open)
{
    struct sql_part_bound *bound = is_lower ? &bounds->lower : &bounds->upper;
    int order = bound->value == NULL ? 0 : sql_value_compare(bounds->type, &value, bound->value);
    bool is_narrower = is_lower ? order > 0 : order < 0;
    if (bound->value != NULL && !is_narrower && (order != 0 || !is_open))
        return status_ok();
    struct sql_value *kept = arena_alloc(reader->frame->arena, sizeof *kept);
    if (kept == NULL)
        return status_out_of_memory();
    *kept = value;
    *bound = (struct sql_part_bound){kept, is_open};
    return status_ok();
}

static status narrow_to_prefix(struct reader *reader, struct part_bounds *bounds, bytes prefix)
{
    bytes after;
    TRY(after_prefix(reader, prefix, &after));
    TRY(narrow(reader, bounds, true, sql_of_text(prefix), false));
    return after.size == 0 ? status_ok() : narrow(reader, bounds, false, sql_of_text(after), true);
}

static status narrow_to_value(struct reader *reader, struct part_bounds *bounds,
                              struct sql_value value)
{
    TRY(narrow(reader, bounds, true, value, false));
    return narrow(reader, bounds, false, value, false);
}

static status narrow_to_pattern(struct reader *reader, struct part_bounds *bounds, bytes pattern)
{
    bytes text;
    bool is_whole;
    TRY(pattern_prefix(reader, pattern, &text, &is_whole));
    return is_whole ? narrow_to_value(reader, bounds, sql_of_text(text))
                    : narrow_to_prefix(reader, bounds, text);
}

static status narrow_by(struct reader *reader, struct part_bounds *bounds, enum relation_kind kind,
                        struct sql_value value)
{
    bounds->is_impossible = bounds->is_impossible || value.is_null;
    if (value.is_null)
        return status_ok();
    switch (kind) {
    case LESS:
    case LESS_EQUAL:
        return narrow(reader, bounds, false, value, kind == LESS);
    case GREATER_EQUAL:
    case GREATER:
        return narrow(reader, bounds, true, value, kind == GREATER);
    case EQUAL:
        return narrow_to_value(reader, bounds, value);
    case PREFIX:
        return narrow_to_prefix(reader, bounds, value.text);
    case PATTERN:
        break;
    }
    return narrow_to_pattern(reader, bounds, value.text);
}

static status narrow_by_comparison(struct reader *reader, const struct sql_expr *expr,
                                   enum relation_kind kind, struct part_bounds *bounds)
{
    struct sql_value value;
    bool is_right = kind <= GREATER && is_part(reader, expr->args[1], bounds->part);
    if (!is_part(reader, expr->args[is_right], bounds->part) ||
        !value_of(reader, expr->args[!is_right], &value))
        return status_ok();
    return narrow_by(reader, bounds, is_right ? mirrored(kind) : kind, value);
}

static status narrow_by_between(struct reader *reader, const struct sql_expr *expr,
                                struct part_bounds *bounds)
{
    struct sql_value value;
    if (!is_part(reader, expr->args[0], bounds->part))
        return status_ok();
    if (value_of(reader, expr->args[1], &value))
        TRY(narrow_by(reader, bounds, GREATER_EQUAL, value));
    return value_of(reader, expr->args[2], &value) ? narrow_by(reader, bounds, LESS_EQUAL, value)
                                                   : status_ok();
}

static status narrow_by_condition(struct reader *reader, const struct sql_expr *condition,
                                  struct part_bounds *bounds)
{
    enum relation_kind kind;
    if (condition->kind == SQL_AND)
        for (size_t i = 0; i < condition->arg_count; i++)
            TRY(narrow_by_condition(reader, condition->args[i], bounds));
    if (condition->kind != SQL_CALL)
        return status_ok();
    if (find_relation(condition->function->name, &kind))
        return narrow_by_comparison(reader, condition, kind, bounds);
    return strcmp(condition->function->name, "$between") == 0
               ? narrow_by_between(reader, condition, bounds)
               : status_ok();
}

/* --- parts of structured keys: the keys that have them --- */

static status span_of(struct reader *reader, const struct sql_value *parts, size_t count,
                      const struct part_bounds *bounds, struct range_set *out)
{
    struct buffer from = {0}, to = {0};
    bytes first = {0}, end = {0};
    bool is_empty;
    status result = sql_key_span(reader->scan->table->key_schema, parts, count, &bounds->lower,
                                 &bounds->upper, &from, &to, &is_empty);
    if (status_is_ok(result))
        result = keep_bytes(reader, &from, &first);
    if (status_is_ok(result))
        result = keep_bytes(reader, &to, &end);
    buffer_free(&from);
    buffer_free(&to);
    TRY(result);
    return is_empty ? no_keys(out) : set_of(reader, first, end, out);
}

/* The keys whose first parts have these values, and whose next one is as the condition says. */
static status bounded_ranges(struct reader *reader, const struct sql_expr *condition,
                             const struct sql_value *parts, size_t count, struct range_set *out)
{
    const struct sql_key_schema *schema = reader->scan->table->key_schema;
    struct part_bounds bounds = {.part = count};
    if (count < sql_key_schema_count(schema)) {
        bounds.type = sql_key_schema_part(schema, count).type;
        TRY(narrow_by_condition(reader, condition, &bounds));
    }
    return bounds.is_impossible ? no_keys(out) : span_of(reader, parts, count, &bounds, out);
}

struct combination {
    struct sql_value *parts;
    size_t count; /* of parts that are fixed so far */
    struct vector ranges;
    size_t made;
};

/* All combinations of the values of parts from `combination->count` on. */
static status combine(struct reader *reader, const struct sql_expr *condition,
                      struct combination *combination)
{
    const struct sql_key_schema *schema = reader->scan->table->key_schema;
    const struct sql_value *values;
    size_t count;
    bool are_known = combination->count < sql_key_schema_count(schema);
    if (are_known)
        TRY(part_values(reader, condition, combination->count, &are_known, &values, &count));
    if (!are_known || combination->made + count > MOST_COMBINATIONS) {
        struct range_set one;
        TRY(bounded_ranges(reader, condition, combination->parts, combination->count, &one));
        combination->made++;
        return add_ranges(reader, &combination->ranges, &one);
    }
    for (size_t i = 0; i < count; i++) {
        if (values[i].is_null)
            continue;
        combination->parts[combination->count++] = values[i];
        TRY(combine(reader, condition, combination));
        combination->count--;
    }
    return status_ok();
}

static status part_ranges(struct reader *reader, const struct sql_expr *condition,
                          struct range_set *out)
{
    size_t count = sql_key_schema_count(reader->scan->table->key_schema);
    struct combination combination = {0};
    combination.parts = arena_alloc(reader->frame->arena, count * sizeof *combination.parts);
    if (combination.parts == NULL)
        return status_out_of_memory();
    TRY(combine(reader, condition, &combination));
    end_union(&combination.ranges, out);
    return status_ok();
}

/* --- conditions --- */

static status ranges_of(struct reader *reader, const struct sql_expr *expr, struct range_set *out);

static status and_ranges(struct reader *reader, const struct sql_expr *expr, struct range_set *out)
{
    TRY(all_keys(reader, out));
    for (size_t i = 0; i < expr->arg_count; i++) {
        struct range_set one;
        TRY(ranges_of(reader, expr->args[i], &one));
        TRY(intersect(reader, out, &one, out));
    }
    return status_ok();
}

static status or_ranges(struct reader *reader, const struct sql_expr *expr, struct range_set *out)
{
    struct vector ranges = {0};
    for (size_t i = 0; i < expr->arg_count; i++) {
        struct range_set one;
        TRY(ranges_of(reader, expr->args[i], &one));
        TRY(add_ranges(reader, &ranges, &one));
    }
    end_union(&ranges, out);
    return status_ok();
}

/* With the parts of the key, if it has some, which are looked at together. */
static status ranges_of(struct reader *reader, const struct sql_expr *expr, struct range_set *out)
{
    struct sql_value value;
    if (expr->kind == SQL_OR)
        return or_ranges(reader, expr, out);
    if (expr->kind == SQL_AND)
        TRY(and_ranges(reader, expr, out));
    else if (value_of(reader, expr, &value) && (value.is_null || !value.boolean))
        return no_keys(out);
    else if (expr->kind == SQL_CALL)
        TRY(call_ranges(reader, expr, out));
    else
        return all_keys(reader, out);
    if (reader->scan->table->key_schema == NULL)
        return status_ok();
    struct range_set parts;
    TRY(part_ranges(reader, expr, &parts));
    return intersect(reader, out, &parts, out);
}

status sql_scan_ranges(const struct sql_scan_plan *scan, struct sql_frame *frame,
                       const struct sql_key_range **out, size_t *count)
{
    struct reader reader = {scan, frame};
    struct range_set set;
    TRY(scan->condition == NULL ? all_keys(&reader, &set)
                                : ranges_of(&reader, scan->condition, &set));
    *out = set.items;
    *count = set.count;
    return status_ok();
}
