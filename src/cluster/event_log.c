/* A shard's change log (tablet/change_log.h): whether it is kept, where it is, and what it is
 * told besides batches. With an archive there is one; without, the one that was is forgotten, and
 * its keyspace goes as one that no record names.
 *
 * Damage of its keyspace costs the archive a gap, and nothing else: at a start the log goes on in a
 * new keyspace, at run time the archiver, which reads it, begins the gap (archiver.c). */
#include "base/check.h"
#include "base/limits.h"
#include "cluster/cluster_private.h"
#include "cluster/stream/stream_observer.h"
#include "store/files.h"
#include "stream/log.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

status event_log_look(struct shard *shard)
{
    struct change_log_state state;
    bool exists;
    if (shard->cluster->options.archive.place == NULL)
        return status_ok();
    TRY(change_log_read(shard->system, &state, &exists));
    if (exists && store_keyspace_find(shard->store, state.keyspace) != NULL)
        shard->log_keyspace = state.keyspace;
    return status_ok();
}

/* Before there is a queue: all sequences that were given are below the ceiling. */
static status record_new_log(struct shard *shard, const struct change_log_state *state)
{
    DCHECK(shard->commits == NULL);
    struct store_batch *batch = store_batch_create();
    if (batch == NULL)
        return status_out_of_memory();
    change_log_put(batch, shard->system, state);
    status s = catalog_put_next_id(batch, shard->system, shard->cluster->next_id);
    if (status_is_ok(s))
        s = store_write(shard->store, batch, STORE_SYNCED);
    store_batch_destroy(batch);
    return s;
}

static status begin_log(struct shard *shard, struct change_log_state *state)
{
    *state = (struct change_log_state){.keyspace = shard->cluster->next_id++, .is_on = true};
    if (getrandom(&state->stream, sizeof state->stream, 0) != sizeof state->stream)
        return status_from_errno(errno, "no random number for the archive");
    state->stream |= 1; /* never 0 */
    struct commit_ceilings ceilings;
    TRY(commit_read_ceilings(shard->system, &ceilings));
    state->began = ceilings.sequence;
    if (state->began == 0) /* a new store's; 0 is no sequence */
        state->began = 1;
    state->taken = state->began;
    TRY(store_keyspaces_create(shard->store, state->keyspace, 1));
    TRY(record_new_log(shard, state));
    shard->log_keyspace = state->keyspace;
    char stream[17];
    snprintf(stream, sizeof stream, "%016llx", (unsigned long long)state->stream);
    log_info(shard->cluster->options.log,
             "an archive begins: to restore from it a whole backup is needed that is made from now",
             LOG_STR("stream", stream));
    return status_ok();
}

static status open_log(struct shard *shard, const struct change_log_state *state)
{
    const struct change_log_options options = {.store = shard->store,
                                               .catalog = shard->system,
                                               .limit_bytes =
                                                   shard->cluster->options.archive.buffer_bytes,
                                               .visit_beside = stream_observer_visit_prepared,
                                               .beside_context = shard};
    return change_log_open(&options, state, &shard->log);
}

/* Another keyspace for the same stream; the damaged one goes. What waited there is a gap. */
static status renew_log(struct shard *shard, struct change_log_state *state, bool has_waiting)
{
    struct keyspace *damaged = store_keyspace_find(shard->store, state->keyspace);
    CHECK(damaged != NULL);
    change_log_close(shard->log);
    shard->log = NULL;
    if (has_waiting)
        change_log_begin_gap(state);
    state->keyspace = shard->cluster->next_id++;
    TRY(store_keyspaces_create(shard->store, state->keyspace, 1));
    TRY(record_new_log(shard, state));
    shard->log_keyspace = state->keyspace;
    log_error(shard->cluster->options.log, "the change log is damaged, and begins anew",
              LOG_INT("keyspace", keyspace_id(damaged)),
              LOG_STR("archive",
                      has_waiting ? "what was not archived yet is a gap of it" : "misses nothing"));
    TRY(store_keyspace_drop(shard->store, damaged));
    return open_log(shard, state);
}

status event_log_open(struct shard *shard)
{
    DCHECK(shard->commits == NULL && shard->log == NULL);
    struct change_log_state state;
    bool exists;
    if (shard->cluster->options.archive.place == NULL)
        return status_ok();
    if (shard->log_keyspace == 0)
        TRY(begin_log(shard, &state));
    else
        TRY(change_log_read(shard->system, &state, &exists));
    status s = open_log(shard, &state);
    bool is_damaged = s.code == STATUS_DATA_LOSS;
    if (!status_is_ok(s) && !is_damaged)
        return s;
    status_free(s);
    bool has_waiting = is_damaged || change_log_newest(shard->log) > state.taken;
    if (is_damaged || damages_has(shard->damages, state.keyspace))
        return renew_log(shard, &state, has_waiting);
    return status_ok();
}

static status make_path(struct shard *shard)
{
    struct buffer *path = &shard->archive_path;
    buffer_append_format(path, "%s/archive%c", shard->cluster->options.data_directory, 0);
    if (path->failed)
        return status_out_of_memory();
    return files_make_directory(files_of_store(shard->store), (const char *)path->data);
}

static struct kept_files kept_files_of(struct shard *shard)
{
    return (struct kept_files){.files = files_of_store(shard->store),
                               .directory = (const char *)shard->archive_path.data,
                               .adding = &shard->taking_files};
}

void event_log_begin_taking(struct shard *shard)
{
    atomic_fetch_add(&shard->taking_files, 1);
}

void event_log_end_taking(struct shard *shard)
{
    atomic_fetch_sub(&shard->taking_files, 1);
}

status event_log_keep_files(struct shard *shard, uint64_t keyspace, const char *const *paths,
                            size_t count)
{
    if (shard->log == NULL)
        return status_ok();
    const struct kept_files kept = kept_files_of(shard);
    return kept_files_add(&kept, keyspace, paths, count);
}

status event_log_start(struct shard *shard)
{
    DCHECK(shard->archiver == NULL);
    const struct cluster_options *options = &shard->cluster->options;
    if (shard->log == NULL)
        return status_ok();
    TRY(make_path(shard));
    const struct archiver_options archiver = {
        .place = options->archive.place,
        .log = shard->log,
        .commits = shard->commits,
        .server_log = options->log,
        .clock = options->clock,
        .metrics = options->metrics,
        .condition = shard->condition,
        .kept = kept_files_of(shard),
        .catalog = shard->system,
        .retention_us = options->archive.retention_us,
        .look_for = options->archive.look_for,
        .segment_bytes = LIMIT_ARCHIVE_SEGMENT_BYTES,
        .segment_us = (int64_t)LIMIT_ARCHIVE_SEGMENT_SECONDS * 1000000,
    };
    TRY(archiver_create(&archiver, &shard->archiver));
    return options->archive.has_no_thread ? status_ok() : archiver_start(shard->archiver);
}

uint64_t event_log_stream(struct shard *shard)
{
    struct change_log_state state = {.stream = 0};
    if (shard->log != NULL)
        change_log_look(shard->log, &state);
    return state.stream;
}

status cluster_note_whole_backup(struct cluster *cluster, const struct archive_base *base)
{
    struct archiver *archiver = cluster->home->archiver;
    return archiver == NULL ? status_ok() : archiver_note_base(archiver, base);
}

struct note_of_drop {
    struct catalog_change change;
    uint64_t keyspace;
};

static void describe_drop(const struct catalog_change *change, struct event_writer *writer)
{
    event_keyspace_dropped(writer, ((const struct note_of_drop *)(const void *)change)->keyspace);
}

/* If the drop cannot be noted, a replay drops the keyspace at its end, as one without a record. */
void event_log_note_drop(struct shard *shard, uint64_t keyspace)
{
    if (shard->log == NULL || shard->commits == NULL)
        return;
    const struct note_of_drop note = {.change = {.describe = describe_drop}, .keyspace = keyspace};
    struct commit commit = {.kind = COMMIT_CATALOG, .catalog = &note.change, .frees_space = true};
    status_ignore(commit_and_wait(shard->commits, &commit));
}
