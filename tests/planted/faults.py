"""Faults of our own that are planted into the code, one at a time, each with the self check that
must name it: see test_planted.py. (Of materialized views no self check knows what must be in them:
there a test that compares each with its query has to find it.)

Each breaks an invariant that the head of a file states, or what a function promises, in the way
somebody could who changes the code: a line that is missing, a condition that is wrong. (What is
caught of functions that are called wrongly is in src/tablet/planted_test.c and
src/cluster/planted_test.c.)
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    name: str
    file: str  # below src/
    old: str  # stands there once
    new: str
    program: str  # the unit test that trips over it, below src/
    check: str  # how the condition begins that does not hold
    is_compared: bool = False  # no check: `check` is what the test says of what it compares


FAULTS = [
    # --- tablet/commit.h: the order of commits ---
    Fault(
        "sequences do not rise",
        "tablet/commit.c",
        "queue->newest_sequence = at > newest ? at : newest + 1;",
        "queue->newest_sequence = at > newest ? at : newest;",
        "tablet/commit_test",
        "queue->newest_sequence > newest",
    ),
    Fault(
        "versions follow the clock alone",
        "tablet/commit.c",
        "if (version_at(now_us) > newest)",
        "",
        "tablet/commit_test",
        "next > newest && next % VERSION_STEP == queue->options.cluster",
    ),
    Fault(
        "a commit gets its place without the lock",
        "tablet/commit.c",
        "    pthread_mutex_lock(&queue->lock);\n"
        "    enum queue_state state = enter_locked(",
        "    enum queue_state state = enter_locked(",
        "tablet/commit_test",
        "check_is_held(&queue->lock)",
    ),
    Fault(
        "a commit is acknowledged before it counts as applied",
        "tablet/commit.c",
        "    atomic_store_explicit(&queue->applied, newest, memory_order_release);\n",
        "",
        "tablet/commit_test",
        "!status_is_ok(commit->result) || commit->sequence <= commit_applied(queue)",
    ),
    Fault(
        "sequences pass their ceiling",
        "tablet/commit.c",
        "        ceilings.sequence = ceiling_above(batch->newest_sequence);\n",
        "",
        "tablet/commit_test",
        "ceilings.version > batch->newest_version &&",
    ),
    Fault(
        "what waits is not counted",
        "tablet/commit.c",
        "    queue->bytes += commit->bytes;\n",
        "",
        "tablet/commit_test",
        "queue->bytes >= bytes",
    ),
    Fault(
        "a change of structure does not end its batch",
        "tablet/commit.c",
        "is_last = commit_ends_batch(commit->kind);",
        "is_last = false;",
        "tablet/structure_test",
        "last ==",
    ),
    Fault(
        "a write is not routed anew",
        "tablet/commit.c",
        "return is_former ? route_anew(queue, commit) : status_ok();",
        "return is_former ? status_ok() : status_ok();",
        "tablet/structure_test",
        "is_in_tablet(commit)",
    ),
    # --- tablet/commit_private.h: a batch ---
    Fault(
        "two changes of a row become two records of a batch",
        "tablet/commit_batch.c",
        "if (*slot != NULL) {",
        "if (*slot != NULL && commit->other_count > 0) {",
        "tablet/commit_test",
        "*slot ==",
    ),
    Fault(
        "what was gathered is not written",
        "tablet/commit_batch.c",
        "    batch->head_count = 0;\n    if (batch->value.capacity",
        "    if (batch->value.capacity",
        "tablet/commit_test",
        "batch->head_count == 0",
    ),
    # --- tablet/row_locks.h ---
    Fault(
        "a stripe that is handed over is free as well",
        "tablet/row_locks.c",
        "    if (next == NULL)\n        atomic_store(&stripe->state, STRIPE_FREE);",
        "    atomic_store(&stripe->state, STRIPE_FREE);",
        "tablet/row_locks_test",
        "is_held(stripe)",
    ),
    # --- tablet/tokens.h ---
    Fault(
        "a token that is forgotten stays",
        "tablet/tokens.c",
        "    set->slots[hole] = free_slot;\n",
        "",
        "tablet/tokens_test",
        "!has(set, fingerprint)",
    ),
    Fault(
        "tokens are looked for without the lock",
        "tablet/tokens.c",
        "    int64_t now = generation_now(tokens);\n    pthread_mutex_lock(&shard->lock);\n",
        "    int64_t now = generation_now(tokens);\n",
        "tablet/tokens_test",
        "check_is_held(&shard->lock)",
    ),
    Fault(
        "a set of tokens fills up",
        "tablet/tokens.c",
        "if (4 * (set->used + 1) > 3 * set->slot_count && !grow(set))",
        "if (set->slot_count == 0 && !grow(set))",
        "tablet/tokens_test",
        "set->used < set->slot_count",
    ),
    # --- tablet/change_log.h ---
    Fault(
        "a log that is off has no gap",
        "tablet/change_log.c",
        "    if (state->gap_from == 0)\n        state->gap_from = state->taken;\n",
        "",
        "tablet/change_log_test",
        "is_possible(state)",
    ),
    # --- row/fragment.h, combine.h, schema.h, string_set.h, hll.h ---
    Fault(
        "a change is packed in the order of its mutations",
        "row/change.c",
        "if (!change->is_sorted)",
        "if (change->count == 0)",
        "row/fragment_test",
        "",
    ),
    Fault(
        "an entry is sent on twice",
        "row/combine.c",
        "        combiner->has_pending = false;\n        if (combiner->is_compound)",
        "        if (combiner->is_compound)",
        "row/fold_test",
        "!combiner->has_pending && !combiner->is_gathering",
    ),
    Fault(
        "families are not found by their numbers",
        "row/schema.c",
        "families[by_id[at - 1]].id > families[i].id",
        "families[by_id[at - 1]].id < families[i].id",
        "row/schema_test",
        "is_indexed(&owned->schema)",
    ),
    Fault(
        "neighbours that touch stay two",
        "row/string_set.c",
        "bytes_compare(last->to, next->from) < 0",
        "bytes_compare(last->to, next->from) <= 0",
        "row/string_set_test",
        "is_disjoint(out)",
    ),
    Fault(
        "what was added to a sketch is written beside its list",
        "row/hll_sketch.c",
        "        sketch->added_count = 0;\n        if (writer.out.failed)",
        "        if (writer.out.failed)",
        "row/hll_test",
        "sketch->added_count == 0",
    ),
    # --- cluster/table.h: the map ---
    Fault(
        "the halves of a split overlap",
        "cluster/reshape.c",
        "tablet->keyspace, at, tablet->end,",
        "tablet->keyspace, tablet->start, tablet->end,",
        "cluster/structure_test",
        "covers_all_keys(table)",
    ),
    Fault(
        "a changed table has the generation that it had",
        "cluster/administer.c",
        "record.generation = now->generation + 1;",
        "record.generation = now->generation;",
        "cluster/administer_test",
        "description->generation > newest(table)->generation",
    ),
    # --- cluster/cluster_private.h: locks, the index ---
    Fault(
        "a table is made without admin",
        "cluster/administer.c",
        "    pthread_mutex_lock(&cluster->admin);\n    status s = create_and_tell(",
        "    status s = create_and_tell(",
        "cluster/administer_test",
        "check_is_held(",
    ),
    Fault(
        "a tablet splits without admin",
        "cluster/reshape.c",
        "    pthread_mutex_lock(&cluster->admin);\n    status s = split(table, tablet, at);",
        "    status s = split(table, tablet, at);",
        "cluster/structure_test",
        "check_is_held(",
    ),
    Fault(
        "tables stand in the order of their making",
        "cluster/index.c",
        "    size_t at = place_of(cluster, bytes_of(table->name));\n"
        "    struct table **place = cluster->tables + at;\n"
        "    shift(place, place + 1",
        "    size_t at = cluster->table_count;\n"
        "    struct table **place = cluster->tables + at;\n"
        "    shift(place, place + 1",
        "cluster/administer_test",
        "is_in_place(cluster, at)",
    ),
    Fault(
        "a table that was found is not let go of",
        "cluster/administer.c",
        "        table_release(standing);\n",
        "",
        "cluster/administer_test",
        "atomic_load(&tables[i]->references) == 1",
    ),
    Fault(
        "a spare keyspace is given twice",
        "cluster/preallocated.c",
        "shard->preallocated[--shard->preallocated_count]",
        "shard->preallocated[shard->preallocated_count - 1]",
        "cluster/administer_test",
        "is_nobodys(shard, *out)",
    ),
    Fault(
        "a table that is deleted comes first among the kept",
        "cluster/deletions.c",
        "    cluster->kept[cluster->kept_count++] = table;\n",
        "    memmove(cluster->kept + 1, cluster->kept, cluster->kept_count++ * sizeof(void *));\n"
        "    cluster->kept[0] = table;\n",
        "cluster/deletions_test",
        "ages_fall(cluster)",
    ),
    # --- cluster/shard.h ---
    Fault(
        "a row's change goes into the home's queue",
        "cluster/rows.c",
        "    return commit->tablet->shard;\n",
        "    return commit->tablet->shard->cluster->home;\n",
        "cluster/shards_test",
        "commit_is_of_store(commit, queue->options.store)",
    ),
    # --- row/drops.h, cluster/drop_range.c, drop_pass.c: drops of rows ---
    Fault(
        "drops of a start do not rise",
        "tablet/drop_records.c",
        "    row_drops_add(drops, drop, words.version, words.sequence);\n",
        "    row_drops_add(drops, drop, words.version, UINT64_MAX - words.sequence);\n",
        "tablet/drop_records_test",
        "count == 0 || drops->drops[count - 1]->sequence < sequence",
    ),
    Fault(
        "rows are dropped without admin",
        "cluster/drop_range.c",
        "    pthread_mutex_lock(&table->cluster->admin);\n    status s = check_table(",
        "    status s = check_table(",
        "cluster/drop_range_test",
        "check_is_held(&table->cluster->admin)",
    ),
    Fault(
        "rows are deleted without their locks",
        "cluster/drop_range.c",
        "    lock_shards(cluster, parts);\n    for",
        "    for",
        "cluster/gc_pass_test",
        "row_locks_are_all_held(shard->locks)",
    ),
    Fault(
        "a drop is forgotten without admin",
        "cluster/drop_pass.c",
        "    pthread_mutex_lock(&cluster->admin);\n    status s = forget(",
        "    status s = forget(",
        "cluster/drop_range_test",
        "check_is_held(&table->cluster->admin)",
    ),
    Fault(
        "a drop is forgotten that somebody holds",
        "cluster/drop_pass.c",
        "if (table->is_dropped || row_drops_are_held(space->drops))",
        "if (table->is_dropped)",
        "cluster/drop_range_test",
        "drops->holders == 0",
    ),
    # --- datastore: moments, locks, transactions ---
    Fault(
        "two commits have one moment",
        "datastore/commit/sequencer.c",
        "now_us > sequencer->last_us ? now_us : sequencer->last_us + 1",
        "now_us > sequencer->last_us ? now_us : sequencer->last_us",
        "datastore/sequencer_test",
        "list_is_empty(&sequencer->drawn) ||",
    ),
    Fault(
        "an entity's lock is taken without that of its part",
        "datastore/commit/entity_locks.c",
        "    int error = 0;\n    pthread_mutex_lock(&part->lock);\n",
        "    int error = 0;\n",
        "datastore/entity_locks_test",
        "check_is_held(&part->lock)",
    ),
    Fault(
        "ranges are shared without the lock",
        "datastore/commit/range_locks.c",
        "    wanted.ranges = copies;\n    pthread_mutex_lock(&locks->lock);\n",
        "    wanted.ranges = copies;\n",
        "datastore/range_locks_test",
        "check_is_held(&locks->lock)",
    ),
    Fault(
        "transactions that begin are not counted",
        "datastore/commit/transaction.c",
        "    transactions->count++;\n",
        "",
        "datastore/transaction_test",
        "transactions->count > 0",
    ),
    # --- os/job_pool.c ---
    Fault(
        "a kind of jobs takes all threads",
        "os/job_pool.c",
        "    if (kind->counts.running >= kind->may.at_once)\n        return NULL;\n",
        "",
        "os/job_pool_test",
        "kind->counts.running <= kind->may.at_once",
    ),
    Fault(
        "two jobs of an owner run at once",
        "os/job_pool.c",
        "        if (is_free(pool, job_at(at)->owner))\n            return at;",
        "        return at;",
        "os/job_pool_test",
        "job->state == JOB_QUEUED && kind->counts.queued > 0 && is_free(",
    ),
    Fault(
        "a job that waits is queued once more",
        "os/job_pool.c",
        "bool is_new = job->state == JOB_IDLE && !pool->is_stopping;",
        "bool is_new = job->state != JOB_RUNNING && !pool->is_stopping;",
        "os/job_pool_test",
        "check_is_held(&pool->mutex) && job->state != JOB_QUEUED",
    ),
    # --- views/: what was given is taken back, and done once ---
    Fault(
        "a contribution to a group is not taken back",
        "views/piece.c",
        "    if (old != NULL)\n        TRY(add_fold(d->piece, d->item, old, true));\n",
        "",
        "views/history_test",
        "expected\n",
        is_compared=True,
    ),
    Fault(
        "a former row of an index stays",
        "views/piece.c",
        "return fresh == NULL ? index_removal(d->emitter, old) : index_put(",
        "return fresh == NULL ? status_ok() : index_put(",
        "views/history_test",
        "expected\n",
        is_compared=True,
    ),
    Fault(
        "what a row gives is not recorded",
        "views/piece.c",
        "        view_commit_put(piece->commit, key, item->fresh);\n",
        "        (void)key;\n",
        "views/history_test",
        "expected\n",
        is_compared=True,
    ),
    Fault(
        "a feed's page has its first change alone",
        "views/changes.c",
        "    *enough = reading->keys.count + 1 >= FEED_KEYS;\n",
        "    if (reading->keys.count > 0)\n        return status_ok();\n",
        "views/history_test",
        "expected\n",
        is_compared=True,
    ),
]
