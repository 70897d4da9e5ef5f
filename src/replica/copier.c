/* See copier.h. That a copy has begun is what the record of the peer says (ORIGIN_HAS_ROWS). */
#include "replica/copier.h"

#include "cluster/origin/origin_applied.h"
#include "cluster/shared_table.h"
#include "os/thread.h"
#include "tablet/version.h"
#include "wire/proto.h"

enum {
    ANSWER_BYTES = 1 << 30, /* of memory, for the largest answer */
    TABLES_BYTES = 256 << 20,
    PARKED_US = 50 * 1000, /* until what is parked is tried again */
};

/* --- what is here already --- */

struct former_table {
    struct former_table *next;
    struct shared_table shared;
};

struct former {
    struct arena *arena;
    struct former_table *first;
    status s;
};

static status describe(struct former *former, struct table *table)
{
    struct buffer record = {0};
    bytes *splits;
    struct former_table *of = arena_alloc(former->arena, sizeof *of);
    if (of == NULL)
        return status_out_of_memory();
    *of = (struct former_table){.next = former->first, .shared = {.uid = table_uid(table)}};
    TRY(shared_table_splits(table, former->arena, &splits, &of->shared.split_count));
    of->shared.split_keys = splits;
    of->shared.name = arena_string(former->arena, bytes_of(table_name(table)));
    status s = shared_table_encode(table, &record);
    of->shared.record = arena_copy(former->arena, buffer_bytes(&record));
    if (status_is_ok(s) && (record.failed || of->shared.name == NULL ||
                            (record.size > 0 && of->shared.record.data == NULL)))
        s = status_out_of_memory();
    buffer_free(&record);
    former->first = of;
    return s;
}

static bool note_table(void *context, struct table *table)
{
    struct former *former = context;
    if (table_uid(table) != 0)
        former->s = describe(former, table);
    return status_is_ok(former->s);
}

/* Its rows are to go for good. */
static status end_table(struct cluster *cluster, const struct shared_table *shared)
{
    struct table *table;
    status s = cluster_table(cluster, bytes_of(shared->name), &table);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    s = table_unprotect(table);
    table_release(table);
    TRY(s);
    return cluster_delete_tables(cluster, bytes_of(shared->name), NULL);
}

static status make_anew(struct cluster *cluster, const struct former *former)
{
    for (const struct former_table *of = former->first; of != NULL; of = of->next)
        TRY(end_table(cluster, &of->shared));
    for (const struct former_table *of = former->first; of != NULL; of = of->next) {
        struct table *table;
        TRY(cluster_create_shared(cluster, &of->shared, NULL, &table));
        table_release(table);
    }
    return status_ok();
}

static status empty_tables(struct cluster *cluster)
{
    struct former former = {.arena = arena_create(TABLES_BYTES), .s = status_ok()};
    if (former.arena == NULL)
        return status_out_of_memory();
    status s = cluster_list_tables(cluster, bytes_of(""), bytes_of(""), note_table, &former);
    if (status_is_ok(s))
        s = former.s;
    else
        status_free(former.s);
    if (status_is_ok(s))
        s = make_anew(cluster, &former);
    arena_destroy(former.arena);
    return s;
}

/* --- the copy --- */

struct copying {
    const struct copier_options *options;
    struct arena *arena; /* of an answer */
    struct pull_apply *apply;
    struct origin_applied places[VERSION_CLUSTERS];
    bool has_begun; /* which is recorded */
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

static void take_places(struct copying *copying, const Replica__PullChangesResponse *answer)
{
    for (size_t i = 0; i < answer->n_places; i++) {
        const Replica__Place *place = answer->places[i];
        if (place->number < VERSION_CLUSTERS && place->after != NULL)
            copying->places[place->number] = (struct origin_applied){
                {place->after->sequence, place->after->ordinal}, place->complete_version};
    }
    copying->is_whole = answer->is_whole;
}

static status record_begun(const struct copier_options *options)
{
    const struct origin_applied begun = {.complete = ORIGIN_HAS_ROWS};
    return origin_applied_record(options->apply.cluster, options->from, &begun);
}

/* Before anything of it is here. */
static status record_begin(struct copying *copying)
{
    if (copying->has_begun)
        return status_ok();
    copying->has_begun = true;
    return record_begun(copying->options);
}

static status take_answer(void *context, bytes message)
{
    struct copying *copying = context;
    ProtobufCMessage *decoded;
    arena_reset(copying->arena);
    TRY(record_begin(copying));
    TRY(proto_decode(&replica__pull_changes_response__descriptor, message, copying->arena,
                     &decoded));
    const Replica__PullChangesResponse *answer = (const void *)decoded;
    TRY(apply(copying, answer));
    copying->options->note_progress(copying->options->context, answer->n_changes, message.size);
    take_places(copying, answer);
    return status_ok();
}

static status ask(struct copying *copying)
{
    const struct copier_options *options = copying->options;
    struct client_session *session;
    Replica__CopyRowsRequest request = REPLICA__COPY_ROWS_REQUEST__INIT;
    const struct session_call call = {.path = "/trestle.replica.v1.Replication/CopyRows",
                                      .request = &request.base,
                                      .timeout_us = INT64_MAX,
                                      .on_message = take_answer,
                                      .context = copying};
    request.from = peers_own_number(options->peers);
    TRY(peers_session(options->peers, options->from, &session));
    status s = options->hold_session(options->context, session)
                   ? client_session_stream(session, &call, NULL)
                   : status_make(STATUS_CANCELLED, "the server stops");
    (void)options->hold_session(options->context, NULL);
    client_session_destroy(session);
    if (status_is_ok(s) && !copying->is_whole)
        return status_make(STATUS_UNAVAILABLE, "the copy ended before it was whole");
    return s;
}

/* The peer's own last: with it the copy is whole. */
static status record_places(const struct copying *copying)
{
    struct cluster *cluster = copying->options->apply.cluster;
    const struct origin_applied beginning = {.position = ORIGIN_BEGINNING};
    struct origin_applied before;
    unsigned from = copying->options->from;
    for (unsigned i = 1; i < VERSION_CLUSTERS; i++) {
        const struct origin_applied *place = &copying->places[i];
        if (i != from && origin_applied(cluster, i, &before))
            TRY(origin_applied_record(cluster, i, origin_wants_copy(place) ? &beginning : place));
    }
    return origin_applied_record(cluster, from, &copying->places[from]);
}

/* Whether there may be rows here: of a copy that has begun, or of a time when others were followed.
 */
static bool may_have_rows(struct cluster *cluster)
{
    struct origin_applied applied;
    for (unsigned i = 1; i < VERSION_CLUSTERS; i++)
        if (origin_applied(cluster, i, &applied) &&
            (!origin_wants_copy(&applied) || applied.complete != 0))
            return true;
    return false;
}

static status follow_none(struct cluster *cluster, unsigned but)
{
    const struct origin_applied none = {0};
    struct origin_applied before;
    for (unsigned i = 1; i < VERSION_CLUSTERS; i++)
        if (i != but && origin_applied(cluster, i, &before))
            TRY(origin_applied_record(cluster, i, &none));
    return status_ok();
}

/* Everything from before goes: sums that are one already would count beside those of the copy. That
 * it is to go is durable until it has. */
static status begin(const struct copier_options *options)
{
    struct cluster *cluster = options->apply.cluster;
    const struct origin_applied none = {0};
    if (!may_have_rows(cluster))
        return origin_applied_record(cluster, options->from, &none);
    TRY(record_begun(options));
    TRY(follow_none(cluster, options->from));
    TRY(empty_tables(cluster));
    return origin_applied_record(cluster, options->from, &none);
}

static status copy(struct copying *copying)
{
    TRY(begin(copying->options));
    TRY(pull_apply_create(&copying->options->apply, &copying->apply));
    log_info(copying->options->log, "copies a peer's rows",
             LOG_INT("peer", copying->options->from));
    status s = ask(copying);
    pull_apply_destroy(copying->apply);
    TRY(s);
    if (origin_wants_copy(&copying->places[copying->options->from]))
        return status_make(STATUS_INTERNAL, "the copy does not say where to go on");
    TRY(record_places(copying));
    log_info(copying->options->log, "has copied a peer's rows",
             LOG_INT("peer", copying->options->from));
    return status_ok();
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
