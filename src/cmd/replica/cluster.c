/* See cluster.h: its kinds, their options, and the asking. */
#include "cmd/replica/cluster.h"

#include "client/client_session.h"
#include "cmd/command.h"
#include "cmd/replica/cluster_report.h"
#include "wire/json.h"

#include <stdio.h>

#define SERVICE "/trestle.replica.v1.Replication/"

enum { MEMORY_LIMIT = 4 << 20, CHANGE_US = 120 * 1000 * 1000 };

enum format { FORMAT_TEXT, FORMAT_JSON };

struct cluster_options {
    struct target_options target;
    int format; /* enum format */
    const char *own_address;
    bool force;
    bool from_backup;
};

#define ROW(kind_, member_, preset_, unit_, sentence_)                                             \
    {                                                                                              \
        .member = #member_, .kind = OPTION_##kind_,                                                \
        .offset = offsetof(struct cluster_options, member_), .preset = preset_, .unit = unit_,     \
        .sentence = sentence_                                                                      \
    }

#define FORMAT_ROW ROW(ENUM, format, "text", "text|json", "How the answer looks.")

/* --- what is common --- */

static status read_options(const struct option_table *table, struct option_origin *origins,
                           const char *const *arguments, struct cluster_options *out)
{
    struct option_values values = {.object = out, .origins = origins};
    const char *const no_environment[] = {NULL};
    *out = (struct cluster_options){.target = {.project = "p", .instance = "i"}};
    TRY(options_read(table, arguments, no_environment, &values));
    return target_options_resolve(table, origins, &out->target);
}

static void write_text(const char *address, const ProtobufCMessage *answer, struct buffer *out)
{
    if (answer->descriptor == &replica__change_peers_response__descriptor)
        cluster_tell_change((const void *)answer, address, out);
    else
        cluster_write_text((const void *)answer, address, out);
}

static status print(const struct cluster_options *options, const char *address,
                    const ProtobufCMessage *answer)
{
    const struct json_style style = {.compact = true};
    struct buffer out = {0};
    if (options->format == FORMAT_JSON) {
        json_encode(answer, &style, &out);
        buffer_append_byte(&out, '\n');
    } else {
        write_text(address, answer, &out);
    }
    bool is_written =
        !out.failed && fwrite(out.data, 1, out.size, stdout) == out.size && fflush(stdout) == 0;
    buffer_free(&out);
    return is_written ? status_ok() : status_make(STATUS_UNAVAILABLE, "cannot write the answer");
}

static status call(struct client_session *session, const char *method,
                   const ProtobufCMessage *request, const ProtobufCMessageDescriptor *type,
                   struct arena *arena, const ProtobufCMessage **out)
{
    const struct session_call changes = {
        .path = method, .request = request, .timeout_us = CHANGE_US};
    return type == &replica__change_peers_response__descriptor
               ? client_session_ask(session, &changes, type, arena, out)
               : client_session_call(session, method, NULL, request, type, arena, out);
}

/* A method that changes the peers is asked once, and may take long. */
static status ask_for(const struct cluster_options *options, const char *method,
                      const ProtobufCMessage *request, const ProtobufCMessageDescriptor *type)
{
    const struct client_session_options server = {.target = options->target,
                                                  .is_interruptible = true};
    struct client_session *session = NULL;
    const ProtobufCMessage *answer;
    struct arena *arena = arena_create(MEMORY_LIMIT);
    status s = arena == NULL ? status_out_of_memory() : client_session_create(&server, &session);
    if (status_is_ok(s))
        s = call(session, method, request, type, arena, &answer);
    if (status_is_ok(s))
        s = print(options, client_session_address(session), answer);
    client_session_destroy(session);
    arena_destroy(arena);
    return s;
}

/* These answer with the peers as they are then. */
static status ask(const struct cluster_options *options, const char *method,
                  const ProtobufCMessage *request)
{
    return ask_for(options, method, request, &replica__list_peers_response__descriptor);
}

/* --- list --- */

static const struct option list_rows[] = {
    TARGET_SERVER_ROWS(struct cluster_options, target),
    FORMAT_ROW,
};

enum { LIST_ROWS = sizeof list_rows / sizeof *list_rows };

static const struct option_table list_table = {
    .rows = list_rows, .count = LIST_ROWS, .command = "trestle cluster list"};

static void write_list_help(struct buffer *out)
{
    options_write_help(&list_table, out);
}

static int list_command(const char *const *arguments)
{
    struct cluster_options options;
    struct option_origin origins[LIST_ROWS] = {0};
    Replica__ListPeersRequest request = REPLICA__LIST_PEERS_REQUEST__INIT;
    if (command_asks_for(arguments, "--help"))
        return command_print(write_list_help);
    status s = read_options(&list_table, origins, arguments, &options);
    if (!status_is_ok(s))
        return command_refuse("cluster list", s);
    request.name = "servers/self";
    return command_end("cluster list", ask(&options, SERVICE "ListPeers", &request.base), true);
}

/* --- join --- */

static const struct option join_rows[] = {
    ROW(STRING, own_address, NULL, "HOST:PORT",
        "As its peers reach the server; by default where it listens."),
    TARGET_SERVER_ROWS(struct cluster_options, target),
    FORMAT_ROW,
};

enum { JOIN_ROWS = sizeof join_rows / sizeof *join_rows };

static const struct option_table join_table = {
    .rows = join_rows, .count = JOIN_ROWS, .command = "trestle cluster join ADDRESS"};

static void write_join_help(struct buffer *out)
{
    options_write_help(&join_table, out);
}

static status read_join(const char *const *arguments, struct cluster_options *out)
{
    struct option_origin origins[JOIN_ROWS] = {0};
    TRY(command_need_words(arguments, 1,
                           "which server's peers? Its HOST:PORT comes first: trestle cluster join "
                           "ADDRESS [OPTION…]"));
    return read_options(&join_table, origins, arguments + 1, out);
}

static int join_command(const char *const *arguments)
{
    struct cluster_options options;
    Replica__JoinPeersRequest request = REPLICA__JOIN_PEERS_REQUEST__INIT;
    if (command_asks_for(arguments, "--help"))
        return command_print(write_join_help);
    status s = read_join(arguments, &options);
    if (!status_is_ok(s))
        return command_refuse("cluster join", s);
    request.name = "servers/self";
    request.address = arguments[0];
    if (options.own_address != NULL)
        request.own_address = options.own_address;
    return command_end("cluster join", ask(&options, SERVICE "JoinPeers", &request.base), true);
}

/* --- changes --- */

/* A change of the peers: its options, but for what is common. */
static const struct option change_rows[] = {
    ROW(BOOLEAN, force, "false", "",
        "Also if something speaks against it; what that is stands in the answer."),
    TARGET_SERVER_ROWS(struct cluster_options, target),
    FORMAT_ROW,
};

enum { CHANGE_ROWS = sizeof change_rows / sizeof *change_rows };

static const struct option promote_rows[] = {
    ROW(BOOLEAN, force, "false", "", "Also without a majority of the peers."),
    ROW(BOOLEAN, from_backup, "false", "",
        "Of a server restored from a peer's backup, when no peer is left: a group of its own."),
    ROW(STRING, own_address, NULL, "HOST:PORT",
        "With --from-backup: as peers are to reach the server; by default where it listens."),
    TARGET_SERVER_ROWS(struct cluster_options, target),
    FORMAT_ROW,
};

enum { PROMOTE_ROWS = sizeof promote_rows / sizeof *promote_rows };

static const struct option_table promote_table = {
    .rows = promote_rows, .count = PROMOTE_ROWS, .command = "trestle cluster promote"};
static const struct option_table leave_table = {
    .rows = change_rows, .count = CHANGE_ROWS, .command = "trestle cluster leave"};
static const struct option_table remove_table = {
    .rows = change_rows, .count = CHANGE_ROWS, .command = "trestle cluster remove LOCATION"};

static status change(const struct cluster_options *options, const char *method,
                     const ProtobufCMessage *request)
{
    return ask_for(options, method, request, &replica__change_peers_response__descriptor);
}

static void write_promote_help(struct buffer *out)
{
    options_write_help(&promote_table, out);
}

static int promote_command(const char *const *arguments)
{
    struct cluster_options options;
    struct option_origin origins[PROMOTE_ROWS] = {0};
    Replica__PromotePeerRequest request = REPLICA__PROMOTE_PEER_REQUEST__INIT;
    if (command_asks_for(arguments, "--help"))
        return command_print(write_promote_help);
    status s = read_options(&promote_table, origins, arguments, &options);
    if (!status_is_ok(s))
        return command_refuse("cluster promote", s);
    request.name = "servers/self";
    request.force = options.force;
    request.from_backup = options.from_backup;
    if (options.own_address != NULL)
        request.own_address = options.own_address;
    return command_end("cluster promote", change(&options, SERVICE "PromotePeer", &request.base),
                       true);
}

static void write_leave_help(struct buffer *out)
{
    options_write_help(&leave_table, out);
}

static int leave_command(const char *const *arguments)
{
    struct cluster_options options;
    struct option_origin origins[CHANGE_ROWS] = {0};
    Replica__LeavePeersRequest request = REPLICA__LEAVE_PEERS_REQUEST__INIT;
    if (command_asks_for(arguments, "--help"))
        return command_print(write_leave_help);
    status s = read_options(&leave_table, origins, arguments, &options);
    if (!status_is_ok(s))
        return command_refuse("cluster leave", s);
    request.name = "servers/self";
    request.force = options.force;
    return command_end("cluster leave", change(&options, SERVICE "LeavePeers", &request.base),
                       true);
}

static void write_remove_help(struct buffer *out)
{
    options_write_help(&remove_table, out);
}

static status read_remove(const char *const *arguments, struct cluster_options *out)
{
    struct option_origin origins[CHANGE_ROWS] = {0};
    TRY(command_need_words(arguments, 1,
                           "which server? Its location comes first: trestle cluster remove "
                           "LOCATION [OPTION…]"));
    return read_options(&remove_table, origins, arguments + 1, out);
}

static int remove_command(const char *const *arguments)
{
    struct cluster_options options;
    Replica__RemovePeerRequest request = REPLICA__REMOVE_PEER_REQUEST__INIT;
    if (command_asks_for(arguments, "--help"))
        return command_print(write_remove_help);
    status s = read_remove(arguments, &options);
    if (!status_is_ok(s))
        return command_refuse("cluster remove", s);
    request.name = "servers/self";
    request.location = arguments[0];
    request.force = options.force;
    return command_end("cluster remove", change(&options, SERVICE "RemovePeer", &request.base),
                       true);
}

static const struct command_kind all[] = {
    {"list", list_command, "the clusters that a server knows, and how they are"},
    {"join", join_command, "make a server, which is empty, one of those that another one knows"},
    {"promote", promote_command, "have a server lead, also when the one that led is gone"},
    {"leave", leave_command, "take a server out, once the others have all that it has"},
    {"remove", remove_command, "take out one that is gone for good"},
};

static const struct command_kinds kinds = {.command = "cluster",
                                           .arguments = "[ADDRESS|LOCATION] [OPTION…]",
                                           .question = "what about them?",
                                           .all = all,
                                           .count = sizeof all / sizeof *all};

int cluster_command(const char *const *arguments)
{
    return command_run_kind(&kinds, arguments);
}
