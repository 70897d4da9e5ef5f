/* GenerateConsistencyToken and CheckConsistency.
 *
 * With one cluster every acknowledged write is visible to every read, so a token that was made here
 * is always consistent. It names its table and the moment, so that a token of another table, or one
 * that was made up, is told apart:
 *
 *     <hash of the table's name, 16 hex digits>-<microseconds since 1970, 16 hex digits> */
#include "bigtable/names.h"
#include "bigtable/table_methods.h"

#include <inttypes.h>
#include <stdio.h>

enum { TOKEN_LENGTH = 16 + 1 + 16 };

static status check_table_exists(const struct admin_request *request, const char *name)
{
    struct table *table;
    TRY(name_check_table(name));
    TRY(cluster_table(request->bigtable->cluster, bytes_of(name), &table));
    table_release(table);
    return status_ok();
}

static void write_token(char token[TOKEN_LENGTH + 1], const char *table, int64_t moment_us)
{
    snprintf(token, TOKEN_LENGTH + 1, "%016" PRIx64 "-%016" PRIx64, bytes_hash(bytes_of(table)),
             (uint64_t)moment_us);
}

status generate_consistency_token(const struct admin_request *request,
                                  const ProtobufCMessage **response)
{
    const BtAdmin__GenerateConsistencyTokenRequest *message = (const void *)request->message;
    TRY(check_table_exists(request, message->name));
    BtAdmin__GenerateConsistencyTokenResponse *answer;
    PROTO_NEW(request->arena, answer, BT_ADMIN__GENERATE_CONSISTENCY_TOKEN_RESPONSE__INIT);
    char *token = arena_alloc(request->arena, TOKEN_LENGTH + 1);
    if (token == NULL)
        return status_out_of_memory();
    write_token(token, message->name, cluster_version_us(request->bigtable->cluster));
    answer->consistency_token = token;
    *response = &answer->base;
    return status_ok();
}

/* Writes what the token should be, given the moment it names, and compares. */
static bool is_token_of(const char *token, const char *table)
{
    uint64_t moment;
    char expected[TOKEN_LENGTH + 1];
    if (strlen(token) != TOKEN_LENGTH || sscanf(token + 17, "%16" SCNx64, &moment) != 1)
        return false;
    write_token(expected, table, (int64_t)moment);
    return strcmp(token, expected) == 0;
}

status check_consistency(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__CheckConsistencyRequest *message = (const void *)request->message;
    static const BtAdmin__CheckConsistencyResponse consistent = {
        .base = PROTOBUF_C_MESSAGE_INIT(&bt_admin__check_consistency_response__descriptor),
        .consistent = true};
    TRY(check_table_exists(request, message->name));
    if (!is_token_of(message->consistency_token, message->name))
        return status_make(STATUS_INVALID_ARGUMENT, "Invalid consistency token '%s'",
                           message->consistency_token);
    *response = &consistent.base;
    return status_ok();
}
