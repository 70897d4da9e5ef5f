/* Which keys a condition leaves: sets of ranges, put together as the condition is of AND and OR.
 *
 * What is not understood leaves all keys: the condition itself is looked at for each row anyway. So
 * is an operand that has no value (an error that may never come to light). */
#include "row/row_key.h"
#include "sql/cast.h"
#include "sql/key_schema.h"
#include "sql/like.h"
#include "sql/optimize.h"
#include "sql/vector.h"

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
    while (prefix.size > 0 && prefix.data[prefix.size - 1] == 0xff)
        prefix.size--;
    *out = arena_copy(reader->frame->arena, prefix);
    if (out->data == NULL)
        return status_out_of_memory();
    if (out->size > 0)
        ((uint8_t *)(uintptr_t)out->data)[out->size - 1]++;
    return status_ok();
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

/* `_key`, or CAST(_key AS STRING), whose order is the same. */
static bool is_key(const struct reader *reader, const struct sql_expr *expr)
{
    bool is_cast = expr->kind == SQL_CALL && expr->function == &sql_cast_function &&
                   expr->arg_count == 1 && expr->type->kind == SQL_STRING;
    if (is_cast)
        expr = expr->args[0];
    return expr->kind == SQL_COLUMN && slot_kind(reader, expr) == SQL_SLOT_KEY;
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

static status like(struct reader *reader, const struct sql_value *pattern, struct range_set *out)
{
    struct buffer prefix = {0};
    bool is_whole;
    if (pattern->is_null)
        return no_keys(out);
    like_prefix(pattern->text, &prefix, &is_whole);
    bytes text = arena_copy(reader->frame->arena, buffer_bytes(&prefix));
    bool failed = prefix.failed || text.data == NULL;
    buffer_free(&prefix);
    if (failed)
        return status_out_of_memory();
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
        *out = array.items;
        *count = *are_known && !array.is_null ? array.count : 0;
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

/* --- parts of structured keys --- */

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
        const struct sql_expr *column = condition->args[side];
        if (column->kind != SQL_COLUMN || slot_kind(reader, column) != SQL_SLOT_KEY_PART ||
            reader->scan->slots[column->index].part != part)
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

/* The keys whose first parts have these values. */
static status encoded_ranges(struct reader *reader, const struct sql_value *parts, size_t count,
                             struct range_set *out)
{
    struct buffer key = {0};
    bool is_whole;
    status result = sql_key_encode(reader->scan->table->key_schema, parts, count, &key, &is_whole);
    bytes text = arena_copy(reader->frame->arena, buffer_bytes(&key));
    bool failed = key.failed || text.data == NULL;
    buffer_free(&key);
    TRY(result);
    if (failed)
        return status_out_of_memory();
    return is_whole ? one_key(reader, text, out) : with_prefix(reader, text, out);
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
        TRY(encoded_ranges(reader, combination->parts, combination->count, &one));
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
