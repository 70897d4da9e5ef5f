/* Counting different values by HyperLogLog++ sketches: HLL_COUNT.* and APPROX_COUNT_DISTINCT.
 *
 * What an aggregate's state points to is the group's arena's, and is not freed piece by piece. So
 * between rows there is no hll_sketch but its written form, and a list of hashes that are not in it
 * yet; when the list takes as much room as the registers would, it is folded in. */
#include "base/vector.h"
#include "row/hll.h"
#include "sql/functions/function_tables.h"

enum { LEAST_PRECISION = 10, MOST_PRECISION = 24, MOST_SPARSE = 25, SPARSE_MORE = 5 };

struct counter {
    enum hll_value_type type;
    uint8_t precision; /* of what is begun here */
    bytes written;     /* empty: nothing yet */
    uint8_t *room;     /* where it is */
    size_t capacity;
    struct vector hashes; /* of uint64_t */
};

static bool is_empty(const struct counter *counter)
{
    return counter->written.size == 0 && counter->hashes.count == 0;
}

/* --- folding --- */

static struct hll_state empty_state(const struct counter *counter)
{
    unsigned sparse = counter->precision + SPARSE_MORE;
    return (struct hll_state){.value_type = counter->type,
                              .precision = counter->precision,
                              .sparse_precision =
                                  (uint8_t)(sparse < MOST_SPARSE ? sparse : MOST_SPARSE)};
}

/* All that the counter has, and one state more, if there is one. */
static status merge_all(const struct counter *counter, const struct hll_state *more,
                        struct hll_sketch *sketch)
{
    struct hll_state state = empty_state(counter);
    const uint64_t *hashes = counter->hashes.items;
    if (counter->written.size > 0)
        TRY(hll_state_parse(counter->written, &state));
    if (state.precision != 0 && !hll_sketch_merge(sketch, &state))
        return status_out_of_memory();
    for (size_t i = 0; i < counter->hashes.count; i++)
        if (!hll_sketch_add(sketch, hashes[i]))
            return status_out_of_memory();
    return more == NULL || hll_sketch_merge(sketch, more) ? status_ok() : status_out_of_memory();
}

/* Keeps what was written where the last was, if there is room. */
static status keep(const struct sql_call *call, struct counter *counter, bytes written)
{
    if (written.size > counter->capacity) {
        counter->capacity = 2 * written.size;
        counter->room = arena_alloc(call->arena, counter->capacity);
    }
    if (counter->room == NULL)
        return status_out_of_memory();
    memcpy(counter->room, written.data, written.size);
    counter->written = bytes_make(counter->room, written.size);
    counter->hashes.count = 0;
    return status_ok();
}

static status fold(const struct sql_call *call, struct counter *counter,
                   const struct hll_state *more)
{
    struct hll_sketch sketch = {0};
    struct buffer out = {0};
    status result = merge_all(counter, more, &sketch);
    if (status_is_ok(result) && !hll_sketch_write(&sketch, &out))
        result = status_out_of_memory();
    if (status_is_ok(result))
        result = keep(call, counter, buffer_bytes(&out));
    hll_sketch_free(&sketch);
    buffer_free(&out);
    return result;
}

static status count_hash(const struct sql_call *call, struct counter *counter, uint64_t hash)
{
    size_t most = ((size_t)1 << counter->precision) / sizeof hash;
    TRY(vector_add(&counter->hashes, call->arena, &hash, sizeof hash));
    return counter->hashes.count < most ? status_ok() : fold(call, counter, NULL);
}

/* --- HLL_COUNT.INIT --- */

static status set_precision(struct counter *counter, const struct sql_value *precision)
{
    bool fits = !precision->is_null && precision->int64 >= LEAST_PRECISION &&
                precision->int64 <= MOST_PRECISION;
    counter->precision = fits ? (uint8_t)precision->int64 : 0;
    return fits ? status_ok()
                : status_make(STATUS_OUT_OF_RANGE,
                              "HLL_COUNT.INIT precision must be between %d and %d", LEAST_PRECISION,
                              MOST_PRECISION);
}

static status init_add(const struct sql_call *call, void *state, const struct sql_value *args,
                       size_t count)
{
    static const struct sql_value usual = {.int64 = HLL_PRECISION};
    struct counter *counter = state;
    bool is_int64 = call->types[0]->kind == SQL_INT64;
    counter->type = is_int64 ? HLL_INT64 : HLL_BYTES;
    if (is_empty(counter))
        TRY(set_precision(counter, count > 1 ? &args[1] : &usual));
    return count_hash(call, counter,
                      is_int64 ? hll_hash_int64(args[0].int64) : hll_hash(args[0].text));
}

/* The sketch; NULL if nothing was added. */
static status sketch_finish(const struct sql_call *call, void *state, struct sql_value *out)
{
    struct counter *counter = state;
    *out = sql_null();
    if (is_empty(counter))
        return status_ok();
    TRY(fold(call, counter, NULL));
    *out = sql_of_text(counter->written);
    return status_ok();
}

/* --- HLL_COUNT.MERGE and MERGE_PARTIAL --- */

static status merge(const struct sql_call *call, struct counter *counter, bytes sketch,
                    const char *function)
{
    struct hll_state state;
    status parsed = hll_state_parse(sketch, &state);
    bool fits = status_is_ok(parsed) &&
                (is_empty(counter) || hll_types_match(counter->type, state.value_type));
    status_free(parsed);
    if (!fits)
        return status_make(STATUS_OUT_OF_RANGE, "Invalid or incompatible sketch in %s", function);
    if (is_empty(counter) || counter->type == HLL_UNKNOWN)
        counter->type = state.value_type;
    return fold(call, counter, &state);
}

static status merge_add(const struct sql_call *call, void *state, const struct sql_value *args,
                        size_t count)
{
    (void)count;
    return merge(call, state, args[0].text, "HLL_COUNT.MERGE");
}

static status merge_partial_add(const struct sql_call *call, void *state,
                                const struct sql_value *args, size_t count)
{
    (void)count;
    return merge(call, state, args[0].text, "HLL_COUNT.MERGE_PARTIAL");
}

/* How many, about; 0 if nothing was added. */
static status estimate_finish(const struct sql_call *call, void *state, struct sql_value *out)
{
    struct counter *counter = state;
    struct hll_state written;
    *out = sql_of_int64(0);
    if (is_empty(counter))
        return status_ok();
    TRY(fold(call, counter, NULL));
    TRY(hll_state_parse(counter->written, &written));
    *out = sql_of_int64(hll_estimate(&written));
    return status_ok();
}

/* --- APPROX_COUNT_DISTINCT --- */

/* Of values of any type: what is one group has one hash. */
static status distinct_add(const struct sql_call *call, void *state, const struct sql_value *args,
                           size_t count)
{
    (void)count;
    struct counter *counter = state;
    counter->precision = HLL_PRECISION;
    uint64_t hash = sql_value_hash(call->types[0], &args[0]);
    return count_hash(call, counter, hll_hash_int64((int64_t)hash));
}

const struct sql_aggregate sql_hll_aggregates[] = {
    {"HLL_COUNT.INIT", "BYTES(INT64, [INT64])", sizeof(struct counter), SQL_NOT_DISTINCT, init_add,
     sketch_finish},
    {"HLL_COUNT.INIT", "BYTES(STRING, [INT64])", sizeof(struct counter), SQL_NOT_DISTINCT, init_add,
     sketch_finish},
    {"HLL_COUNT.INIT", "BYTES(BYTES, [INT64])", sizeof(struct counter), SQL_NOT_DISTINCT, init_add,
     sketch_finish},
    {"HLL_COUNT.MERGE", "INT64(BYTES)", sizeof(struct counter), SQL_NOT_DISTINCT, merge_add,
     estimate_finish},
    {"HLL_COUNT.MERGE_PARTIAL", "BYTES(BYTES)", sizeof(struct counter), SQL_NOT_DISTINCT,
     merge_partial_add, sketch_finish},
    {"APPROX_COUNT_DISTINCT", "INT64(T:groupable)", sizeof(struct counter), 0, distinct_add,
     estimate_finish},
    {0},
};

/* --- HLL_COUNT.EXTRACT --- */

static status extract(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    (void)call, (void)count;
    struct hll_state state;
    *out = sql_of_int64(0);
    if (args[0].is_null)
        return status_ok();
    status parsed = hll_state_parse(args[0].text, &state);
    bool is_valid = status_is_ok(parsed);
    status_free(parsed);
    if (!is_valid)
        return status_make(STATUS_OUT_OF_RANGE, "Invalid sketch in HLL_COUNT.EXTRACT");
    *out = sql_of_int64(hll_estimate(&state));
    return status_ok();
}

const struct sql_function sql_hll_functions[] = {
    {"HLL_COUNT.EXTRACT", "INT64(BYTES)", extract, SQL_TAKES_NULLS},
    {0},
};
