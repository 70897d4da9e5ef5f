/* See progress.h. A mark is a cluster's number and a version, "-", 2 and 16 hexadecimal digits. */
#include "replica/progress.h"

#include "cluster/origin/origin_applied.h"
#include "cluster/origin/origin_feed.h"
#include "tablet/version.h"
#include "wire/proto.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MARK_SIZE = 1 + 2 + 16, ASK_US = 2 * 1000 * 1000 };

/* --- this server --- */

status progress_tell(const struct progress *progress, struct arena *arena,
                     Replica__TellProgressResponse **out)
{
    Replica__TellProgressResponse *answer;
    PROTO_NEW(arena, answer, REPLICA__TELL_PROGRESS_RESPONSE__INIT);
    answer->number = peers_own_number(progress->peers);
    answer->version = version_at(cluster_version_us(progress->cluster) + 1);
    answer->applied = arena_alloc(arena, VERSION_CLUSTERS * sizeof(*answer->applied));
    if (answer->applied == NULL)
        return status_out_of_memory();
    for (unsigned i = 1; i < VERSION_CLUSTERS; i++) {
        struct origin_applied applied;
        Replica__Progress *one;
        if (!origin_applied(progress->cluster, i, &applied))
            continue;
        PROTO_NEW(arena, one, REPLICA__PROGRESS__INIT);
        one->number = i;
        one->version = applied.complete;
        answer->applied[answer->n_applied++] = one;
    }
    *out = answer;
    return status_ok();
}

/* --- the others --- */

status progress_ask(struct peers *peers, unsigned number, const char **instances, size_t count,
                    struct arena *arena, const Replica__TellProgressResponse **out)
{
    struct client_session *session;
    const ProtobufCMessage *answer;
    Replica__TellProgressRequest request = REPLICA__TELL_PROGRESS_REQUEST__INIT;
    const struct session_call call = {.path = "/trestle.replica.v1.Replication/TellProgress",
                                      .request = &request.base,
                                      .timeout_us = ASK_US};
    request.from = peers_own_number(peers);
    request.instances = instances;
    request.n_instances = count;
    TRY(peers_session(peers, number, &session));
    status s = client_session_ask(session, &call, &replica__tell_progress_response__descriptor,
                                  arena, &answer);
    client_session_destroy(session);
    *out = (const void *)answer;
    return s;
}

/* Of each cluster, this one among them. */
static status ask_all(const struct progress *progress, struct arena *arena,
                      status (*take)(void *context, const Replica__TellProgressResponse *answer),
                      void *context)
{
    const Replica__PeerList *list;
    TRY(peers_list(progress->peers, arena, &list));
    for (size_t i = 0; list != NULL && i < list->n_peers; i++) {
        const Replica__TellProgressResponse *answer;
        Replica__TellProgressResponse *own = NULL;
        unsigned number = list->peers[i]->number;
        if (number == peers_own_number(progress->peers))
            TRY(progress_tell(progress, arena, &own));
        else
            TRY(progress_ask(progress->peers, number, NULL, 0, arena, &answer));
        TRY(take(context, own != NULL ? own : answer));
    }
    return status_ok();
}

/* --- marks --- */

static status write_mark(void *context, const Replica__TellProgressResponse *answer)
{
    buffer_append_format(context, "-%02x%016" PRIx64, answer->number, answer->version);
    return status_ok();
}

status progress_mark(const struct progress *progress, struct arena *arena, struct buffer *out)
{
    status s = ask_all(progress, arena, write_mark, out);
    if (status_is_ok(s))
        return out->failed ? status_out_of_memory() : s;
    status unavailable = status_make(STATUS_UNAVAILABLE, "Not every cluster says where it is: %s",
                                     status_message(s));
    status_free(s);
    return unavailable;
}

struct marks {
    const Replica__PeerList *list;
    uint64_t of[VERSION_CLUSTERS]; /* 0: none */
    bool is_reached;
};

static bool read_marks(const char *text, struct marks *marks)
{
    size_t size = strlen(text);
    if (size % MARK_SIZE != 0)
        return false;
    for (const char *at = text; *at != '\0'; at += MARK_SIZE) {
        unsigned number;
        uint64_t version;
        char again[MARK_SIZE + 1];
        if (sscanf(at, "-%2x%16" SCNx64, &number, &version) != 2 || number >= VERSION_CLUSTERS)
            return false;
        snprintf(again, sizeof again, "-%02x%016" PRIx64, number, version);
        if (strncmp(again, at, MARK_SIZE) != 0)
            return false;
        marks->of[number] = version;
    }
    return true;
}

uint64_t progress_applied_of(const Replica__TellProgressResponse *answer, unsigned number)
{
    for (size_t i = 0; i < answer->n_applied; i++)
        if (answer->applied[i]->number == number)
            return answer->applied[i]->version;
    return 0;
}

/* What of a cluster that is there no more is nobody's to wait for. */
static status compare(void *context, const Replica__TellProgressResponse *answer)
{
    struct marks *marks = context;
    for (size_t i = 0; i < marks->list->n_peers; i++) {
        unsigned number = marks->list->peers[i]->number;
        if (number < VERSION_CLUSTERS && number != answer->number &&
            progress_applied_of(answer, number) < marks->of[number])
            marks->is_reached = false;
    }
    return status_ok();
}

status progress_check(const struct progress *progress, struct arena *arena, const char *text,
                      bool *is_reached)
{
    struct marks marks = {.is_reached = true};
    *is_reached = false;
    if (!read_marks(text, &marks))
        return status_make(STATUS_INVALID_ARGUMENT, "Invalid consistency token");
    TRY(peers_list(progress->peers, arena, &marks.list));
    status s = ask_all(progress, arena, compare, &marks);
    *is_reached = status_is_ok(s) && marks.is_reached;
    status_free(s);
    return status_ok();
}
