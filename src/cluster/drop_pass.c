/* The pass over what was dropped, as a job of maintenance (maintenance.h).
 *
 * A drop is a record that every read and fold looks at, until nothing older than it is left in its
 * range. So, the oldest of each keyspace first, its range is compacted, which gives back the space,
 * and looked at, a piece after the other; if nothing older was found in any the record goes.
 * Nothing older comes to a piece that had none: nobody stores what a drop covers. Pieces are cut by
 * the sizes that the store estimates of its files, since the rows are no more to be seen.
 *
 * What is found damaged of what had been dropped before is brought back into service first: nothing
 * of it counts. While anything else of the keyspace is out of service nobody can look.
 *
 * Not while somebody holds the drops (a backup is being read): what they cover may be gone from the
 * tables and be there for him. Holding and forgetting both take `admin`, forgetting alone, with
 * nothing else held. Nor where changes may still come that are older.
 *
 * A table has one job, which goes over its keyspaces in turn, a piece a run; while the table's
 * drops are as many as it may have, over the oldest of them all. Whoever drops rows asks for it,
 * and each round does where something is due: after a start, and RETRY_US after something has kept
 * what is older. A table that is deleted for good ends it, and so does a stop; the record is there,
 * and the next start goes on.
 *
 * In a table with a change stream a drop may have to be told first, row by row (tell_dropped.h):
 * until then it is held, and the job does that, whichever keyspace's turn it is.
 *
 * The record's removal is in no archive: who replays one has not compacted. */
#include "cluster/drop_pass.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/midpoint.h"
#include "cluster/stream/tell_dropped.h"
#include "tablet/drop_records.h"
#include "tablet/key_bounds.h"
#include "tablet/older_rows.h"

/* When something keeps what is older, is out of service, or has failed. */
enum { RETRY_US = 10 * 1000 * 1000 };

/* --- forgetting --- */

struct removal {
    struct commit commit;
    struct keyspace *system;
    uint64_t keyspace_id;
    uint64_t sequence;
};

static void remove_record(struct commit *commit, struct store_batch *batch)
{
    const struct removal *removal = LIST_ENTRY(&commit->link, struct removal, commit.link);
    drop_record_delete(batch, removal->system, removal->keyspace_id, removal->sequence);
}

/* With admin held: none comes meanwhile, and nobody begins to hold them. A table that is dropped
 * has no records any more. */
static status forget(const struct table *table, struct table_space *space, uint64_t sequence)
{
    struct removal removal = {
        .commit = {.kind = COMMIT_INTERNAL, .extend = remove_record, .frees_space = true},
        .system = space->shard->system,
        .keyspace_id = keyspace_id(space->keyspace),
        .sequence = sequence};
    DCHECK(check_is_held(&table->cluster->admin));
    if (table->is_dropped || row_drops_are_held(space->drops))
        return status_ok();
    TRY(commit_and_wait(space->shard->commits, &removal.commit));
    row_drops_remove(space->drops, sequence);
    space->pass.sequence = 0;
    return status_ok();
}

static status forget_alone(const struct table *table, struct table_space *space, uint64_t sequence)
{
    struct cluster *cluster = table->cluster;
    pthread_mutex_lock(&cluster->admin);
    status s = forget(table, space, sequence);
    pthread_mutex_unlock(&cluster->admin);
    return s;
}

/* All of it is done again then. */
static void put_off(const struct cluster *cluster, struct drop_pass *pass)
{
    pass->sequence = 0;
    atomic_store(&pass->not_until_us, clock_steady_us(cluster->options.clock) + RETRY_US);
}

/* --- pieces --- */

static void begin(struct drop_pass *pass, const struct row_drop_words *drop)
{
    pass->sequence = drop->sequence;
    pass->is_over = false;
    buffer_clear(&pass->next);
    buffer_append_bytes(&pass->next, drop->from);
}

static bool is_stopping(void *context)
{
    return maintenance_is_stopping(context);
}

static status compact_and_look(const struct row_range *piece, uint64_t version, bool *found)
{
    TRY(rows_compact(piece->keyspace, piece->from, piece->to));
    return rows_find_older(piece, version, found);
}

static status do_piece(const struct cluster *cluster, struct table_space *space,
                       const struct row_drop_words *drop, bool *found)
{
    struct drop_pass *pass = &space->pass;
    struct buffer end = {0};
    buffer_append_bytes(&end, drop->to);
    status s = end.failed || pass->next.failed
                   ? status_out_of_memory()
                   : rows_piece_end(space->keyspace, buffer_bytes(&pass->next),
                                    maintenance_piece_bytes(cluster), &end);
    const struct row_range piece = {.keyspace = space->keyspace,
                                    .from = buffer_bytes(&pass->next),
                                    .to = buffer_bytes(&end),
                                    .gives_up = is_stopping,
                                    .context = cluster->maintenance};
    if (status_is_ok(s))
        s = compact_and_look(&piece, drop->version, found);
    pass->is_over = bytes_equal(piece.to, drop->to);
    buffer_clear(&pass->next);
    buffer_append_bytes(&pass->next, buffer_bytes(&end));
    buffer_free(&end);
    return s;
}

/* A snapshot of the store may keep what was compacted. */
static status go_on(const struct table *table, struct table_space *space,
                    const struct row_drop_words *drop)
{
    struct drop_pass *pass = &space->pass;
    bool found = false;
    if (pass->sequence != drop->sequence)
        begin(pass, drop);
    if (!pass->is_over)
        TRY(do_piece(table->cluster, space, drop, &found));
    if (found)
        put_off(table->cluster, pass);
    return pass->is_over && !found ? forget_alone(table, space, drop->sequence) : status_ok();
}

/* --- keyspaces --- */

static bool may_be_forgotten(const struct cluster *cluster, const struct row_drop_words *drop)
{
    uint64_t from = atomic_load(&cluster->tombstones_from);
    return from == 0 || drop->version < from;
}

static bool is_due(const struct cluster *cluster, const struct table_space *space)
{
    bool is_there = row_drops_count(space->drops) > 0 && !row_drops_are_held(space->drops);
    return (is_there || telling_has_begun(space->telling)) &&
           clock_steady_us(cluster->options.clock) >= atomic_load(&space->pass.not_until_us);
}

/* `*is_whole`: nothing is out of service any more. */
static status end_damage(const struct table_space *space, bool *is_whole)
{
    struct damages *damages = space->shard->damages;
    const struct dropped_damage dropped = {.keyspace = space->keyspace, .drops = space->drops};
    status s = damages_end_dropped(damages, &dropped);
    *is_whole = !damages_has(damages, keyspace_id(space->keyspace));
    return s;
}

static status do_next(const struct table *table, struct table_space *space)
{
    struct row_drop_words drop;
    bool is_whole;
    TRY(end_damage(space, &is_whole));
    if (is_whole && row_drops_next(space->drops, 0, &drop) &&
        may_be_forgotten(table->cluster, &drop))
        return go_on(table, space, &drop);
    put_off(table->cluster, &space->pass);
    return status_ok();
}

/* What was dropped last may have to be told first; all drops are held until then. */
static void run_space(struct table *table, struct table_space *space)
{
    status s = telling_has_begun(space->telling) ? tell_dropped_piece(table, space)
                                                 : do_next(table, space);
    if (!status_is_ok(s))
        put_off(table->cluster, &space->pass);
    maintenance_tell_failure(table, s, "space of dropped rows is kept for now");
}

/* --- the job --- */

static bool is_any_due(const struct table *table)
{
    bool is_so = false;
    for (size_t i = 0; i < table->space_count && !table->is_dropped; i++)
        is_so = is_so || is_due(table->cluster, &table->spaces[i]);
    return is_so;
}

/* By its oldest drop. Versions are of one order over all shards. */
static bool is_older(const struct table_space *space, const struct table_space *other)
{
    struct row_drop_words drop, others;
    return row_drops_next(space->drops, 0, &drop) && row_drops_next(other->drops, 0, &others) &&
           drop.version < others.version;
}

/* In turn, so that none waits for all of another, but the oldest first while the table has no room
 * for a drop in each; NULL: none is due. */
static struct table_space *next_due(struct table *table)
{
    bool is_full = !table_has_room(table, table->space_count);
    struct table_space *next = NULL;
    for (size_t i = 0; i < table->space_count && !table->is_dropped; i++) {
        size_t at = (table->drop_pass.next_space + i) % table->space_count;
        struct table_space *space = &table->spaces[at];
        if (!is_due(table->cluster, space))
            continue;
        if (next == NULL || (is_full && is_older(space, next)))
            next = space;
    }
    if (next != NULL)
        table->drop_pass.next_space = (size_t)(next - table->spaces) + 1;
    return next;
}

static void note_piece(struct table_drop_pass *pass)
{
    pthread_mutex_lock(&pass->lock);
    pass->pieces++;
    pthread_cond_broadcast(&pass->piece_over);
    pthread_mutex_unlock(&pass->lock);
}

static bool run(struct pool_job *job)
{
    struct table *table = LIST_ENTRY(job, struct table, drop_pass.job);
    struct table_space *space = next_due(table);
    if (space != NULL)
        run_space(table, space);
    note_piece(&table->drop_pass);
    return is_any_due(table);
}

static void ended(struct pool_job *job)
{
    struct table *table = LIST_ENTRY(job, struct table, drop_pass.job);
    note_piece(&table->drop_pass);
    table_release(table);
}

void drop_pass_init(struct table *table)
{
    struct table_drop_pass *pass = &table->drop_pass;
    pass->job = (struct pool_job){
        .kind = MAINTENANCE_DROPPED_ROWS, .owner = table, .run = run, .ended = ended};
    pthread_mutex_init(&pass->lock, NULL);
    pthread_cond_init(&pass->piece_over, NULL);
}

void drop_pass_free(struct table *table)
{
    pthread_cond_destroy(&table->drop_pass.piece_over);
    pthread_mutex_destroy(&table->drop_pass.lock);
}

/* --- who asks for it --- */

static void submit(struct table *table)
{
    maintenance_submit(table->cluster->maintenance, table, &table->drop_pass.job);
}

void drop_pass_ask(struct table *table)
{
    if (!table->cluster->options.maintenance_by_hand && is_any_due(table))
        submit(table);
}

void drop_pass_await_piece(struct table *table)
{
    struct table_drop_pass *pass = &table->drop_pass;
    if (table->cluster->maintenance == NULL)
        return;
    pthread_mutex_lock(&pass->lock);
    uint64_t before = pass->pieces;
    pthread_mutex_unlock(&pass->lock);
    submit(table);
    pthread_mutex_lock(&pass->lock);
    while (pass->pieces == before)
        pthread_cond_wait(&pass->piece_over, &pass->lock);
    pthread_mutex_unlock(&pass->lock);
}

static bool visit(void *context, struct table *table)
{
    struct cluster *cluster = context;
    tell_dropped_forget(table);
    if (is_any_due(table))
        submit(table);
    return !maintenance_is_stopping(cluster->maintenance);
}

void drop_pass_run(struct cluster *cluster)
{
    const bytes all = bytes_make(NULL, 0);
    status_ignore(cluster_list_tables(cluster, all, all, visit, cluster));
}
