/* What a commit of each kind has: see commit.h. */
#include "tablet/commit_private.h"

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
