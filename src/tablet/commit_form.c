/* What a commit of each kind has, and whether its rows take it: see commit.h. */
#include "tablet/commit_private.h"

#include "tablet/key_bounds.h"

/* Whether it says what becomes of what. */
static bool is_whole(enum commit_kind kind, const struct catalog_change *change)
{
    if (change == NULL || change->table_count == 0)
        return false;
    switch (kind) {
    case COMMIT_SPLIT:
        return change->former_count == 1 && change->fresh_count == 2 && change->apply != NULL;
    case COMMIT_MERGE:
        return change->former_count == 2 && change->fresh_count == 1 && change->apply != NULL;
    case COMMIT_CREATE_TABLE:
        return change->fresh_count > 0 && change->schema != NULL;
    case COMMIT_CHANGE_TABLE:
        return change->schema != NULL && change->apply != NULL;
    default:
        return change->apply != NULL;
    }
}

bool commit_is_well_formed(const struct commit *commit)
{
    bool changes = commit->change != NULL, extends = commit->extend != NULL;
    switch (commit->kind) {
    case COMMIT_ROWS:
    case COMMIT_COLLECT:
        return changes && !extends &&
               (commit->foreign == NULL ||
                (commit->given_version != 0 && commit->other_count == 0));
    case COMMIT_OWN:
        return changes && !extends && commit->foreign == NULL && commit->tokens == NULL;
    case COMMIT_BARRIER:
        return !changes && !extends && commit->record.size == 0 && commit->other_count == 0;
    case COMMIT_VIEW:
        return !changes && !extends && commit->records != NULL && commit->tablet != NULL;
    case COMMIT_REWRITE:
        return !changes && !extends && commit->record.size > 0;
    case COMMIT_UPKEEP:
    case COMMIT_DROP:
    case COMMIT_INTERNAL:
        return !changes && extends && commit->catalog == NULL;
    case COMMIT_DROP_ROWS:
    case COMMIT_TELL:
        return !changes && extends && commit->catalog != NULL && commit->catalog->apply != NULL;
    case COMMIT_CATALOG:
        return !changes && (extends || commit->catalog != NULL);
    default:
        return !changes && extends && is_whole(commit->kind, commit->catalog);
    }
}

bool commit_is_of_store(const struct commit *commit, struct store *store)
{
    bool is_so = commit->keyspace == NULL ||
                 store_keyspace_find(store, keyspace_id(commit->keyspace)) == commit->keyspace;
    for (size_t i = 0; i < commit->other_count; i++)
        is_so = is_so && commit_is_of_store(&commit->others[i], store);
    return is_so;
}

/* --- rows that are out of service --- */

/* Whatever the row was, it is nothing then, or what the change makes of it. */
static bool deletes_row(const struct packed_change *change)
{
    bytes fragment = buffer_bytes(&change->fragment);
    struct fragment_reader reader;
    struct entry first;
    return fragment_has_tombstones(fragment) && fragment_reader_start(&reader, fragment) &&
           fragment_reader_next(&reader, &first) && first.kind == ENTRY_ROW_TOMBSTONE;
}

static __attribute__((noinline)) status check_damaged(const struct commit *commit)
{
    return deletes_row(commit->change) ? status_ok()
                                       : row_check_open(commit->keyspace, commit->row_key);
}

static inline status check_row(const struct commit *commit)
{
    if (commit->change == NULL || !keyspace_has_damage(commit->keyspace))
        return status_ok();
    return check_damaged(commit);
}

status commit_check_in_service(const struct commit *commit)
{
    if (commit->is_repair)
        return status_ok();
    TRY(check_row(commit));
    for (size_t i = 0; i < commit->other_count; i++)
        TRY(check_row(&commit->others[i]));
    return status_ok();
}
