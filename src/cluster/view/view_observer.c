/* See view_observer.h. */
#include "cluster/view/view_observer.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "stream/log.h"
#include "tablet/drop_records.h"

struct leaving {
    struct shard *shard;
    const struct commit *commit;
    struct table *table; /* whose feed gets it */
    uint32_t ordinal;    /* of the next entry */
    bool failed;
};

static bool is_viewed(const struct table *table)
{
    return table != NULL && table_description(table)->is_viewed;
}

static bool add(struct leaving *leaving, const struct stream_feed_entry *what)
{
    struct stream_feed_entry entry = *what;
    entry.position = (struct stream_position){leaving->commit->sequence, leaving->ordinal++};
    entry.version = leaving->commit->version;
    if (!stream_log_prepare_feed(leaving->shard->streams, &leaving->table->feed, &entry))
        leaving->failed = true;
    return !leaving->failed;
}

/* --- rows --- */

static bool prepare_rows(struct shard *shard, const struct commit *commit)
{
    struct leaving leaving = {.shard = shard, .commit = commit, .table = commit->table};
    if (!is_viewed(commit->table))
        return true;
    for (size_t i = 0; i <= commit->other_count; i++) {
        const struct commit *row = i == 0 ? commit : &commit->others[i - 1];
        DCHECK(row->table == commit->table);
        if (!add(&leaving, &(struct stream_feed_entry){.key = row->row_key}))
            return false;
    }
    return true;
}

/* --- ranges --- */

static bool add_all(struct leaving *leaving)
{
    return add(leaving, &(struct stream_feed_entry){.is_range = true});
}

static status add_drop(void *context, const struct store_change *change)
{
    struct leaving *leaving = context;
    struct row_drop_words drop;
    uint64_t keyspace;
    if (!drop_record_is_put(change))
        return status_ok();
    TRY(drop_record_parse(change->key, change->value, &keyspace, &drop));
    (void)add(leaving, &(struct stream_feed_entry){
                           .key = drop.from, .end = drop.to, .is_range = true, .is_drop = true});
    return status_ok();
}

static bool prepare_drop(struct shard *shard, const struct commit *commit,
                         const struct store_batch *records)
{
    struct leaving leaving = {.shard = shard, .commit = commit, .table = commit->table};
    if (!is_viewed(commit->table))
        return true;
    status s = store_batch_visit(shard->store, records, add_drop, &leaving);
    bool fails = !status_is_ok(s);
    status_ignore(s);
    return !fails && !leaving.failed;
}

/* Whether the batch changes something of the table's rows. */
struct touch {
    const struct table *table;
    bool is_touched;
};

static status look_at_change(void *context, const struct store_change *change)
{
    struct touch *touch = context;
    for (size_t i = 0; i < touch->table->space_count; i++)
        if (touch->table->spaces[i].keyspace == change->keyspace)
            touch->is_touched = true;
    return status_ok();
}

static bool is_touched(struct shard *shard, const struct table *table,
                       const struct store_batch *records)
{
    struct touch touch = {.table = table};
    status s = store_batch_visit(shard->store, records, look_at_change, &touch);
    bool is = touch.is_touched || !status_is_ok(s);
    status_ignore(s);
    return is;
}

/* Such commits are rare; the index is locked for as long as a pointer is moved. */
static bool prepare_deletion(struct shard *shard, const struct commit *commit,
                             const struct store_batch *records)
{
    struct buffer name = {0};
    struct table *table;
    bool is_whole = true;
    while (is_whole && (table = cluster_table_from(shard->cluster, buffer_bytes(&name))) != NULL) {
        struct leaving leaving = {.shard = shard, .commit = commit, .table = table};
        bool is_meant = table == commit->table;
        if (is_viewed(table) && (is_meant || is_touched(shard, table, records)))
            is_whole = add_all(&leaving);
        buffer_clear(&name);
        buffer_append(&name, table->name, strlen(table->name) + 1);
        is_whole = is_whole && !name.failed;
        table_release(table);
    }
    buffer_free(&name);
    return is_whole;
}

/* --- rules --- */

static bool is_same_rule(const struct gc_rule *a, const struct gc_rule *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    bool is_same = a->kind == b->kind && a->max_versions == b->max_versions &&
                   a->max_age_us == b->max_age_us && a->child_count == b->child_count;
    for (size_t i = 0; is_same && i < a->child_count; i++)
        is_same = is_same_rule(&a->children[i], &b->children[i]);
    return is_same;
}

/* Of a family that goes no view reads a cell; but rows that had cells of no other are none any
 * more, and views of keys count these. */
static bool changes_rules(const struct schema *before, const struct schema *after)
{
    for (size_t i = 0; i < before->family_count; i++) {
        const struct family *family = &before->families[i];
        const struct family *next = schema_family(after, family->id);
        if (next == NULL || !is_same_rule(family->gc, next->gc))
            return true;
    }
    return false;
}

static bool prepare_change(struct shard *shard, const struct commit *commit)
{
    struct table *table = commit->catalog->tables[0];
    struct leaving leaving = {.shard = shard, .commit = commit, .table = table};
    bool is_told = is_viewed(table) && table_is_in(table, shard) &&
                   changes_rules(table_schema(table), commit->catalog->schema);
    return !is_told || add_all(&leaving);
}

bool view_observer_prepare(struct shard *shard, const struct commit *commit,
                           const struct store_batch *records)
{
    if (commit_changes_rows(commit->kind))
        return prepare_rows(shard, commit);
    if (commit->kind == COMMIT_DROP_ROWS)
        return prepare_drop(shard, commit, records);
    if (commit->kind == COMMIT_DROP)
        return prepare_deletion(shard, commit, records);
    return commit->kind != COMMIT_CHANGE_TABLE || prepare_change(shard, commit);
}
