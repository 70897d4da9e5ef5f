/* A server is asked for a run, a whole backup or what comes out of one, and asked again until it
 * has ended: it goes on without us. */
#include "client/client_session.h"
#include "cmd/backup/backup_private.h"

enum { ANSWER_MEMORY = 16 << 20, FIRST_POLL_US = 20 * 1000, MOST_POLL_US = 1000 * 1000 };

/* NULL: the server does not know of it any more. */
static status look(struct client_session *session, int64_t run, struct arena *arena,
                   const Wb__WholeBackupRun **out)
{
    Wb__ListWholeBackupRunsRequest request = WB__LIST_WHOLE_BACKUP_RUNS_REQUEST__INIT;
    const ProtobufCMessage *answer;
    request.parent = "servers/self";
    TRY(client_session_call(session, BACKUP_SERVICE "ListWholeBackupRuns", NULL, &request.base,
                            &wb__list_whole_backup_runs_response__descriptor, arena, &answer));
    const Wb__ListWholeBackupRunsResponse *list = (const void *)answer;
    *out = NULL;
    for (size_t i = 0; i < list->n_runs; i++)
        if (list->runs[i]->run == run)
            *out = list->runs[i];
    return status_ok();
}

static status outcome_of(const Wb__WholeBackupRun *run)
{
    if (run == NULL)
        return status_make(STATUS_ABORTED, "the server was started anew meanwhile");
    if (run->error != NULL)
        return status_make((enum status_code)run->error->code, "%s", run->error->message);
    return status_ok();
}

static status wait_for(struct client_session *session, int64_t id, struct arena *arena,
                       const Wb__WholeBackupRun **out)
{
    int64_t wait_us = FIRST_POLL_US;
    for (;;) {
        arena_reset(arena);
        TRY(look(session, id, arena, out));
        if (*out == NULL || (*out)->end_time != NULL)
            return outcome_of(*out);
        TRY(client_session_wait(session, wait_us));
        wait_us = 2 * wait_us < MOST_POLL_US ? 2 * wait_us : MOST_POLL_US;
    }
}

static status run(struct client_session *session, const char *method,
                  const ProtobufCMessage *request, struct arena *arena,
                  const struct backup_listener *listener)
{
    const ProtobufCMessage *answer;
    const Wb__WholeBackupRun *done;
    TRY(client_session_call(session, method, NULL, request, &wb__whole_backup_run__descriptor,
                            arena, &answer));
    TRY(wait_for(session, ((const Wb__WholeBackupRun *)(const void *)answer)->run, arena, &done));
    listener->tell(listener->context, done);
    return status_ok();
}

status backup_run(const struct target_options *target, const char *method,
                  const ProtobufCMessage *request, const struct backup_listener *listener)
{
    const struct client_session_options server = {.target = *target};
    struct client_session *session;
    struct arena *arena = arena_create(ANSWER_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    status s = client_session_create(&server, &session);
    if (status_is_ok(s)) {
        s = run(session, method, request, arena, listener);
        client_session_destroy(session);
    }
    arena_destroy(arena);
    return s;
}
