/* See cluster.h: its kinds, their options, and the asking. */
#include "cmd/replica/cluster.h"

#include "client/client_session.h"
#include "cmd/command.h"
#include "cmd/replica/cluster_report.h"
#include "wire/json.h"

#include <stdio.h>

#define SERVICE "/trestle.replica.v1.Replication/"

enum { MEMORY_LIMIT = 4 << 20 };

enum format { FORMAT_TEXT, FORMAT_JSON };

struct cluster_options {
    struct target_options target;
    int format; /* enum format */
    const char *own_address;
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

static status print(const struct cluster_options *options, const char *address,
                    const ProtobufCMessage *answer)
{
    const struct json_style style = {.compact = true};
    struct buffer out = {0};
    if (options->format == FORMAT_JSON) {
        json_encode(answer, &style, &out);
        buffer_append_byte(&out, '\n');
    } else {
        cluster_write_text((const void *)answer, address, &out);
    }
    bool is_written =
        !out.failed && fwrite(out.data, 1, out.size, stdout) == out.size && fflush(stdout) == 0;
    buffer_free(&out);
    return is_written ? status_ok() : status_make(STATUS_UNAVAILABLE, "cannot write the answer");
}

/* Both methods answer with the peers as they are then. */
static status ask(const struct cluster_options *options, const char *method,
                  const ProtobufCMessage *request)
{
    const struct client_session_options server = {.target = options->target,
                                                  .is_interruptible = true};
    struct client_session *session = NULL;
    const ProtobufCMessage *answer;
    struct arena *arena = arena_create(MEMORY_LIMIT);
    status s = arena == NULL ? status_out_of_memory() : client_session_create(&server, &session);
    if (status_is_ok(s))
        s = client_session_call(session, method, NULL, request,
                                &replica__list_peers_response__descriptor, arena, &answer);
    if (status_is_ok(s))
        s = print(options, client_session_address(session), answer);
    client_session_destroy(session);
    arena_destroy(arena);
    return s;
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

static const struct command_kind all[] = {
    {"list", list_command, "the clusters that a server knows, and how they are"},
    {"join", join_command, "make a server, which is empty, one of those that another one knows"},
};

static const struct command_kinds kinds = {.command = "cluster",
                                           .arguments = "[ADDRESS] [OPTION…]",
                                           .question = "what about them?",
                                           .all = all,
                                           .count = sizeof all / sizeof *all};

int cluster_command(const char *const *arguments)
{
    return command_run_kind(&kinds, arguments);
}
