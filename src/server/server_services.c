/* The services of a server: those of Google's APIs, our own, and those of gRPC itself. */
#include "server/server_private.h"

#include "base/check.h"
#include "base/sizing.h"
#include "os/address.h"
#include "proto/descriptors.h"

/* On one's own machine any instance will do, as with an emulator; elsewhere a mistyped name is an
 * error. */
static bool auto_creates(const struct settings *settings, const struct address *address)
{
    if (settings->auto_create == AUTO_CREATE_AUTO)
        return address_is_loopback(address);
    return settings->auto_create == AUTO_CREATE_ON;
}

static status create_bigtable(struct server *server)
{
    struct address address;
    TRY(address_parse(server->settings->listen, &address));
    const struct bigtable_options options = {
        .query_memory = server->settings->query_memory,
        .query_threads = server->settings->query_threads,
        .values = server->settings->memory > 0 ? &server->rooms.values : NULL,
        .max_message = server->settings->max_message,
        .cluster = server->cluster,
        .control = server->control,
        .metrics = server->metrics,
        .backups = server->backups,
        .backups_expire = server->settings->backup_expiry,
        .zone_id = server->settings->location,
        .auto_create = auto_creates(server->settings, &address),
        .gc_on_read = server->settings->gc_on_read,
        .hold_views = server->settings->debug_hold_views,
        .peers = &server->peers_hook,
    };
    return bigtable_init(&server->bigtable, &options);
}

static status create_datastore(struct server *server)
{
    const struct datastore_options options = {
        .cluster = server->cluster,
        .control = server->control,
        .metrics = server->metrics,
        .threads = server->settings->datastore_threads,
        .is_pessimistic = server->settings->datastore_concurrency == CONCURRENCY_PESSIMISTIC,
        .transaction_bytes = server->settings->datastore_transaction_memory,
        .statistics_interval_us = server->settings->datastore_statistics_interval,
        .ttl_interval_us = server->settings->datastore_ttl_interval,
        .counts_usage = server->settings->heat,
        .export_directory = server->settings->export_directory,
    };
    return datastore_init(&server->datastore, &options);
}

static status create_insight(struct server *server)
{
    int64_t threshold_us = server->settings->slow_request;
    const struct slow_log_options slow = {.threshold_us =
                                              threshold_us == 0 ? INT64_MAX : threshold_us,
                                          .log = server->log,
                                          .clock = server->clock,
                                          .metrics = server->metrics};
    TRY(slow_log_create(&slow, &server->slow));
    server->insight = (struct insight){
        .bigtable = &server->bigtable,
        .datastore = &server->datastore,
        .settings = server->settings,
        .slow = server->slow,
        .metrics = server->metrics,
        .log = server->log,
        .stacks = server->stacks,
        .measure = measure,
        .measured = &server->measured,
    };
    return status_ok();
}

static void describe_settings(const void *context, struct buffer *out)
{
    settings_write_values(context, out);
}

struct whole_schedule_wish server_backup_schedules(const struct settings *settings)
{
    return (struct whole_schedule_wish){.period_us = settings->backup_schedule,
                                        .keep = settings->backup_keep,
                                        .parts = settings->backup_scopes};
}

static status create_whole_backups(struct server *server)
{
    const struct settings *settings = server->settings;
    const struct whole_runner_options options = {
        .cluster = server->cluster,
        .control = server->control,
        .backups = server->backups,
        .data_directory = settings->data_dir,
        .places = settings->backup_places,
        .key_file = settings->backup_key,
        .bytes_per_second = settings->backup_rate,
        .check_period_us = settings->backup_check_period,
        .schedules = server_backup_schedules(settings),
        .log = server->log,
        .metrics = server->metrics,
        .describe = describe_settings,
        .context = server->settings,
    };
    const struct whole_repairer_options repairs = {.cluster = server->cluster,
                                                   .data_directory = settings->data_dir,
                                                   .places = settings->backup_places,
                                                   .key_file = settings->backup_key,
                                                   .bytes_per_second = settings->backup_rate};
    TRY(whole_runner_create(&options, &server->whole_backups));
    TRY(whole_repairer_create(&repairs, &server->whole_repairs));
    server->insight.repairs = whole_repairer_source(server->whole_repairs);
    server->backup_service =
        (struct backup_service){.bigtable = &server->bigtable, .runner = server->whole_backups};
    return status_ok();
}

static status open_peers(struct server *server)
{
    const struct settings *settings = server->settings;
    bool has_own = settings->peer_cert != NULL;
    const struct peers_options options = {
        .cluster = server->cluster,
        .location = settings->location,
        .speaks_tls = settings->tls_cert != NULL,
        .ca = settings->peer_ca,
        .certificate = has_own ? settings->peer_cert : settings->tls_cert,
        .key = has_own ? settings->peer_key : settings->tls_key,
        .log = server->log,
        .metrics = server->metrics,
        .clock = server->clock,
    };
    TRY(peers_open(&options, &server->peers));
    TRY(schema_service_create(server->control, server->peers, &server->schema_service));
    const struct replication_options copying = {.apply = {.cluster = server->cluster},
                                                .control = server->control,
                                                .peers = server->peers,
                                                .log = server->log,
                                                .metrics = server->metrics};
    TRY(replication_create(&copying, &server->copying));
    peers_set_progress(server->peers, replication_tell, server->copying);
    server->peer_watch = (struct peer_watch){.cluster = server->cluster,
                                             .peers = server->peers,
                                             .replication = server->copying,
                                             .metrics = server->metrics};
    const struct router_options router = {.bigtable = &server->bigtable,
                                          .peers = server->peers,
                                          .location = server->settings->location,
                                          .metrics = server->metrics};
    TRY(router_create(&router, &server->peer_router));
    server->peers_hook = (struct bigtable_peers){.follows = schema_follows,
                                                 .administer_begin = peers_administer_begin,
                                                 .administer_end = peers_administer_end,
                                                 .has_left = peers_was_removed,
                                                 .context = server->peers,
                                                 .is_copying = replication_is_copying,
                                                 .is_here = replication_is_here,
                                                 .mark = replication_mark,
                                                 .has_reached = replication_has_reached,
                                                 .location = replication_location,
                                                 .has_peers = replication_has_peers,
                                                 .copied = replication_creation,
                                                 .replication = server->copying};
    server->replication = (struct replica_service){.bigtable = &server->bigtable,
                                                   .peers = server->peers,
                                                   .pull_changes = replication_pull_changes,
                                                   .copy_rows = replication_copy_rows,
                                                   .await_beginning = replication_await_beginning,
                                                   .tell_progress = replication_progress,
                                                   .copied = replication_copied,
                                                   .changes = server->copying,
                                                   .pull_schema = schema_service_handle,
                                                   .schema = server->schema_service};
    return status_ok();
}

/* The services of APIs, each once: what gRPC and REST serve is made of this list. */
static void list_apis(struct server *server)
{
    const struct grpc_service apis[] = {
        bigtable_data_service(&server->bigtable),
        bigtable_table_admin_service(&server->bigtable),
        bigtable_instance_admin_service(&server->bigtable),
        bigtable_operations_service(&server->bigtable),
        bigtable_locations_service(&server->bigtable),
        datastore_service(&server->datastore),
        datastore_admin_service(&server->datastore),
        datastore_firestore_service(&server->datastore),
        insight_service(&server->insight),
        backup_grpc_service(&server->backup_service),
        replica_grpc_service(&server->replication),
    };
    static_assert(sizeof apis == sizeof server->apis, "API_SERVICES");
    memcpy(server->apis, apis, sizeof apis);
}

/* gRPC's own services tell of the others. */
static status list_services(struct server *server)
{
    size_t count = 0;
    list_apis(server);
    while (count < API_SERVICES) {
        server->services[count] = &server->apis[count];
        count++;
    }
    TRY(health_create(server->services, count, &server->health));
    server->services[count++] = health_service(server->health);
    TRY(reflection_create(server->services, count, proto_descriptor_set(), &server->reflection));
    server->services[count++] = reflection_service_v1(server->reflection);
    server->services[count++] = reflection_service_v1alpha(server->reflection);
    CHECK(count == SERVICES);
    return status_ok();
}

status server_create_services(struct server *server)
{
    TRY(control_open(server->cluster, server->log, &server->control));
    control_set_location(server->control, server->settings->location);
    TRY(open_peers(server));
    TRY(create_bigtable(server));
    TRY(create_datastore(server));
    TRY(create_insight(server));
    TRY(create_whole_backups(server));
    return list_services(server);
}

/* All kinds at once: what was running may be of any. */
status server_start_services(struct server *server)
{
    bigtable_kinds(&server->bigtable, server->kinds);
    size_t count = BIGTABLE_KINDS;
    count += datastore_kinds(&server->datastore, server->kinds + count);
    TRY(operations_start(server->control, server->kinds, count));
    return bigtable_start(&server->bigtable);
}
