/* Avro object container files. See avro.h. */
#include "base/varint.h"
#include "formats/avro.h"

#include <inttypes.h>
#include <stdlib.h>
#include <zlib.h>

enum {
    STEP = 1 << 20,           /* by which a block is read */
    BLOCK_MOST = 512 << 20,   /* bytes, packed and unpacked */
    METADATA_MOST = 16 << 20, /* bytes */
    SCHEMA_LIMIT = 64 << 20,  /* of memory */
    RAW_DEFLATE = -15,        /* without zlib's header and sum */
};

struct avro_reader {
    struct input *input;
    struct arena *arena; /* of the schema */
    struct avro_type *type;
    bool is_deflated;
    uint8_t mark[AVRO_MARK];
    struct buffer packed;
    struct buffer unpacked;
    uint64_t block;   /* from 1: the one that is read */
    uint64_t objects; /* that are left in it */
    bytes left;       /* of it */
};

/* --- bytes of the file --- */

static status lost(const struct avro_reader *reader, const char *what)
{
    return reader->block == 0
               ? status_make(STATUS_DATA_LOSS, "the header: %s", what)
               : status_make(STATUS_DATA_LOSS, "block %" PRIu64 ": %s", reader->block, what);
}

static status take_exactly(struct avro_reader *reader, uint8_t *to, size_t size)
{
    size_t taken;
    TRY(input_read(reader->input, to, size, &taken));
    return taken == size ? status_ok() : lost(reader, "the file ends too early");
}

/* `*is_end`: the file ended before its first byte, which only the caller knows to be right. */
static status take_long(struct avro_reader *reader, int64_t *out, bool *is_end)
{
    uint8_t raw[VARINT_MAX_SIZE];
    uint64_t word;
    size_t size = 0, taken;
    *out = 0;
    do {
        TRY(input_read(reader->input, &raw[size], 1, &taken));
        *is_end = taken == 0 && size == 0;
        if (*is_end)
            return status_ok();
        if (taken == 0)
            return lost(reader, "the file ends too early");
        size++;
    } while (raw[size - 1] >= 0x80 && size < VARINT_MAX_SIZE);
    if (varint_read(raw, raw + size, &word) == NULL)
        return lost(reader, "a number does not end");
    *out = zigzag_decode(word);
    return status_ok();
}

static status take_size(struct avro_reader *reader, int64_t most, int64_t *out)
{
    bool is_end;
    TRY(take_long(reader, out, &is_end));
    if (is_end)
        return lost(reader, "the file ends too early");
    return *out >= 0 && *out <= most ? status_ok() : lost(reader, "a size makes no sense");
}

/* So much, as it comes: a size that is not true takes no memory. */
static status take_bytes(struct avro_reader *reader, int64_t most, struct buffer *to)
{
    int64_t left;
    buffer_clear(to);
    TRY(take_size(reader, most, &left));
    while (left > 0) {
        size_t size = left < STEP ? (size_t)left : STEP;
        uint8_t *place = buffer_reserve(to, size);
        if (place == NULL)
            return status_out_of_memory();
        TRY(take_exactly(reader, place, size));
        to->size += size;
        left -= (int64_t)size;
    }
    return status_ok();
}

/* --- the header --- */

static status take_codec(struct avro_reader *reader)
{
    bytes codec = buffer_bytes(&reader->packed);
    reader->is_deflated = bytes_equal(codec, bytes_of("deflate"));
    if (reader->is_deflated || bytes_equal(codec, bytes_of("null")))
        return status_ok();
    return status_make(STATUS_UNIMPLEMENTED,
                       "the file's codec is %.*s; only null and deflate are read",
                       codec.size < 40 ? (int)codec.size : 40, (const char *)codec.data);
}

static status take_schema(struct avro_reader *reader)
{
    status s = avro_schema_read(buffer_bytes(&reader->packed), reader->arena, &reader->type);
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status placed = lost(reader, status_message(s));
    status_free(s);
    return placed;
}

static status take_metadata(struct avro_reader *reader)
{
    TRY(take_bytes(reader, METADATA_MOST, &reader->unpacked)); /* the name */
    TRY(take_bytes(reader, METADATA_MOST, &reader->packed));
    if (bytes_equal(buffer_bytes(&reader->unpacked), bytes_of("avro.codec")))
        return take_codec(reader);
    if (bytes_equal(buffer_bytes(&reader->unpacked), bytes_of("avro.schema")))
        return take_schema(reader);
    return status_ok();
}

static status take_metadata_block(struct avro_reader *reader, bool *is_last)
{
    int64_t count, size;
    bool is_end;
    TRY(take_long(reader, &count, &is_end));
    if (is_end)
        return lost(reader, "the file ends too early");
    *is_last = count == 0;
    if (count < 0)
        TRY(take_size(reader, METADATA_MOST, &size));
    for (uint64_t left = count < 0 ? -(uint64_t)count : (uint64_t)count; left > 0; left--)
        TRY(take_metadata(reader));
    return status_ok();
}

static status read_header(struct avro_reader *reader)
{
    uint8_t magic[4];
    size_t taken;
    bool is_last = false;
    TRY(input_read(reader->input, magic, sizeof magic, &taken));
    if (taken < sizeof magic || memcmp(magic, "Obj\x01", sizeof magic) != 0)
        return status_make(STATUS_DATA_LOSS, "this is no Avro object container file");
    while (!is_last)
        TRY(take_metadata_block(reader, &is_last));
    if (reader->type == NULL)
        return lost(reader, "there is no schema");
    return take_exactly(reader, reader->mark, AVRO_MARK);
}

status avro_reader_create(struct input *input, struct avro_reader **out)
{
    struct avro_reader *reader = calloc(1, sizeof *reader);
    *out = NULL;
    if (reader == NULL)
        return status_out_of_memory();
    reader->input = input;
    reader->arena = arena_create(SCHEMA_LIMIT);
    status s = reader->arena == NULL ? status_out_of_memory() : read_header(reader);
    if (status_is_ok(s))
        *out = reader;
    else
        avro_reader_destroy(reader);
    return s;
}

void avro_reader_destroy(struct avro_reader *reader)
{
    if (reader == NULL)
        return;
    arena_destroy(reader->arena);
    buffer_free(&reader->packed);
    buffer_free(&reader->unpacked);
    free(reader);
}

const struct avro_type *avro_reader_type(const struct avro_reader *reader)
{
    return reader->type;
}

/* --- blocks --- */

static status inflate_all(struct avro_reader *reader, z_stream *stream)
{
    struct buffer *out = &reader->unpacked;
    int result = Z_OK;
    while (result == Z_OK) {
        uint8_t *to = buffer_reserve(out, STEP);
        if (to == NULL)
            return status_out_of_memory();
        stream->next_out = to;
        stream->avail_out = STEP;
        result = inflate(stream, Z_NO_FLUSH);
        out->size += STEP - stream->avail_out;
        if (out->size > BLOCK_MOST)
            return lost(reader, "it unpacks to more than 512 MB");
    }
    if (result == Z_MEM_ERROR)
        return status_out_of_memory();
    return result == Z_STREAM_END ? status_ok() : lost(reader, "the deflated data are damaged");
}

static status unpack(struct avro_reader *reader)
{
    z_stream stream = {.next_in = reader->packed.data, .avail_in = (uInt)reader->packed.size};
    buffer_clear(&reader->unpacked);
    if (inflateInit2(&stream, RAW_DEFLATE) != Z_OK)
        return status_out_of_memory();
    status s = inflate_all(reader, &stream);
    inflateEnd(&stream);
    return s;
}

static status take_block(struct avro_reader *reader, bool *is_end)
{
    int64_t count;
    uint8_t mark[AVRO_MARK];
    reader->block++;
    TRY(take_long(reader, &count, is_end));
    if (*is_end)
        return status_ok();
    TRY(take_bytes(reader, BLOCK_MOST, &reader->packed));
    TRY(take_exactly(reader, mark, AVRO_MARK));
    if (memcmp(mark, reader->mark, AVRO_MARK) != 0)
        return lost(reader, "its end is not where its size says");
    if (reader->is_deflated)
        TRY(unpack(reader));
    reader->left = buffer_bytes(reader->is_deflated ? &reader->unpacked : &reader->packed);
    /* Objects of no bytes could be any number. */
    if (count < 0 || (uint64_t)count > reader->left.size)
        return lost(reader, "its number of objects makes no sense");
    reader->objects = (uint64_t)count;
    return reader->objects > 0 || reader->left.size == 0
               ? status_ok()
               : lost(reader, "there are bytes behind its last object");
}

static status take_object(struct avro_reader *reader, struct arena *arena, struct avro_value *out)
{
    status s = avro_value_read(reader->type, &reader->left, arena, out);
    if (s.code == STATUS_DATA_LOSS) {
        status placed = lost(reader, status_message(s));
        status_free(s);
        return placed;
    }
    TRY(s);
    reader->objects--;
    return reader->objects > 0 || reader->left.size == 0
               ? status_ok()
               : lost(reader, "there are bytes behind its last object");
}

status avro_next(struct avro_reader *reader, struct arena *arena, struct avro_value *out,
                 bool *is_end)
{
    *is_end = false;
    while (reader->objects == 0) {
        TRY(take_block(reader, is_end));
        if (*is_end)
            return status_ok();
    }
    return take_object(reader, arena, out);
}

/* --- writing --- */

void avro_write_header(const char *schema, bool is_deflated, const uint8_t mark[AVRO_MARK],
                       struct buffer *out)
{
    buffer_append(out, "Obj\x01", 4);
    avro_write_long(2, out);
    avro_write_bytes(bytes_of("avro.schema"), out);
    avro_write_bytes(bytes_of(schema), out);
    avro_write_bytes(bytes_of("avro.codec"), out);
    avro_write_bytes(bytes_of(is_deflated ? "deflate" : "null"), out);
    avro_write_long(0, out);
    buffer_append(out, mark, AVRO_MARK);
}

static status pack(bytes plain, struct buffer *out)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)plain.data, .avail_in = (uInt)plain.size};
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, RAW_DEFLATE, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return status_out_of_memory();
    size_t most = deflateBound(&stream, (uLong)plain.size);
    stream.next_out = buffer_reserve(out, most);
    stream.avail_out = (uInt)most;
    int result = stream.next_out == NULL ? Z_MEM_ERROR : deflate(&stream, Z_FINISH);
    out->size += result == Z_STREAM_END ? most - stream.avail_out : 0;
    deflateEnd(&stream);
    return result == Z_STREAM_END ? status_ok() : status_out_of_memory();
}

status avro_write_block(uint64_t count, bytes objects, bool is_deflated,
                        const uint8_t mark[AVRO_MARK], struct buffer *out)
{
    struct buffer packed = {0};
    status s = is_deflated ? pack(objects, &packed) : status_ok();
    avro_write_long((int64_t)count, out);
    avro_write_bytes(is_deflated ? buffer_bytes(&packed) : objects, out);
    buffer_append(out, mark, AVRO_MARK);
    bool failed = packed.failed || out->failed;
    buffer_free(&packed);
    return status_is_ok(s) && failed ? status_out_of_memory() : s;
}
