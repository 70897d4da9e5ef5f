/* Avro's binary encoding. See avro.h. */
#include "base/varint.h"
#include "formats/avro.h"

struct decoding {
    bytes *from;
    struct arena *arena;
    unsigned depth;
};

static status read_value(struct decoding *d, const struct avro_type *type, struct avro_value *out);

static status lost(const char *what)
{
    return status_make(STATUS_DATA_LOSS, "%s", what);
}

/* --- scalars --- */

static status take_long(struct decoding *d, int64_t *out)
{
    uint64_t word;
    const uint8_t *end = bytes_from(*d->from, d->from->size).data;
    const uint8_t *behind = varint_read(d->from->data, end, &word);
    if (behind == NULL)
        return lost("a number does not end");
    *d->from = bytes_make(behind, (size_t)(end - behind));
    *out = zigzag_decode(word);
    return status_ok();
}

static status take(struct decoding *d, uint64_t size, bytes *out)
{
    if (size > d->from->size)
        return lost("a value ends too early");
    *out = bytes_make(d->from->data, (size_t)size);
    *d->from = bytes_from(*d->from, (size_t)size);
    return status_ok();
}

static status take_bytes(struct decoding *d, bytes *out)
{
    int64_t size;
    TRY(take_long(d, &size));
    return size < 0 ? lost("a length is negative") : take(d, (uint64_t)size, out);
}

static status take_int(struct decoding *d, struct avro_value *out)
{
    TRY(take_long(d, &out->integer));
    bool fits = out->integer >= INT32_MIN && out->integer <= INT32_MAX;
    return fits ? status_ok() : lost("an int has more than 32 bits");
}

static status take_boolean(struct decoding *d, struct avro_value *out)
{
    bytes byte;
    TRY(take(d, 1, &byte));
    out->integer = byte.data[0];
    return out->integer <= 1 ? status_ok() : lost("a boolean is neither true nor false");
}

/* Little-endian, of 4 or 8 bytes. */
static status take_number(struct decoding *d, size_t size, struct avro_value *out)
{
    bytes raw;
    uint64_t word = 0;
    TRY(take(d, size, &raw));
    for (size_t i = size; i-- > 0;)
        word = word << 8 | raw.data[i];
    if (size == sizeof(float)) {
        uint32_t half = (uint32_t)word;
        float number;
        memcpy(&number, &half, sizeof number);
        out->number = number;
    } else {
        memcpy(&out->number, &word, sizeof out->number);
    }
    return status_ok();
}

static status take_enum(struct decoding *d, const struct avro_type *type, struct avro_value *out)
{
    int64_t which;
    TRY(take_long(d, &which));
    if (which < 0 || (uint64_t)which >= type->count)
        return lost("an enum has no such symbol");
    out->text = type->names[which];
    return status_ok();
}

static status take_union(struct decoding *d, const struct avro_type *type, struct avro_value *out)
{
    int64_t which;
    TRY(take_long(d, &which));
    if (which < 0 || (uint64_t)which >= type->count)
        return lost("a union has no such branch");
    return read_value(d, type->types[which], out);
}

/* --- what has elements --- */

static status make_room(struct decoding *d, struct avro_value *out, size_t *capacity)
{
    if (out->count < *capacity)
        return status_ok();
    *capacity = *capacity == 0 ? 4 : 2 * *capacity;
    struct avro_value *more = arena_alloc(d->arena, *capacity * sizeof *more);
    if (more == NULL)
        return status_out_of_memory();
    if (out->count > 0)
        memcpy(more, out->elements, out->count * sizeof *more);
    out->elements = more;
    return status_ok();
}

static status take_element(struct decoding *d, const struct avro_type *type, struct avro_value *out)
{
    bytes name = {0};
    if (type->kind == AVRO_MAP)
        TRY(take_bytes(d, &name));
    TRY(read_value(d, type->types[0], out));
    out->name = name;
    return status_ok();
}

/* How many elements come next; 0 is the end. A negative number is followed by their size. */
static status take_count(struct decoding *d, uint64_t *out)
{
    int64_t count, size;
    TRY(take_long(d, &count));
    *out = count < 0 ? -(uint64_t)count : (uint64_t)count;
    return count < 0 ? take_long(d, &size) : status_ok();
}

static status take_elements(struct decoding *d, const struct avro_type *type,
                            struct avro_value *out)
{
    size_t capacity = 0;
    for (;;) {
        uint64_t count;
        TRY(take_count(d, &count));
        if (count == 0)
            return status_ok();
        for (; count > 0; count--) {
            TRY(make_room(d, out, &capacity));
            TRY(take_element(d, type, &out->elements[out->count]));
            out->count++;
        }
    }
}

static status take_fields(struct decoding *d, const struct avro_type *type, struct avro_value *out)
{
    out->elements = arena_alloc(d->arena, type->count * sizeof *out->elements);
    if (out->elements == NULL)
        return status_out_of_memory();
    for (; out->count < type->count; out->count++) {
        TRY(read_value(d, type->types[out->count], &out->elements[out->count]));
        out->elements[out->count].name = type->names[out->count];
    }
    return status_ok();
}

/* --- values --- */

static status read_kind(struct decoding *d, const struct avro_type *type, struct avro_value *out)
{
    switch (type->kind) {
    case AVRO_NULL:
        return status_ok();
    case AVRO_BOOLEAN:
        return take_boolean(d, out);
    case AVRO_INT:
        return take_int(d, out);
    case AVRO_LONG:
        return take_long(d, &out->integer);
    case AVRO_FLOAT:
        return take_number(d, sizeof(float), out);
    case AVRO_DOUBLE:
        return take_number(d, sizeof(double), out);
    case AVRO_BYTES:
    case AVRO_STRING:
        return take_bytes(d, &out->text);
    case AVRO_FIXED:
        return take(d, type->size, &out->text);
    case AVRO_ENUM:
        return take_enum(d, type, out);
    case AVRO_UNION:
        return take_union(d, type, out);
    case AVRO_ARRAY:
    case AVRO_MAP:
        return take_elements(d, type, out);
    case AVRO_RECORD:
        return take_fields(d, type, out);
    }
    return lost("a type is none");
}

static status read_value(struct decoding *d, const struct avro_type *type, struct avro_value *out)
{
    *out = (struct avro_value){.kind = type->kind};
    if (d->depth == AVRO_MOST_DEPTH)
        return lost("there are more than 64 levels of values");
    d->depth++;
    TRY(read_kind(d, type, out));
    d->depth--;
    return status_ok();
}

status avro_value_read(const struct avro_type *type, bytes *from, struct arena *arena,
                       struct avro_value *out)
{
    struct decoding d = {.from = from, .arena = arena};
    return read_value(&d, type, out);
}

const struct avro_value *avro_find(const struct avro_value *record, const char *name)
{
    for (size_t i = 0; record->kind == AVRO_RECORD && i < record->count; i++)
        if (bytes_equal(record->elements[i].name, bytes_of(name)))
            return &record->elements[i];
    return NULL;
}

/* --- writing --- */

void avro_write_long(int64_t number, struct buffer *out)
{
    buffer_append_varint(out, zigzag_encode(number));
}

void avro_write_bytes(bytes b, struct buffer *out)
{
    avro_write_long((int64_t)b.size, out);
    buffer_append_bytes(out, b);
}
