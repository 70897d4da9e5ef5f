#ifndef TRESTLE_ROW_INTERIM_COMBINE_H
#define TRESTLE_ROW_INTERIM_COMBINE_H

#include "row/fragment.h"
#include "row/schema.h"

struct interval {
    int64_t start_us;
    int64_t end_us;
    uint64_t version;
};

struct intervals {
    struct interval *items;
    size_t count;
    size_t capacity;
};

struct combiner {
    void (*emit)(struct combiner *combiner, const struct entry *entry);
    bool (*hold)(struct combiner *combiner, struct entry *entry);
    const struct schema *schema;
    bool is_whole;
    bool is_everything;
    bool applies_gc;
    int64_t now_us;
    uint32_t key_family;
    int64_t key_time_us;
    bool is_bad;
    bool is_failed;
    struct entry mark;
    bool has_mark;
    bool is_begun;
    uint64_t row_tombstone;
    uint32_t family;
    bool is_family_open;
    bool is_family_dropped;
    uint64_t family_tombstone;
    const struct gc_rule *gc;
    bytes qualifier;
    bool has_column;
    bool is_column_sealed;
    struct intervals tombstones;
    size_t next_tombstone;
    int32_t newer;
    struct entry cell;
    bool has_cell;
    uint8_t sum[8];
};

void combine_add(struct combiner *combiner, const struct entry *entry);
void combine_finish(struct combiner *combiner);
uint64_t combine_covering(struct combiner *combiner, int64_t timestamp_us);

#endif
