/* See log_file.h. */
#include "datastore/admin/log_file.h"

#include "base/crc32c.h"

enum piece_type { PIECE_WHOLE = 1, PIECE_FIRST = 2, PIECE_MIDDLE = 3, PIECE_LAST = 4 };

/* Offsets in a header. */
enum { AT_SIZE = 4, AT_TYPE = 6 };

/* A checksum of bytes that hold checksums is a weak one: so it is turned and shifted. */
static uint32_t checksum(bytes type_and_piece)
{
    const uint32_t shift = 0xa282ead8;
    uint32_t sum = crc32c_of(type_and_piece);
    return ((sum >> 15) | (sum << 17)) + shift;
}

/* --- writing --- */

static void append_piece(struct log_writer *writer, enum piece_type type, bytes piece,
                         struct buffer *out)
{
    uint8_t *to = buffer_reserve(out, LOG_HEADER_BYTES + piece.size);
    if (to == NULL)
        return;
    to[AT_SIZE] = (uint8_t)piece.size;
    to[AT_SIZE + 1] = (uint8_t)(piece.size >> 8);
    to[AT_TYPE] = (uint8_t)type;
    if (piece.size > 0)
        memcpy(to + LOG_HEADER_BYTES, piece.data, piece.size);
    uint32_t sum = checksum(bytes_make(to + AT_TYPE, 1 + piece.size));
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(sum >> 8 * i);
    out->size += LOG_HEADER_BYTES + piece.size;
    writer->used += LOG_HEADER_BYTES + piece.size;
}

/* Leaves room for a header, if for nothing else. */
static void begin_piece(struct log_writer *writer, struct buffer *out)
{
    if (LOG_BLOCK_BYTES - writer->used >= LOG_HEADER_BYTES)
        return;
    while (writer->used++ < LOG_BLOCK_BYTES)
        buffer_append_byte(out, 0);
    writer->used = 0;
}

status log_append(struct log_writer *writer, bytes record, struct buffer *out)
{
    bool is_first = true, is_last;
    do {
        begin_piece(writer, out);
        size_t room = LOG_BLOCK_BYTES - writer->used - LOG_HEADER_BYTES;
        size_t size = record.size < room ? record.size : room;
        is_last = size == record.size;
        enum piece_type type = is_first && is_last ? PIECE_WHOLE
                               : is_first          ? PIECE_FIRST
                               : is_last           ? PIECE_LAST
                                                   : PIECE_MIDDLE;
        append_piece(writer, type, bytes_make(record.data, size), out);
        record = bytes_from(record, size);
        is_first = false;
    } while (!is_last);
    return status_ok();
}

/* --- reading --- */

static status damaged(const struct log_reader *reader, const char *what)
{
    return status_make(STATUS_DATA_LOSS, "%s at byte %llu", what,
                       (unsigned long long)(reader->blocks * LOG_BLOCK_BYTES + reader->at));
}

static status read_block(struct log_reader *reader)
{
    size_t got;
    reader->blocks += reader->size > 0;
    reader->size = reader->at = 0;
    do {
        TRY(reader->source(reader->context, reader->block + reader->size,
                           LOG_BLOCK_BYTES - reader->size, &got));
        reader->size += got;
    } while (got > 0 && reader->size < LOG_BLOCK_BYTES);
    return status_ok();
}

/* Passes over what fills a block; `*is_end` if nothing follows. */
static status find_piece(struct log_reader *reader, bool *is_end)
{
    *is_end = false;
    if (LOG_BLOCK_BYTES - reader->at < LOG_HEADER_BYTES) {
        for (; reader->at < reader->size; reader->at++)
            if (reader->block[reader->at] != 0)
                return damaged(reader, "Something between two blocks");
        reader->at = reader->size;
    }
    if (reader->at == reader->size && (reader->size == LOG_BLOCK_BYTES || reader->size == 0))
        TRY(read_block(reader));
    *is_end = reader->at == reader->size;
    return status_ok();
}

static status take_piece(struct log_reader *reader, enum piece_type *type, bytes *piece)
{
    size_t left = reader->size - reader->at;
    const uint8_t *header = reader->block + reader->at;
    uint32_t said = 0;
    if (left < LOG_HEADER_BYTES)
        return damaged(reader, "The file ends within a record");
    size_t size = header[AT_SIZE] | (size_t)header[AT_SIZE + 1] << 8;
    if (size > left - LOG_HEADER_BYTES)
        return damaged(reader, reader->size < LOG_BLOCK_BYTES
                                   ? "The file ends within a record"
                                   : "A record that is longer than its block");
    for (int i = 0; i < 4; i++)
        said |= (uint32_t)header[i] << 8 * i;
    if (said != checksum(bytes_make(header + AT_TYPE, 1 + size)))
        return damaged(reader, "A record whose checksum is wrong");
    *type = header[AT_TYPE];
    *piece = bytes_make(header + LOG_HEADER_BYTES, size);
    reader->at += LOG_HEADER_BYTES + size;
    return status_ok();
}

static bool may_follow(enum piece_type type, bool has_begun)
{
    return has_begun ? type == PIECE_MIDDLE || type == PIECE_LAST
                     : type == PIECE_WHOLE || type == PIECE_FIRST;
}

/* Reads one more piece; `*is_end` if there is none. */
static status read_piece(struct log_reader *reader, bool has_begun, enum piece_type *type,
                         bool *is_end)
{
    bytes piece;
    TRY(find_piece(reader, is_end));
    if (*is_end && has_begun)
        return damaged(reader, "The file ends within a record");
    if (*is_end)
        return status_ok();
    TRY(take_piece(reader, type, &piece));
    if (!may_follow(*type, has_begun))
        return damaged(reader, "A part of a record that is none");
    if (piece.size > reader->most - reader->record.size)
        return damaged(reader, "A record that is too large");
    buffer_append_bytes(&reader->record, piece);
    return reader->record.failed ? status_out_of_memory() : status_ok();
}

status log_read(struct log_reader *reader, bytes *record, bool *found)
{
    enum piece_type type = PIECE_WHOLE;
    bool has_begun = false, is_end;
    buffer_clear(&reader->record);
    *found = false;
    do {
        TRY(read_piece(reader, has_begun, &type, &is_end));
        if (is_end)
            return status_ok();
        has_begun = true;
    } while (type == PIECE_FIRST || type == PIECE_MIDDLE);
    *record = buffer_bytes(&reader->record);
    *found = true;
    return status_ok();
}

void log_reader_free(struct log_reader *reader)
{
    buffer_free(&reader->record);
}
