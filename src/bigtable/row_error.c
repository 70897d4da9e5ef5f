/* See row_error.h. */
#include "bigtable/row_error.h"

#include "base/limits.h"
#include "google/rpc/error_details.pb-c.h"
#include "wire/grpc_text.h"
#include "wire/proto.h"

#include <stdio.h>

status row_key_check(bytes row_key)
{
    if (row_key.size == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "Row keys must be non-empty");
    if (row_key.size > LIMIT_ROW_KEY_BYTES)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Row key is %zu bytes long; at most %d are allowed", row_key.size,
                           LIMIT_ROW_KEY_BYTES);
    return status_ok();
}

/* A key as C writes it in a string; cut where it is long. */
enum { SHOWN_BYTES = 128, SHOWN_TEXT_SIZE = 4 * SHOWN_BYTES + sizeof "..." };

static void show_key(bytes key, char text[SHOWN_TEXT_SIZE])
{
    size_t shown = key.size < SHOWN_BYTES ? key.size : SHOWN_BYTES;
    size_t length = 0;
    for (size_t i = 0; i < shown; i++) {
        uint8_t c = key.data[i];
        bool is_plain = c >= ' ' && c <= '~' && c != '\'' && c != '\\';
        length += (size_t)snprintf(text + length, SHOWN_TEXT_SIZE - length,
                                   is_plain ? "%c" : "\\x%02x", c);
    }
    snprintf(text + length, SHOWN_TEXT_SIZE - length, "%s", shown < key.size ? "..." : "");
}

status row_error(enum status_code code, const char *doing, bytes row_key, const char *table_name,
                 const char *why)
{
    char key[SHOWN_TEXT_SIZE];
    show_key(row_key, key);
    return status_make(code, "Error while %s the row '%s' (%s) : %s", doing, key, table_name, why);
}

/* Padded base64 with a NUL behind it. */
static void encode_key(bytes row_key, struct buffer *text)
{
    base64_encode(row_key, text);
    while (text->size % 4 != 0 && !text->failed)
        buffer_append_byte(text, '=');
    buffer_append_byte(text, '\0');
}

static void add_error_info(status *s, const char *encoded_key)
{
    Rpc__ErrorInfo__MetadataEntry entry = RPC__ERROR_INFO__METADATA_ENTRY__INIT;
    entry.key = "rowKeyBase64Encoded";
    entry.value = encoded_key;
    Rpc__ErrorInfo__MetadataEntry *entries[] = {&entry};
    Rpc__ErrorInfo info = RPC__ERROR_INFO__INIT;
    info.reason = "LargeRowReadError";
    info.domain = "bigtable.googleapis.com";
    info.n_metadata = 1;
    info.metadata = entries;
    struct buffer detail = {0};
    proto_encode(&info.base, &detail);
    if (!detail.failed)
        status_add_detail(s, "google.rpc.ErrorInfo", buffer_bytes(&detail));
    buffer_free(&detail);
}

status row_too_large(bytes row_key, const char *table_name)
{
    status s = row_error(STATUS_FAILED_PRECONDITION, "reading", row_key, table_name,
                         "The row is larger than 256 MiB. Limit what is read of it with a filter.");
    struct buffer key = {0};
    encode_key(row_key, &key);
    if (!key.failed)
        add_error_info(&s, (const char *)key.data);
    buffer_free(&key);
    return s;
}
