/* What a server has below its services: certificates, the store with its tables, backups. */
#include "server/server_private.h"

#include "aws/bucket.h"
#include "backup/whole.h"
#include "base/limits.h"
#include "base/sizing.h"
#include "os/file.h"
#include "os/process.h"
#include "os/thread.h"
#include "server/revision.h"
#include "server/serve_check.h"

#include <unistd.h>

/* Off loopback, data and credentials would cross networks in the clear, for all to read. */
status server_check_exposure(const struct settings *settings, const struct address *address)
{
    bool is_secure = settings->tls_cert != NULL && settings->auth == AUTH_ON;
    if (address_is_loopback(address) || is_secure || settings->insecure)
        return status_ok();
    return settings_refuse(
        settings, "listen",
        "%s is not loopback: give tls-cert, tls-key and auth=on, or say insecure",
        settings->listen);
}

/* --- data --- */

/* After most settings have been looked at: those that are refused are one line alone. */
static void say_starting(const struct log *log)
{
    log_info(log, "starting", LOG_STR("version", TRESTLE_VERSION), LOG_INT("pid", getpid()),
             LOG_INT("cores", thread_processors()), LOG_INT("memory", process_machine_memory()),
             LOG_STR("revision", TRESTLE_REVISION));
}

static void say_sizes(const struct server *server)
{
    const struct settings *settings = server->settings;
    if (settings->memory == 0)
        return;
    log_info(server->log, "memory is bounded", LOG_INT("memory", settings->memory),
             LOG_INT("cache", settings->cache), LOG_INT("write_buffer", settings->write_buffer),
             LOG_INT("max_message", settings->max_message),
             LOG_INT("max_connections", settings->max_connections),
             LOG_INT("query_memory", settings->query_memory));
    if (settings->max_message < LIMIT_CELL_BYTES)
        log_warn(server->log,
                 "with so little memory the largest cells cannot be written: a request has at most",
                 LOG_INT("max_message", settings->max_message));
    if (settings->memory > process_machine_memory())
        log_warn(server->log, "the machine has less memory than the setting memory",
                 LOG_INT("machine", process_machine_memory()));
}

static void say_reserve(const struct server *server)
{
    const struct settings *settings = server->settings;
    if (sizing_reserve_is_short(settings))
        log_warn(server->log,
                 "the write buffer is larger than the disk's reserve: what is in it when writes "
                 "are refused may fill the disk",
                 LOG_INT("write_buffer", settings->write_buffer),
                 LOG_INT("disk_reserve", settings->disk_reserve));
    if (settings->origins[SETTING_disk_reserve].source == OPTION_DERIVED)
        log_warn(server->log, "the disk's reserve is raised to what the write buffer needs",
                 LOG_INT("disk_reserve", settings->disk_reserve));
}

/* What it is from now on is in whole backups, and in what the schedule removes of them. */
static void warn_of_identity(const struct server *server)
{
    if (files_lack_identity(server->settings->data_dir))
        log_warn(
            server->log,
            "the file IDENTITY is missing, or is none: the server gets another identity, and its "
            "whole backups are another server's",
            LOG_STR("directory", server->settings->data_dir));
}

/* Left on, --salvage gives up what is lost next, unasked. The catalog's records are known once it
 * is open: a cluster that has given some up, or keeps a keyspace of theirs, says so as
 * `salvaged`. */
static void warn_of_salvage(const struct server *server)
{
    struct condition_view view;
    condition_look(cluster_condition(server->cluster), &view);
    for (size_t i = 0; i < view.count; i++)
        if (view.reasons[i].reason == REASON_salvaged)
            return;
    log_warn(server->log, "--salvage was not needed: take it out of the settings, or what is lost "
                          "next is given up unasked");
}

status server_open_cluster(struct server *server)
{
    const struct settings *settings = server->settings;
    bool is_needless = settings->salvage && !serve_needs_salvage(settings);
    warn_of_identity(server);
    if (settings->archive != NULL)
        TRY(place_of_name_with_key(files_of_system(), settings->archive, settings->backup_key,
                                   &server->archive));
    const struct cluster_options options = {
        .data_directory = settings->data_dir,
        .salvage = settings->salvage,
        .accepts_lost_records = settings->salvage,
        .log = server->log,
        .clock = server->clock,
        .metrics = server->metrics,
        .pool = server->pool,
        .durability = settings->durability == DURABILITY_SYNC ? STORE_SYNCED : STORE_ASYNC,
        .cache_bytes = sizing_blocks(settings),
        .write_buffer_bytes = settings->write_buffer,
        .commit_queue_bytes = sizing_commit_queue(settings),
        .open_files = (int)settings->open_files,
        .background_threads = (int)settings->background_threads,
        .disk_reserve_bytes = settings->disk_reserve,
        .overflow_bytes = settings->overflow_threshold,
        .split_bytes = settings->split_size,
        .split_rows_per_second = settings->split_load,
        .merge_after_us = settings->merge_after,
        .balance = settings->balance,
        .gc_on_read = settings->gc_on_read,
        .gc_interval_us = settings->gc_interval,
        .heat = settings->heat,
        .heat_window_us = settings->heat_window,
        .undelete_window_us = settings->undelete_window,
        .change_log_bytes = settings->change_log_bytes,
        .archive = {.place = server->archive,
                    .buffer_bytes = settings->archive_buffer,
                    .retention_us = settings->archive_retention,
                    .look_for = whole_look_for},
        .scrub_period_us = settings->scrub_period,
        .shards = (unsigned)settings->debug_shards,
        .spreads_tablets = settings->debug_shards > 1,
        .on_large_work = settings->memory > 0 ? large_work_changes : NULL,
        .large_value_bytes = sizing_largest_cell(settings),
        .large_commit_bytes = sizing_largest_commit(settings),
        .large_work_context = &server->rooms,
    };
    say_starting(server->log);
    say_sizes(server);
    say_reserve(server);
    TRY(cluster_open(&options, &server->cluster));
    if (is_needless)
        warn_of_salvage(server);
    return status_ok();
}

const char *server_backup_directory(const struct settings *settings, struct buffer *out)
{
    if (settings->backup_dir != NULL)
        buffer_append_format(out, "%s%c", settings->backup_dir, 0);
    else
        buffer_append_format(out, "%s/backups%c", settings->data_dir, 0);
    return out->failed ? NULL : (const char *)out->data;
}

status server_open_backups(struct server *server)
{
    struct buffer directory = {0};
    const struct backups_options options = {
        .cluster = server->cluster,
        .directory = server_backup_directory(server->settings, &directory),
        .bytes_per_second = server->settings->backup_rate,
        .log = server->log,
        .metrics = server->metrics,
    };
    status s = options.directory == NULL ? status_out_of_memory()
                                         : backups_open(&options, &server->backups);
    buffer_free(&directory);
    return s;
}

status server_watch_places(struct server *server)
{
    const struct settings *settings = server->settings;
    struct buffer directory = {0};
    const struct place_watch_options options = {
        .places = {server_backup_directory(settings, &directory), settings->backup_places,
                   settings->archive},
        .metrics = server->metrics,
        .clock = server->clock,
        .ask = disk_free_bytes,
    };
    status s = options.places[0] == NULL ? status_out_of_memory()
                                         : place_watch_start(&options, &server->places);
    buffer_free(&directory);
    return s;
}

void server_recall_metrics(struct server *server)
{
    double newest = NAN;
    status s = server->settings->metrics_retention == 0
                   ? status_ok()
                   : history_recall(server->cluster, HISTORY_whole_backup_newest_seconds, &newest);
    if (!status_is_ok(s))
        log_warn(server->log, "when the newest whole backup was made is not known",
                 LOG_STR("why", status_message(s)));
    else if (newest > 0)
        metrics_set(server->metrics, METRIC_whole_backup_newest_timestamp_seconds, (int64_t)newest);
    status_free(s);
}

status server_open_history(struct server *server)
{
    const struct history_options options = {
        .cluster = server->cluster,
        .metrics = server->metrics,
        .clock = server->clock,
        .log = server->log,
        .measure = measure,
        .measured = &server->measured,
        .disk_reserve_bytes = server->settings->disk_reserve,
        .retention_us = server->settings->metrics_retention,
    };
    TRY(history_open(&options, &server->history));
    server->insight.history = server->history;
    return status_ok();
}

void server_tell_build(struct server *server)
{
    char rocksdb[STORE_VERSION_SIZE];
    store_rocksdb_version(rocksdb);
    const struct metric_series build = {.labels = {TRESTLE_VERSION, TRESTLE_REVISION, rocksdb},
                                        .value = 1};
    status_ignore(metrics_replace(server->metrics, METRIC_BY_build_info, &build, 1));
}
