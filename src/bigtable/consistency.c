/* GenerateConsistencyToken and CheckConsistency.
 *
 * Every write that one cluster has acknowledged is visible to every read there. So a token says
 * where the clusters are when it is made, all of them (replica/progress.h), and all is consistent
 * once each has applied what the others had then. It names its table and the moment, so that a
 * token of another table, or one that was made up, is told apart:
 *
 *     <hash of the table's name, 16 hex digits>-<microseconds since 1970, 16 hex digits><where they
 *     are; nothing without peers> */
#include "bigtable/names.h"
#include "bigtable/table_methods.h"

#include <inttypes.h>
#include <stdio.h>

enum { HEAD_LENGTH = 16 + 1 + 16 };

static status check_table_exists(const struct admin_request *request, const char *name)
{
    struct table *table;
    TRY(name_check_table(name));
    TRY(cluster_table(request->bigtable->cluster, bytes_of(name), &table));
    table_release(table);
    return status_ok();
}

static void write_head(char head[HEAD_LENGTH + 1], const char *table, int64_t moment_us)
{
    snprintf(head, HEAD_LENGTH + 1, "%016" PRIx64 "-%016" PRIx64, bytes_hash(bytes_of(table)),
             (uint64_t)moment_us);
}

static status write_token(const struct admin_request *request, const char *table,
                          struct buffer *out)
{
    const struct bigtable *bigtable = request->bigtable;
    char head[HEAD_LENGTH + 1];
    write_head(head, table, cluster_version_us(bigtable->cluster));
    buffer_append_bytes(out, bytes_of(head));
    return bigtable->peers == NULL
               ? status_ok()
               : bigtable->peers->mark(bigtable->peers->replication, request->arena, out);
}

status generate_consistency_token(const struct admin_request *request,
                                  const ProtobufCMessage **response)
{
    const BtAdmin__GenerateConsistencyTokenRequest *message = (const void *)request->message;
    BtAdmin__GenerateConsistencyTokenResponse *answer;
    struct buffer token = {0};
    TRY(check_table_exists(request, message->name));
    PROTO_NEW(request->arena, answer, BT_ADMIN__GENERATE_CONSISTENCY_TOKEN_RESPONSE__INIT);
    status s = write_token(request, message->name, &token);
    if (status_is_ok(s)) {
        answer->consistency_token =
            token.failed ? NULL : arena_string(request->arena, buffer_bytes(&token));
        s = answer->consistency_token == NULL ? status_out_of_memory() : s;
    }
    buffer_free(&token);
    *response = &answer->base;
    return s;
}

/* Writes what the token should begin with, given the moment it names, and compares. `*marks`: the
 * rest. */
static bool is_token_of(const char *token, const char *table, const char **marks)
{
    uint64_t moment;
    char expected[HEAD_LENGTH + 1];
    if (strlen(token) < HEAD_LENGTH || sscanf(token + 17, "%16" SCNx64, &moment) != 1)
        return false;
    write_head(expected, table, (int64_t)moment);
    *marks = token + HEAD_LENGTH;
    return strncmp(token, expected, HEAD_LENGTH) == 0;
}

/* Whether all have reached the marks; of a server that has no peers, or had none, nobody is to. */
static status look_at(const struct admin_request *request, const char *marks, bool *is_reached)
{
    const struct bigtable_peers *peers = request->bigtable->peers;
    *is_reached = marks[0] == '\0';
    if (*is_reached)
        return status_ok();
    return peers == NULL
               ? status_make(STATUS_INVALID_ARGUMENT, "Invalid consistency token")
               : peers->has_reached(peers->replication, request->arena, marks, is_reached);
}

status check_consistency(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__CheckConsistencyRequest *message = (const void *)request->message;
    BtAdmin__CheckConsistencyResponse *answer;
    const char *marks;
    bool is_reached;
    TRY(check_table_exists(request, message->name));
    PROTO_NEW(request->arena, answer, BT_ADMIN__CHECK_CONSISTENCY_RESPONSE__INIT);
    if (!is_token_of(message->consistency_token, message->name, &marks))
        return status_make(STATUS_INVALID_ARGUMENT, "Invalid consistency token '%s'",
                           message->consistency_token);
    TRY(look_at(request, marks, &is_reached));
    answer->consistent = is_reached;
    *response = &answer->base;
    return status_ok();
}
