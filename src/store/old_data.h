/* A store whose manifest is gone, and its copy with it: what its table files and logs have.
 *
 * It is not known then which tables count. On the disk there may be some that a compaction has
 * replaced, and what they have was deleted or overwritten since: such a store may show deleted
 * data. It is served, read-only, on request (store_options.salvage), and may be taken for true
 * (accepts_old_data).
 *
 *     DIR/old-data             a store of its own, made of the directory's files: tables are
 *                              linked, logs copied, the manifest is written from what the tables
 *                              say of themselves. Made again each time; what is served is this one
 *     DIR/old-data.accepted    the same, complete, about to take the place of what is in DIR
 *     DIR/old-data.moving      the same, when what was in DIR has been moved away
 *     DIR/replaced             what was in DIR
 *
 * Invariants
 *  1. No file of the directory is changed, moved or removed before old-data.accepted is there.
 *  2. Each table that can be read counts, except those of which others prove that they do not:
 *     leave_out_replaced. Of two entries of a key the one with the greater sequence number is the
 *     newer one, whatever tables they are in: old_data_order.cc.
 *  3. What cannot be read, or is of no known keyspace, is said (store_old_data).
 *
 * old_data.cc looks, makes the directory and opens it; old_data_order.cc says in which order tables
 * count; old_data_manifest.cc writes that down; old_data_accept.cc puts it in place. */
#ifndef TRESTLE_STORE_OLD_DATA_H
#define TRESTLE_STORE_OLD_DATA_H

#include "store/log_ends.h"

extern const char OLD_DATA_DIRECTORY[];

/* The status's words; frees it in any case. */
inline std::string words_of(status s)
{
    struct owner {
        status mine;
        ~owner() { status_free(mine); }
    } owner = {s};
    return status_message(owner.mine);
}

struct found_table {
    uint64_t number = 0;
    uint64_t size = 0;
    table_summary summary;
    uint64_t newest_deletion = 0; /* the greatest sequence number of a deleted range */
    bool is_left_out = false;     /* it is known not to count */
    /* As the manifest gets them. */
    int level = 0;
    uint64_t least = 0; /* sequence numbers; at level 0 they say which table comes first */
    uint64_t greatest = 0;
    std::string smallest; /* keys with sequence numbers; what it deletes beyond them it does not */
    std::string largest;
};

struct found_family {
    uint32_t number = 0;
    keyspace_identity keyspace = {};
    uint64_t log_number = 0; /* the first log that has what no table of the family has */
    std::vector<found_table> tables;
    /* The order of tables does not say which entry is the newest: only a merge by their sequence
     * numbers does. */
    bool is_interleaved = false;
    /* The same of what they delete by ranges, which only a compaction merges. */
    bool wants_compaction = false;
};

/* What there is. */
struct old_data {
    std::vector<found_family> families; /* by rising numbers */
    uint64_t last_sequence = 0;
    uint64_t last_file = 0;
    uint32_t last_family = 0; /* that was ever given, as far as is known */
    uint64_t unfinished = 0;  /* the last table that cannot be opened: it may have no end */
    std::string words;        /* what is missing; empty: nothing that is known of */
};

/* Takes out tables that compactions had replaced, or not finished; adds their names. */
void leave_out_replaced(found_family *family, uint64_t unfinished, std::vector<uint64_t> *left_out);

/* Puts the family's tables into levels. With `is_exact`, a family that is interleaved wants to be
 * compacted, too: a reader that looks at one table after the other then finds the newest. */
void order_tables(found_family *family, bool is_exact);

/* A manifest with that number, and CURRENT. */
rocksdb::IOStatus write_manifest(rocksdb::FileSystem *files, const std::string &directory,
                                 uint64_t number, const old_data &found);

/* Reads all tables and logs of the directory. */
status look_for_old_data(rocksdb::FileSystem *files, const std::string &directory,
                         const synced_record &recorded, old_data *out);

/* Makes old-data in the directory. */
status make_old_data(rocksdb::FileSystem *files, const std::string &directory,
                     const synced_record &recorded, bool has_record, const old_data &found);

/* FAILED_PRECONDITION in the middle of a taking of the place: there may be no store here. */
status check_not_moving(rocksdb::FileSystem *files, const std::string &directory);

/* Opens it, instead of `origin`, which has the lock of the directory and is not open; it belongs to
 * what is opened then, and to the caller if nothing is. */
status open_old_data(const store_options *options, store *origin, store **out);

/* store_accept_old_data on a file system of the caller's, for tests. */
status store_accept_old_data_on(rocksdb::FileSystem *files, const char *directory);

#endif
