/* See upkeep.h. */
#include "views/upkeep.h"

#include "cluster/ranges.h"
#include "os/thread.h"
#include "views/keys.h"
#include "views/piece.h"

/* What a piece should take: of the thread's processor time, and of the commit thread, which does
 * nothing else meanwhile. The next has as many rows as come to that, if each is as dear. Where rows
 * share groups a larger piece writes less; else it only leaves the processor's caches. */
enum {
    PIECE_CPU_US = 200 * 1000,
    INDEX_WRITES = 4096,
    GROUPS_WRITES = 8192, /* enough to find out that some thousand groups are shared */
    SHARED_WRITES = 16384,
};

/* --- what others see --- */

static void tell_pass(struct view_upkeep *upkeep)
{
    const struct view_progress_state *state = &upkeep->state;
    int64_t since_us = INT64_MAX;
    bytes next;
    for (size_t i = 0; i < state->pass_count; i++) {
        if (state->passes[i].since_us < since_us)
            since_us = state->passes[i].since_us;
        if (state->passes[i].kind == VIEW_PASS_ALL)
            atomic_store(&upkeep->counts.rows_done, state->passes[i].rows);
    }
    atomic_store(&upkeep->counts.pass_since_us, since_us);
    atomic_store(&upkeep->counts.has_whole_pass, view_state_has_whole_pass(state, &next));
}

static void tell(struct view_upkeep *upkeep)
{
    const struct view_progress_state *state = &upkeep->state;
    atomic_store(&upkeep->counts.user_errors, state->user_errors);
    atomic_store(&upkeep->counts.excluded_rows, state->excluded_rows);
    atomic_store(&upkeep->counts.excluded_groups, state->excluded_groups);
    atomic_store(&upkeep->counts.ordinal, state->position.ordinal);
    atomic_store(&upkeep->counts.sequence, state->position.sequence);
    tell_pass(upkeep);
    atomic_store(&upkeep->counts.was_ready, state->was_ready);
}

/* How much of the source a pass over all of it has behind it, for people. */
static void measure_pass(struct view_upkeep *upkeep)
{
    bytes next = {0};
    uint64_t before = 0, all = 0;
    if (!view_state_has_whole_pass(&upkeep->state, &next))
        return;
    status_ignore(table_range_size(upkeep->source, bytes_make(NULL, 0), bytes_make(NULL, 0), &all));
    if (next.size > 0)
        status_ignore(table_range_size(upkeep->source, bytes_make(NULL, 0), next, &before));
    atomic_store(&upkeep->counts.next_size, before);
    atomic_store(&upkeep->counts.source_size, all);
}

/* --- the state --- */

static status put_state(struct view_upkeep *upkeep, struct view_commit *commit)
{
    struct buffer record = {0};
    view_state_write(&upkeep->state, &record);
    if (!record.failed)
        view_commit_put(commit, view_state_key(), buffer_bytes(&record));
    bool failed = record.failed;
    buffer_free(&record);
    return failed ? status_out_of_memory() : status_ok();
}

/* A commit of the state alone. */
static status write_state(struct view_upkeep *upkeep)
{
    struct view_commit *commit;
    TRY(view_commit_begin(upkeep->table, NULL, &commit));
    status s = put_state(upkeep, commit);
    if (!status_is_ok(s)) {
        view_commit_cancel(commit);
        return s;
    }
    return view_commit_write(commit, NULL);
}

/* Everything is to be looked at; what comes from now on is in the feed. */
static status begin_whole_pass(struct view_upkeep *upkeep)
{
    const bytes all = {0};
    struct cluster *cluster = table_cluster(upkeep->source);
    int64_t now_us = cluster_version_us(cluster);
    TRY(view_feed_end(upkeep->source, &upkeep->state.position));
    TRY(view_state_add_pass(&upkeep->state, VIEW_PASS_ALL, all, all, now_us));
    return write_state(upkeep);
}

/* The log has lost what is behind the position. */
static status begin_anew(struct view_upkeep *upkeep)
{
    status s = begin_whole_pass(upkeep);
    upkeep->is_loaded &= status_is_ok(s);
    if (status_is_ok(s))
        tell(upkeep);
    return s;
}

static status parse_state(struct view_upkeep *upkeep, bytes record, bool is_there)
{
    view_state_free(&upkeep->state);
    if (!is_there) {
        upkeep->state.print = upkeep->print;
        return begin_whole_pass(upkeep);
    }
    TRY(view_state_read(record, &upkeep->state));
    if (fingerprint_equal(upkeep->state.print, upkeep->print))
        return status_ok();
    return status_make(STATUS_ABORTED, "The view was made by another program.");
}

status view_upkeep_load(struct view_upkeep *upkeep)
{
    struct buffer record = {0};
    bool is_there;
    upkeep->is_loaded = false;
    if (upkeep->piece_rows == 0)
        upkeep->piece_rows =
            upkeep->most_piece_rows > 0 ? upkeep->most_piece_rows : VIEW_PIECE_ROWS_FIRST;
    status s = view_records_get(upkeep->table, view_state_key(), &record, &is_there);
    if (status_is_ok(s) && record.failed)
        s = status_out_of_memory();
    if (status_is_ok(s))
        s = parse_state(upkeep, buffer_bytes(&record), is_there);
    buffer_free(&record);
    TRY(s);
    upkeep->is_loaded = true;
    upkeep->has_goal = false;
    view_feed_keep(upkeep->table, upkeep->state.position.sequence);
    measure_pass(upkeep);
    tell(upkeep);
    return status_ok();
}

void view_upkeep_free(struct view_upkeep *upkeep)
{
    view_state_free(&upkeep->state);
    view_runner_destroy(upkeep->runner);
    upkeep->runner = NULL;
}

/* --- a piece --- */

/* The rows of a piece: those of `keys`, or of a pass. */
struct portion {
    const bytes *keys;
    size_t key_count;
    const struct view_pass *pass; /* NULL: the keys */
    bytes end;                    /* set: as view_piece_take_range has it */
    size_t taken;                 /* set: how many rows */
    size_t writes;                /* the same: records and view rows */
    size_t most_writes;           /* the same: as many as it should have */
};

static status take(struct view_piece *piece, struct portion *portion)
{
    status s;
    if (portion->pass == NULL)
        s = view_piece_take_keys(piece, portion->keys, portion->key_count);
    else if (portion->pass->kind == VIEW_PASS_DROPPED)
        s = view_piece_take_recorded(piece, buffer_bytes(&portion->pass->next),
                                     buffer_bytes(&portion->pass->to), &portion->end);
    else
        s = view_piece_take_range(piece, buffer_bytes(&portion->pass->next),
                                  buffer_bytes(&portion->pass->to), &portion->end);
    TRY(s);
    portion->taken = piece->items.count;
    return view_piece_apply(piece);
}

static void add_counts(struct view_progress_state *state, const struct view_piece *piece)
{
    state->user_errors += piece->user_errors;
    state->excluded_rows += (uint64_t)piece->excluded_rows;
    state->excluded_groups += (uint64_t)piece->excluded_groups;
}

/* What the state is when the portion is done. `reached`: of the feed; NULL: as it was. */
static status advance(struct view_upkeep *upkeep, const struct portion *portion,
                      const struct stream_position *reached)
{
    struct view_progress_state *state = &upkeep->state;
    if (reached != NULL)
        state->position = *reached;
    if (portion->pass == NULL)
        return status_ok();
    state->passes[0].rows += portion->taken;
    if (portion->end.size > 0 && !bytes_equal(portion->end, buffer_bytes(&state->passes[0].to)))
        return view_state_advance(state, portion->end);
    atomic_store(&upkeep->counts.rows_done, state->passes[0].rows);
    view_state_end_pass(state);
    return status_ok();
}

static size_t most_writes(const struct view_piece *piece)
{
    if (view_program_form(piece->upkeep->program) == VIEW_INDEX)
        return INDEX_WRITES;
    return piece->shares_groups ? SHARED_WRITES : GROUPS_WRITES;
}

static status write_piece(struct view_upkeep *upkeep, struct view_piece *piece,
                          struct portion *portion, const struct stream_position *reached)
{
    add_counts(&upkeep->state, piece);
    TRY(advance(upkeep, portion, reached));
    TRY(put_state(upkeep, piece->commit));
    struct view_commit *commit = piece->commit;
    portion->writes = view_commit_count(commit);
    portion->most_writes = most_writes(piece);
    piece->commit = NULL;
    return view_commit_write(commit, NULL);
}

static bool is_too_large(const struct view_piece *piece, status s)
{
    return s.code == STATUS_RESOURCE_EXHAUSTED ||
           (status_is_ok(s) && view_commit_size(piece->commit) > VIEW_PIECE_COMMIT);
}

static size_t most_rows(const struct view_upkeep *upkeep)
{
    return upkeep->most_piece_rows > 0 ? upkeep->most_piece_rows : VIEW_PIECE_ROWS_MOST;
}

/* What a piece took, as a share of what it should take. */
static double share_taken(int64_t cpu_us, const struct portion *portion)
{
    double of_cpu = (double)cpu_us / PIECE_CPU_US;
    double of_writes = (double)portion->writes / (double)portion->most_writes;
    return of_cpu > of_writes ? of_cpu : of_writes;
}

/* At most twice as many, and that only after one that had as many as it might. One of no rows says
 * nothing. */
static void adapt(struct view_upkeep *upkeep, size_t rows, double taken)
{
    size_t most = most_rows(upkeep);
    if (rows == 0)
        return;
    double wanted = taken <= 0.5 ? 2 * (double)rows : (double)rows / taken;
    if (wanted > (double)rows && rows < upkeep->piece_rows)
        return;
    upkeep->piece_rows = wanted >= (double)most ? most : wanted < 1 ? 1 : (size_t)wanted;
}

/* One attempt, at most so many rows. `*is_smaller_wanted`: it would take too much, and nothing was
 * written. */
static status try_portion(struct view_upkeep *upkeep, struct portion *portion, size_t rows,
                          const struct stream_position *reached, bool *is_smaller_wanted)
{
    struct view_piece piece;
    status s = view_piece_begin(upkeep, rows, &piece);
    if (status_is_ok(s))
        s = take(&piece, portion);
    *is_smaller_wanted = rows > 1 && piece.commit != NULL && is_too_large(&piece, s);
    if (*is_smaller_wanted)
        status_free(s);
    else if (status_is_ok(s))
        s = write_piece(upkeep, &piece, portion, reached);
    if (*is_smaller_wanted)
        s = status_ok();
    view_piece_end(&piece);
    return s;
}

/* As many of the rows as fit. A failure leaves a state that is to be loaded anew. */
static status do_portion(struct view_upkeep *upkeep, struct portion *portion,
                         const struct stream_position *reached)
{
    const bytes *keys = portion->keys;
    size_t count = portion->key_count, rows = upkeep->piece_rows;
    bool is_smaller_wanted;
    struct portion done = {0};
    int64_t began_us = thread_cpu_us();
    do {
        struct portion smaller = *portion;
        smaller.key_count = count < rows ? count : rows;
        bool is_whole = portion->pass != NULL || smaller.key_count == count;
        smaller.keys = keys;
        status s =
            try_portion(upkeep, &smaller, rows, is_whole ? reached : NULL, &is_smaller_wanted);
        upkeep->is_loaded &= status_is_ok(s);
        TRY(s);
        if (is_smaller_wanted)
            upkeep->piece_rows = rows = rows / 2;
        else
            done = smaller;
    } while (is_smaller_wanted);
    portion->taken = done.taken;
    adapt(upkeep, done.taken, share_taken(thread_cpu_us() - began_us, &done));
    tell(upkeep);
    return status_ok();
}

/* --- the feed --- */

static status add_passes(struct view_upkeep *upkeep, const struct view_changes *changes)
{
    for (size_t i = 0; i < changes->range_count; i++) {
        const struct view_range_change *range = &changes->ranges[i];
        TRY(view_state_add_pass(&upkeep->state,
                                range->is_drop ? VIEW_PASS_DROPPED : VIEW_PASS_RANGE, range->from,
                                range->to, range->since_us));
    }
    return status_ok();
}

/* Rows that the first pass will come to need not be looked at now: nobody reads the view. */
static size_t keys_to_do(const struct view_upkeep *upkeep, const struct view_changes *changes)
{
    bytes next;
    size_t count = changes->key_count;
    if (upkeep->state.was_ready || !view_state_has_whole_pass(&upkeep->state, &next))
        return count;
    while (count > 0 && bytes_compare(changes->keys[count - 1], next) >= 0)
        count--;
    return count;
}

/* How many of so many rows go into a piece at most. A view that keeps up, while clients write, has
 * pieces so small that no write waits long for one: in the commit queue, or for its bytes to be
 * synced with its own. They are not so many that a slow disk's syncs would hold the view up. One
 * that is behind saves what larger ones save. */
static size_t most_at_once(const struct view_changes *changes, size_t count)
{
    enum { MOST_PIECES = 16, LEAST_ROWS = 8 };
    if (!changes->is_end)
        return count;
    return count <= MOST_PIECES * LEAST_ROWS ? LEAST_ROWS : count / MOST_PIECES;
}

static status apply_changes(struct view_upkeep *upkeep, const struct view_changes *changes)
{
    size_t count = keys_to_do(upkeep, changes), most = most_at_once(changes, count);
    TRY(add_passes(upkeep, changes));
    size_t done = 0;
    do { /* once at least: the position moves */
        size_t left = count - done;
        struct portion portion = {.keys = done == 0 ? changes->keys : changes->keys + done,
                                  .key_count = left < most ? left : most};
        if (atomic_load(upkeep->gives_up)) {
            upkeep->is_loaded = false;
            return status_make(STATUS_CANCELLED, "Upkeep is to end.");
        }
        TRY(do_portion(upkeep, &portion, left <= most ? &changes->reached : NULL));
        done += portion.taken;
    } while (done < count);
    view_feed_keep(upkeep->table, upkeep->state.position.sequence);
    return status_ok();
}

/* Once the first pass is over and the feed was followed up to where it was then. */
static status look_if_ready(struct view_upkeep *upkeep)
{
    bytes next;
    if (upkeep->state.was_ready || view_state_has_whole_pass(&upkeep->state, &next))
        return status_ok();
    if (!upkeep->has_goal)
        TRY(view_feed_end(upkeep->source, &upkeep->goal));
    upkeep->has_goal = true;
    if (stream_position_compare(upkeep->state.position, upkeep->goal) < 0 &&
        view_feed_may_have(upkeep->source, upkeep->state.position))
        return status_ok();
    upkeep->state.was_ready = true;
    status s = write_state(upkeep);
    upkeep->is_loaded &= status_is_ok(s);
    if (status_is_ok(s))
        tell(upkeep);
    return s;
}

static bool are_of(const struct view_changes *changes, struct stream_position position)
{
    return changes->is_set && stream_position_compare(changes->after, position) == 0;
}

status view_upkeep_follow(struct view_upkeep *upkeep, struct view_changes *changes, bool *has_more)
{
    *has_more = false;
    if (!view_feed_may_have(upkeep->source, upkeep->state.position))
        return look_if_ready(upkeep);
    if (!are_of(changes, upkeep->state.position)) {
        status s = view_changes_read(changes, upkeep->source, upkeep->state.position);
        if (s.code == STATUS_OUT_OF_RANGE || s.code == STATUS_DATA_LOSS) {
            status_free(s);
            return begin_anew(upkeep);
        }
        TRY(s);
    }
    *has_more = !changes->is_end;
    bool has_any = changes->key_count > 0 || changes->range_count > 0;
    bool has_moved = stream_position_compare(changes->reached, upkeep->state.position) != 0;
    if (has_any || has_moved)
        TRY(apply_changes(upkeep, changes));
    return look_if_ready(upkeep);
}

status view_upkeep_pass(struct view_upkeep *upkeep, bool *has_more)
{
    *has_more = false;
    if (upkeep->state.pass_count == 0)
        return status_ok();
    struct portion portion = {.pass = &upkeep->state.passes[0]};
    TRY(do_portion(upkeep, &portion, NULL));
    measure_pass(upkeep);
    *has_more = upkeep->state.pass_count > 0;
    return *has_more ? status_ok() : look_if_ready(upkeep);
}
