/* See copier.h. */
#include "replica/copier.h"

#include "os/thread.h"
#include "wire/proto.h"

enum {
    ANSWER_BYTES = 1 << 30, /* of memory, for the largest answer */
    PARKED_US = 50 * 1000,  /* until what is parked is tried again */
};

struct copying {
    const struct copier_options *options;
    struct arena *arena; /* of an answer */
    struct pull_apply *apply;
    bool has_begun;
    bool is_whole;
};

/* What parks is waited for: a copy is not begun twice for that. */
static status apply(struct copying *copying, const Replica__PullChangesResponse *answer)
{
    enum park_reason parked;
    const struct copier_options *options = copying->options;
    status s = pull_apply_run(copying->apply, answer, &parked);
    while (parked != PARK_NONE && !options->is_stopping(options->context)) {
        status_free(s);
        (void)thread_wait_for(options->is_stopping, options->context, PARKED_US);
        s = pull_apply_run(copying->apply, answer, &parked);
    }
    return s;
}

/* The first one has no rows, but tables that later ones have rows of. */
static status take(struct copying *copying, const Replica__PullChangesResponse *answer)
{
    const struct copier_options *options = copying->options;
    bool is_first = !copying->has_begun;
    if (is_first)
        TRY(options->begin(options->context, answer));
    copying->has_begun = true;
    TRY(apply(copying, answer));
    copying->is_whole = answer->is_whole;
    if (!is_first && options->note != NULL)
        options->note(options->context, answer);
    return status_ok();
}

static status take_answer(void *context, bytes message)
{
    struct copying *copying = context;
    ProtobufCMessage *decoded;
    arena_reset(copying->arena);
    TRY(proto_decode(&replica__pull_changes_response__descriptor, message, copying->arena,
                     &decoded));
    return take(copying, (const void *)decoded);
}

static status ask_with(struct copying *copying, struct client_session *session)
{
    const struct copier_options *options = copying->options;
    Replica__CopyRowsRequest request = REPLICA__COPY_ROWS_REQUEST__INIT;
    const struct session_call call = {.path = "/trestle.replica.v1.Replication/CopyRows",
                                      .request = &request.base,
                                      .timeout_us = options->timeout_us,
                                      .gzip = peers_pack(options->peers),
                                      .on_message = take_answer,
                                      .context = copying};
    request.from = peers_own_number(options->peers);
    request.instance = options->instance;
    return client_session_stream(session, &call, NULL);
}

static status ask(struct copying *copying)
{
    const struct copier_options *options = copying->options;
    struct client_session *session;
    TRY(peers_session(options->peers, options->from, &session));
    status s = options->hold_session(options->context, session)
                   ? ask_with(copying, session)
                   : status_make(STATUS_CANCELLED, "the server stops");
    (void)options->hold_session(options->context, NULL);
    client_session_destroy(session);
    if (status_is_ok(s) && !copying->is_whole)
        return status_make(STATUS_UNAVAILABLE, "the copy ended before it was whole");
    return s;
}

static status copy(struct copying *copying)
{
    TRY(pull_apply_create(&copying->options->apply, &copying->apply));
    status s = ask(copying);
    pull_apply_destroy(copying->apply);
    return s;
}

status copier_run(const struct copier_options *options)
{
    struct copying copying = {.options = options, .arena = arena_create(ANSWER_BYTES)};
    if (copying.arena == NULL)
        return status_out_of_memory();
    status s = copy(&copying);
    arena_destroy(copying.arena);
    return s;
}
