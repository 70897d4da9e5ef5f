/* COUNT, SUM, MIN and their like: aggregates whose state is a number or a value. */
#include "sql/functions/function_tables.h"
#include "sql/functions/sums.h"

#include <math.h>

/* --- counts --- */

static status count_add(const struct sql_call *call, void *state, const struct sql_value *args,
                        size_t count)
{
    (void)call, (void)args, (void)count;
    ++*(int64_t *)state;
    return status_ok();
}

static status countif_add(const struct sql_call *call, void *state, const struct sql_value *args,
                          size_t count)
{
    (void)call, (void)count;
    *(int64_t *)state += args[0].boolean;
    return status_ok();
}

static status count_merge(const struct sql_call *call, void *state, const void *later)
{
    (void)call;
    *(int64_t *)state += *(const int64_t *)later;
    return status_ok();
}

static status count_finish(const struct sql_call *call, void *state, struct sql_value *out)
{
    (void)call;
    *out = sql_of_int64(*(int64_t *)state);
    return status_ok();
}

/* --- sums --- */

struct sum {
    bool has_any;
    int64_t int64;
};

static status sum_overflow(void)
{
    return status_make(STATUS_OUT_OF_RANGE, "SUM() aggregation overflow");
}

/* A sum of integers overflows where it passes their range, as in production, even if later rows
 * would bring it back. */
static status sum_int64_add(const struct sql_call *call, void *state, const struct sql_value *args,
                            size_t count)
{
    (void)call, (void)count;
    struct sum *sum = state;
    sum->has_any = true;
    bool overflows = __builtin_add_overflow(sum->int64, args[0].int64, &sum->int64);
    return overflows ? sum_overflow() : status_ok();
}

static status sum_int64_finish(const struct sql_call *call, void *state, struct sql_value *out)
{
    (void)call;
    const struct sum *sum = state;
    *out = sum->has_any ? sql_of_int64(sum->int64) : sql_null();
    return status_ok();
}

/* The same of parts of the rows: how far the sums of the first row, the first two and so on went
 * up and down, so that it is known when the parts meet whether one of them passes the range. */
struct part_sum {
    __int128 sum;
    __int128 least;
    __int128 most;
    bool has_any;
};

static status part_sum_add(const struct sql_call *call, void *state, const struct sql_value *args,
                           size_t count)
{
    (void)call, (void)count;
    struct part_sum *part = state;
    part->has_any = true;
    part->sum += args[0].int64;
    if (part->sum < part->least)
        part->least = part->sum;
    if (part->sum > part->most)
        part->most = part->sum;
    return status_ok();
}

static status check_part_sum(const struct part_sum *part)
{
    bool overflows = part->least < INT64_MIN || part->most > INT64_MAX;
    return overflows ? sum_overflow() : status_ok();
}

static status part_sum_merge(const struct sql_call *call, void *state, const void *later)
{
    (void)call;
    const struct part_sum *other = later;
    struct part_sum *part = state;
    if (part->sum + other->least < part->least)
        part->least = part->sum + other->least;
    if (part->sum + other->most > part->most)
        part->most = part->sum + other->most;
    part->sum += other->sum;
    part->has_any |= other->has_any;
    return check_part_sum(part);
}

static status part_sum_finish(const struct sql_call *call, void *state, struct sql_value *out)
{
    (void)call;
    const struct part_sum *part = state;
    *out = part->has_any ? sql_of_int64((int64_t)part->sum) : sql_null();
    return check_part_sum(part);
}

static const struct sql_aggregate sum_in_parts = {
    "SUM",        "INT64(INT64)",  sizeof(struct part_sum), 0,
    part_sum_add, part_sum_finish, part_sum_merge};

/* Of FLOAT64, whose sum does not depend on the order of rows. Most groups have few rows: the first
 * is kept as it is, and only the second takes the room of an exact sum. */
struct float_sum {
    int64_t count;
    double first;
    struct exact_sum *exact; /* of two and more */
};

static status float_sum_add(const struct sql_call *call, void *state, const struct sql_value *args,
                            size_t count)
{
    (void)count;
    struct float_sum *sum = state;
    if (sum->count++ == 0) {
        sum->first = args[0].float64;
        return status_ok();
    }
    if (sum->exact == NULL) {
        sum->exact = arena_zalloc(call->arena, sizeof *sum->exact);
        if (sum->exact == NULL)
            return status_out_of_memory();
        exact_sum_add(sum->exact, sum->first);
    }
    exact_sum_add(sum->exact, args[0].float64);
    return status_ok();
}

static status float_sum_merge(const struct sql_call *call, void *state, const void *later)
{
    const struct float_sum *other = later;
    struct float_sum *sum = state;
    if (other->count == 0)
        return status_ok();
    const struct sql_value first = sql_of_float64(other->first);
    if (other->exact == NULL)
        return float_sum_add(call, sum, &first, 1);
    if (sum->exact == NULL) {
        sum->exact = arena_zalloc(call->arena, sizeof *sum->exact);
        if (sum->exact == NULL)
            return status_out_of_memory();
        if (sum->count > 0)
            exact_sum_add(sum->exact, sum->first);
    }
    exact_sum_merge(sum->exact, other->exact);
    sum->count += other->count;
    return status_ok();
}

static status sum_float64_finish(const struct sql_call *call, void *state, struct sql_value *out)
{
    (void)call;
    const struct float_sum *sum = state;
    struct exact_sum all = {0};
    *out = sql_null();
    if (sum->count == 0)
        return status_ok();
    if (sum->exact == NULL)
        exact_sum_add(&all, sum->first);
    return sql_sum_of_float64(sum->exact == NULL ? &all : sum->exact, out);
}

static status average_finish(const struct sql_call *call, void *state, struct sql_value *out)
{
    (void)call;
    const struct float_sum *sum = state;
    struct exact_sum all = {0};
    *out = sql_null();
    if (sum->count == 0)
        return status_ok();
    if (sum->exact == NULL)
        exact_sum_add(&all, sum->first);
    *out = sql_average_of_float64(sum->exact == NULL ? &all : sum->exact, sum->count);
    return status_ok();
}

status sql_sum_of_float64(const struct exact_sum *sum, struct sql_value *out)
{
    double total = (double)exact_sum_value(sum);
    *out = sql_of_float64(total);
    return isfinite(total) || exact_sum_is_special(sum) ? status_ok() : sum_overflow();
}

struct sql_value sql_average_of_float64(const struct exact_sum *sum, int64_t count)
{
    return sql_of_float64((double)(exact_sum_value(sum) / count));
}

/* --- one value of all --- */

struct chosen {
    bool has_any;
    struct sql_value value;
    uint8_t
        *text; /* where the value's is, with room for more: the next that is better goes there */
    size_t room;
};

/* Among rising texts each is better than all before it. */
static status choose_text(const struct sql_call *call, struct chosen *chosen, bytes text)
{
    if (chosen->text == NULL || text.size > chosen->room) {
        chosen->room = 2 * text.size;
        chosen->text = arena_alloc(call->arena, chosen->room);
        if (chosen->text == NULL)
            return status_out_of_memory();
    }
    if (text.size > 0)
        memcpy(chosen->text, text.data, text.size);
    chosen->value = sql_of_text(bytes_make(chosen->text, text.size));
    return status_ok();
}

static status choose(const struct sql_call *call, struct chosen *chosen,
                     const struct sql_value *value)
{
    bool is_text = call->types[0]->kind == SQL_STRING || call->types[0]->kind == SQL_BYTES;
    chosen->has_any = true;
    if (is_text && !value->is_null)
        return choose_text(call, chosen, value->text);
    return sql_value_copy(call->types[0], value, call->arena, &chosen->value);
}

static bool is_nan(const struct sql_call *call, const struct sql_value *value)
{
    return sql_is_float(call->types[0]) && isnan(value->float64);
}

/* A NaN wins over all. Of 0.0 and -0.0 the latter is less: as views have it. */
static bool is_better(const struct sql_call *call, const struct chosen *chosen,
                      const struct sql_value *value, int sign)
{
    if (!chosen->has_any || is_nan(call, value))
        return true;
    return !is_nan(call, &chosen->value) &&
           sign * sql_value_total_order(call->types[0], value, &chosen->value) > 0;
}

static status max_add(const struct sql_call *call, void *state, const struct sql_value *args,
                      size_t count)
{
    (void)count;
    return is_better(call, state, &args[0], 1) ? choose(call, state, &args[0]) : status_ok();
}

static status min_add(const struct sql_call *call, void *state, const struct sql_value *args,
                      size_t count)
{
    (void)count;
    return is_better(call, state, &args[0], -1) ? choose(call, state, &args[0]) : status_ok();
}

static status any_add(const struct sql_call *call, void *state, const struct sql_value *args,
                      size_t count)
{
    (void)count;
    return ((struct chosen *)state)->has_any ? status_ok() : choose(call, state, &args[0]);
}

/* As if the others had been the one value that was chosen of them. */
static status merge_by(sql_add *add, const struct sql_call *call, void *state, const void *later)
{
    const struct chosen *other = later;
    return other->has_any ? add(call, state, &other->value, 1) : status_ok();
}

static status max_merge(const struct sql_call *call, void *state, const void *later)
{
    return merge_by(max_add, call, state, later);
}

static status min_merge(const struct sql_call *call, void *state, const void *later)
{
    return merge_by(min_add, call, state, later);
}

static status any_merge(const struct sql_call *call, void *state, const void *later)
{
    return merge_by(any_add, call, state, later);
}

static status chosen_finish(const struct sql_call *call, void *state, struct sql_value *out)
{
    (void)call;
    const struct chosen *chosen = state;
    *out = chosen->has_any ? chosen->value : sql_null();
    return status_ok();
}

/* --- logic and bits --- */

static status and_add(const struct sql_call *call, void *state, const struct sql_value *args,
                      size_t count)
{
    (void)call, (void)count;
    struct chosen *chosen = state;
    bool so_far = !chosen->has_any || chosen->value.boolean;
    *chosen = (struct chosen){.has_any = true, .value = sql_of_bool(so_far && args[0].boolean)};
    return status_ok();
}

static status or_add(const struct sql_call *call, void *state, const struct sql_value *args,
                     size_t count)
{
    (void)call, (void)count;
    struct chosen *chosen = state;
    bool so_far = chosen->has_any && chosen->value.boolean;
    *chosen = (struct chosen){.has_any = true, .value = sql_of_bool(so_far || args[0].boolean)};
    return status_ok();
}

static status bit_and_add(const struct sql_call *call, void *state, const struct sql_value *args,
                          size_t count)
{
    (void)call, (void)count;
    struct chosen *chosen = state;
    int64_t so_far = chosen->has_any ? chosen->value.int64 : -1;
    *chosen = (struct chosen){.has_any = true, .value = sql_of_int64(so_far & args[0].int64)};
    return status_ok();
}

static status bit_or_add(const struct sql_call *call, void *state, const struct sql_value *args,
                         size_t count)
{
    (void)call, (void)count;
    struct chosen *chosen = state;
    int64_t so_far = chosen->has_any ? chosen->value.int64 : 0;
    *chosen = (struct chosen){.has_any = true, .value = sql_of_int64(so_far | args[0].int64)};
    return status_ok();
}

static status bit_xor_add(const struct sql_call *call, void *state, const struct sql_value *args,
                          size_t count)
{
    (void)call, (void)count;
    struct chosen *chosen = state;
    int64_t so_far = chosen->has_any ? chosen->value.int64 : 0;
    *chosen = (struct chosen){.has_any = true, .value = sql_of_int64(so_far ^ args[0].int64)};
    return status_ok();
}

static status and_merge(const struct sql_call *call, void *state, const void *later)
{
    return merge_by(and_add, call, state, later);
}

static status or_merge(const struct sql_call *call, void *state, const void *later)
{
    return merge_by(or_add, call, state, later);
}

static status bit_and_merge(const struct sql_call *call, void *state, const void *later)
{
    return merge_by(bit_and_add, call, state, later);
}

static status bit_or_merge(const struct sql_call *call, void *state, const void *later)
{
    return merge_by(bit_or_add, call, state, later);
}

static status bit_xor_merge(const struct sql_call *call, void *state, const void *later)
{
    return merge_by(bit_xor_add, call, state, later);
}

const struct sql_aggregate sql_basic_aggregates[] = {
    {"$count_star", "INT64()", sizeof(int64_t), SQL_NOT_DISTINCT, count_add, count_finish,
     count_merge},
    {"COUNT", "INT64(T)", sizeof(int64_t), 0, count_add, count_finish, count_merge},
    {"COUNTIF", "INT64(BOOL)", sizeof(int64_t), 0, countif_add, count_finish, count_merge},
    {"SUM", "INT64(INT64)", sizeof(struct sum), 0, sum_int64_add, sum_int64_finish, NULL,
     &sum_in_parts},
    {"SUM", "FLOAT64(FLOAT64)", sizeof(struct float_sum), 0, float_sum_add, sum_float64_finish,
     float_sum_merge},
    {"AVG", "FLOAT64(FLOAT64)", sizeof(struct float_sum), 0, float_sum_add, average_finish,
     float_sum_merge},
    {"MAX", "T(T:order)", sizeof(struct chosen), 0, max_add, chosen_finish, max_merge},
    {"MIN", "T(T:order)", sizeof(struct chosen), 0, min_add, chosen_finish, min_merge},
    {"ANY_VALUE", "T(T)", sizeof(struct chosen), SQL_AGGREGATES_NULLS | SQL_ALLOWS_NULLS, any_add,
     chosen_finish, any_merge},
    {"LOGICAL_AND", "BOOL(BOOL)", sizeof(struct chosen), 0, and_add, chosen_finish, and_merge},
    {"LOGICAL_OR", "BOOL(BOOL)", sizeof(struct chosen), 0, or_add, chosen_finish, or_merge},
    {"BIT_AND", "INT64(INT64)", sizeof(struct chosen), 0, bit_and_add, chosen_finish,
     bit_and_merge},
    {"BIT_OR", "INT64(INT64)", sizeof(struct chosen), 0, bit_or_add, chosen_finish, bit_or_merge},
    {"BIT_XOR", "INT64(INT64)", sizeof(struct chosen), 0, bit_xor_add, chosen_finish,
     bit_xor_merge},
    {0},
};
