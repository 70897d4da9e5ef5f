/* The cluster's change log (tablet/change_log.h): whether it is kept, where it is, and what it is
 * told besides batches. With an archive there is one; without, the one that was is forgotten, and
 * its keyspace goes as one that nobody names.
 *
 * Damage of its keyspace costs the archive a gap, and nobody else anything: at a start the log goes
 * on in a new keyspace, at run time who takes from it begins the gap (archiver.c). */
#include "base/check.h"
#include "base/limits.h"
#include "cluster/cluster_private.h"
#include "store/files.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

status event_log_look(struct cluster *cluster)
{
    struct change_log_state state;
    bool exists;
    if (cluster->options.archive.place == NULL)
        return status_ok();
    TRY(change_log_read(cluster->catalog, &state, &exists));
    if (exists && store_keyspace_find(cluster->store, state.keyspace) != NULL)
        cluster->log_keyspace = state.keyspace;
    return status_ok();
}

/* Before there is a queue: all sequences that were given are below the ceiling. */
static status record_new_log(struct cluster *cluster, const struct change_log_state *state)
{
    struct store_batch *batch = store_batch_create();
    if (batch == NULL)
        return status_out_of_memory();
    change_log_put(batch, cluster->catalog, state);
    status s = catalog_put_next_id(batch, cluster->catalog, cluster->next_id);
    if (status_is_ok(s))
        s = store_write(cluster->store, batch, STORE_SYNCED);
    store_batch_destroy(batch);
    return s;
}

static status begin_log(struct cluster *cluster, struct change_log_state *state)
{
    *state = (struct change_log_state){.keyspace = cluster->next_id++, .is_on = true};
    if (getrandom(&state->stream, sizeof state->stream, 0) != sizeof state->stream)
        return status_from_errno(errno, "no random number for the archive");
    state->stream |= 1; /* never 0 */
    struct commit_ceilings ceilings;
    TRY(commit_read_ceilings(cluster->catalog, &ceilings));
    state->began = ceilings.sequence;
    if (state->began == 0) /* a new store's; 0 is no sequence */
        state->began = 1;
    state->taken = state->began;
    TRY(store_keyspaces_create(cluster->store, state->keyspace, 1));
    TRY(record_new_log(cluster, state));
    cluster->log_keyspace = state->keyspace;
    char stream[17];
    snprintf(stream, sizeof stream, "%016llx", (unsigned long long)state->stream);
    log_info(cluster->options.log,
             "an archive begins: to restore from it a whole backup is needed that is made from now",
             LOG_STR("stream", stream));
    return status_ok();
}

static status open_log(struct cluster *cluster, const struct change_log_state *state)
{
    const struct change_log_options options = {.store = cluster->store,
                                               .catalog = cluster->catalog,
                                               .limit_bytes =
                                                   cluster->options.archive.buffer_bytes};
    return change_log_open(&options, state, &cluster->log);
}

/* Another keyspace for the same stream; the damaged one goes. What waited there is a gap. */
static status renew_log(struct cluster *cluster, struct change_log_state *state, bool has_waiting)
{
    struct keyspace *damaged = store_keyspace_find(cluster->store, state->keyspace);
    CHECK(damaged != NULL);
    change_log_close(cluster->log);
    cluster->log = NULL;
    if (has_waiting)
        change_log_begin_gap(state);
    state->keyspace = cluster->next_id++;
    TRY(store_keyspaces_create(cluster->store, state->keyspace, 1));
    TRY(record_new_log(cluster, state));
    cluster->log_keyspace = state->keyspace;
    log_error(cluster->options.log, "the change log is damaged, and begins anew",
              LOG_INT("keyspace", keyspace_id(damaged)),
              LOG_STR("archive",
                      has_waiting ? "what was not archived yet is a gap of it" : "misses nothing"));
    TRY(store_keyspace_drop(cluster->store, damaged));
    return open_log(cluster, state);
}

status event_log_open(struct cluster *cluster)
{
    struct change_log_state state;
    bool exists;
    if (cluster->options.archive.place == NULL)
        return status_ok();
    if (cluster->log_keyspace == 0)
        TRY(begin_log(cluster, &state));
    else
        TRY(change_log_read(cluster->catalog, &state, &exists));
    status s = open_log(cluster, &state);
    bool is_damaged = s.code == STATUS_DATA_LOSS;
    if (!status_is_ok(s) && !is_damaged)
        return s;
    status_free(s);
    bool has_waiting = is_damaged || change_log_newest(cluster->log) > state.taken;
    if (is_damaged || damages_has(cluster->damages, state.keyspace))
        return renew_log(cluster, &state, has_waiting);
    return status_ok();
}

static status make_path(struct cluster *cluster)
{
    struct buffer *path = &cluster->archive_path;
    buffer_append_format(path, "%s/archive%c", cluster->options.data_directory, 0);
    if (path->failed)
        return status_out_of_memory();
    return files_make_directory(files_of_store(cluster->store), (const char *)path->data);
}

static struct kept_files kept_files_of(struct cluster *cluster)
{
    return (struct kept_files){.files = files_of_store(cluster->store),
                               .directory = (const char *)cluster->archive_path.data,
                               .adding = &cluster->taking_files};
}

void event_log_begin_taking(struct cluster *cluster)
{
    atomic_fetch_add(&cluster->taking_files, 1);
}

void event_log_end_taking(struct cluster *cluster)
{
    atomic_fetch_sub(&cluster->taking_files, 1);
}

status event_log_keep_files(struct cluster *cluster, uint64_t keyspace, const char *const *paths,
                            size_t count)
{
    if (cluster->log == NULL)
        return status_ok();
    const struct kept_files kept = kept_files_of(cluster);
    return kept_files_add(&kept, keyspace, paths, count);
}

status event_log_start(struct cluster *cluster)
{
    const struct cluster_options *options = &cluster->options;
    if (cluster->log == NULL)
        return status_ok();
    TRY(make_path(cluster));
    const struct archiver_options archiver = {
        .place = options->archive.place,
        .log = cluster->log,
        .commits = cluster->commits,
        .server_log = options->log,
        .clock = options->clock,
        .metrics = options->metrics,
        .condition = cluster->condition,
        .kept = kept_files_of(cluster),
        .catalog = cluster->catalog,
        .retention_us = options->archive.retention_us,
        .look_for = options->archive.look_for,
        .segment_bytes = LIMIT_ARCHIVE_SEGMENT_BYTES,
        .segment_us = (int64_t)LIMIT_ARCHIVE_SEGMENT_SECONDS * 1000000,
    };
    TRY(archiver_create(&archiver, &cluster->archiver));
    return options->archive.has_no_thread ? status_ok() : archiver_start(cluster->archiver);
}

uint64_t event_log_stream(struct cluster *cluster)
{
    struct change_log_state state = {.stream = 0};
    if (cluster->log != NULL)
        change_log_look(cluster->log, &state);
    return state.stream;
}

status cluster_note_whole_backup(struct cluster *cluster, const struct archive_base *base)
{
    return cluster->archiver == NULL ? status_ok() : archiver_note_base(cluster->archiver, base);
}

struct note_of_drop {
    struct catalog_change change;
    uint64_t keyspace;
};

static void describe_drop(const struct catalog_change *change, struct event_writer *writer)
{
    event_keyspace_dropped(writer, ((const struct note_of_drop *)(const void *)change)->keyspace);
}

/* If it cannot be said, the keyspace goes at the end of a replay, as one that nobody names. */
void event_log_note_drop(struct cluster *cluster, uint64_t keyspace)
{
    if (cluster->log == NULL || cluster->commits == NULL)
        return;
    const struct note_of_drop note = {.change = {.describe = describe_drop}, .keyspace = keyspace};
    struct commit commit = {.kind = COMMIT_CATALOG, .catalog = &note.change, .frees_space = true};
    status_ignore(commit_and_wait(cluster->commits, &commit));
}
