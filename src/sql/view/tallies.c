/* Aggregates that are numbers of what is added and taken back: COUNT, SUM, AVG, BIT_AND, BIT_OR,
 * BIT_XOR. See aggregate.h.
 *
 * Counts are modulo 2^64: within a batch what is taken back may come before what was added. */
#include "base/varint.h"
#include "sql/functions/sums.h"
#include "sql/view/aggregate.h"

static uint64_t signed_count(uint64_t count, const struct view_folding *folding)
{
    return folding->is_removal ? 0 - count : count;
}

/* --- COUNT --- */

static status count_gather(const struct view_aggregate *aggregate, void *gathered,
                           const struct sql_value *argument, struct arena *arena)
{
    (void)aggregate, (void)argument, (void)arena;
    ++*(uint64_t *)gathered;
    return status_ok();
}

static status count_body(const struct view_aggregate *aggregate, void *gathered,
                         struct buffer *body)
{
    (void)aggregate;
    buffer_append_varint(body, *(uint64_t *)gathered);
    return status_ok();
}

static bool count_read(const struct view_aggregate *aggregate, void *tally, bytes *record)
{
    (void)aggregate;
    return view_take_number(record, tally);
}

static status count_fold(const struct view_aggregate *aggregate, void *tally, bytes *body,
                         const struct view_folding *folding)
{
    (void)aggregate;
    uint64_t count;
    if (!view_take_number(body, &count))
        return view_bad_record();
    *(uint64_t *)tally += signed_count(count, folding);
    return status_ok();
}

static void count_write(const struct view_aggregate *aggregate, const void *tally,
                        struct buffer *record)
{
    (void)aggregate;
    buffer_append_varint(record, *(const uint64_t *)tally);
}

static status count_value(const struct view_aggregate *aggregate, const void *tally,
                          struct arena *arena, struct sql_value *out)
{
    (void)aggregate, (void)arena;
    *out = sql_of_int64((int64_t) * (const uint64_t *)tally);
    return status_ok();
}

/* --- SUM of INT64: in 128 bits, so that one that is out of range comes back --- */

struct sum {
    uint64_t count;
    view_wide total;
};

static void add_wide(view_wide *total, view_wide value, bool is_removal)
{
    view_unsigned_wide sum = (view_unsigned_wide)*total;
    sum += is_removal ? 0 - (view_unsigned_wide)value : (view_unsigned_wide)value;
    *total = (view_wide)sum;
}

static status sum_gather(const struct view_aggregate *aggregate, void *gathered,
                         const struct sql_value *argument, struct arena *arena)
{
    (void)aggregate, (void)arena;
    struct sum *sum = gathered;
    sum->count++;
    sum->total += argument->int64;
    return status_ok();
}

static void append_sum(struct buffer *out, const struct sum *sum)
{
    buffer_append_varint(out, sum->count);
    view_append_wide(out, sum->total);
}

static bool take_sum(bytes *rest, struct sum *out)
{
    return view_take_number(rest, &out->count) && view_take_wide(rest, &out->total);
}

static status sum_body(const struct view_aggregate *aggregate, void *gathered, struct buffer *body)
{
    (void)aggregate;
    append_sum(body, gathered);
    return status_ok();
}

static bool sum_read(const struct view_aggregate *aggregate, void *tally, bytes *record)
{
    (void)aggregate;
    return take_sum(record, tally);
}

static status sum_fold(const struct view_aggregate *aggregate, void *tally, bytes *body,
                       const struct view_folding *folding)
{
    (void)aggregate;
    struct sum *sum = tally, more;
    if (!take_sum(body, &more))
        return view_bad_record();
    sum->count += signed_count(more.count, folding);
    add_wide(&sum->total, more.total, folding->is_removal);
    return status_ok();
}

static void sum_write(const struct view_aggregate *aggregate, const void *tally,
                      struct buffer *record)
{
    (void)aggregate;
    append_sum(record, tally);
}

static status sum_value(const struct view_aggregate *aggregate, const void *tally,
                        struct arena *arena, struct sql_value *out)
{
    (void)aggregate, (void)arena;
    const struct sum *sum = tally;
    bool fits = sum->total >= INT64_MIN && sum->total <= INT64_MAX;
    *out = sum->count == 0 ? sql_null() : sql_of_int64((int64_t)sum->total);
    return fits ? status_ok() : status_make(STATUS_OUT_OF_RANGE, "SUM() aggregation overflow");
}

/* --- SUM and AVG of FLOAT64 --- */

struct float_sum {
    uint64_t count;
    struct exact_sum exact;
};

static status float_gather(const struct view_aggregate *aggregate, void *gathered,
                           const struct sql_value *argument, struct arena *arena)
{
    (void)aggregate, (void)arena;
    struct float_sum *sum = gathered;
    sum->count++;
    exact_sum_add(&sum->exact, argument->float64);
    return status_ok();
}

/* Of nothing there is the count alone. */
static void append_float_sum(struct buffer *out, const struct float_sum *sum)
{
    buffer_append_varint(out, sum->count);
    if (sum->count > 0)
        exact_sum_append(out, &sum->exact);
}

static bool take_float_sum(bytes *rest, struct float_sum *out)
{
    *out = (struct float_sum){0};
    return view_take_number(rest, &out->count) &&
           (out->count == 0 || exact_sum_take_written(rest, &out->exact));
}

static status float_body(const struct view_aggregate *aggregate, void *gathered,
                         struct buffer *body)
{
    (void)aggregate;
    append_float_sum(body, gathered);
    return status_ok();
}

static bool float_read(const struct view_aggregate *aggregate, void *tally, bytes *record)
{
    (void)aggregate;
    return take_float_sum(record, tally);
}

static status float_fold(const struct view_aggregate *aggregate, void *tally, bytes *body,
                         const struct view_folding *folding)
{
    (void)aggregate;
    struct float_sum *sum = tally, more;
    if (!take_float_sum(body, &more))
        return view_bad_record();
    sum->count += signed_count(more.count, folding);
    if (folding->is_removal)
        exact_sum_unmerge(&sum->exact, &more.exact);
    else
        exact_sum_merge(&sum->exact, &more.exact);
    return status_ok();
}

static void float_write(const struct view_aggregate *aggregate, const void *tally,
                        struct buffer *record)
{
    (void)aggregate;
    append_float_sum(record, tally);
}

static status float_sum_value(const struct view_aggregate *aggregate, const void *tally,
                              struct arena *arena, struct sql_value *out)
{
    (void)aggregate, (void)arena;
    const struct float_sum *sum = tally;
    *out = sql_null();
    return sum->count == 0 ? status_ok() : sql_sum_of_float64(&sum->exact, out);
}

static status average_value(const struct view_aggregate *aggregate, const void *tally,
                            struct arena *arena, struct sql_value *out)
{
    (void)aggregate, (void)arena;
    const struct float_sum *sum = tally;
    *out = sum->count == 0 ? sql_null() : sql_average_of_float64(&sum->exact, (int64_t)sum->count);
    return status_ok();
}

/* --- BIT_AND, BIT_OR: of each bit, how many of the rows' values have it --- */

enum { BITS = 64 };

struct gathered_bits {
    uint64_t count;
    uint64_t value;
};

struct bits {
    uint64_t count;
    uint64_t have[BITS];
};

static status and_gather(const struct view_aggregate *aggregate, void *gathered,
                         const struct sql_value *argument, struct arena *arena)
{
    (void)aggregate, (void)arena;
    struct gathered_bits *bits = gathered;
    uint64_t so_far = bits->count++ == 0 ? UINT64_MAX : bits->value;
    bits->value = so_far & (uint64_t)argument->int64;
    return status_ok();
}

static status or_gather(const struct view_aggregate *aggregate, void *gathered,
                        const struct sql_value *argument, struct arena *arena)
{
    (void)aggregate, (void)arena;
    struct gathered_bits *bits = gathered;
    bits->count++;
    bits->value |= (uint64_t)argument->int64;
    return status_ok();
}

static status bits_body(const struct view_aggregate *aggregate, void *gathered, struct buffer *body)
{
    (void)aggregate;
    const struct gathered_bits *bits = gathered;
    buffer_append_varint(body, bits->count);
    buffer_append_varint(body, bits->value);
    return status_ok();
}

static bool take_bits(bytes *rest, struct gathered_bits *out)
{
    return view_take_number(rest, &out->count) && view_take_number(rest, &out->value);
}

/* A source row counts once, with what all its pieces have, or any. */
static status bits_fold(const struct view_aggregate *aggregate, void *tally, bytes *body,
                        const struct view_folding *folding)
{
    (void)aggregate;
    struct bits *bits = tally;
    struct gathered_bits more;
    if (!take_bits(body, &more))
        return view_bad_record();
    if (more.count == 0)
        return status_ok();
    bits->count += signed_count(1, folding);
    for (unsigned i = 0; i < BITS; i++)
        bits->have[i] += signed_count(more.value >> i & 1, folding);
    return status_ok();
}

static bool bits_read(const struct view_aggregate *aggregate, void *tally, bytes *record)
{
    (void)aggregate;
    struct bits *bits = tally;
    if (!view_take_number(record, &bits->count))
        return false;
    for (unsigned i = 0; i < BITS; i++)
        if (!view_take_number(record, &bits->have[i]))
            return false;
    return true;
}

static void bits_write(const struct view_aggregate *aggregate, const void *tally,
                       struct buffer *record)
{
    (void)aggregate;
    const struct bits *bits = tally;
    buffer_append_varint(record, bits->count);
    for (unsigned i = 0; i < BITS; i++)
        buffer_append_varint(record, bits->have[i]);
}

static status and_value(const struct view_aggregate *aggregate, const void *tally,
                        struct arena *arena, struct sql_value *out)
{
    (void)aggregate, (void)arena;
    const struct bits *bits = tally;
    uint64_t value = 0;
    for (unsigned i = 0; i < BITS; i++)
        value |= (uint64_t)(bits->have[i] == bits->count) << i;
    *out = bits->count == 0 ? sql_null() : sql_of_int64((int64_t)value);
    return status_ok();
}

static status or_value(const struct view_aggregate *aggregate, const void *tally,
                       struct arena *arena, struct sql_value *out)
{
    (void)aggregate, (void)arena;
    const struct bits *bits = tally;
    uint64_t value = 0;
    for (unsigned i = 0; i < BITS; i++)
        value |= (uint64_t)(bits->have[i] != 0) << i;
    *out = bits->count == 0 ? sql_null() : sql_of_int64((int64_t)value);
    return status_ok();
}

/* --- BIT_XOR: its own inverse --- */

static status xor_gather(const struct view_aggregate *aggregate, void *gathered,
                         const struct sql_value *argument, struct arena *arena)
{
    (void)aggregate, (void)arena;
    struct gathered_bits *bits = gathered;
    bits->count++;
    bits->value ^= (uint64_t)argument->int64;
    return status_ok();
}

static status xor_fold(const struct view_aggregate *aggregate, void *tally, bytes *body,
                       const struct view_folding *folding)
{
    (void)aggregate;
    struct gathered_bits *bits = tally, more;
    if (!take_bits(body, &more))
        return view_bad_record();
    bits->count += signed_count(more.count, folding);
    bits->value ^= more.value;
    return status_ok();
}

static bool xor_read(const struct view_aggregate *aggregate, void *tally, bytes *record)
{
    (void)aggregate;
    return take_bits(record, tally);
}

static void xor_write(const struct view_aggregate *aggregate, const void *tally,
                      struct buffer *record)
{
    (void)aggregate;
    const struct gathered_bits *bits = tally;
    buffer_append_varint(record, bits->count);
    buffer_append_varint(record, bits->value);
}

static status xor_value(const struct view_aggregate *aggregate, const void *tally,
                        struct arena *arena, struct sql_value *out)
{
    (void)aggregate, (void)arena;
    const struct gathered_bits *bits = tally;
    *out = bits->count == 0 ? sql_null() : sql_of_int64((int64_t)bits->value);
    return status_ok();
}

/* --- the table --- */

#define COUNTED                                                                                    \
    .gathered_size = sizeof(uint64_t), .gather = count_gather, .write_body = count_body,           \
    .tally_size = sizeof(uint64_t), .read = count_read, .fold = count_fold, .write = count_write,  \
    .value = count_value
#define FLOATS                                                                                     \
    .gathered_size = sizeof(struct float_sum), .gather = float_gather, .write_body = float_body,   \
    .tally_size = sizeof(struct float_sum), .read = float_read, .fold = float_fold,                \
    .write = float_write
#define BITWISE                                                                                    \
    .gathered_size = sizeof(struct gathered_bits), .write_body = bits_body,                        \
    .tally_size = sizeof(struct bits), .read = bits_read, .fold = bits_fold, .write = bits_write

const struct view_aggregate_kind view_tallies[] = {
    {.function = "$count_star", COUNTED},
    {.function = "COUNT", COUNTED},
    {.function = "SUM",
     .of_kind = SQL_INT64,
     .is_of_kind = true,
     .gathered_size = sizeof(struct sum),
     .gather = sum_gather,
     .write_body = sum_body,
     .tally_size = sizeof(struct sum),
     .read = sum_read,
     .fold = sum_fold,
     .write = sum_write,
     .value = sum_value},
    {.function = "SUM",
     .of_kind = SQL_FLOAT64,
     .is_of_kind = true,
     FLOATS,
     .value = float_sum_value},
    {.function = "AVG", FLOATS, .value = average_value},
    {.function = "BIT_AND", BITWISE, .gather = and_gather, .value = and_value},
    {.function = "BIT_OR", BITWISE, .gather = or_gather, .value = or_value},
    {.function = "BIT_XOR",
     .gathered_size = sizeof(struct gathered_bits),
     .gather = xor_gather,
     .write_body = bits_body,
     .tally_size = sizeof(struct gathered_bits),
     .read = xor_read,
     .fold = xor_fold,
     .write = xor_write,
     .value = xor_value},
    {0},
};
