/* Events: what the commit queue has done, in a form that others can read. One event is one commit,
 * with all that it changed; the events of one batch stand together in an *entry*. The archive is
 * made of them; a change log and replication are to be, too. Byte format:
 * docs/internals/format.md, "Events".
 *
 * Invariants
 *  1. Events of an entry, and entries of a log, have rising sequences: the order of the queue. A
 *     sequence says where a commit stands, its version which of two changes counts for more.
 *  2. A row's change is the commit's own, not what several came to: its fragment as it was packed,
 *     with its version.
 *  3. Applying the changes of all events in order to a store that has what was there before makes
 *     what the store has that wrote them. An event of kind EVENT_UPKEEP alters how rows are kept,
 *     and nothing that is seen; readers of rows pass over it.
 *  4. A reader takes any bytes: what does not parse sets `is_bad`, and nothing of it is returned
 *     from there on. Slices that it returns point into the entry. */
#ifndef TRESTLE_TABLET_EVENT_H
#define TRESTLE_TABLET_EVENT_H

#include "base/siphash.h"
#include "row/fragment.h"
#include "store/store.h"

/* Numbers as stored. */
enum event_kind {
    EVENT_ROWS = 1,    /* changes of rows, as a client asked for them; and, as CHANGE_PUT, what
                          logs of change streams tell of them */
    EVENT_UPKEEP = 2,  /* how a row is kept: cells overflowed, collected, put together */
    EVENT_DROP = 3,    /* a range of rows is gone */
    EVENT_CATALOG = 4, /* tables, tablets, resources, keyspaces */
    EVENT_COLLECT = 5, /* deletions of what a table's rules condemn; changes of rows */
};

/* Numbers as stored. */
enum event_change_kind {
    CHANGE_ROW = 1,
    CHANGE_PUT = 2,
    CHANGE_MERGE = 3,
    CHANGE_DELETE = 4,
    CHANGE_DELETE_RANGE = 5,
    CHANGE_KEYSPACES_MADE = 6,
    CHANGE_KEYSPACE_DROPPED = 7,
    CHANGE_FILES_TAKEN_IN = 8,
};

/* A file that became a part of a keyspace; its name says which (archive.h). */
struct event_file {
    uint64_t size;
    uint32_t crc32c;
};

struct event_change {
    enum event_change_kind kind;
    uint64_t keyspace; /* an id; KEYSPACES_MADE: the first one */
    bytes key;         /* ROW: the row key; DELETE_RANGE: where it begins */
    bytes value;       /* ROW: the fragment; PUT, MERGE; DELETE_RANGE: where it ends, exclusive */
    uint64_t count;    /* KEYSPACES_MADE; FILES_TAKEN_IN: files; ROW: big cells */
    enum keyspace_kind made; /* KEYSPACES_MADE: of which kind */
    bool has_token;          /* ROW */
    struct fingerprint token;
    bytes list; /* ROW: its big cells, FILES_TAKEN_IN: its files; for the functions below */
};

/* --- writing; failures show in out->failed --- */

struct event_writer {
    struct buffer *out;
    uint64_t sequence; /* of the event before */
    bool is_first;
    bool is_within; /* between event_begin and event_end */
};

/* Begins an entry at the end of `out`. */
void event_writer_start(struct event_writer *writer, struct buffer *out);

/* One event: event_begin, its changes, event_end. `sequence` is greater than that of the one before
 * it in the entry. */
void event_begin(struct event_writer *writer, enum event_kind kind, uint64_t sequence,
                 uint64_t version);
void event_end(struct event_writer *writer);

/* `change` has its version (fragment_set_version); `token` may be NULL. */
void event_row(struct event_writer *writer, uint64_t keyspace, bytes row_key,
               const struct packed_change *change, const struct fingerprint *token);
/* PUT, MERGE, DELETE or DELETE_RANGE. */
void event_record(struct event_writer *writer, enum event_change_kind kind, uint64_t keyspace,
                  bytes key, bytes value);
void event_keyspaces_made(struct event_writer *writer, enum keyspace_kind kind, uint64_t first,
                          uint64_t count);
void event_keyspace_dropped(struct event_writer *writer, uint64_t keyspace);
void event_files_taken_in(struct event_writer *writer, uint64_t keyspace,
                          const struct event_file *files, size_t count);

/* At most so many bytes for an event of one such row, beyond its row key, its fragment and the
 * qualifiers and values of its big cells: for memory that is claimed before. */
size_t event_row_overhead(const struct packed_change *change);
enum { EVENT_OVERHEAD = 32 }; /* of an event, and of an entry's head */

/* --- reading --- */

struct log_event {
    enum event_kind kind;
    uint64_t sequence;
    uint64_t version;
};

struct event_reader {
    const uint8_t *at;
    const uint8_t *end;
    bool is_bad;
    /* Private. */
    bool is_first;
    bool is_within; /* an event whose changes have not all been read */
    uint64_t sequence;
};

/* False, with is_bad set, if its head does not parse. */
bool event_reader_start(struct event_reader *reader, bytes entry);
/* The next event; what is left of the one before is passed over. False at the end or when bad. */
bool event_next(struct event_reader *reader, struct log_event *event);
/* The next change of that event; false at its end or when bad. */
bool event_next_change(struct event_reader *reader, struct event_change *change);

/* The big cells of a row's change, in `cells`, room for `count` of them; the files that were taken
 * in. The reader has looked at them: they parse. */
void event_big_cells(const struct event_change *change, struct big_cell *cells);
void event_files(const struct event_change *change, struct event_file *files);

/* Calls `visit` with each change of the entry by which files were taken in, until it fails. What
 * does not parse ends the entry. */
status event_visit_taken_in(bytes entry,
                            status (*visit)(void *context, const struct event_change *change),
                            void *context);

/* --- what was changed in a row, by itself: for who keeps elsewhere which row, and when. A byte, 0
 * or that of big cells; then as in an event, from the fragment on --- */

void event_change_write(struct buffer *out, const struct packed_change *change);
/* `out` is of kind CHANGE_ROW, without keyspace, key and token. False if it does not parse. */
bool event_change_read(bytes encoded, struct event_change *out);

/* The sequences of an entry's first and last event; false if it does not parse, or has none. */
bool event_entry_bounds(bytes entry, uint64_t *first, uint64_t *last);

#endif
