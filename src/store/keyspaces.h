/* What the store's files share of its keyspaces; no other folder includes it. */
#ifndef TRESTLE_STORE_KEYSPACES_H
#define TRESTLE_STORE_KEYSPACES_H

#include "store/internal.h"
#include "store/log_ends.h"

/* The name of a column family, and what it says. False: it is none of ours. */
std::string keyspace_name(const keyspace_identity &identity);
bool parse_keyspace_name(const std::string &name, keyspace_identity *out);
uint64_t id_in_name(const std::string &name); /* 0: it is none of ours */

/* A keyspace whose column family is still to be made or opened, and how that is to be. */
std::unique_ptr<keyspace> new_keyspace(store *store, const keyspace_identity &identity);
rocksdb::ColumnFamilyDescriptor describe_keyspace(const keyspace &keyspace);
/* It is one of the store's from now on. Under the mutex, which keeps readers of the index away. */
void add_keyspace(store *store, std::unique_ptr<keyspace> keyspace,
                  rocksdb::ColumnFamilyHandle *handle);

#endif
