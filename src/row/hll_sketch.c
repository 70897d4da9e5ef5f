/* Sketches that grow: see hll.h.
 *
 * A sparse one keeps its list as it is written, so that the first state merged costs a copy, and
 * collects what is added beside it; both are merged when they are wanted, or when what was added
 * becomes much. Anything that is merged comes down to the lesser precisions, point by point. */
#include "base/check.h"
#include "base/varint.h"
#include "row/hll_private.h"

#include <stdlib.h>

enum {
    FIRST_CAPACITY = 64,
    MOST_ADDED = 8192, /* a quarter of the default's registers, as in the library */
};

void hll_sketch_free(struct hll_sketch *sketch)
{
    buffer_free(&sketch->registers);
    buffer_free(&sketch->sparse_data);
    free(sketch->added);
    *sketch = (struct hll_sketch){0};
}

void hll_sketch_clear(struct hll_sketch *sketch)
{
    buffer_clear(&sketch->registers);
    buffer_clear(&sketch->sparse_data);
    *sketch = (struct hll_sketch){.registers = sketch->registers,
                                  .sparse_data = sketch->sparse_data,
                                  .added = sketch->added,
                                  .added_capacity = sketch->added_capacity};
}

static struct hll_precisions precisions_of(const struct hll_sketch *sketch)
{
    return (struct hll_precisions){sketch->precision, sketch->sparse_precision};
}

/* --- registers --- */

static bool make_registers(struct hll_sketch *sketch)
{
    size_t size = (size_t)1 << sketch->precision;
    if (sketch->registers.size > 0)
        return true;
    uint8_t *at = buffer_reserve(&sketch->registers, size);
    if (at == NULL)
        return false;
    memset(at, 0, size);
    sketch->registers.size = size;
    return true;
}

/* The point is at `from`, which is not less than the sketch's precision. */
static void raise_register(struct hll_sketch *sketch, struct hll_point point, unsigned from)
{
    DCHECK(from >= sketch->precision && sketch->registers.size > 0);
    point = hll_point_lower(point, from, sketch->precision);
    DCHECK(point.index < sketch->registers.size);
    uint8_t *at = &sketch->registers.data[point.index];
    if (point.rho > *at)
        *at = point.rho;
}

static void raise_listed(struct hll_sketch *sketch, bytes list, struct hll_precisions at)
{
    struct hll_list_reader reader = hll_list_read(list);
    while (hll_list_next(&reader))
        raise_register(sketch, hll_listed(reader.value, at), at.sparse_precision);
}

/* A sparse sketch becomes a normal one, for good. */
static bool make_normal(struct hll_sketch *sketch)
{
    DCHECK(sketch->added_count <= sketch->added_capacity);
    struct hll_precisions at = precisions_of(sketch);
    bool is_empty = sketch->sparse_size == 0 && sketch->added_count == 0;
    if (!sketch->is_sparse)
        return true;
    if (!is_empty && !make_registers(sketch))
        return false;
    raise_listed(sketch, buffer_bytes(&sketch->sparse_data), at);
    for (size_t i = 0; i < sketch->added_count; i++)
        raise_register(sketch, hll_listed(sketch->added[i], at), at.sparse_precision);
    sketch->is_sparse = false;
    sketch->sparse_size = 0;
    sketch->added_count = 0;
    buffer_clear(&sketch->sparse_data);
    return true;
}

static bool raise_registers(struct hll_sketch *sketch, bytes data, unsigned precision)
{
    if (data.size == 0)
        return true;
    if (!make_registers(sketch))
        return false;
    uint8_t *registers = sketch->registers.data;
    if (precision == sketch->precision) {
        for (size_t i = 0; i < data.size; i++)
            registers[i] = data.data[i] > registers[i] ? data.data[i] : registers[i];
        return true;
    }
    for (uint32_t i = 0; i < data.size; i++)
        if (data.data[i] != 0)
            raise_register(sketch, (struct hll_point){.index = i, .rho = data.data[i]}, precision);
    return true;
}

/* --- the list --- */

/* Writes a list of values that come in order; of those for one index the last counts. */
struct list_writer {
    struct buffer out;
    struct hll_precisions at;
    uint32_t written; /* the last value in `out`, 0 before any */
    uint32_t pending; /* the next, unless a greater one for its index comes */
    bool has_pending;
    uint32_t count;
};

static void flush_pending(struct list_writer *writer)
{
    if (!writer->has_pending)
        return;
    buffer_append_varint(&writer->out, writer->pending - writer->written);
    writer->written = writer->pending;
    writer->has_pending = false;
    writer->count++;
}

static void write_value(struct list_writer *writer, uint32_t value)
{
    if (writer->has_pending && !hll_is_same_index(value, writer->pending, writer->at))
        flush_pending(writer);
    writer->pending = value;
    writer->has_pending = true;
}

static int compare_values(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

static void sort_added(struct hll_sketch *sketch)
{
    for (size_t i = 1; i < sketch->added_count; i++)
        if (sketch->added[i] < sketch->added[i - 1]) {
            qsort(sketch->added, sketch->added_count, sizeof *sketch->added, compare_values);
            return;
        }
}

static void merge_lists(struct hll_sketch *sketch, struct list_writer *writer)
{
    struct hll_list_reader reader = hll_list_read(buffer_bytes(&sketch->sparse_data));
    size_t next = 0;
    bool has_listed = hll_list_next(&reader);
    while (has_listed || next < sketch->added_count) {
        if (has_listed && (next == sketch->added_count || reader.value <= sketch->added[next])) {
            write_value(writer, reader.value);
            has_listed = hll_list_next(&reader);
        } else {
            write_value(writer, sketch->added[next++]);
        }
    }
    flush_pending(writer);
}

/* Brings what was added into the list, which may become registers by it. */
static bool flush(struct hll_sketch *sketch)
{
    if (!sketch->is_sparse)
        return true;
    if (sketch->added_count > 0) {
        struct list_writer writer = {.at = precisions_of(sketch)};
        if (buffer_reserve(&writer.out, sketch->sparse_data.size +
                                            sketch->added_count * VARINT_MAX_SIZE) == NULL)
            return false;
        sort_added(sketch);
        merge_lists(sketch, &writer);
        buffer_free(&sketch->sparse_data);
        sketch->sparse_data = writer.out;
        sketch->sparse_size = writer.count;
        sketch->added_count = 0;
        if (writer.out.failed)
            return false;
    }
    return sketch->sparse_data.size < hll_list_limit(sketch->precision) || make_normal(sketch);
}

static bool grow_added(struct hll_sketch *sketch)
{
    size_t capacity = sketch->added_capacity == 0 ? FIRST_CAPACITY : 2 * sketch->added_capacity;
    uint32_t *added = realloc(sketch->added, capacity * sizeof *added);
    if (added == NULL)
        return false;
    sketch->added = added;
    sketch->added_capacity = capacity;
    return true;
}

/* The point is at `from`, which is not less than the sketch's sparse precision. */
static bool add_point(struct hll_sketch *sketch, struct hll_point point, unsigned from)
{
    DCHECK(!sketch->is_sparse || from >= sketch->sparse_precision);
    if (sketch->is_sparse && sketch->added_count == MOST_ADDED && !flush(sketch))
        return false;
    if (!sketch->is_sparse) {
        raise_register(sketch, point, from);
        return true;
    }
    if (sketch->added_count == sketch->added_capacity && !grow_added(sketch))
        return false;
    point = hll_point_lower(point, from, sketch->sparse_precision);
    sketch->added[sketch->added_count++] = hll_list(point, precisions_of(sketch));
    return true;
}

static bool add_listed(struct hll_sketch *sketch, bytes list, struct hll_precisions at)
{
    struct hll_list_reader reader = hll_list_read(list);
    while (hll_list_next(&reader))
        if (!add_point(sketch, hll_listed(reader.value, at), at.sparse_precision))
            return false;
    return true;
}

/* --- lesser precisions --- */

/* Lowers registers in place: a register's new index is never greater than its old one, so what is
 * overwritten was read before. */
static void lower_registers(struct hll_sketch *sketch, unsigned to)
{
    DCHECK(to <= sketch->precision);
    unsigned from = sketch->precision;
    uint8_t *registers = sketch->registers.data;
    for (uint32_t i = 0; i < sketch->registers.size; i++) {
        struct hll_point point = {.index = i, .rho = registers[i]};
        bool is_set = point.rho != 0;
        point = hll_point_lower(point, from, to);
        bool is_first = point.index << (from - to) == i;
        if (is_first)
            registers[point.index] = is_set ? point.rho : 0;
        else if (is_set && point.rho > registers[point.index])
            registers[point.index] = point.rho;
    }
    sketch->registers.size >>= from - to;
}

/* Sparse to sparse: every value is added again. */
static bool lower_list(struct hll_sketch *sketch, unsigned precision, unsigned sparse_precision)
{
    struct hll_precisions at = precisions_of(sketch);
    if (!flush(sketch))
        return false;
    if (!sketch->is_sparse)
        return true;
    struct buffer former = sketch->sparse_data;
    sketch->sparse_data = (struct buffer){0};
    sketch->sparse_size = 0;
    sketch->precision = (uint8_t)precision;
    sketch->sparse_precision = (uint8_t)sparse_precision;
    bool ok = add_listed(sketch, buffer_bytes(&former), at);
    buffer_free(&former);
    return ok;
}

/* Goes down to these precisions. Only a normal sketch goes down to a sparse precision of 0. */
static bool lower(struct hll_sketch *sketch, unsigned precision, unsigned sparse_precision)
{
    DCHECK(precision <= sketch->precision && sparse_precision <= sketch->sparse_precision);
    bool is_there = sketch->precision == precision && sketch->sparse_precision == sparse_precision;
    if (is_there)
        return true;
    if (sketch->is_sparse && !lower_list(sketch, precision, sparse_precision))
        return false;
    if (!sketch->is_sparse && sketch->precision != precision)
        lower_registers(sketch, precision);
    sketch->precision = (uint8_t)precision;
    sketch->sparse_precision = (uint8_t)sparse_precision;
    return true;
}

/* --- merging --- */

static unsigned lesser(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static void begin(struct hll_sketch *sketch, const struct hll_state *state)
{
    sketch->precision = state->precision;
    sketch->sparse_precision = state->sparse_precision;
    sketch->is_sparse = hll_state_is_sparse(state);
}

static bool merge_list(struct hll_sketch *sketch, const struct hll_state *state)
{
    bool is_first = sketch->is_sparse && sketch->sparse_size == 0 && sketch->added_count == 0 &&
                    state->precision == sketch->precision &&
                    state->sparse_precision == sketch->sparse_precision;
    if (!is_first)
        return (sketch->is_sparse || state->sparse_size == 0 || make_registers(sketch)) &&
               add_listed(sketch, state->sparse_data,
                          (struct hll_precisions){state->precision, state->sparse_precision});
    buffer_append_bytes(&sketch->sparse_data, state->sparse_data);
    sketch->sparse_size = state->sparse_size;
    return !sketch->sparse_data.failed;
}

bool hll_sketch_merge(struct hll_sketch *sketch, const struct hll_state *state)
{
    bool is_sparse = hll_state_is_sparse(state);
    if (sketch->precision == 0)
        begin(sketch, state);
    if (sketch->value_type == HLL_UNKNOWN)
        sketch->value_type = state->value_type;
    if ((!is_sparse && !make_normal(sketch)) ||
        !lower(sketch, lesser(sketch->precision, state->precision),
               lesser(sketch->sparse_precision, state->sparse_precision)))
        return false;
    sketch->num_values = (int64_t)((uint64_t)sketch->num_values + (uint64_t)state->num_values);
    return is_sparse ? merge_list(sketch, state)
                     : raise_registers(sketch, state->data, state->precision);
}

bool hll_sketch_add(struct hll_sketch *sketch, uint64_t hash)
{
    unsigned precision = sketch->is_sparse ? sketch->sparse_precision : sketch->precision;
    sketch->num_values = (int64_t)((uint64_t)sketch->num_values + 1);
    return (sketch->is_sparse || make_registers(sketch)) &&
           add_point(sketch, hll_point_of(hash, precision), precision);
}

void hll_sketch_begin(struct hll_sketch *sketch, enum hll_value_type value_type, uint8_t precision,
                      uint8_t sparse_precision)
{
    const struct hll_state nothing = {
        .value_type = value_type, .precision = precision, .sparse_precision = sparse_precision};
    begin(sketch, &nothing);
    sketch->value_type = value_type;
}

uint32_t hll_listed_of(uint64_t hash, uint8_t precision, uint8_t sparse_precision)
{
    return hll_list(hll_point_of(hash, sparse_precision),
                    (struct hll_precisions){precision, sparse_precision});
}

bool hll_is_listed(uint32_t listed, uint8_t precision, uint8_t sparse_precision)
{
    const struct hll_precisions at = {precision, sparse_precision};
    struct hll_point point = hll_listed(listed, at);
    bool has_rho = (listed & hll_flag(at)) != 0;
    bool fits = point.index >> sparse_precision == 0 &&
                (!has_rho || (point.rho > 0 && point.rho <= HLL_HASH_BITS - sparse_precision + 1));
    return fits && hll_list(point, at) == listed;
}

struct hll_register hll_register_of(uint32_t listed, uint8_t precision, uint8_t sparse_precision)
{
    const struct hll_precisions at = {precision, sparse_precision};
    struct hll_point point = hll_point_lower(hll_listed(listed, at), sparse_precision, precision);
    return (struct hll_register){point.index, point.rho};
}

bool hll_sketch_add_listed(struct hll_sketch *sketch, uint32_t listed)
{
    const struct hll_precisions at = {sketch->precision, sketch->sparse_precision};
    return (sketch->is_sparse || make_registers(sketch)) &&
           add_point(sketch, hll_listed(listed, at), at.sparse_precision);
}

bool hll_sketch_state(struct hll_sketch *sketch, struct hll_state *out)
{
    if (!flush(sketch))
        return false;
    DCHECK(sketch->added_count == 0);
    *out = (struct hll_state){.num_values = sketch->num_values,
                              .value_type = sketch->value_type,
                              .precision = sketch->precision,
                              .sparse_precision = sketch->sparse_precision,
                              .sparse_size = sketch->sparse_size,
                              .sparse_data = buffer_bytes(&sketch->sparse_data)};
    if (!sketch->is_sparse)
        out->data = buffer_bytes(&sketch->registers);
    return true;
}

bool hll_sketch_write(struct hll_sketch *sketch, struct buffer *out)
{
    struct hll_state state;
    if (!hll_sketch_state(sketch, &state))
        return false;
    hll_state_write(&state, out);
    return !out->failed;
}
