/* See admin_call.h. */
#include "bigtable/admin_call.h"

#include "base/limits.h"
#include "google/protobuf/empty.pb-c.h"
#include "wire/call_steps.h"
#include "wire/proto_call.h"

struct admin_call {
    struct task task;
    struct grpc_call *call;
    struct admin_request request;
    admin_method *method;
};

static void run_on_pool(struct task *task)
{
    struct admin_call *admin = LIST_ENTRY(&task->link, struct admin_call, task.link);
    const ProtobufCMessage *response = NULL;
    grpc_call_step(admin->call, CALL_WORKS);
    status s = admin->method(&admin->request, &response);
    if (status_is_ok(s))
        grpc_call_answer(admin->call, response);
    else
        grpc_call_finish(admin->call, s);
}

static status start(struct bigtable *bigtable, void *more, struct grpc_call *call, bytes wire,
                    const ProtobufCMessageDescriptor *type, admin_method *method)
{
    struct arena *arena = grpc_call_arena(call);
    ProtobufCMessage *message;
    TRY(proto_decode(type, wire, arena, &message));
    arena_set_limit(arena, LIMIT_ARENA_ADMIN_BYTES);
    struct admin_call *admin = arena_alloc(arena, sizeof *admin);
    if (admin == NULL)
        return status_out_of_memory();
    *admin = (struct admin_call){
        .task.run = run_on_pool,
        .call = call,
        .request = {.bigtable = bigtable,
                    .arena = arena,
                    .deadline_us = grpc_call_deadline_us(call),
                    .message = message,
                    .call = call,
                    .caller = access_caller(call),
                    .more = more},
        .method = method,
    };
    grpc_call_step(call, CALL_AWAITS_THREAD);
    if (!pool_submit(cluster_pool(bigtable->cluster), &admin->task))
        return pool_full();
    return status_ok();
}

void admin_call_run(struct bigtable *bigtable, void *more, struct grpc_call *call, bytes request,
                    const ProtobufCMessageDescriptor *type, admin_method *method)
{
    status s = start(bigtable, more, call, request, type, method);
    if (!status_is_ok(s))
        grpc_call_finish(call, s);
}

const ProtobufCMessage *admin_empty_response(void)
{
    static const Pb__Empty empty = PB__EMPTY__INIT;
    return &empty.base;
}
