/* What stands in for replica/ in the server's test: servers without peers. */
#ifndef TRESTLE_SERVER_TESTING_REPLICA_DOUBLES_H
#define TRESTLE_SERVER_TESTING_REPLICA_DOUBLES_H

#include "base/testing/testing.h"
#include "replica/peer_watch.h"
#include "replica/replication.h"
#include "replica/router.h"
#include "replica/schema_follow.h"
#include "replica/schema_service.h"
#include "replica/service.h"

status peers_open(const struct peers_options *options, struct peers **out)
{
    assert_string_equal(options->location, "local");
    *out = NULL;
    return status_ok();
}

status peers_begin(struct peers *peers, const struct address *listen)
{
    assert_null(peers);
    assert_non_null(listen);
    return status_ok();
}

status peers_administer_begin(void *peers)
{
    assert_null(peers);
    return status_ok();
}

void peers_administer_end(void *peers)
{
    assert_null(peers);
}

bool peers_was_removed(const void *peers)
{
    assert_null(peers);
    return false;
}

void peers_set_schema(struct peers *peers, const struct peers_schema *schema)
{
    assert_null(peers);
    (void)schema;
}

status schema_follow_tell(void *follow, struct arena *arena, Replica__SchemaState *out)
{
    (void)follow, (void)arena, (void)out;
    return status_ok();
}

status schema_follow_catch_up(void *follow, unsigned from)
{
    (void)follow, (void)from;
    return status_ok();
}

void peers_measure(struct peers *peers)
{
    assert_null(peers);
}

void peers_stop(struct peers *peers)
{
    assert_null(peers);
}

void peers_close(struct peers *peers)
{
    assert_null(peers);
}

status schema_service_create(struct control *control, struct peers *peers,
                             struct schema_service **out)
{
    (void)control;
    assert_null(peers);
    *out = NULL;
    return status_ok();
}

void schema_service_destroy(struct schema_service *service)
{
    assert_null(service);
}

void schema_service_handle(void *service, struct grpc_call *call, bytes request)
{
    (void)service, (void)call, (void)request;
}

bool schema_follows(void *peers, struct buffer *leader_address)
{
    (void)leader_address;
    assert_null(peers);
    return false;
}

status schema_follow_start(const struct schema_follow_options *options, struct schema_follow **out)
{
    assert_null(options->peers);
    *out = NULL;
    return status_ok();
}

void schema_follow_stop(struct schema_follow *follow)
{
    assert_null(follow);
}

bool schema_follow_knows_since(void *follow, int64_t since_us)
{
    (void)follow, (void)since_us;
    return true;
}

void peers_set_progress(struct peers *peers,
                        void (*tell)(void *context, struct arena *arena, Replica__PeerState *state),
                        void *context)
{
    (void)tell;
    assert_null(peers);
    assert_null(context);
}

status replication_create(const struct replication_options *options, struct replication **out)
{
    assert_null(options->peers);
    *out = NULL;
    return status_ok();
}

void replication_destroy(struct replication *replication)
{
    assert_null(replication);
}

status replication_start(struct replication *replication,
                         bool (*knows_schema_since)(void *context, int64_t since_us), void *context)
{
    assert_null(replication);
    assert_ptr_equal(knows_schema_since, schema_follow_knows_since);
    assert_null(context);
    return status_ok();
}

void replication_stop(struct replication *replication)
{
    assert_null(replication);
}

status replication_progress(void *replication, const Replica__TellProgressRequest *request,
                            struct arena *arena, const Replica__TellProgressResponse **out)
{
    (void)replication, (void)request, (void)arena, (void)out;
    return status_ok();
}

void replication_pull_changes(void *replication, struct grpc_call *call, bytes request)
{
    (void)replication, (void)call, (void)request;
}

void replication_copy_rows(void *replication, struct grpc_call *call, bytes request)
{
    (void)replication, (void)call, (void)request;
}

bool replication_is_here(void *replication, bytes instance)
{
    (void)replication, (void)instance;
    return true;
}

status replication_copied(void *replication, struct arena *arena, Replica__PlacedInstance **out)
{
    (void)replication, (void)arena, (void)out;
    return status_ok();
}

bool replication_is_copying(const void *replication)
{
    (void)replication;
    return false;
}

status replication_mark(void *replication, struct arena *arena, struct buffer *out)
{
    (void)replication, (void)arena, (void)out;
    return status_ok();
}

status replication_has_reached(void *replication, struct arena *arena, const char *marks, bool *out)
{
    (void)replication, (void)arena, (void)marks, (void)out;
    return status_ok();
}

bool replication_creation(void *replication, const char *cluster,
                          void (*tell)(void *context, const struct table_copied *table),
                          void *context)
{
    (void)replication, (void)cluster, (void)tell, (void)context;
    return false;
}

void replication_await_beginning(void *replication)
{
    (void)replication;
}

bool replication_has_peers(const void *replication)
{
    assert_null(replication);
    return false;
}

bool replication_location(void *replication, unsigned number, struct buffer *out)
{
    (void)replication, (void)number, (void)out;
    return false;
}

void replication_tell(void *replication, struct arena *arena, Replica__PeerState *state)
{
    (void)replication, (void)arena, (void)state;
}

void peer_watch_measure(struct peer_watch *watch)
{
    assert_null(watch->peers);
}

void peer_watch_look(struct peer_watch *watch)
{
    assert_null(watch->peers);
}

status router_create(const struct router_options *options, struct router **out)
{
    assert_null(options->peers);
    *out = NULL;
    return status_ok();
}

void router_set_schema(struct router *router,
                       bool (*knows_schema_since)(void *context, int64_t since_us), void *context)
{
    (void)knows_schema_since, (void)context;
    assert_null(router);
}

void router_rest(struct router *router)
{
    assert_null(router);
}

void router_destroy(struct router *router)
{
    assert_null(router);
}

/* Each call is answered here. */
bool router_take(struct router *router, struct grpc_call *call, const struct grpc_service *service,
                 const struct grpc_method *method, bytes request)
{
    (void)call, (void)service, (void)method, (void)request;
    assert_null(router);
    return false;
}

struct grpc_service replica_grpc_service(struct replica_service *service)
{
    (void)service;
    return (struct grpc_service){.name = "test.Replication"};
}

status schema_follow_check_unused(void *follow, const char *location)
{
    (void)follow, (void)location;
    return status_ok();
}

#endif
