/* See aggregates.h. States of sums, minima and maxima are numbers of 8 bytes, big-endian; those of
 * unique counts are sketches (row/hll.h). */
#include "bigtable/aggregates.h"

#include <endian.h>

#include "bigtable/error_place.h"
#include "row/hll.h"
#include "wire/proto.h"

enum { NUMBER_SIZE = 8 };

static enum entry_kind entry_kind_of(const struct family *family)
{
    switch (family->aggregate) {
    case AGGREGATE_SUM:
        return ENTRY_SUM;
    case AGGREGATE_MIN:
        return ENTRY_MIN;
    case AGGREGATE_MAX:
        return ENTRY_MAX;
    case AGGREGATE_HLL:
        return ENTRY_HLL;
    case AGGREGATE_NONE:
        break;
    }
    return ENTRY_CELL;
}

/* Numbers are hashed as such; strings as the bytes they have in UTF-8. */
static enum hll_value_type counted_type(const struct family *family)
{
    return family->input == INPUT_INT64 ? HLL_INT64 : HLL_BYTES;
}

/* --- adds --- */

static Bt__Value__KindCase kind_of(const Bt__Value *value)
{
    return value == NULL ? BT__VALUE__KIND__NOT_SET : value->kind_case;
}

static status must_use(const char *wanted)
{
    return error_in_field("input", status_make(STATUS_INVALID_ARGUMENT, "must use %s", wanted));
}

/* A raw value is bytes in their own encoding. */
status aggregate_check_input(const struct family *family, const Bt__Value *input)
{
    Bt__Value__KindCase kind = kind_of(input);
    if (kind == BT__VALUE__KIND__NOT_SET)
        return status_ok();
    switch (family->input) {
    case INPUT_INT64:
        return kind == BT__VALUE__KIND_INT_VALUE ? status_ok() : must_use("`int_value`");
    case INPUT_STRING:
        return kind == BT__VALUE__KIND_STRING_VALUE ? status_ok() : must_use("`string_value`");
    case INPUT_BYTES:
        break;
    }
    bool is_bytes = kind == BT__VALUE__KIND_BYTES_VALUE || kind == BT__VALUE__KIND_RAW_VALUE;
    return is_bytes ? status_ok() : must_use("`bytes_value` or `raw_value`");
}

static uint64_t hash_of(const Bt__Value *input, enum aggregate_input type)
{
    switch (kind_of(input)) {
    case BT__VALUE__KIND_INT_VALUE:
        return hll_hash_int64(input->int_value);
    case BT__VALUE__KIND_BYTES_VALUE:
        return hll_hash(proto_bytes(input->bytes_value));
    case BT__VALUE__KIND_RAW_VALUE:
        return hll_hash(proto_bytes(input->raw_value));
    case BT__VALUE__KIND_STRING_VALUE:
        return hll_hash(bytes_of(input->string_value));
    default:
        return type == INPUT_INT64 ? hll_hash_int64(0) : hll_hash(bytes_make(NULL, 0));
    }
}

status aggregate_add(const struct family *family, const Bt__Value *input, struct arena *arena,
                     enum entry_kind *kind, bytes *state)
{
    bool is_sketch = family->aggregate == AGGREGATE_HLL;
    uint8_t *data = arena_alloc(arena, is_sketch ? HLL_ONE_MOST : NUMBER_SIZE);
    *kind = entry_kind_of(family);
    if (data == NULL)
        return status_out_of_memory();
    if (is_sketch) {
        uint64_t hash = hash_of(input, family->input);
        *state = bytes_make(data, hll_state_write_one(counted_type(family), hash, data));
        return status_ok();
    }
    bool has_input = kind_of(input) == BT__VALUE__KIND_INT_VALUE;
    uint64_t word = htobe64(has_input ? (uint64_t)input->int_value : 0);
    memcpy(data, &word, sizeof word);
    *state = bytes_make(data, sizeof word);
    return status_ok();
}

/* --- merges --- */

static status check_number(bytes given)
{
    if (given.size == NUMBER_SIZE)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "Column family type mismatch");
}

static status parse_sketch(const struct family *family, bytes given, struct hll_state *out)
{
    TRY(hll_state_parse(given, out));
    return hll_check_types(counted_type(family), out->value_type);
}

/* The sketch as we write it, in the buffer: others may have put fields in another order, or have
 * kept a list that is longer than lists become. */
static bool rewrite(const struct hll_state *parsed, struct buffer *out)
{
    struct hll_sketch sketch = {0};
    bool ok = hll_sketch_merge(&sketch, parsed) && hll_sketch_write(&sketch, out);
    hll_sketch_free(&sketch);
    return ok;
}

static status keep_sketch(const struct family *family, bytes given, struct arena *arena,
                          bytes *state)
{
    struct hll_state parsed;
    struct buffer written = {0};
    TRY(parse_sketch(family, given, &parsed));
    bool ok = rewrite(&parsed, &written);
    *state = given;
    if (ok && !bytes_equal(buffer_bytes(&written), given))
        *state = arena_copy(arena, buffer_bytes(&written));
    buffer_free(&written);
    return ok && state->data != NULL ? status_ok() : status_out_of_memory();
}

status aggregate_merge(const struct family *family, bytes given, struct arena *arena,
                       enum entry_kind *kind, bytes *state)
{
    *kind = entry_kind_of(family);
    *state = given;
    if (given.size == 0)
        return status_ok();
    return family->aggregate == AGGREGATE_HLL ? keep_sketch(family, given, arena, state)
                                              : check_number(given);
}

bool aggregate_takes_state(const struct family *family, bytes given)
{
    struct hll_state parsed;
    if (given.size == 0)
        return true;
    status s = family->aggregate == AGGREGATE_HLL ? parse_sketch(family, given, &parsed)
                                                  : check_number(given);
    bool ok = status_is_ok(s);
    status_free(s);
    return ok;
}
