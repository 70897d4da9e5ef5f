/* Which shards a data directory has. The home's store is in the directory itself, that of each
 * other shard in a directory in it, `shard-N`.
 *
 * Invariant: those directories are made, durably, before the home's store is. So a directory with a
 * store has had as many shards from its beginning, wherever a crash came, and is opened with that
 * many or not at all: with fewer, tables would miss rows; with more, a new shard could not be told
 * from one that was lost. */
#ifndef TRESTLE_CLUSTER_SHARD_DIRECTORIES_H
#define TRESTLE_CLUSTER_SHARD_DIRECTORIES_H

#include "base/bytes.h"
#include "base/status.h"

/* Appends the directory of that shard's store as a string; 0 is the home. */
void shard_directory_append(struct buffer *out, const char *directory, unsigned number);

/* How many shards the directory has: 1 also if it is not there. May wait for the disk. */
unsigned shard_directories_count(const char *directory);

/* Before anything in it is opened for so many shards, at least one: FAILED_PRECONDITION names how
 * many it has, if that is another number. If it has no store yet, makes what is missing. Blocks. */
status shard_directories_prepare(const char *directory, unsigned count);

/* The same, and nothing is made. */
status shard_directories_check(const char *directory, unsigned count);

#endif
