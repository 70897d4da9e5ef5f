/* See service.h. */
#include "replica/service.h"

#include "bigtable/admin_call.h"

static struct peers *peers_of(const struct admin_request *request)
{
    return ((const struct replica_service *)request->more)->peers;
}

static status check_server(const char *name)
{
    if (strcmp(name, "servers/self") == 0)
        return status_ok();
    return status_make(STATUS_NOT_FOUND, "there is no server \"%s\" here: servers/self is the one",
                       name);
}

/* --- methods --- */

static status join_peers(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Replica__JoinPeersRequest *message = (const void *)request->message;
    const Replica__ListPeersResponse *told;
    TRY(check_server(message->name));
    TRY(peers_join(peers_of(request), message, request->arena, &told));
    const struct replica_service *service = request->more;
    if (service->await_beginning != NULL)
        service->await_beginning(service->changes);
    *response = &told->base;
    return status_ok();
}

static status promote_peer(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Replica__PromotePeerRequest *message = (const void *)request->message;
    const Replica__ChangePeersResponse *told;
    TRY(check_server(message->name));
    TRY(peers_promote(peers_of(request), message, request->arena, &told));
    *response = &told->base;
    return status_ok();
}

static status remove_peer(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Replica__RemovePeerRequest *message = (const void *)request->message;
    const Replica__ChangePeersResponse *told;
    TRY(check_server(message->name));
    TRY(peers_remove(peers_of(request), message, request->arena, &told));
    *response = &told->base;
    return status_ok();
}

static status leave_peers(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Replica__LeavePeersRequest *message = (const void *)request->message;
    const Replica__ChangePeersResponse *told;
    TRY(check_server(message->name));
    TRY(peers_leave(peers_of(request), message, request->arena, &told));
    *response = &told->base;
    return status_ok();
}

static status dismiss_peer(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Replica__DismissPeerRequest *message = (const void *)request->message;
    const Replica__DismissPeerResponse *told;
    TRY(peers_dismiss(peers_of(request), message, request->arena, &told));
    *response = &told->base;
    return status_ok();
}

static status prepare_promotion(const struct admin_request *request,
                                const ProtobufCMessage **response)
{
    const Replica__PreparePromotionRequest *message = (const void *)request->message;
    const Replica__PreparePromotionResponse *told;
    TRY(peers_prepare(peers_of(request), message, request->arena, &told));
    *response = &told->base;
    return status_ok();
}

static status hand_over_lead(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Replica__HandOverRequest *message = (const void *)request->message;
    const Replica__HandOverResponse *told;
    TRY(peers_hand_over(peers_of(request), message, request->arena, &told));
    *response = &told->base;
    return status_ok();
}

static status add_copied(const struct admin_request *request, Replica__ListPeersResponse *out)
{
    const struct replica_service *service = request->more;
    return service->copied == NULL || out->list == NULL
               ? status_ok()
               : service->copied(service->changes, request->arena, &out->copied);
}

static status list_peers(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Replica__ListPeersRequest *message = (const void *)request->message;
    const Replica__ListPeersResponse *told;
    TRY(check_server(message->name));
    TRY(peers_describe(peers_of(request), request->arena, &told));
    TRY(add_copied(request, (Replica__ListPeersResponse *)(uintptr_t)told));
    *response = &told->base;
    return status_ok();
}

static status admit_peer(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Replica__AdmitPeerRequest *message = (const void *)request->message;
    const Replica__AdmitPeerResponse *told;
    TRY(peers_admit(peers_of(request), message, request->arena, &told));
    *response = &told->base;
    return status_ok();
}

static status exchange_peers(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Replica__ExchangePeersRequest *message = (const void *)request->message;
    const Replica__ExchangePeersResponse *told;
    TRY(peers_exchange(peers_of(request), message, request->arena, &told));
    *response = &told->base;
    return status_ok();
}

static status tell_progress(const struct admin_request *request, const ProtobufCMessage **response)
{
    const struct replica_service *service = request->more;
    const Replica__TellProgressResponse *told;
    if (service->tell_progress == NULL)
        return status_make(STATUS_UNIMPLEMENTED, "this server copies nothing yet");
    TRY(service->tell_progress(service->changes, (const void *)request->message, request->arena,
                               &told));
    *response = &told->base;
    return status_ok();
}

/* --- the table of methods --- */

#define REPLICA_HANDLER(method, prefix)                                                            \
    static void handle_##method(void *context, struct grpc_call *call, bytes request)              \
    {                                                                                              \
        struct replica_service *service = context;                                                 \
        admin_call_run(service->bigtable, service, call, request, &prefix##__descriptor, method);  \
    }

REPLICA_HANDLER(join_peers, replica__join_peers_request)
REPLICA_HANDLER(list_peers, replica__list_peers_request)
REPLICA_HANDLER(promote_peer, replica__promote_peer_request)
REPLICA_HANDLER(remove_peer, replica__remove_peer_request)
REPLICA_HANDLER(leave_peers, replica__leave_peers_request)
REPLICA_HANDLER(dismiss_peer, replica__dismiss_peer_request)
REPLICA_HANDLER(prepare_promotion, replica__prepare_promotion_request)
REPLICA_HANDLER(hand_over_lead, replica__hand_over_request)
REPLICA_HANDLER(admit_peer, replica__admit_peer_request)
REPLICA_HANDLER(exchange_peers, replica__exchange_peers_request)
REPLICA_HANDLER(tell_progress, replica__tell_progress_request)

/* Whether the call is a fellow server's; else it is ended. */
static bool is_of_fellow(struct grpc_call *call)
{
    if (access_peer_is_fellow(grpc_call_peer(call)))
        return true;
    grpc_call_finish(call, status_make(STATUS_PERMISSION_DENIED,
                                       "only a peer may ask this: one whose certificate leads to "
                                       "peer-ca, or, without TLS and access control, one on this "
                                       "machine"));
    return false;
}

static void handle_admission(void *context, struct grpc_call *call, bytes request)
{
    if (is_of_fellow(call))
        handle_admit_peer(context, call, request);
}

static void handle_exchange(void *context, struct grpc_call *call, bytes request)
{
    if (is_of_fellow(call))
        handle_exchange_peers(context, call, request);
}

static void handle_preparation(void *context, struct grpc_call *call, bytes request)
{
    if (is_of_fellow(call))
        handle_prepare_promotion(context, call, request);
}

static void handle_hand_over(void *context, struct grpc_call *call, bytes request)
{
    if (is_of_fellow(call))
        handle_hand_over_lead(context, call, request);
}

static void handle_dismissal(void *context, struct grpc_call *call, bytes request)
{
    if (is_of_fellow(call))
        handle_dismiss_peer(context, call, request);
}

static void handle_progress(void *context, struct grpc_call *call, bytes request)
{
    if (is_of_fellow(call))
        handle_tell_progress(context, call, request);
}

static void hand_over(grpc_handler *handle, void *context, struct grpc_call *call, bytes request)
{
    if (!is_of_fellow(call))
        return;
    if (handle == NULL)
        grpc_call_finish(call, status_make(STATUS_UNIMPLEMENTED, "this server copies nothing yet"));
    else
        handle(context, call, request);
}

static void handle_pull_changes(void *context, struct grpc_call *call, bytes request)
{
    const struct replica_service *service = context;
    hand_over(service->pull_changes, service->changes, call, request);
}

static void handle_copy_rows(void *context, struct grpc_call *call, bytes request)
{
    const struct replica_service *service = context;
    hand_over(service->copy_rows, service->changes, call, request);
}

static void handle_pull_schema(void *context, struct grpc_call *call, bytes request)
{
    const struct replica_service *service = context;
    hand_over(service->pull_schema, service->schema, call, request);
}

struct grpc_service replica_grpc_service(struct replica_service *service)
{
    static const struct grpc_method methods[] = {
        {"JoinPeers", GRPC_UNARY, handle_join_peers},
        {"ListPeers", GRPC_UNARY, handle_list_peers},
        {"PromotePeer", GRPC_UNARY, handle_promote_peer},
        {"RemovePeer", GRPC_UNARY, handle_remove_peer},
        {"LeavePeers", GRPC_UNARY, handle_leave_peers},
        {"AdmitPeer", GRPC_UNARY, handle_admission},
        {"ExchangePeers", GRPC_UNARY, handle_exchange},
        {"PullChanges", GRPC_SERVER_STREAMING, handle_pull_changes},
        {"CopyRows", GRPC_SERVER_STREAMING, handle_copy_rows},
        {"TellProgress", GRPC_UNARY, handle_progress},
        {"PullSchema", GRPC_SERVER_STREAMING, handle_pull_schema},
        {"PreparePromotion", GRPC_UNARY, handle_preparation},
        {"HandOver", GRPC_UNARY, handle_hand_over},
        {"DismissPeer", GRPC_UNARY, handle_dismissal},
    };
    return (struct grpc_service){.name = "trestle.replica.v1.Replication",
                                 .methods = methods,
                                 .method_count = sizeof methods / sizeof *methods,
                                 .context = service,
                                 .rest = &replica__replication__descriptor};
}
