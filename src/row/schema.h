/* What a table says of its families: names, numbers, garbage-collection rules.
 *
 * A schema is immutable. A change makes a new one; the table keeps the former ones as long as it
 * lives, because a compaction may still look at them, so references to a schema are not counted.
 *
 * A family is stored by its number, which is never used again in its table: a family that is
 * dropped and made again under its old name cannot show old cells. Readers see families by name. */
#ifndef TRESTLE_ROW_SCHEMA_H
#define TRESTLE_ROW_SCHEMA_H

#include "base/bytes.h"
#include "base/status.h"

/* google.bigtable.admin.v2.GcRule. A cell is condemned, and may vanish at any time, when
 * max_num_versions newer cells of its column exist, when its timestamp is older than now - max_age,
 * when any (union) or all (intersection) of the children condemn it. */
enum gc_kind { GC_MAX_VERSIONS, GC_MAX_AGE, GC_UNION, GC_INTERSECTION };

struct gc_rule {
    enum gc_kind kind;
    int32_t max_versions; /* > 0 */
    int64_t max_age_us;   /* >= 1,000 */
    const struct gc_rule *children;
    size_t child_count;
};

/* What an add to a cell of the family does; plain families take no adds. */
enum aggregate { AGGREGATE_NONE, AGGREGATE_SUM, AGGREGATE_MIN, AGGREGATE_MAX, AGGREGATE_HLL };

/* What is added; sums, minima and maxima are of numbers. */
enum aggregate_input { INPUT_INT64, INPUT_BYTES, INPUT_STRING };

struct family {
    uint32_t id; /* from 1 */
    bytes name;
    const struct gc_rule *gc; /* NULL: keep everything */
    enum aggregate aggregate;
    enum aggregate_input input;
    bytes value_type; /* serialised google.bigtable.admin.v2.Type as the client gave it; empty: none
                       */
};

enum granularity { GRANULARITY_MILLIS, GRANULARITY_MICROS };

struct schema {
    enum granularity granularity;
    const struct family *families; /* by name */
    size_t family_count;
    const uint32_t *by_id;   /* positions in `families`, by rising id */
    uint32_t next_family_id; /* greater than all ids ever given in the table */
    bool names_follow_ids;   /* families by name and by id come in the same order */
    bool has_gaps;           /* some family was dropped */
    bool has_age_rules;      /* some rule looks at timestamps */
    bool has_count_rules;    /* some rule counts versions */
    bool has_aggregates;     /* some family takes adds */
    bool has_lost_families;  /* some family was dropped */
};

/* Copies everything, in one allocation's lifetime: schema_destroy frees it all. `families` in any
 * order; names and ids must differ. A family whose id is below `next_family_id` and not in the list
 * was dropped: its cells may be collected. One with a greater id is newer than this schema: its
 * cells are left alone by folds that still have this one. */
status schema_create(enum granularity granularity, const struct family *families, size_t count,
                     uint32_t next_family_id, struct schema **out);
/* The first time behind that one which a cell may have: where a range of times ends that a request
 * may name, too. */
static inline int64_t schema_time_behind(const struct schema *schema, int64_t timestamp_us)
{
    int64_t step = schema->granularity == GRANULARITY_MILLIS ? 1000 : 1;
    return timestamp_us - timestamp_us % step + step;
}

/* The same schema, families and ids, without rules: by which nothing is condemned, and only cells
 * of families that were dropped may be collected. */
status schema_without_rules(const struct schema *schema, struct schema **out);
void schema_destroy(struct schema *schema); /* NULL is fine */

const struct family *schema_family_named(const struct schema *schema, bytes name); /* or NULL */
const struct family *schema_family(const struct schema *schema, uint32_t id);      /* or NULL */

/* Whether the table had a family of this id once and has it no longer. */
bool schema_family_was_dropped(const struct schema *schema, uint32_t id);

/* How many of a column's newest cells can outlive the rule in the best case, INT32_MAX if it does
 * not bound them: lets a reader stop early. */
int32_t gc_most_versions(const struct gc_rule *rule);

/* Whether the rule, or a part of it, counts versions. NULL does not. */
bool gc_counts_versions(const struct gc_rule *rule);

/* Whether the rule condemns a cell with this timestamp before which `newer` cells of its column
 * come. A NULL rule condemns nothing. A caller that knows of fewer newer cells than there are
 * condemns less, never more. */
bool gc_condemns(const struct gc_rule *rule, int64_t timestamp_us, int32_t newer, int64_t now_us);

#endif
