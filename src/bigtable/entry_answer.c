/* See entry_answer.h. Nearly all entries are written, so what says that is made by hand; the rest
 * is left to protobuf-c, which needs ten times as long. */
#include "bigtable/entry_answer.h"

#include "base/varint.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "wire/proto.h"

/* Tags: field number and wire type. */
enum {
    RESPONSE_ENTRY = 1 << 3 | 2,
    ENTRY_INDEX = 1 << 3,
    ENTRY_STATUS = 2 << 3 | 2,
    HEAD_SIZE = 2,                                     /* the entry's tag and size */
    ANSWER_MOST = HEAD_SIZE + 1 + VARINT_MAX_SIZE + 2, /* an index, and a status of no bytes */
};

static void append_success(struct buffer *message, size_t index)
{
    uint8_t *start = buffer_reserve(message, ANSWER_MOST);
    if (start == NULL)
        return;
    uint8_t *at = start + HEAD_SIZE;
    if (index > 0) {
        *at++ = ENTRY_INDEX;
        at = varint_write(at, index);
    }
    *at++ = ENTRY_STATUS;
    *at++ = 0;
    start[0] = RESPONSE_ENTRY;
    start[1] = (uint8_t)(at - start - HEAD_SIZE);
    message->size += (size_t)(at - start);
}

static void append_failure(struct buffer *message, size_t index, const status *result)
{
    Rpc__Status code = RPC__STATUS__INIT;
    code.code = (int32_t)result->code;
    code.message = status_message(*result);
    Bt__MutateRowsResponse__Entry entry = BT__MUTATE_ROWS_RESPONSE__ENTRY__INIT;
    entry.index = (int64_t)index;
    entry.status = &code;
    Bt__MutateRowsResponse__Entry *entries[] = {&entry};
    Bt__MutateRowsResponse response = BT__MUTATE_ROWS_RESPONSE__INIT;
    response.n_entries = 1;
    response.entries = entries;
    proto_encode(&response.base, message);
}

void entry_answer_append(struct buffer *message, size_t index, const status *result)
{
    if (status_is_ok(*result))
        append_success(message, index);
    else
        append_failure(message, index, result);
}
