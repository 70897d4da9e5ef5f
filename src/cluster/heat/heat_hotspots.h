/* What a table's heat says about its row keys, in sentences: for the console and for advice.
 *
 * Each hotspot names where it is. What few requests have shown is no hotspot. */
#ifndef TRESTLE_CLUSTER_HEAT_HEAT_HOTSPOTS_H
#define TRESTLE_CLUSTER_HEAT_HEAT_HOTSPOTS_H

#include "heat/heat_record.h"

struct table;

enum heat_hotspot_kind {
    HEAT_HOTSPOT_WRITE_FRONTIER, /* keys rise: each new row is after those before */
    HEAT_HOTSPOT_HOT_WRITES,     /* a small part of the data takes most of the writes */
    HEAT_HOTSPOT_HOT_READS,
    HEAT_HOTSPOT_HOT_KEY,       /* one row does, of reads and writes of single rows */
    HEAT_HOTSPOT_READ_PRESSURE, /* reads take much of the machine */
    HEAT_HOTSPOT_LARGE_ROWS,
    HEAT_HOTSPOT_FEW_RANGES, /* what is counted as one is so much that no part of it can be told */
};

enum {
    HEAT_HOTSPOT_LEAST_ROWS = 100,   /* that were asked for, for a hotspot */
    HEAT_HOTSPOT_COARSE_ROWS = 5000, /* and for HEAT_HOTSPOT_FEW_RANGES */
    HEAT_HOTSPOT_COARSE_DATA = 32,   /* ranges of data, of a table that has parts to tell */
    HEAT_HOTSPOT_LARGE_ROW = 100 * 1000 * 1000 /* bytes: what Bigtable advises as a row's most */
};

struct heat_hotspot {
    enum heat_hotspot_kind kind;
    bytes start; /* the range, as of a tablet */
    bytes end;
    bytes key;            /* the hot one, or the last at the frontier; else empty */
    double share;         /* of the table's writes, reads, requests, or bytes read: 0 to 1 */
    uint64_t total;       /* how many these were */
    double part;          /* of the table's data that the range has, about: 0 to 1 */
    const char *sentence; /* in ASCII: bytes of keys that are not are shown as \xNN */
    size_t windows;       /* that show it one by one, up to now; 0: it is of all the time */
    int64_t from_us;      /* since 1970: when the first of these began */
};

/* The beginning that all rows of a section of a table share, and no others do: of that of the
 * key's, which may be cut off. A section is as good as a table of its own, as an index is. */
typedef bytes heat_section(bytes key);

/* `heat` is what was counted in some time, and `data` ranges of even size of the table's data,
 * which say how small a part of it a range is, or of its sections; NULL: it has none. Hotspots are
 * in the arena. */
status heat_hotspots_of(const struct heat_record *heat, const struct heat_ranges *data,
                        heat_section *section_of, struct arena *arena, struct heat_hotspot **out,
                        size_t *count);

/* The same for what was kept of that time. Blocks: for threads that may. */
status heat_hotspots_read(struct table *table, int64_t from_us, int64_t until_us,
                          struct arena *arena, struct heat_hotspot **out, size_t *count);

struct heat_looking {
    heat_section *section_of; /* NULL: the table has no sections */
    size_t most_ranges;       /* by which it is looked up how much of the data a range has */
    size_t most_walked;       /* rows that are looked at for that, or not many more */
    bool wants_lasting;       /* hotspots of heat_lasting.h as well, behind the others */
};

/* The same of a matrix that the caller has read. */
struct heat_matrix;
status heat_hotspots_of_matrix(struct table *table, const struct heat_matrix *matrix,
                               const struct heat_looking *looking, struct arena *arena,
                               struct heat_hotspot **out, size_t *count);

#endif
