/* See read_chunks.h. Room for the most that a chunk may take is made at once, then it is written
 * without further checks, and its size, which comes before it in protobuf, at last. */
#include "bigtable/read_chunks.h"

#include "base/check.h"
#include "base/varint.h"

/* Tags: field number and wire type; all fit one byte. */
enum {
    RESPONSE_CHUNK = 1 << 3 | 2,
    CHUNK_ROW_KEY = 1 << 3 | 2,
    CHUNK_FAMILY = 2 << 3 | 2,
    CHUNK_QUALIFIER = 3 << 3 | 2,
    CHUNK_TIMESTAMP = 4 << 3,
    CHUNK_LABEL = 5 << 3 | 2,
    CHUNK_VALUE = 6 << 3 | 2,
    CHUNK_VALUE_SIZE = 7 << 3,
    CHUNK_COMMIT_ROW = 9 << 3,
    WRAPPED_VALUE = 1 << 3 | 2, /* of StringValue and BytesValue */
    TAG_SIZE = 1,
    NUMBER_MOST = TAG_SIZE + 10,
    LENGTH_MOST = TAG_SIZE + 5,
    /* Beside contents and labels: key, family and qualifier with their wrappers, timestamp, value,
     * its size, and the end of the row. */
    REST_MOST = LENGTH_MOST + 4 * LENGTH_MOST + NUMBER_MOST + LENGTH_MOST + NUMBER_MOST + 2,
    REST_MOSTLY = 16, /* of a short value's, with a present timestamp */
};

/* One chunk: what is absent is not written. */
struct chunk {
    bytes row_key; /* empty: absent */
    const bytes *family;
    const bytes *qualifier;
    int64_t timestamp_us;
    const struct label *labels;
    bytes value;
    size_t value_size; /* 0: absent */
    bool commits;
};

static size_t content_size(bytes b)
{
    return TAG_SIZE + varint_size(b.size) + b.size;
}

/* A wrapper message leaves its empty value out. */
static size_t wrapped_size(bytes b)
{
    return b.size == 0 ? 0 : content_size(b);
}

static size_t number_size(uint64_t number)
{
    return number == 0 ? 0 : TAG_SIZE + varint_size(number);
}

static size_t wrapper_size(const bytes *b)
{
    if (b == NULL)
        return 0;
    size_t inner = wrapped_size(*b);
    return TAG_SIZE + varint_size(inner) + inner;
}

static size_t chunk_size(struct chunk chunk)
{
    size_t size = chunk.row_key.size == 0 ? 0 : content_size(chunk.row_key);
    size += wrapper_size(chunk.family) + wrapper_size(chunk.qualifier);
    size += number_size((uint64_t)chunk.timestamp_us);
    for (const struct label *label = chunk.labels; label != NULL; label = label->next)
        size += content_size(label->text);
    size += chunk.value.size == 0 ? 0 : content_size(chunk.value);
    return size + number_size(chunk.value_size) + number_size(chunk.commits);
}

static uint8_t *write_content(uint8_t *to, uint8_t tag, bytes b)
{
    *to++ = tag;
    to = varint_write(to, b.size);
    if (b.size > 0)
        memcpy(to, b.data, b.size);
    return to + b.size;
}

static uint8_t *write_number(uint8_t *to, uint8_t tag, uint64_t number)
{
    if (number == 0)
        return to;
    *to++ = tag;
    return varint_write(to, number);
}

static uint8_t *write_wrapper(uint8_t *to, uint8_t tag, const bytes *b)
{
    if (b == NULL)
        return to;
    *to++ = tag;
    to = varint_write(to, wrapped_size(*b));
    return b->size == 0 ? to : write_content(to, WRAPPED_VALUE, *b);
}

static inline uint8_t *write_fields(uint8_t *to, const struct chunk *chunk)
{
    if (chunk->row_key.size > 0)
        to = write_content(to, CHUNK_ROW_KEY, chunk->row_key);
    to = write_wrapper(to, CHUNK_FAMILY, chunk->family);
    to = write_wrapper(to, CHUNK_QUALIFIER, chunk->qualifier);
    to = write_number(to, CHUNK_TIMESTAMP, (uint64_t)chunk->timestamp_us);
    for (const struct label *label = chunk->labels; label != NULL; label = label->next)
        to = write_content(to, CHUNK_LABEL, label->text);
    if (chunk->value.size > 0)
        to = write_content(to, CHUNK_VALUE, chunk->value);
    to = write_number(to, CHUNK_VALUE_SIZE, chunk->value_size);
    return write_number(to, CHUNK_COMMIT_ROW, chunk->commits);
}

/* With what is before it in a message. */
static size_t whole_size(size_t chunk_size)
{
    return TAG_SIZE + varint_size(chunk_size) + chunk_size;
}

static size_t size_or_none(const bytes *b)
{
    return b == NULL ? 0 : b->size;
}

/* An upper bound of the fields' bytes, never too low: a chunk is not measured before it is written.
 */
static inline size_t most_of_fields(const struct chunk *chunk, size_t contents)
{
    return chunk->labels == NULL ? contents + REST_MOST : chunk_size(*chunk);
}

/* The fields' size comes before them, and is known after them. Room is left for as many bytes as
 * it mostly takes. */
static inline void append_chunk(struct buffer *message, const struct chunk *chunk)
{
    size_t contents = chunk->row_key.size + size_or_none(chunk->family) +
                      size_or_none(chunk->qualifier) + chunk->value.size;
    size_t most = most_of_fields(chunk, contents);
    uint8_t *start = buffer_reserve(message, LENGTH_MOST + most);
    if (start == NULL)
        return;
    *start = RESPONSE_CHUNK;
    size_t size_size = varint_size(contents + REST_MOSTLY);
    uint8_t *fields = start + TAG_SIZE + size_size;
    size_t size = (size_t)(write_fields(fields, chunk) - fields);
    CHECK(size <= most);
    uint8_t *place = start + TAG_SIZE + varint_size(size);
    if (place != fields)
        memmove(place, fields, size);
    varint_write(start + TAG_SIZE, size);
    message->size += (size_t)(place - start) + size;
}

/* The cell's column in its first chunk, as far as it differs from that of the cell before it in the
 * row. */
static void place_cell(struct chunk *chunk, const struct row_writer *writer)
{
    const struct cell *cell = &writer->cells[writer->next];
    bool same_family = writer->next > 0 && cell[-1].family == cell->family;
    bool same_column = same_family && bytes_equal(cell[-1].qualifier, cell->qualifier);
    chunk->family = same_family ? NULL : &cell->family->name;
    chunk->qualifier = same_column ? NULL : &cell->qualifier;
    chunk->timestamp_us = cell->timestamp_us;
    chunk->labels = cell->labels;
}

/* The size of a value's pieces: as few as can be, all alike except the last. */
static size_t piece_size(size_t value_size)
{
    if (value_size <= CHUNK_VALUE_BYTES)
        return value_size;
    size_t pieces = (value_size + CHUNK_VALUE_BYTES - 1) / CHUNK_VALUE_BYTES;
    return (value_size + pieces - 1) / pieces;
}

/* The rest of the cell's value: without data while sizes are all that is asked for. */
static bytes rest_of_value(const struct row_writer *writer, const struct cell *cell)
{
    if (!cell_is_deferred(cell))
        return bytes_from(cell->value, writer->offset);
    if (writer->given.data == NULL)
        return bytes_make(NULL, cell->value.size - writer->offset);
    return bytes_from(writer->given, writer->offset);
}

static inline struct chunk next_chunk(struct row_writer *writer)
{
    const struct cell *cell = &writer->cells[writer->next];
    struct chunk chunk = {.value = rest_of_value(writer, cell)};
    if (writer->offset == 0) {
        place_cell(&chunk, writer);
        chunk.row_key = writer->wants_key ? writer->key : bytes_make(NULL, 0);
    }
    writer->wants_key = false;
    size_t piece = piece_size(cell->value.size);
    if (chunk.value.size <= piece) {
        chunk.commits = writer->next + 1 == writer->cell_count;
        writer->next++;
        writer->offset = 0;
        writer->given = bytes_make(NULL, 0);
    } else {
        chunk.value.size = piece;
        chunk.value_size = cell->value.size;
        writer->offset += piece;
    }
    return chunk;
}

void row_writer_start(struct row_writer *writer, bytes key, const struct cell_list *cells)
{
    CHECK(cells->count > 0);
    *writer = (struct row_writer){
        .key = key, .cells = cells->items, .cell_count = cells->count, .wants_key = true};
}

void row_writer_restart(struct row_writer *writer)
{
    writer->next = 0;
    writer->offset = 0;
    writer->given = bytes_make(NULL, 0);
    writer->wants_key = true;
}

uint64_t row_writer_size(const struct row_writer *writer)
{
    struct row_writer from_start = *writer;
    uint64_t size = 0;
    row_writer_restart(&from_start);
    while (!row_writer_is_done(&from_start))
        size += whole_size(chunk_size(next_chunk(&from_start)));
    return size;
}

void row_writer_write(struct row_writer *writer, struct buffer *message, size_t enough)
{
    while (!row_writer_is_done(writer) && message->size < enough && !message->failed &&
           row_writer_lacks(writer) == NULL) {
        struct chunk chunk = next_chunk(writer);
        append_chunk(message, &chunk);
    }
}
