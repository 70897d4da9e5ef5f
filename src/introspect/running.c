/* See running.h.
 *
 * Invariant: a part is used by the loop's thread alone until it is done, and then by the waiting
 * thread; if that has left, by none. */
#include "introspect/running.h"

#include "access/rules.h"
#include "base/check.h"
#include "os/loop_round.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    WAIT_US = 2 * 1000 * 1000,
    ARENA_MOST = 16 << 20,
    NAME_MOST = 512,
    WORDS_MOST = 600,
};

/* --- what a call is --- */

static const char *copy(struct arena *arena, bytes text)
{
    bytes cut = bytes_make(text.data, text.size < NAME_MOST ? text.size : NAME_MOST);
    return arena_string(arena, cut);
}

/* What the request names; a call that was noted has been looked at. */
static bytes resource_of(const struct grpc_running *call)
{
    const struct access_caller *caller = call->note;
    if (caller != NULL)
        return caller->resource;
    return rule_name_of(call->service->name, call->method->name, call->request);
}

static const char *principal_of(struct access *access, const struct grpc_running *call,
                                struct arena *arena)
{
    struct buffer text = {0};
    if (access != NULL)
        access_append_principal(access, call->call, call->peer, &text);
    const char *principal = copy(arena, text.failed ? bytes_of("") : buffer_bytes(&text));
    buffer_free(&text);
    return principal;
}

/* Describes a call, on its loop. */
static status describe(const struct running_source *source, const struct grpc_running *call,
                       struct arena *arena, struct running_request *out)
{
    *out = (struct running_request){
        .begun_us = call->begun_us,
        .deadline_us = call->deadline_us,
        .service = call->service->name,
        .method = call->method->name,
        .profile = copy(arena, bytes_of(call->profile == NULL ? "" : call->profile)),
        .principal = principal_of(source->access, call, arena),
        .resource = copy(arena, resource_of(call)),
        .address = copy(arena, access_call_address(call->call, call->peer)),
        .step = call->step,
        .is_cancelled = call->is_cancelled,
        .request_bytes = call->request_bytes,
        .answer_bytes = call->response_bytes,
        .items = call->items,
        .seen = call->seen,
    };
    snprintf(out->id, sizeof out->id, "%" PRIu64 "-%" PRId32, call->connection_id, call->stream_id);
    bool is_whole = out->profile != NULL && out->principal != NULL && out->resource != NULL &&
                    out->address != NULL;
    return is_whole ? status_ok() : status_out_of_memory();
}

/* Another's, into one's own arena. */
static status copy_request(const struct running_request *from, struct arena *arena,
                           struct running_request *to)
{
    *to = *from;
    to->profile = copy(arena, bytes_of(from->profile));
    to->principal = copy(arena, bytes_of(from->principal));
    to->resource = copy(arena, bytes_of(from->resource));
    to->address = copy(arena, bytes_of(from->address));
    bool is_whole =
        to->profile != NULL && to->principal != NULL && to->resource != NULL && to->address != NULL;
    return is_whole ? status_ok() : status_out_of_memory();
}

/* --- listing --- */

struct gathering;

/* The answer of one loop. */
struct part {
    struct gathering *whole;
    struct grpc_running *oldest; /* a heap, whose first is the youngest; the arena's */
    size_t count;
    size_t total;
    struct arena *arena;
    struct running_request *requests; /* `count` of them */
    status result;
};

struct gathering {
    struct loop_round round;
    struct running_source source;
    size_t most;
    struct part *parts;
};

static bool is_younger(const struct part *part, size_t a, size_t b)
{
    return part->oldest[a].begun_us > part->oldest[b].begun_us;
}

static void swap(struct part *part, size_t a, size_t b)
{
    struct grpc_running kept = part->oldest[a];
    part->oldest[a] = part->oldest[b];
    part->oldest[b] = kept;
}

static void sift_up(struct part *part, size_t at)
{
    for (; at > 0 && is_younger(part, at, (at - 1) / 2); at = (at - 1) / 2)
        swap(part, at, (at - 1) / 2);
}

static void sift_down(struct part *part)
{
    size_t at = 0, child;
    while ((child = 2 * at + 1) < part->count) {
        if (child + 1 < part->count && is_younger(part, child + 1, child))
            child++;
        if (!is_younger(part, child, at))
            return;
        swap(part, at, child);
        at = child;
    }
}

static void take_call(void *context, const struct grpc_running *call)
{
    struct part *part = context;
    part->total++;
    if (part->count < part->whole->most) {
        part->oldest[part->count++] = *call;
        sift_up(part, part->count - 1);
    } else if (call->begun_us < part->oldest[0].begun_us) {
        part->oldest[0] = *call;
        sift_down(part);
    }
}

static void take_connection(void *context, struct grpc_connection *connection)
{
    grpc_connection_visit(connection, context, take_call);
}

static status gather_part(struct gathering *whole, size_t number, struct part *part)
{
    part->arena = arena_create(ARENA_MOST);
    if (part->arena == NULL)
        return status_out_of_memory();
    part->oldest = arena_alloc(part->arena, whole->most * sizeof *part->oldest);
    part->requests = arena_alloc(part->arena, whole->most * sizeof *part->requests);
    if (part->oldest == NULL || part->requests == NULL)
        return status_out_of_memory();
    whole->source.connections(whole->source.context, number, part, take_connection);
    for (size_t i = 0; i < part->count; i++)
        TRY(describe(&whole->source, &part->oldest[i], part->arena, &part->requests[i]));
    return status_ok();
}

static void run_gathering(struct loop_round *round, size_t number)
{
    struct gathering *whole = LIST_ENTRY(round, struct gathering, round);
    struct part *part = &whole->parts[number];
    part->result = gather_part(whole, number, part);
}

static void free_gathering(struct loop_round *round)
{
    struct gathering *whole = LIST_ENTRY(round, struct gathering, round);
    for (size_t i = 0; i < whole->source.count; i++) {
        arena_destroy(whole->parts[i].arena);
        status_ignore(whole->parts[i].result);
    }
    free(whole->parts);
    free(whole);
}

static status create_gathering(const struct running_source *source, size_t most,
                               struct gathering **out)
{
    struct gathering *whole = calloc(1, sizeof *whole);
    struct part *parts = calloc(source->count + 1, sizeof *parts);
    *out = whole;
    if (whole == NULL || parts == NULL) {
        free(whole);
        free(parts);
        return status_out_of_memory();
    }
    *whole = (struct gathering){.round = {.run = run_gathering, .destroy = free_gathering},
                                .source = *source,
                                .most = most,
                                .parts = parts};
    for (size_t i = 0; i < source->count; i++)
        parts[i].whole = whole;
    return status_ok();
}

/* Room for so many more. */
static struct running_request *grown(const struct running_list *list, size_t more,
                                     struct arena *arena)
{
    struct running_request *room = arena_alloc(arena, (list->count + more + 1) * sizeof *room);
    if (room != NULL && list->count > 0)
        memcpy(room, list->requests, list->count * sizeof *room);
    return room;
}

static status add_part(struct part *part, struct arena *arena, struct running_list *list)
{
    status s = part->result;
    part->result = status_ok();
    TRY(s);
    list->total += part->total;
    list->requests = grown(list, part->count, arena);
    if (list->requests == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < part->count; i++)
        TRY(copy_request(&part->requests[i], arena, &list->requests[list->count++]));
    return status_ok();
}

static int compare_ages(const void *a, const void *b)
{
    const struct running_request *left = a;
    const struct running_request *right = b;
    return left->begun_us < right->begun_us ? -1 : left->begun_us > right->begun_us;
}

static status add_parts(struct gathering *whole, struct arena *arena, struct running_list *list)
{
    size_t loops = whole->source.count;
    list->loops = loops;
    for (size_t i = 0; i < loops; i++) {
        if (loop_round_is_done(&whole->round, i))
            TRY(add_part(&whole->parts[i], arena, list));
        else
            list->silent_loops++;
    }
    if (list->count > 0)
        qsort(list->requests, list->count, sizeof *list->requests, compare_ages);
    if (list->count > whole->most)
        list->count = whole->most;
    return status_ok();
}

status running_requests_list(const struct running_source *source, size_t most, struct arena *arena,
                             struct running_list *out)
{
    struct gathering *whole;
    *out = (struct running_list){0};
    TRY(create_gathering(source, most < RUNNING_MOST ? most : RUNNING_MOST, &whole));
    status s = loop_round_begin(&whole->round, source->loops, source->count);
    if (!status_is_ok(s)) {
        free_gathering(&whole->round);
        return s;
    }
    loop_round_wait(&whole->round, WAIT_US);
    s = add_parts(whole, arena, out);
    loop_round_release(&whole->round);
    return s;
}

/* --- ending one --- */

struct ending {
    struct loop_round round;
    struct running_source source;
    uint64_t connection_id;
    int32_t stream_id;
    char words[WORDS_MOST];
    struct arena *arena;
    struct running_request request; /* the loop's that has it, then the waiting thread's */
    status described;
    atomic_bool is_found;
};

/* "17-5" and nothing else. */
static status parse_id(const char *id, uint64_t *connection_id, int32_t *stream_id)
{
    char text[RUNNING_ID_SIZE];
    int size = -1;
    bool is_id = sscanf(id, "%20" SCNu64 "-%10" SCNd32 "%n", connection_id, stream_id, &size) == 2;
    snprintf(text, sizeof text, "%" PRIu64 "-%" PRId32, *connection_id, *stream_id);
    if (is_id && strcmp(text, id) == 0)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "\"%.40s\" is no request's id: these are like 17-5",
                       id);
}

static void describe_it(void *context, const struct grpc_running *call)
{
    struct ending *ending = context;
    if (call->stream_id != ending->stream_id)
        return;
    status_ignore(ending->described);
    ending->described = describe(&ending->source, call, ending->arena, &ending->request);
}

static void end_it(void *context, struct grpc_connection *connection)
{
    struct ending *ending = context;
    if (grpc_connection_id(connection) != ending->connection_id)
        return;
    grpc_connection_visit(connection, ending, describe_it);
    status s = status_make(STATUS_CANCELLED, "%s", ending->words);
    if (grpc_connection_end_call(connection, ending->stream_id, s))
        atomic_store(&ending->is_found, true);
}

static void run_ending(struct loop_round *round, size_t number)
{
    struct ending *ending = LIST_ENTRY(round, struct ending, round);
    ending->source.connections(ending->source.context, number, ending, end_it);
}

static void free_ending(struct loop_round *round)
{
    struct ending *ending = LIST_ENTRY(round, struct ending, round);
    arena_destroy(ending->arena);
    status_ignore(ending->described);
    free(ending);
}

static status create_ending(const struct running_source *source, bytes words, struct ending **out)
{
    struct ending *ending = calloc(1, sizeof *ending);
    struct arena *arena = arena_create(ARENA_MOST);
    *out = ending;
    if (ending == NULL || arena == NULL) {
        free(ending);
        arena_destroy(arena);
        return status_out_of_memory();
    }
    ending->round = (struct loop_round){.run = run_ending, .destroy = free_ending};
    ending->source = *source;
    ending->arena = arena;
    snprintf(ending->words, sizeof ending->words, "%.*s", (int)words.size,
             (const char *)words.data);
    return status_ok();
}

/* Tells what came of it: the loop that has the request has answered, or has not. */
static status tell_ending(struct ending *ending, bool is_whole, const char *id, struct arena *arena,
                          struct running_request *out)
{
    if (!atomic_load(&ending->is_found) && !is_whole)
        return status_make(STATUS_UNAVAILABLE,
                           "an event loop does not answer: if the request is there, it ends later");
    if (!atomic_load(&ending->is_found))
        return status_make(STATUS_NOT_FOUND, "no request %s runs: it may have ended", id);
    status s = ending->described;
    ending->described = status_ok();
    TRY(s);
    return copy_request(&ending->request, arena, out);
}

status running_request_cancel(const struct running_source *source, const char *id, bytes words,
                              struct arena *arena, struct running_request *out)
{
    struct ending *ending;
    uint64_t connection_id = 0;
    int32_t stream_id = 0;
    *out = (struct running_request){0};
    TRY(parse_id(id, &connection_id, &stream_id));
    TRY(create_ending(source, words, &ending));
    ending->connection_id = connection_id;
    ending->stream_id = stream_id;
    status s = loop_round_begin(&ending->round, source->loops, source->count);
    if (!status_is_ok(s)) {
        free_ending(&ending->round);
        return s;
    }
    bool is_whole = loop_round_wait(&ending->round, WAIT_US) == source->count;
    s = tell_ending(ending, is_whole, id, arena, out);
    loop_round_release(&ending->round);
    return s;
}
