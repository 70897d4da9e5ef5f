/* See ds_call.h.
 *
 * A task on its way through the pool holds nothing but its call, which lives until it is finished:
 * a client that goes away only has the method skipped. */
#include "datastore/ds_call.h"

#include "base/limits.h"
#include "wire/grpc_text.h"
#include "wire/proto_call.h"

struct ds_task {
    struct task task;
    struct ds_call call;
    const struct ds_method *method;
    const ProtobufCMessage *request;
};

/* --- what all requests say --- */

enum { MOST_ID = 128 }; /* bytes of a project's or a database's name */

static status check_id(const char *label, const char *id)
{
    size_t size = strlen(id);
    if (size > MOST_ID)
        return status_make(STATUS_INVALID_ARGUMENT, "The %s is longer than %d bytes.", label,
                           MOST_ID);
    for (size_t i = 0; i < size; i++)
        if (id[i] == '/' || (unsigned char)id[i] < ' ' || id[i] == 0x7f)
            return status_make(STATUS_INVALID_ARGUMENT,
                               "The %s has a character that it cannot have, at byte %zu.", label,
                               i);
    return status_ok();
}

status ds_check_database(const char *project_id, const char *database_id)
{
    if (*project_id == '\0')
        return status_make(STATUS_INVALID_ARGUMENT, "The project_id is empty.");
    TRY(check_id("project_id", project_id));
    if (strcmp(database_id, "(default)") == 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The database_id is \"(default)\": leave it empty for the default "
                           "database.");
    return check_id("database_id", database_id);
}

/* The text of a field, "" if the message has none of that name. */
static const char *text_of(const ProtobufCMessage *message, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    if (field == NULL)
        return "";
    return *(const char *const *)(const void *)((const char *)message + field->offset);
}

/* The value, percent-encoded, is the text. */
static bool stands_for(bytes encoded, const char *text)
{
    struct buffer decoded = {0};
    grpc_percent_decode(encoded, &decoded);
    bool stands = decoded.failed || bytes_equal(buffer_bytes(&decoded), bytes_of(text));
    buffer_free(&decoded);
    return stands;
}

/* A client that says in `x-goog-request-params` where its request is to go must say there what it
 * says in the request. One that says nothing is not wrong. */
static status check_routing(const struct ds_call *call)
{
    bytes rest, key, value;
    if (!grpc_call_header(call->call, "x-goog-request-params", &rest))
        return status_ok();
    while (grpc_parameter_next(&rest, &key, &value)) {
        bool is_project = bytes_equal(key, bytes_of("project_id"));
        bool is_database = bytes_equal(key, bytes_of("database_id"));
        if ((is_project && !stands_for(value, call->project_id)) ||
            (is_database && !stands_for(value, call->database_id)))
            return status_make(STATUS_INVALID_ARGUMENT,
                               "The request is for the database '%s' of the project '%s', but its "
                               "routing header (x-goog-request-params) is for another",
                               call->database_id, call->project_id);
    }
    return status_ok();
}

/* --- there and back --- */

void ds_call_finish(struct ds_call *call, status s, const ProtobufCMessage *response)
{
    if (status_is_ok(s))
        grpc_call_answer(call->call, response);
    else
        grpc_call_finish(call->call, s);
}

static void run_on_pool(struct task *task)
{
    struct ds_task *self = LIST_ENTRY(&task->link, struct ds_task, task.link);
    struct grpc_call *call = self->call.call;
    ProtobufCMessage *response = NULL;
    grpc_call_step(call, CALL_WORKS);
    status s = grpc_call_is_cancelled(call)
                   ? status_make(STATUS_CANCELLED, "The call was cancelled")
                   : self->method->run(&self->call, self->request, &response);
    if (!status_is_ok(s) || response != NULL)
        ds_call_finish(&self->call, s, response);
}

static status submit(const struct ds_call *call, const struct ds_method *method,
                     const ProtobufCMessage *request)
{
    struct ds_task *self = arena_alloc(call->arena, sizeof *self);
    if (self == NULL)
        return status_out_of_memory();
    *self = (struct ds_task){
        .task.run = run_on_pool, .call = *call, .method = method, .request = request};
    grpc_call_step(call->call, CALL_AWAITS_THREAD);
    return pool_submit(call->datastore->pool, &self->task) ? status_ok() : pool_full();
}

static status start(struct ds_call *call, bytes wire, const struct ds_method *method)
{
    ProtobufCMessage *request;
    TRY(proto_decode(method->request, wire, call->arena, &request));
    call->project_id = text_of(request, "project_id");
    call->database_id = text_of(request, "database_id");
    if (method->locate != NULL)
        TRY(method->locate(call, request));
    TRY(ds_check_database(call->project_id, call->database_id));
    TRY(check_routing(call));
    if (method->run == NULL)
        return status_make(STATUS_UNIMPLEMENTED, "%s is not built yet", method->name);
    arena_set_limit(call->arena, LIMIT_ARENA_DATASTORE_BYTES);
    return submit(call, method, request);
}

void ds_call_start(struct datastore *datastore, struct grpc_call *call, bytes request,
                   const struct ds_method *method)
{
    struct ds_call self = {.datastore = datastore,
                           .call = call,
                           .arena = grpc_call_arena(call),
                           .deadline_us = grpc_call_deadline_us(call),
                           .caller = grpc_call_connection(call)};
    status s = start(&self, request, method);
    if (!status_is_ok(s))
        grpc_call_finish(call, s);
}
