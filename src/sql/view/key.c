/* Row keys and ids of view rows: see row.h. */
#include "base/limits.h"
#include "sql/plan/key_schema.h"
#include "sql/view/program_private.h"

#include <stdlib.h>

enum { TIMESTAMP_BYTES = 8, MILLISECOND_US = 1000 };

/* --- making --- */

static status append_parts(const struct view_program *program, const struct sql_value *piece,
                           struct buffer *out)
{
    enum { USUAL = 8 };
    struct sql_value usual[USUAL], *parts = usual;
    if (program->part_count > USUAL)
        parts = malloc(program->part_count * sizeof *parts);
    if (parts == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < program->key_count; i++)
        if (program->keys[i].kind == VIEW_KEY_PART)
            parts[program->keys[i].part] = piece[program->keys[i].column];
    sql_key_append(program->key_schema, parts, out);
    if (parts != usual)
        free(parts);
    return status_ok();
}

static const struct view_key *key_alone(const struct view_program *program)
{
    for (size_t i = 0; i < program->key_count; i++)
        if (program->keys[i].kind == VIEW_KEY_ALONE)
            return &program->keys[i];
    return NULL;
}

static const char *append_key(const struct view_program *program, const struct sql_value *piece,
                              struct buffer *out, status *result)
{
    const struct view_key *alone = key_alone(program);
    size_t before = out->size;
    *result = status_ok();
    if (alone != NULL && piece[alone->column].is_null)
        return "_key is NULL";
    if (alone != NULL)
        buffer_append_bytes(out, piece[alone->column].text);
    else
        *result = append_parts(program, piece, out);
    if (status_is_ok(*result) && !out->failed && out->size == before)
        return "_key is empty";
    return out->size - before > LIMIT_ROW_KEY_BYTES ? "the row key has more than 4096 bytes" : NULL;
}

/* Escapes what was appended from `at` on, and adds what ends it. */
static void escape_from(struct buffer *out, size_t at)
{
    size_t zeros = 0;
    for (size_t i = at; i < out->size; i++)
        zeros += out->data[i] == 0;
    size_t from = out->size, to = out->size + zeros;
    if (buffer_reserve(out, zeros + 2) == NULL)
        return;
    while (from > at && from < to) {
        uint8_t byte = out->data[--from];
        if (byte == 0)
            out->data[--to] = 0xff;
        out->data[--to] = byte;
    }
    out->size += zeros;
    buffer_append(out, "\0\1", 2);
}

static void append_timestamp(struct buffer *out, int64_t timestamp_us)
{
    for (int shift = 56; shift >= 0; shift -= 8)
        buffer_append_byte(out, (uint8_t)((uint64_t)timestamp_us >> shift));
}

static const char *check_timestamp(const struct sql_value *timestamp)
{
    if (timestamp->is_null)
        return "_timestamp is NULL";
    if (timestamp->int64 < 0)
        return "_timestamp is before 1970";
    return timestamp->int64 % MILLISECOND_US != 0 ? "_timestamp is no multiple of a millisecond"
                                                  : NULL;
}

status view_id_append(const struct view_program *program, const struct sql_value *piece,
                      struct buffer *out, const char **why)
{
    size_t at = out->size;
    status result;
    *why = append_key(program, piece, out, &result);
    if (!status_is_ok(result) || *why != NULL || !program->has_timestamp)
        return result;
    const struct sql_value *timestamp = &piece[program->timestamp_column];
    *why = check_timestamp(timestamp);
    escape_from(out, at);
    append_timestamp(out, timestamp->int64);
    return status_ok();
}

/* --- reading --- */

/* The key before 00 01, without its escapes. */
static bool unescape(bytes *id, uint8_t *key, size_t *size)
{
    size_t at = 0;
    *size = 0;
    for (; at + 1 < id->size; at++) {
        key[(*size)++] = id->data[at];
        if (id->data[at] != 0)
            continue;
        uint8_t next = id->data[++at];
        if (next == 1) {
            --*size;
            *id = bytes_from(*id, at + 1);
            return true;
        }
        if (next != 0xff)
            return false;
    }
    return false;
}

status view_place_of(const struct view_program *program, bytes id, struct arena *arena,
                     struct view_place *out)
{
    size_t size;
    *out = (struct view_place){.key = id, .has_timestamp = program->has_timestamp};
    if (!program->has_timestamp)
        return id.size > 0 ? status_ok() : view_bad_record();
    uint8_t *key = arena_alloc(arena, id.size);
    if (key == NULL)
        return status_out_of_memory();
    bool is_valid = unescape(&id, key, &size) && id.size == TIMESTAMP_BYTES && size > 0;
    out->key = bytes_make(key, is_valid ? size : 0);
    uint64_t timestamp = 0;
    for (size_t i = 0; is_valid && i < TIMESTAMP_BYTES; i++)
        timestamp = timestamp << 8 | id.data[i];
    out->timestamp_us = (int64_t)timestamp;
    return is_valid && out->timestamp_us >= 0 ? status_ok() : view_bad_record();
}

static status decode_parts(const struct view_program *program, bytes key, struct arena *arena,
                           struct sql_value **out)
{
    *out = sql_items_alloc(arena, program->part_count);
    if (*out == NULL)
        return status_out_of_memory();
    if (program->part_count == 0)
        return status_ok();
    status result = sql_key_decode(program->key_schema, key, arena, *out);
    if (result.code != STATUS_INVALID_ARGUMENT)
        return result;
    status_free(result);
    return view_bad_record();
}

status view_key_values(const struct view_program *program, const struct view_place *place,
                       struct arena *arena, struct sql_value *out)
{
    struct sql_value *parts;
    TRY(decode_parts(program, place->key, arena, &parts));
    for (size_t i = 0; i < program->key_count; i++) {
        const struct view_key *key = &program->keys[i];
        if (key->kind == VIEW_KEY_PART)
            out[i] = parts[key->part];
        else if (key->kind == VIEW_KEY_ALONE)
            out[i] = sql_of_text(place->key);
        else
            out[i] = sql_of_int64(place->timestamp_us);
    }
    return status_ok();
}
