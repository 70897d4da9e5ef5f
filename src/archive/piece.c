/* See piece.h. */
#include "archive/piece.h"

#include "base/big_endian.h"
#include "base/check.h"
#include "os/digest.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char first_line[] = "trestle archive 1\n";

enum {
    LINE_BYTES = sizeof first_line - 1,
    KIND_AT = LINE_BYTES,
    STREAM_AT = KIND_AT + 1,
    NUMBER_AT = STREAM_AT + 8,
    AFTER_AT = NUMBER_AT + 8,
    LAST_AT = AFTER_AT + 8,
    MADE_AT = LAST_AT + 8,
    CHAIN_AT = MADE_AT + 8,
    HEAD_BYTES = CHAIN_AT + PIECE_DIGEST_BYTES,
    SIZE_BYTES = 4,
};

/* --- writing --- */

void piece_start(struct buffer *out, const struct piece *piece)
{
    CHECK(out->size == 0);
    buffer_append(out, first_line, LINE_BYTES);
    buffer_append_byte(out, (uint8_t)piece->kind);
    big_endian_append(out, piece->stream);
    big_endian_append(out, piece->number);
    big_endian_append(out, piece->after);
    big_endian_append(out, piece->last);
    big_endian_append(out, (uint64_t)piece->made_us);
    buffer_append(out, piece->chain, sizeof piece->chain);
}

void piece_add(struct buffer *out, bytes entry)
{
    CHECK(entry.size <= UINT32_MAX);
    uint32_t size = htobe32((uint32_t)entry.size);
    buffer_append(out, &size, sizeof size);
    buffer_append_bytes(out, entry);
}

static status digest_of(bytes b, uint8_t out[PIECE_DIGEST_BYTES])
{
    uint8_t digest[DIGEST_MOST_BYTES];
    size_t size;
    TRY(digest_compute(DIGEST_SHA256, b, digest, &size));
    CHECK(size == PIECE_DIGEST_BYTES);
    memcpy(out, digest, size);
    return status_ok();
}

status piece_finish(struct buffer *out, uint64_t last, uint8_t digest[PIECE_DIGEST_BYTES])
{
    if (out->failed)
        return status_out_of_memory();
    big_endian_write(out->data + LAST_AT, last);
    TRY(digest_of(buffer_bytes(out), digest));
    buffer_append(out, digest, PIECE_DIGEST_BYTES);
    return out->failed ? status_out_of_memory() : status_ok();
}

/* --- reading --- */

bool piece_next_entry(bytes *entries, bytes *entry)
{
    uint32_t size;
    if (entries->size < SIZE_BYTES)
        return false;
    memcpy(&size, entries->data, sizeof size);
    size = be32toh(size);
    if (size > entries->size - SIZE_BYTES)
        return false;
    *entry = bytes_make(entries->data + SIZE_BYTES, size);
    *entries = bytes_from(*entries, SIZE_BYTES + size);
    return true;
}

static bool entries_are_whole(bytes entries)
{
    bytes entry;
    while (piece_next_entry(&entries, &entry))
        ;
    return entries.size == 0;
}

/* Checks what the digest does not tell: a piece may have been made wrong. */
static bool is_sound(const struct piece *piece)
{
    bool is_known = piece->kind == PIECE_SEGMENT || piece->kind == PIECE_GAP;
    return is_known && piece->stream != 0 && piece->number != 0 && piece->last > piece->after &&
           entries_are_whole(piece->entries) &&
           (piece->kind == PIECE_SEGMENT) == (piece->entries.size > 0);
}

static status damaged(const char *what)
{
    return status_make(STATUS_DATA_LOSS, "a piece of the archive %s", what);
}

status piece_parse(bytes b, struct piece *out)
{
    uint8_t digest[PIECE_DIGEST_BYTES];
    *out = (struct piece){0};
    if (b.size < HEAD_BYTES + PIECE_DIGEST_BYTES)
        return damaged("is too short");
    if (memcmp(b.data, first_line, LINE_BYTES) != 0)
        return damaged("does not begin as one of this release");
    bytes text = bytes_make(b.data, b.size - PIECE_DIGEST_BYTES);
    TRY(digest_of(text, digest));
    if (memcmp(digest, b.data + text.size, sizeof digest) != 0)
        return damaged("does not have its checksum");
    out->kind = (enum piece_kind)b.data[KIND_AT];
    out->stream = big_endian_read(b.data + STREAM_AT);
    out->number = big_endian_read(b.data + NUMBER_AT);
    out->after = big_endian_read(b.data + AFTER_AT);
    out->last = big_endian_read(b.data + LAST_AT);
    out->made_us = (int64_t)big_endian_read(b.data + MADE_AT);
    memcpy(out->chain, b.data + CHAIN_AT, sizeof out->chain);
    memcpy(out->digest, digest, sizeof out->digest);
    out->entries = bytes_from(text, HEAD_BYTES);
    return is_sound(out) ? status_ok() : damaged("says what cannot be");
}

/* --- names --- */

void stream_folder(uint64_t stream, char out[PIECE_NAME_SIZE])
{
    snprintf(out, PIECE_NAME_SIZE, "archive/%016" PRIx64, stream);
}

void stream_files_folder(uint64_t stream, char out[PIECE_NAME_SIZE])
{
    snprintf(out, PIECE_NAME_SIZE, "archive/%016" PRIx64 "/files", stream);
}

void stream_file_name(uint64_t stream, uint64_t keyspace, uint64_t index, char out[PIECE_NAME_SIZE])
{
    snprintf(out, PIECE_NAME_SIZE, "archive/%016" PRIx64 "/files/%" PRIu64 "-%" PRIu64, stream,
             keyspace, index);
}

void piece_name(const struct piece *piece, char out[PIECE_NAME_SIZE])
{
    snprintf(out, PIECE_NAME_SIZE, "archive/%016" PRIx64 "/%016" PRIx64 "-%016" PRIx64 "%s",
             piece->stream, piece->number, piece->last, piece->kind == PIECE_GAP ? "-gap" : "");
}

enum { HEX_DIGITS = 16 };

/* Sixteen hexadecimal digits, small letters; NULL if there are not. */
static const char *take_hex(const char *at, uint64_t *out)
{
    uint64_t value = 0;
    for (int i = 0; i < HEX_DIGITS; i++, at++) {
        if (*at >= '0' && *at <= '9')
            value = value << 4 | (uint64_t)(*at - '0');
        else if (*at >= 'a' && *at <= 'f')
            value = value << 4 | (uint64_t)(*at - 'a' + 10);
        else
            return NULL;
    }
    *out = value;
    return at;
}

bool piece_name_parse(const char *name, struct piece *out)
{
    *out = (struct piece){0};
    const char *at = take_hex(name, &out->number);
    if (at == NULL || *at != '-')
        return false;
    at = take_hex(at + 1, &out->last);
    if (at == NULL || (*at != 0 && strcmp(at, "-gap") != 0))
        return false;
    out->kind = *at == 0 ? PIECE_SEGMENT : PIECE_GAP;
    return out->number != 0;
}

const char *piece_missing(uint64_t before, uint64_t number, char out[PIECE_RANGE_SIZE])
{
    if (number <= before)
        snprintf(out, PIECE_RANGE_SIZE, "there are two pieces %" PRIu64, number);
    else if (number - before == 2)
        snprintf(out, PIECE_RANGE_SIZE, "piece %" PRIu64 " is missing", before + 1);
    else
        snprintf(out, PIECE_RANGE_SIZE, "pieces %" PRIu64 " to %" PRIu64 " are missing", before + 1,
                 number - 1);
    return out;
}

bool stream_name_parse(const char *name, uint64_t *stream)
{
    const char *at = take_hex(name, stream);
    return at != NULL && *at == 0 && *stream != 0;
}
