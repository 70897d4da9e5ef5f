/* The schema advisor: what is wrong with a table, as far as a sample of it shows.
 *
 * Pure functions over observations, which the caller has gathered: no I/O, no clock. Each best
 * practice is a rule (rules.def). What always holds
 *  1. A rule speaks only where the evidence is there. A false alarm is worse than a miss: every
 *     threshold leans that way, and what was not observed is no reason for anything.
 *  2. A rule has at most one finding; of several families or rows it tells the worst.
 *  3. Findings depend on the observations alone, not on their order of arrival. */
#ifndef TRESTLE_ADVISOR_ADVICE_H
#define TRESTLE_ADVISOR_ADVICE_H

#include "base/arena.h"
#include "base/status.h"

enum advice_severity { ADVICE_INFO, ADVICE_WARNING, ADVICE_CRITICAL };

enum advice_rule_number {
#define RULE(member, id, severity, title, when, why, remedy) RULE_##member,
#include "advisor/rules.def"
#undef RULE
    ADVICE_RULES
};

struct advice_rule {
    const char *id;
    enum advice_severity severity;
    const char *title;
    const char *when; /* it is found */
    const char *why;  /* it matters */
    const char *remedy;
};

extern const struct advice_rule advice_rules[ADVICE_RULES];

const char *advice_severity_name(enum advice_severity severity);

/* --- what was observed --- */

struct advice_family {
    const char *name;
    bool has_rule;         /* a garbage-collection rule */
    bool is_aggregate;     /* its cells are states, not versions of a value */
    int64_t most_age_us;   /* that a cell can reach; INT64_MAX: any */
    int32_t most_versions; /* that a column can reach; 0: any number */
};

struct advice_cell {
    uint32_t family; /* its place among the families */
    bytes qualifier;
    int64_t timestamp_us;
    uint64_t size; /* of the value */
    uint64_t hash; /* of it: advice_hash */
};

/* Tells values apart that have at most 32 bytes; 0: of longer ones. */
uint64_t advice_hash(bytes value);

struct advice_row {
    bytes key;
    uint32_t place;            /* rows of one place were read in one go: none lies between them */
    struct advice_cell *cells; /* in the row's order: versions of a column stand together */
    size_t cell_count;
    bool is_cut;   /* it has more cells than these */
    uint64_t size; /* of keys, qualifiers and values; an estimate if it is cut */
};

/* Rows between two keys, of which all were read. */
struct advice_range {
    bytes start;
    bytes end;       /* empty: the table's */
    uint64_t stored; /* bytes that it takes, as the server tells */
    uint64_t read;   /* bytes of its rows */
    size_t rows;
};

/* A row that was noted when it was stored, and then looked at: it need not be of the sample. */
struct advice_weight {
    bytes key;
    uint64_t size;         /* as of a row; 0: it is gone */
    uint64_t largest_cell; /* of its values; 0: not known */
    const char *family;    /* that has it */
};

/* A gap: a place at which rows had to be passed over that hold nothing any more. */
struct advice_gap {
    bytes start;
    bytes end;
    uint64_t passed; /* about so many; 0: there is no such place */
    size_t rows;     /* that were found in the same reading */
};

/* A tablet that took much of a node's processors for a while. */
struct advice_heat {
    bytes start;
    bytes end;
    int64_t from_us; /* since 1970 */
    int64_t until_us;
    double cpu_percent;
    bool is_one_row; /* and was seen to be */
};

/* Signs that counts by ranges of keys give, where the source counts. */
enum advice_hotspot_kind {
    ADVICE_WRITE_FRONTIER,
    ADVICE_HOT_WRITES,
    ADVICE_HOT_READS,
    ADVICE_HOT_ROW
};

struct advice_hotspot {
    enum advice_hotspot_kind kind;
    bytes start;
    bytes end;
    bytes key;       /* the hot one, or the last at the frontier: maybe only its first bytes */
    double share;    /* 0 to 1, of: */
    uint64_t total;  /* writes, reads, or requests for single rows, within an hour, or: */
    double part;     /* of the table's data that the range has, about: 0 to 1 */
    size_t windows;  /* of heat that showed it one by one, up to now; 0: all of it together did */
    int64_t from_us; /* since 1970: when the first of these began */
};

/* The requests of a minute. */
struct advice_minute {
    int64_t minute;  /* since 1970 */
    double requests; /* for single rows */
};

/* A tablet, where the source counts. */
struct advice_tablet {
    bytes start;
    bytes end;
    const struct advice_minute *minutes; /* of the last hour, rising; one without may be missing */
    size_t count;
};

/* The row that was written most, where the source counts: so often within an hour at least. */
struct advice_rewritten {
    bytes key; /* maybe only its first bytes */
    uint64_t writes;
};

/* Reads of ranges by an app profile, and by what their filters choose rows. */
enum advice_scan_kind { ADVICE_ALL_ROWS, ADVICE_BY_KEY, ADVICE_BY_VALUE, ADVICE_SCAN_KINDS };

struct advice_scans {
    enum advice_scan_kind kind;
    bytes profile; /* empty: the default one */
    uint64_t scans;
    uint64_t whole;      /* of these, that read the whole table, without a limit */
    uint64_t seen;       /* rows */
    uint64_t whole_seen; /* of these, by those that read all */
    uint64_t answered;
    bytes start; /* of one of them: maybe only the first bytes */
    bytes end;
    bytes family; /* whose values are judged; empty: not known */
    bytes qualifier;
};

/* Columns that requests asked for together; none: whole rows. */
struct advice_asked_column {
    bytes family;
    bytes qualifier;
    bool has_qualifier; /* else the family as a whole */
};

struct advice_asked {
    uint64_t reads;
    const struct advice_asked_column *columns;
    size_t count;
};

/* Counts of what requests did, where the source counts. Of keys maybe only the first bytes are
 * known. */
struct advice_usage {
    int64_t from_us; /* since when, about: 0: nothing is known */
    const struct advice_scans *scans;
    size_t scan_count;
    uint64_t reads; /* whose columns are known */
    const struct advice_asked *asked;
    size_t asked_count;
    uint64_t single_reads;
    uint64_t rising_reads; /* at once after one of the caller's with a lower key */
    bytes rising_read_key;
    uint64_t several_reads; /* of some keys */
    uint64_t
        scattered_reads; /* of these, whose keys end alike and begin differently: two of them */
    bytes scattered_keys[2];
    uint64_t single_writes;
    uint64_t rising_writes;
    bytes rising_write_key;
    uint64_t rewrites;     /* of a cell of a row that the caller had just read */
    uint64_t few_rewrites; /* of these, of a few rows, at least */
    bytes rewritten_key;
    uint64_t increments; /* by reading and writing */
    bytes incremented_key;
    bytes incremented_family;
    bytes incremented_qualifier;
};

/* Another table of the instance, whose name is related: advisor/siblings.h. */
struct advice_sibling {
    const char *id;
    bool is_known; /* what follows is */
    bool has_same_families;
    uint64_t size;
};

struct advice_observations {
    const char *table_id;
    int64_t now_us;    /* since 1970 */
    bool shows_values; /* findings show personal data, too */
    int64_t since_us;  /* since 1970: only what requests since then show is told; 0: all, with the
                          requests of an hour */
    uint64_t table_size;
    const struct advice_family *families;
    size_t family_count;
    const struct advice_row *rows; /* by key, no two the same */
    size_t row_count;
    const struct advice_range *ranges;
    size_t range_count;
    const struct advice_weight *weights; /* the largest, if the source notes them */
    size_t weight_count;
    struct advice_gap gap; /* the largest that was come upon */
    struct advice_heat *heat;
    size_t heat_count;
    const struct advice_hotspot *hotspots;
    size_t hotspot_count;
    bool is_heat_coarse; /* so much was counted as one range that no hot part could be told */
    const struct advice_tablet *tablets;
    size_t tablet_count;
    bool is_young;          /* nothing is known of requests before the last hour */
    bool is_first_load;     /* it is, and what there was since wrote rows: nine in ten of those that
                               were asked for */
    int64_t risen_until_us; /* since 1970: when most of what was written at a time had rising keys
                               last; 0: never */
    int64_t unwritten_us;   /* for how long no row has been written; 0: not for any, or not known */
    struct advice_rewritten rewritten;
    struct advice_usage usage;
    const struct advice_sibling *siblings;
    size_t sibling_count;
    size_t table_count; /* of the instance, as far as it was told; 0: not told */
};

/* --- what follows --- */

enum { ADVICE_KEYS_SHOWN = 3 };

struct advice_better {
    bytes key;    /* that is there */
    bytes better; /* how it might be */
};

/* A user's wish not to be told of a rule any more, and the reason. */
struct advice_mute {
    const char *rule;
    const char *reason;
    const char *principal; /* who muted it; empty: unknown */
    int64_t since_us;      /* since 1970 */
};

struct advice_finding {
    const struct advice_rule *rule;
    const struct advice_mute *mute; /* NULL: it is not muted */
    const char *evidence;           /* a sentence or two with numbers */
    bool has_range;                 /* of the table that it is about: */
    bytes start;
    bytes end; /* empty: the table's */
    bytes keys[ADVICE_KEYS_SHOWN];
    size_t key_count;
    struct advice_better better[ADVICE_KEYS_SHOWN];
    size_t better_count;
    const char *file; /* the description that it is about; NULL: a table that is there */
    size_t line;      /* of that */
};

struct advice {
    struct advice_finding findings[ADVICE_RULES]; /* the most severe first, muted ones last */
    size_t count;
    const struct advice_mute *mutes; /* all, also of rules that found nothing */
    size_t mute_count;
};

/* Names the findings that are muted as such, and puts them behind the others. `mutes` outlive the
 * advice. */
void advice_mute(struct advice *advice, const struct advice_mute *mutes, size_t count);

/* Findings are the arena's, or point into the observations. Fails without memory only. */
status advice_find(const struct advice_observations *seen, struct arena *arena, struct advice *out);

#endif
