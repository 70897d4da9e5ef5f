/* See sql_batches.h. Batches that were found good are laid end to end: a ProtoRows is its values,
 * so that is a ProtoRows again, whatever batch a row began in. */
#include "cmd/sql/sql_batches.h"

#include "base/crc32c.h"
#include "base/limits.h"
#include "base/varint.h"
#include "cmd/sql/sql_values.h"
#include "wire/proto.h"

#include <stdlib.h>

enum {
    TAG_VALUES = 2 << 3 | 2, /* ProtoRows.values */
    OPEN_MOST = 2 * LIMIT_ROW_BYTES,
    ROW_ARENA_LIMIT = 1 << 30,
};

status sql_batches_create(const Bt__ProtoSchema *schema, sql_take_row *take_row, void *context,
                          struct sql_batches *out)
{
    *out = (struct sql_batches){.columns = (const Bt__ColumnMetadata *const *)schema->columns,
                                .column_count = schema->n_columns,
                                .take_row = take_row,
                                .context = context};
    if (schema->n_columns == 0)
        return status_make(STATUS_INTERNAL, "the server sent a result without columns");
    out->arena = arena_create(ROW_ARENA_LIMIT);
    out->values = calloc(schema->n_columns, sizeof *out->values);
    return out->arena == NULL || out->values == NULL ? status_out_of_memory() : status_ok();
}

void sql_batches_free(struct sql_batches *batches)
{
    arena_destroy(batches->arena);
    free(batches->values);
    buffer_free(&batches->open);
    buffer_free(&batches->held);
    buffer_free(&batches->token);
}

/* --- rows --- */

/* The next of the values laid end to end, which begins at `*at`; `*at` moves behind it. */
static status next_value(bytes held, size_t *at, bytes *value)
{
    const uint8_t *end = held.data + held.size, *from = held.data + *at;
    uint64_t tag, size;
    from = varint_read(from, end, &tag);
    if (from != NULL && tag == TAG_VALUES)
        from = varint_read(from, end, &size);
    if (from == NULL || tag != TAG_VALUES || size > (uint64_t)(end - from))
        return status_make(STATUS_INTERNAL, "the server sent a batch that is no ProtoRows");
    *value = bytes_make(from, size);
    *at = (size_t)(from - held.data) + size;
    return status_ok();
}

static status decode_value(struct sql_batches *batches, size_t column, bytes wire)
{
    ProtobufCMessage *message;
    TRY(proto_decode(&bt__value__descriptor, wire, batches->arena, &message));
    batches->values[column] = (const Bt__Value *)(const void *)message;
    return shell_value_check(batches->columns[column]->type, batches->values[column]);
}

/* Hands on the row at `*at` and steps over it; leaves `*at` alone if it is not there whole. */
static status hand_on_row(struct sql_batches *batches, bytes held, size_t *at)
{
    size_t to = *at;
    arena_reset(batches->arena);
    for (size_t i = 0; i < batches->column_count; i++) {
        bytes value;
        if (to == held.size)
            return status_ok();
        TRY(next_value(held, &to, &value));
        TRY(decode_value(batches, i, value));
    }
    *at = to;
    return batches->take_row(batches->context, batches->values);
}

/* All rows that are there; what is left of one begun stays. */
static status hand_on(struct sql_batches *batches)
{
    bytes held = buffer_bytes(&batches->held);
    size_t at = 0, before;
    do {
        before = at;
        if (at < held.size)
            TRY(hand_on_row(batches, held, &at));
    } while (at != before);
    if (at > 0)
        memmove(batches->held.data, batches->held.data + at, held.size - at);
    batches->held.size = held.size - at;
    batches->is_ahead |= at > 0;
    return status_ok();
}

/* --- parts --- */

static status start_anew(struct sql_batches *batches)
{
    if (!sql_batches_rewind(batches))
        return status_make(STATUS_ABORTED,
                           "the server began the result anew, after rows of it were shown");
    return status_ok();
}

static status end_batch(struct sql_batches *batches, uint32_t expected)
{
    uint32_t sum = crc32c_of(buffer_bytes(&batches->open));
    if (sum != expected)
        return status_make(STATUS_DATA_LOSS,
                           "a batch of the result has the CRC32C %08x, and should have %08x", sum,
                           expected);
    buffer_append_bytes(&batches->held, buffer_bytes(&batches->open));
    buffer_clear(&batches->open);
    return batches->held.failed ? status_out_of_memory() : status_ok();
}

static status take_token(struct sql_batches *batches, bytes token)
{
    if (batches->open.size > 0)
        return status_make(STATUS_INTERNAL, "the server sent a resume token within a batch");
    TRY(hand_on(batches));
    if (batches->held.size > 0)
        return status_make(STATUS_INTERNAL, "the server sent a resume token within a row");
    buffer_clear(&batches->token);
    buffer_append_bytes(&batches->token, token);
    batches->is_ahead = false;
    return batches->token.failed ? status_out_of_memory() : status_ok();
}

static status take_part(struct sql_batches *batches, bytes part)
{
    if (part.size > OPEN_MOST - batches->open.size)
        return status_make(STATUS_RESOURCE_EXHAUSTED, "the server sent a batch that has no end");
    buffer_append_bytes(&batches->open, part);
    return batches->open.failed ? status_out_of_memory() : status_ok();
}

status sql_batches_add(struct sql_batches *batches, const Bt__PartialResultSet *part)
{
    if (part->reset)
        TRY(start_anew(batches));
    if (part->partial_rows_case == BT__PARTIAL_RESULT_SET__PARTIAL_ROWS_PROTO_ROWS_BATCH)
        TRY(take_part(batches, proto_bytes(part->proto_rows_batch->batch_data)));
    if (part->has_batch_checksum_case ==
            BT__PARTIAL_RESULT_SET__HAS_BATCH_CHECKSUM_BATCH_CHECKSUM &&
        batches->open.size > 0)
        TRY(end_batch(batches, part->batch_checksum));
    if (part->resume_token.len > 0)
        return take_token(batches, proto_bytes(part->resume_token));
    return batches->held.size > BATCHES_HELD_MOST ? hand_on(batches) : status_ok();
}

status sql_batches_end(const struct sql_batches *batches)
{
    bool is_whole = batches->open.size == 0 && batches->held.size == 0 && !batches->is_ahead;
    if (is_whole && batches->token.size > 0)
        return status_ok();
    return status_make(STATUS_INTERNAL, "the result ends without its last resume token");
}

bool sql_batches_rewind(struct sql_batches *batches)
{
    buffer_clear(&batches->open);
    buffer_clear(&batches->held);
    return !batches->is_ahead;
}
