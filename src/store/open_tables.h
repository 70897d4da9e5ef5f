/* Which tables RocksDB has open, and what that is good for: as long as one is, all of it can be
 * read, also after somebody has removed its name. So it can be given the name back. A part of the
 * store's own headers. */
#ifndef TRESTLE_STORE_OPEN_TABLES_H
#define TRESTLE_STORE_OPEN_TABLES_H

#include "store/internal.h"

/* By the numbers of files. Any thread. */
class open_tables {
  public:
    using file = rocksdb::FSRandomAccessFile;

    /* Without memory it is not known to be open. */
    void came(uint64_t number, const std::shared_ptr<file> &opened);
    /* One of those that came has gone. */
    void went(uint64_t number);
    std::shared_ptr<file> find(uint64_t number) const; /* NULL: it is not open */
    std::vector<uint64_t> numbers() const;             /* with repetitions */

    std::mutex restoring; /* of tables, one at a time */

    /* What look_for_tables has found. */
    struct looked {
        std::mutex mutex; /* of the rest */
        long long changed_ns = 0;
        unsigned unchanged = 0; /* looks since then */
        std::vector<uint64_t> gone;
    } looked;

  private:
    mutable std::mutex mutex; /* of `by_number` */
    std::unordered_multimap<uint64_t, std::weak_ptr<file>> by_number;
};

/* "/a/b/000012.sst" */
std::string table_path(const struct store *store, uint64_t number);

/* Tables of the store that somebody has removed, and that are open. A few system calls, unless
 * something has come into the directory or gone; waits for nobody. */
std::vector<uint64_t> look_for_tables(struct store *store);

/* Gives an open table that has no name any more its name back: by a copy, durably. OK, too, if
 * nothing is to be done, or nothing can be, since it is not open. Blocking. */
rocksdb::IOStatus bring_back_table(struct store *store, uint64_t number);
/* The same, if it still is one of the store's. */
rocksdb::IOStatus bring_back_live_table(struct store *store, uint64_t number);

#endif
