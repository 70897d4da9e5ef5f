/* Fuzzer: any bytes as sketches, and sketches that were counted. What is accepted is written the
 * way it would be read again; merging any of them, in any order and grouping, makes what is
 * accepted, and comes to the same registers. (That a list does not turn into registers at one and
 * the same point is said in hll.h.)
 *
 * Input: choices (base/testing/fuzzing.h): up to four states. */
#include "base/testing/fuzzing.h"
#include "row/hll_private.h"

enum {
    MOST_STATES = 4,
    MOST_MERGED_PRECISION = 10, /* above it, registers are too large for many runs */
    SMALL_PRECISIONS = 4,
};

struct states {
    struct buffer wires[MOST_STATES];
    struct hll_state parsed[MOST_STATES];
    size_t count;
};

/* --- states --- */

static bool parse(bytes wire, struct hll_state *state)
{
    status s = hll_state_parse(wire, state);
    bool ok = status_is_ok(s);
    CHECK(ok || (s.code == STATUS_INVALID_ARGUMENT && status_message(s)[0] != '\0'));
    status_free(s);
    return ok;
}

/* Fields that need not fit together. */
static void choose_fields(struct choices *choices, struct buffer *wire)
{
    uint8_t registers[1 << (HLL_LEAST_PRECISION + SMALL_PRECISIONS)] = {0};
    struct hll_state state = {
        .num_values = (int8_t)choose_byte(choices),
        .precision = (uint8_t)(HLL_LEAST_PRECISION + choose(choices, SMALL_PRECISIONS)),
        .sparse_precision = choose_byte(choices) % 32};
    if (choose_bool(choices)) {
        state.data = bytes_make(registers, (size_t)1 << state.precision);
        for (size_t i = 0; i < state.data.size && choices->left.size > 0; i++)
            registers[i] = choose_byte(choices) % HLL_HASH_BITS;
    } else {
        state.sparse_data = choose_bytes(choices, UINT8_MAX);
        for (size_t i = 0; i < state.sparse_data.size; i++)
            state.sparse_size += state.sparse_data.data[i] < 0x80; /* where a varint ends */
    }
    hll_state_write(&state, wire);
}

static void choose_counted(struct choices *choices, struct buffer *wire)
{
    struct hll_sketch sketch = {0};
    struct hll_state empty = {.value_type = HLL_INT64,
                              .precision = (uint8_t)(4 + choose(choices, 7)),
                              .sparse_precision = 0};
    if (!choose_bool(choices))
        empty.sparse_precision = (uint8_t)(empty.precision + choose(choices, 16));
    CHECK(hll_sketch_merge(&sketch, &empty));
    int64_t first = choose_byte(choices), count = 4 * choose_byte(choices);
    for (int64_t i = first; i < first + count; i++)
        CHECK(hll_sketch_add(&sketch, hll_hash_int64(i)));
    while (choose_bool(choices))
        CHECK(hll_sketch_add(&sketch, choose_number(choices, sizeof(uint64_t))));
    CHECK(hll_sketch_write(&sketch, wire));
    hll_sketch_free(&sketch);
    struct hll_state state;
    CHECK(parse(buffer_bytes(wire), &state));
}

static void choose_state(struct choices *choices, struct buffer *wire)
{
    unsigned kind = choose(choices, 3);
    if (kind == 0)
        buffer_append_bytes(wire, choose_bytes(choices, UINT8_MAX));
    else if (kind == 1)
        choose_fields(choices, wire);
    else
        choose_counted(choices, wire);
    CHECK(!wire->failed);
}

/* Keeps those that are sketches, small, and of one type. */
static void choose_states(struct choices *choices, struct states *states)
{
    enum hll_value_type type = HLL_UNKNOWN;
    for (int i = 0; i < MOST_STATES && choices->left.size > 0; i++) {
        struct buffer *wire = &states->wires[states->count];
        struct hll_state *state = &states->parsed[states->count];
        buffer_clear(wire);
        choose_state(choices, wire);
        bool fits = parse(buffer_bytes(wire), state) && state->precision <= MOST_MERGED_PRECISION &&
                    hll_types_match(type, state->value_type);
        if (!fits)
            continue;
        type = state->value_type == HLL_UNKNOWN ? type : state->value_type;
        states->count++;
    }
}

/* --- checks --- */

static void check_written(const struct hll_state *state)
{
    struct buffer once = {0}, twice = {0};
    struct hll_state again;
    hll_state_write(state, &once);
    CHECK(parse(buffer_bytes(&once), &again));
    hll_state_write(&again, &twice);
    CHECK(bytes_equal(buffer_bytes(&once), buffer_bytes(&twice)));
    CHECK(again.num_values == state->num_values && again.value_type == state->value_type);
    CHECK(hll_estimate(&again) == hll_estimate(state) && hll_estimate(state) >= 0);
    buffer_free(&once);
    buffer_free(&twice);
}

static void merge(struct hll_sketch *sketch, const struct hll_state *state)
{
    CHECK(hll_types_match(sketch->value_type, state->value_type));
    CHECK(hll_sketch_merge(sketch, state));
}

/* Writes and frees the sketch; it parses. */
static struct buffer finish(struct hll_sketch *sketch, struct hll_state *state)
{
    struct buffer wire = {0};
    CHECK(hll_sketch_write(sketch, &wire));
    CHECK(parse(buffer_bytes(&wire), state));
    hll_sketch_free(sketch);
    return wire;
}

/* A sketch with registers, whatever it was before, and frees it. */
static struct buffer registers_of(struct hll_sketch *sketch)
{
    const struct hll_state never_sparse = {.precision = sketch->precision};
    struct hll_state state;
    merge(sketch, &never_sparse);
    return finish(sketch, &state);
}

static void check_same_registers(struct hll_sketch *sketch, const struct buffer *expected)
{
    struct buffer registers = registers_of(sketch);
    CHECK(bytes_equal(buffer_bytes(&registers), buffer_bytes(expected)));
    buffer_free(&registers);
}

static void merge_range(const struct states *states, size_t from, size_t to,
                        struct hll_sketch *sketch)
{
    for (size_t i = from; i < to; i++)
        merge(sketch, &states->parsed[i]);
}

/* The first `split` and the others are sketches of their own, before they meet. */
static void check_grouping(const struct states *states, size_t split, const struct buffer *expected)
{
    struct hll_sketch first = {0}, rest = {0}, both = {0};
    struct hll_state first_state, rest_state;
    merge_range(states, 0, split, &first);
    merge_range(states, split, states->count, &rest);
    struct buffer first_wire = finish(&first, &first_state);
    struct buffer rest_wire = finish(&rest, &rest_state);
    merge(&both, &rest_state);
    merge(&both, &first_state);
    check_same_registers(&both, expected);
    buffer_free(&first_wire);
    buffer_free(&rest_wire);
}

static void check_merging(const struct states *states)
{
    struct hll_sketch forward = {0}, backward = {0};
    merge_range(states, 0, states->count, &forward);
    struct buffer expected = registers_of(&forward);
    for (size_t i = states->count; i > 0; i--)
        merge(&backward, &states->parsed[i - 1]);
    check_same_registers(&backward, &expected);
    for (size_t split = 1; split < states->count; split++)
        check_grouping(states, split, &expected);
    buffer_free(&expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices = choices_of(data, size);
    struct states states = {0};
    choose_states(&choices, &states);
    for (size_t i = 0; i < states.count; i++)
        check_written(&states.parsed[i]);
    if (states.count > 0)
        check_merging(&states);
    for (size_t i = 0; i < MOST_STATES; i++)
        buffer_free(&states.wires[i]);
    return 0;
}
