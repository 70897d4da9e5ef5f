/* An ordered key-value store: one directory, one write-ahead log, many keyspaces.
 *
 * The only folder that knows RocksDB; the rest of the server sees this header. A store is one
 * RocksDB database and a keyspace one of its column families. (The word "column family" belongs to
 * Bigtable here and never means RocksDB's.)
 *
 * Invariants
 *  1. A batch is atomic over any keyspaces, and store_write returns OK only when the batch is as
 *     durable as was asked.
 *  2. After a failed sync, or any error that leaves the log's end in doubt, the store is fenced:
 *     every later write fails, until the process is restarted. Reads go on. A disk without space is
 *     not such an error: writes fail with RESOURCE_EXHAUSTED and work again when there is space.
 *  3. What a key's operands add up to is the row layer's business: it hands in `struct store_fold`.
 *     A fold sees operands in the order in which they were written.
 *  4. A stored value is never empty: the layers above see to it.
 *  5. A damaged table takes keys out of service, over all that the store has of them, and nothing
 *     else: see "damage" below. The rest is read and written as before.
 *
 * Threads: all functions may be called from any thread unless said otherwise. */
#ifndef TRESTLE_STORE_STORE_H
#define TRESTLE_STORE_STORE_H

#include "base/bytes.h"
#include "base/log.h"
#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct metrics;
struct store;
struct keyspace;
struct store_snapshot;
struct store_batch;
struct store_cursor;

/* --- what the row layer hands in --- */

/* One key's history: the value below (if any) and the operands above it, oldest first. */
struct store_history {
    bytes key;
    bool has_base;
    bytes base;
    const bytes *operands;
    size_t operand_count;
};

enum store_verdict { STORE_KEEP, STORE_REMOVE, STORE_REPLACE };

/* Called concurrently, from reads, flushes and compactions. `rules` is what was last given to
 * keyspace_set_rules for the key's keyspace; before that `before`, or NULL: then nothing may be
 * collected.
 * False means that the input does not parse, or, if `out` has failed, that memory ran out: the
 * read, flush or compaction fails, and nothing is lost. */
struct store_fold {
    /* The whole history is in hand. Either appends the result to `out`, or sets `*same` to one of
     * the inputs if the result equals it, which saves a copy. */
    bool (*whole)(const void *rules, const struct store_history *history, struct buffer *out,
                  bytes *same);
    /* Only neighbouring operands are in hand (has_base is false): folds them into one operand. */
    bool (*part)(const void *rules, const struct store_history *history, struct buffer *out);
    /* Whether `part` of these would give the last one back, which may be large, and is not to be in
     * memory once more for that. NULL: it does not say. */
    bool (*gives_last)(const struct store_history *history);
    /* A compaction meets a folded value: keep it, remove it (a deletion marker stays, so that
     * nothing older reappears), or replace it by what was appended to `out`. */
    enum store_verdict (*tidy)(const void *rules, bytes key, bytes value, struct buffer *out);
    /* How much of the key, from its beginning, names the owner of the value, so that keys that
     * begin with it are its, too, and lie together; 0: no owner whose values are weighed
     * (keyspace_weigh). NULL: none are weighed. */
    size_t (*owner)(bytes key);
    /* What `whole` and `part` go by in a keyspace that has no rules yet: of a start that brings
     * back what the log has, of who opens a store without knowing its tables. Not in a store whose
     * format is less than `before_format`: that has nothing for which it would be needed, and
     * former programs may go on with it. NULL: they get NULL. */
    const void *before;
    unsigned before_format;
};

/* --- damage ---
 *
 * A block of a table that is not what was written, or a table that cannot be read at all, puts keys
 * in doubt: those of the block, by the table's index, or all that the table may hold. They are
 * closed, in all tables of the keyspace, since the damaged one may have deleted or overwritten what
 * others have: every read that meets them fails with DATA_LOSS. The store does not refuse to write
 * them: a writer asks keyspace_check_open. It forgets what is closed when it is closed itself; its
 * owner remembers, and closes again after the next opening. What is remembered the store compacts,
 * like all else, without what is damaged; the damaged file stays beside the others as
 * NNNNNN.sst.damaged, for experts to read, until an operator removes it. */

struct store_damage {
    uint64_t keyspace_id;
    uint64_t file;   /* the number in the table's name */
    uint64_t offset; /* of the block; 0 if it is the whole table */
    bool is_whole;
    bytes from;
    bytes to;           /* exclusive; empty: no bound */
    const char *what;   /* in words; what reads fail with */
    bool is_remembered; /* for keyspace_close_range: the caller closes it at the next start */
};

/* --- open and close --- */

enum store_large_work {
    STORE_LARGE_WAITS,
    STORE_LARGE_BEGINS,       /* a compaction */
    STORE_LARGE_FLUSH_BEGINS, /* which holds fewer values at a time */
    STORE_LARGE_ENDS,
    STORE_WRITES_WAIT, /* for flushes, which so may not wait for them */
    STORE_WRITES_GO_ON,
};

struct store_options {
    const char *directory; /* made if missing */
    const struct store_fold *fold;
    const struct log *log;
    uint64_t cache_bytes;        /* block cache */
    uint64_t write_buffer_bytes; /* all keyspaces' write buffers together */
    int open_files;              /* file descriptors that tables may take */
    int background_threads;      /* flushes and compactions */
    bool read_only;              /* for the doctor: changes nothing, but keeps others out */
    bool no_compactions;         /* but those that keyspace_compact asks for */
    /* Opens also with logs that have lost something: what comes before the loss is replayed, and
     * store_log_end says what was lost. Otherwise such a store does not open. */
    bool salvage;
    /* Of a store whose list of tables is lost ("old data" below): it is about to be taken for
     * true, so that all is put in order, which may rewrite it. With `salvage`. */
    bool accepts_old_data;
    /* Told from any thread, in words: UNAVAILABLE, once, when the store becomes fenced;
     * RESOURCE_EXHAUSTED when the disk is full; OK when it is not any more. May be NULL. */
    void (*on_trouble)(void *context, enum status_code code, const char *what);
    void *trouble_context;
    /* Told on a thread of the store's own when keys have been closed; whether it will remember
     * them. Until then the store tells it again, and keeps the damaged table in use. The keyspace
     * does not go meanwhile: none may be dropped here. NULL: none are remembered, nor need be while
     * the store is only read. */
    bool (*on_damage)(void *context, const struct store_damage *damage);
    void *damage_context;
    /* How long a table that the disk does not read is waited for before it is compacted away
     * without what cannot be read, and compactions rest that fail again and again. By the steady
     * clock; 0: ten minutes. */
    int64_t damage_patience_us;
    /* No compaction begins before store_begin_compactions: for an owner that remembers closed
     * ranges and has yet to close them. Writes may wait for compactions, so nothing is written
     * until then. */
    bool holds_compactions;
    /* A keyspace of few and dear entries: new tables of it have small blocks, so that a damaged one
     * takes fewer. 0: none. */
    uint64_t fine_keyspace;
    struct metrics *metrics; /* how long syncs of the log take; may be NULL */
    /* Where memory is bounded: told of each flush and each compaction of large values, on its
     * thread: that it waits for its turn, since there is one at a time; that it is to begin, which
     * may be held up for seconds; and that it has ended. And of each write that has to wait until
     * what was written before it is flushed, on the writer's thread, which is not to be held up.
     * NULL: they come as they come, and are not told. */
    void (*on_large_work)(void *context, enum store_large_work what);
    void *large_work_context;
    uint64_t large_value_bytes; /* the largest value that there is memory for; 0: any */
    /* The largest commit that there is memory for to replay it, bytes; 0: any. FAILED_PRECONDITION
     * if a log has a larger one, before it is read as a whole. */
    uint64_t large_commit_bytes;
    /* How long a write waits until enough of what was written before it is flushed, where memory is
     * bounded so. By the steady clock; 0: twenty seconds. */
    int64_t write_patience_us;
};

/* FAILED_PRECONDITION if another process has the directory, or if it was written by a newer format
 * (file FORMAT in the directory, see docs/internals/format.md); DATA_LOSS if what is there is
 * damaged in a way that no crash explains. On failure `*out` is NULL. A directory of a former
 * format becomes one of the present, unless it is opened for reading only. */
status store_open(const struct store_options *options, struct store **out);

/* After an opening with `holds_compactions`. With on_large_work it first compacts tables of large
 * values that are at level 0, one after the other, which takes as long as to copy them: all at once
 * could take more than there is. FAILED_PRECONDITION if a table has a value that is larger than
 * `large_value_bytes`: compactions stay held then. */
status store_begin_compactions(struct store *store);

/* Whether store_open would take the directory for a store, or make one of it, by its name and the
 * file FORMAT: with its errors, and nothing changed. `salvage`: as in the options. `*is_new`: there
 * is no store yet. */
status store_check_directory(const char *directory, bool salvage, bool *is_new);

/* What the opening found at the ends of the write-ahead logs (log_ends.h). */
enum store_log_verdict {
    STORE_LOG_WHOLE,
    STORE_LOG_TORN, /* as a power cut may leave it: what came last may be missing */
    STORE_LOG_LOST, /* what had been synced is missing: only with `salvage` */
};
struct store_log_end {
    enum store_log_verdict verdict;
    const char *words; /* of what is not whole; the store's */
};
struct store_log_end store_log_end(const struct store *store);

/* Of a store that was opened although its log has lost something: what is there now counts from now
 * on, and later starts find nothing missing. Before that, the owner puts right its own records of
 * what is in the store: a start that ends before this call has changed nothing, and the next one
 * meets the same loss. Writes all to tables. Blocking; called once, and nothing for others. */
status store_accept_loss(struct store *store);

/* --- old data ---
 *
 * The manifest says which tables count. If it is lost, and its copy with it, `salvage` opens a
 * store that is made, in the directory `old-data` in this one, of all tables that there are, and of
 * the logs. It may show deleted data, and older values of what was overwritten: some tables may
 * have been replaced by others. The directory's own files stay as they are, and each opening makes
 * `old-data` again; so the owner must take no writes, unless it is to be accepted. */

/* What there is to say of such a store: why, and what is known to be missing. The store's; NULL:
 * this is none. */
const char *store_old_data(const struct store *store);

/* Seals the store: changes are refused from now on with FAILED_PRECONDITION and these words. */
void store_seal(struct store *store, const char *why);

enum store_old_data_state {
    STORE_OLD_DATA_NONE,
    STORE_OLD_DATA_NEEDED, /* the list of tables is lost */
    STORE_OLD_DATA_BEGUN,  /* store_accept_old_data has not come to its end */
};

/* How it is with a directory that no process has open. `words`, which may be NULL, gets why, and
 * after a reading of all tables what there would be. Blocking. */
status store_look_for_old_data(const struct store_options *options, struct buffer *words,
                               enum store_old_data_state *out);

/* Of a directory whose old data was opened with accepts_old_data, and closed: that is the store
 * now. What it was made of is moved to the directory `replaced` in this one. After a failure, or a
 * crash, there is no store before it has been called again. Blocking. */
status store_accept_old_data(const char *directory);

/* Whether it is on record how far the log is synced. As long as it is not, a later start may take
 * for a torn write what is a loss. A fenced store has nothing left to record. */
bool store_records_log_end(const struct store *store);

/* Writes that record afresh: what was on it before, names of tables among it, is gone. Blocking. */
status store_forget_record(struct store *store);

/* Everything made from the store (snapshots, cursors, values, batches) must have been released. */
void store_close(struct store *store);

/* OK, or why writes are refused at present. */
status store_health(struct store *store);

/* Fences the store, for this reason, when the caller knows that what it writes does not get where
 * it belongs: flushes and compactions end, and its files are left alone. Any thread. */
void store_fence(struct store *store, const char *why);

/* If the last write found no room for itself on the disk, or the last flush no memory to put a row
 * together: whether the next one would. A caller that keeps writers away because of store_health
 * learns no other way that there is again. May wait for the disk. */
void store_look_for_room(struct store *store);

/* Whether it is memory that store_health lacks, and not space. */
bool store_lacks_memory(const struct store *store);

/* --- the files of its own, which the next start needs --- */

enum { STORE_FILE_NAMES_SIZE = 200 };

/* What of them has been removed below the store, or is another one than it has open: what is
 * written to these is gone with the process. */
struct store_missing_files {
    bool any;
    bool logs;        /* a write-ahead log among them: nothing that is acknowledged is durable */
    bool only_format; /* FORMAT, and no other: this is still the directory that was opened */
    bool is_taken;    /* another process has locked the file LOCK that is there now */
    char names[STORE_FILE_NAMES_SIZE];
};

/* A few system calls; does not wait. Of a store that is fenced, sealed or only read, nothing is
 * missing. */
void store_look_for_files(struct store *store, struct store_missing_files *out);

/* Makes those anew that are missing, out of what memory and open files have, durably; for a log
 * all is written to tables. As store_write fails; FAILED_PRECONDITION, and nothing is made, if
 * another process has the directory. Blocking; one thread at a time. */
status store_restore_files(struct store *store);

/* --- keyspaces: named by a number, never used again once dropped --- */

/* The keyspaces that exist, in no order, one after the other; NULL at the end. */
struct keyspace *store_keyspace_at(struct store *store, size_t index);
struct keyspace *store_keyspace_find(struct store *store, uint64_t id); /* NULL if none */
uint64_t keyspace_id(const struct keyspace *keyspace);

/* For good, from when it was made. */
enum keyspace_kind {
    KEYSPACE_ROWS,
    /* A log: nothing is merged, nothing collected, and it is never compacted (keyspace_compact does
     * nothing), so that writes never wait for its compactions; it goes as a whole. A damaged table
     * of it stays, and what it has cannot be read. For keys of which each is put once, and which
     * are read in order. */
    KEYSPACE_LOG,
};
enum keyspace_kind keyspace_kind(const struct keyspace *keyspace);

/* Makes `count` keyspaces with the ids first_id, first_id + 1, …, a fraction of a millisecond each.
 * Durable on return; all or none, but a crash in between may leave some. */
status store_keyspaces_create(struct store *store, uint64_t first_id, size_t count);
/* The same of one of kind KEYSPACE_LOG; the others are of rows. */
status store_log_keyspace_create(struct store *store, uint64_t id);

/* Removes keyspace and contents, durably. No cursor, value or batch may use it any more; the
 * pointer is dead afterwards. Waits for folds that run, so its rules may be freed on return.
 * Blocking. */
status store_keyspace_drop(struct store *store, struct keyspace *keyspace);

/* Values of that size and more are about to be written to the keyspace: what follows of them is
 * large work (on_large_work). The first time it may wait for the disk. */
enum { STORE_LARGE_VALUE = 8 << 20 };
void keyspace_expect_large(struct keyspace *keyspace);

/* What is written to the keyspace is lost under that name, if it is (store_log_end): copied, and
 * forgotten without memory. */
void keyspace_set_name(struct keyspace *keyspace, const char *name);

/* What folds in this keyspace get from now on. Folds that run may use the former rules for a while
 * longer: they must stay valid until the store is closed or the keyspace dropped. */
void keyspace_set_rules(struct keyspace *keyspace, const void *rules);

/* --- keys out of service: see "damage" --- */

/* Closes them, or gives another reason for those that are closed, of the same file and bounds. Once
 * it is said that they are remembered, they are. */
status keyspace_close_range(struct keyspace *keyspace, const struct store_damage *damage);
/* OK, or DATA_LOSS if some of the keys from `from` to `to` (exclusive; empty: no bound) are closed.
 * Costs nothing while all of the keyspace is sound. */
status keyspace_check_open(struct keyspace *keyspace, bytes from, bytes to);
bool keyspace_has_damage(const struct keyspace *keyspace);
/* Calls `visit` with each range that is closed, in no order, until it fails. Valid until it
 * returns. */
status keyspace_list_closed(struct keyspace *keyspace,
                            status (*visit)(void *context, const struct store_damage *range),
                            void *context);
/* Compacts the damaged tables between these keys away, without what is damaged in them: the caller
 * has deleted all that is closed there, or takes for true what other tables have. The keys stay
 * closed, and what else is found damaged meanwhile is closed. UNAVAILABLE if a range of the
 * keyspace is not remembered. Blocking. */
status keyspace_heal(struct keyspace *keyspace, bytes from, bytes to);
/* Of closed ranges that lie wholly between these keys, which were healed: what is there is what has
 * been written since. A repair that completes them, before they are opened, reads that: on threads
 * that say so (store_read_healed). What is found damaged there later is closed for them, too. */
void keyspace_note_healed(struct keyspace *keyspace, bytes from, bytes to);
/* Whether the calling thread reads those, from now on; returns the former. At first it does not. */
bool store_read_healed(bool does);
/* Looks at the table once more, and closes what is damaged: whether it is there, and the range of
 * its, of a block or the whole, needs not be closed after all, since it was the memory or a cable
 * that failed. FAILED_PRECONDITION if so, but it is not read before the next start. Blocking. */
status keyspace_find_sound(struct keyspace *keyspace, const struct store_damage *range,
                           bool *is_sound);
/* Opens a range of that table that was found sound, or (file 0) all that lie between these keys
 * wholly, which were healed. The owner must have forgotten them. */
void keyspace_open_range(struct keyspace *keyspace, uint64_t file, bytes from, bytes to);

/* --- writing --- */

/* A batch gathers changes. Appending never reports failure; store_write does. One thread at a time.
 */
struct store_batch *store_batch_create(void); /* NULL without memory */
void store_batch_destroy(struct store_batch *batch);
void store_batch_clear(struct store_batch *batch);
size_t store_batch_size(const struct store_batch *batch); /* bytes */
void store_batch_put(struct store_batch *batch, struct keyspace *keyspace, bytes key, bytes value);
void store_batch_merge(struct store_batch *batch, struct keyspace *keyspace, bytes key,
                       bytes operand);
void store_batch_delete(struct store_batch *batch, struct keyspace *keyspace, bytes key);
/* All keys from `from` up to but not including `to`. */
void store_batch_delete_range(struct store_batch *batch, struct keyspace *keyspace, bytes from,
                              bytes to);

/* One change of a batch; `value` is DELETE_RANGE's end, and empty for DELETE. */
enum store_change_kind { STORE_PUT, STORE_MERGE, STORE_DELETE, STORE_DELETE_RANGE };

struct store_change {
    enum store_change_kind kind;
    struct keyspace *keyspace;
    bytes key;
    bytes value;
};

/* Whether something could not be appended: store_write would say so. And: it could not. */
bool store_batch_failed(const struct store_batch *batch);
void store_batch_fail(struct store_batch *batch);

/* Appends what another batch of the store has. */
void store_batch_append(struct store *store, struct store_batch *batch,
                        const struct store_batch *other);

/* Calls `visit` with what was appended, in order, until it fails; slices point into the batch.
 * RESOURCE_EXHAUSTED if something could not be appended. */
status store_batch_visit(struct store *store, const struct store_batch *batch,
                         status (*visit)(void *context, const struct store_change *change),
                         void *context);

enum store_durability {
    STORE_SYNCED, /* on the disk before store_write returns */
    STORE_ASYNC,  /* handed to the system: survives the process, not the machine */
};

/* Applies the batch as a whole. RESOURCE_EXHAUSTED: no space, nothing was changed. UNAVAILABLE: the
 * store is fenced, or became so now: whether the batch will be there after a restart is unknown; or
 * it is not (store_health), and flushes do not get on: nothing was changed. With on_large_work it
 * waits while what is in write buffers is not to grow. */
status store_write(struct store *store, struct store_batch *batch,
                   enum store_durability durability);

/* Writes that wait for flushes end now, UNAVAILABLE, and none waits from now on. Any thread. */
void store_stop_waiting(struct store *store);

/* --- reading --- */

/* A snapshot fixes one instant for several reads. */
struct store_snapshot *store_snapshot_create(struct store *store); /* NULL without memory */
void store_snapshot_release(struct store_snapshot *snapshot);

enum store_read_tier {
    /* Memory only, the kernel's page cache included; never waits for the disk: for event loops. */
    STORE_READ_CACHED,
    STORE_READ_ANY,
};

/* How much the calling thread reads of a table at once, with STORE_READ_ANY: a larger block is
 * refused, as one that is not in memory is otherwise, and nothing is read of it. At first SIZE_MAX;
 * tables that are opened do not mind. */
struct store_read_bound {
    size_t most;    /* bytes */
    size_t refused; /* the largest so far; 0: none was */
};
/* Sets the bound for the calling thread from now on; returns the former. */
struct store_read_bound store_bound_reads(struct store_read_bound bound);
/* Whether the calling thread may get so much at once, wherever it lies; if not that counts as
 * refused. For a caller that knows the size before: what is in a write buffer, or packed in its
 * table, is not seen by the bound. */
bool store_bound_covers(size_t size);

enum store_presence { STORE_FOUND, STORE_ABSENT, STORE_NOT_CACHED };

/* Operands that a read had to fold for a value; none: it is stored as it is. */
struct store_folded {
    size_t count;
    size_t bytes; /* in all of them */
    size_t waste; /* the same, for the store's own use; 0 if the value was in one piece */
};

/* A value that stays where the store has it until it is released. All zeroes is empty. */
struct store_value {
    bytes bytes;
    struct store_folded folded; /* by store_get */
    void *pin;                  /* the store's */
};

/* `snapshot` NULL reads the newest. `*value` must be released whatever comes, also for ABSENT. */
status store_get(struct keyspace *keyspace, const struct store_snapshot *snapshot, bytes key,
                 enum store_read_tier read_tier, struct store_value *value,
                 enum store_presence *presence);

/* Several keys of one keyspace in one call, cheaper than one by one; arrays of `count`. The
 * statuses of single keys do not differ: the first failure is returned. */
status store_get_many(struct keyspace *keyspace, const struct store_snapshot *snapshot,
                      const bytes *keys, size_t count, enum store_read_tier read_tier,
                      struct store_value *values, enum store_presence *presences);
void store_value_release(struct store_value *value);

/* A cursor walks the keys from `lower` (inclusive) to `upper` (exclusive; empty: no bound), as they
 * were when it was made, or at `snapshot`. One thread at a time. The bounds are copied. */
struct store_cursor_options {
    const struct store_snapshot *snapshot; /* may be NULL */
    bytes lower;
    bytes upper;
    enum store_read_tier read_tier;
    bool bypasses_cache; /* reads ahead and leaves the block cache alone: for background passes */
    bool notes_waste;    /* it reads for somebody: keyspace_waste */
    /* What folds for this cursor get instead of the keyspace's rules, which may change while it
     * walks; NULL: those. They must stay valid as long as the cursor. */
    const void *rules;
};

status store_cursor_create(struct keyspace *keyspace, const struct store_cursor_options *options,
                           struct store_cursor **out);
void store_cursor_destroy(struct store_cursor *cursor); /* NULL is fine */
void store_cursor_first(struct store_cursor *cursor);
void store_cursor_last(struct store_cursor *cursor);
void store_cursor_seek(struct store_cursor *cursor, bytes key);        /* first at or after */
void store_cursor_seek_before(struct store_cursor *cursor, bytes key); /* last strictly before */
void store_cursor_next(struct store_cursor *cursor);
void store_cursor_previous(struct store_cursor *cursor);

/* Whether there is a current entry. If not: the end was reached, a block was not cached (with
 * STORE_READ_CACHED; store_cursor_missed_cache says so), or store_cursor_status says what
 * failed. */
bool store_cursor_valid(const struct store_cursor *cursor);
bool store_cursor_missed_cache(const struct store_cursor *cursor);
status store_cursor_status(const struct store_cursor *cursor);

/* The current entry's key; valid until the cursor moves. */
bytes store_cursor_key(const struct store_cursor *cursor);
bytes store_cursor_value(const struct store_cursor *cursor);
struct store_folded store_cursor_folded(const struct store_cursor *cursor);

/* --- housekeeping --- */

/* Estimated bytes on disk and in write buffers of the keys from `from` to `to` (empty: no bound).
 */
uint64_t keyspace_size(struct keyspace *keyspace, bytes from, bytes to);

/* Of the whole keyspace, without a look at the disk: its table files; the memory of its write
 * buffers, which is taken in pieces of up to 1 MiB; and what is in that, about, at most so much. */
struct keyspace_bytes {
    uint64_t tables;
    uint64_t buffers;
    uint64_t buffered;
};
struct keyspace_bytes keyspace_bytes(struct keyspace *keyspace);

/* What gets, and cursors that note it, have gone through so far because it had not been compacted,
 * in bytes or in what takes as long: operands that had to be put together, and entries that newer
 * ones had replaced. Of a keyspace, and of all; both only grow. By any thread. */
uint64_t keyspace_waste(const struct keyspace *keyspace);
uint64_t store_waste(const struct store *store);

/* Whose values take most, as far as that is noted: of each owner's (store_fold.owner) in a table
 * or a write buffer those of 1 MiB or more. Tables from before the notes say nothing. What was
 * deleted or written over counts until compactions have met it, and what lies in pieces of less
 * than that does not: so it names candidates, not what there is. */
struct store_weight {
    bytes owner;   /* as its keys begin */
    uint64_t size; /* of keys and values */
    uint64_t largest_value;
};

/* Calls `visit` with some of the heaviest, by their size or by ten times their largest value, the
 * heaviest first, until it returns false. Their keys lie between `from` and `to`. May open tables.
 */
status keyspace_weigh(struct keyspace *keyspace, bytes from, bytes to,
                      bool (*visit)(void *context, const struct store_weight *weight),
                      void *context);

/* The number in the name of the keyspace's newest table file (0: it has none). All that this and
 * those with lesser numbers have was written before the call. */
uint64_t keyspace_newest_table(const struct keyspace *keyspace);

/* Whether a table file over keys from `from` to `to` (empty: no bound) deletes a range of keys
 * (store_batch_delete_range), which each reader of these pays for until a compaction has done it.
 * May open tables. */
status keyspace_deletes_ranges(struct keyspace *keyspace, bytes from, bytes to, bool *deletes);

/* Writes buffers to tables / rewrites the range so that collected data leaves the disk. Blocking.
 */
status keyspace_flush(struct keyspace *keyspace);
status keyspace_compact(struct keyspace *keyspace, bytes from, bytes to);

/* From now on keyspace_compact gives CANCELLED, also on threads that are in it, within a few keys:
 * for an end that waits for those threads. What the store compacts by itself goes on. Any thread.
 */
void store_interrupt_compactions(struct store *store);

/* --- tables outside of the store: what backups are made of (export.cc) --- */

/* Called between pieces of long work with the bytes done since the last call; may block, to hold
 * the work back. False ends it with CANCELLED. */
struct store_pacer {
    bool (*go_on)(void *context, uint64_t bytes);
    void *context;
};

/* Reads every table of the keyspace and looks at the checksums of all its blocks: a long cursor,
 * which leaves the cache alone, could pass over damage without a word (store.md). DATA_LOSS,
 * naming the file. Blocking. */
status keyspace_verify(struct keyspace *keyspace, const struct store_pacer *pacer);

/* Reads all tables of all keyspaces and closes what is damaged, before it returns: on_damage is
 * told on this thread. The pacer is asked after each block. Blocking. */
status store_look_for_damage(struct store *store, const struct store_pacer *pacer);

/* The same of one keyspace, without a pause. */
status keyspace_look_for_damage(struct keyspace *keyspace);

/* The same of those tables whose turn came between two moments, from the disk itself where the
 * system allows that, not from what the kernel has in memory. Each table's comes once a period,
 * spread over it. */
struct store_turn {
    int64_t from_us; /* exclusive */
    int64_t to_us;
    int64_t period_us;
};
status store_scrub(struct store *store, const struct store_turn *turn,
                   const struct store_pacer *pacer);

/* A file that is being written: keys rise strictly, values are not empty. One thread at a time. */
struct table_writer;
status table_writer_create(struct store *store, const char *path, struct table_writer **out);
status table_writer_add(struct table_writer *writer, bytes key, bytes value);
uint64_t table_writer_size(const struct table_writer *writer); /* so far, about */
/* Ends and syncs the file, not its name. It has at least one entry. */
status table_writer_finish(struct table_writer *writer);
/* The file of one that was not finished stays behind, in whatever state. NULL is fine. */
void table_writer_destroy(struct table_writer *writer);

/* Calls `visit` with each entry of such a file, by rising key, until it fails. Blocking. */
status table_read(struct store *store, const char *path,
                  status (*visit)(void *context, bytes key, bytes value), void *context);

/* Makes a keyspace of tables that table_writer wrote, whose ranges of keys do not overlap. The
 * files are on the store's file system; they are linked, and may be removed afterwards. Durable on
 * return; after a failure or a crash there may be a keyspace of that id. Blocking. */
status store_keyspace_import(struct store *store, uint64_t id, const char *const *paths,
                             size_t count, struct keyspace **out);

/* --- the files of a store at one instant: what whole backups are made of (checkpoint.cc) --- */

/* Of a store that is fenced, also meanwhile, there is none: UNAVAILABLE, and what fenced it. */
struct store_checkpoint;

/* Flushes all write buffers if the logs have more than `most_log_bytes`, which would be copied. To
 * be called shortly before store_checkpoint_begin. Blocking. */
status store_checkpoint_prepare(struct store *store, uint64_t most_log_bytes);

/* Fixes the instant: all that was written before is in it, nothing that is written afterwards.
 * Takes milliseconds, during which the caller lets no keyspace be made and then written to, or
 * imported: a record could be in the checkpoint whose keyspace is not. As long as there is a
 * checkpoint the store deletes no file. */
status store_checkpoint_begin(struct store *store, struct store_checkpoint **out);

/* Makes the directory, which is on the store's file system and not there yet, a store as it was at
 * that instant: tables are linked, the rest is copied. It is there to be read at once and is not
 * synced. On failure some of it may be there. Blocking. */
status store_checkpoint_write(struct store_checkpoint *checkpoint, const char *directory);
void store_checkpoint_end(struct store_checkpoint *checkpoint); /* NULL is fine */

/* What tells this directory from all others: made when the directory was, and again for one that
 * was restored from a whole backup, whose files do not have it. */
enum { STORE_IDENTITY_SIZE = 64 };
status store_identity(struct store *store, char out[STORE_IDENTITY_SIZE]);

enum { STORE_LEVELS = 7 };

struct store_statistics {
    uint64_t cache_used_bytes;
    uint64_t write_buffer_used_bytes;
    uint64_t table_bytes; /* live table files */
    uint64_t log_bytes;   /* write-ahead log files */
    uint64_t compaction_pending_bytes;
    uint64_t bytes_written; /* by flushes, compactions and log, since open */
    uint64_t syncs;
    uint64_t stalls_us; /* time that writes were held back by the store, since open */
    bool is_stalled;
    uint64_t cache_capacity_bytes;
    uint64_t cache_hits; /* blocks that were asked for and cached; not cached */
    uint64_t cache_misses;
    uint64_t level_files[STORE_LEVELS];
    uint64_t flushes; /* done since open, as are compactions; under way now */
    uint64_t flushes_running;
    uint64_t flushed_bytes; /* before compression */
    uint64_t compactions;
    uint64_t compactions_running;
    uint64_t compaction_us;
    uint64_t compaction_read_bytes; /* of tables */
    uint64_t compaction_written_bytes;
    uint64_t slowdowns; /* times that a keyspace began to hold writes back: a bit, wholly */
    uint64_t stops;
    /* Times that cause for it was found, of the keyspaces that there are: too many write buffers
     * to be flushed, files at level 0, bytes to be compacted. */
    uint64_t stalls_by_buffers;
    uint64_t stalls_by_level0;
    uint64_t stalls_by_pending;
};

void store_statistics(struct store *store, struct store_statistics *out);

/* How much the block cache may have from now on, instead of `cache_bytes` of the options. What it
 * has beyond goes at once, but for what is being read. Any thread. */
void store_limit_cache(struct store *store, uint64_t bytes);

/* By how much the block cache and the write buffers may still grow, bytes. Cheap; any thread. */
uint64_t store_growth(struct store *store);

/* The version of RocksDB that this process has, "7.8.3", into `out`. */
enum { STORE_VERSION_SIZE = 32 };
void store_rocksdb_version(char out[STORE_VERSION_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
