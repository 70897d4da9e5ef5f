/* See pull_apply.h. */
#include "replica/pull_apply.h"

#include "base/check.h"
#include "base/limits.h"
#include "cluster/foreign_rows.h"
#include "cluster/shared_table.h"
#include "replica/sites.h"
#include "tablet/event.h"
#include "tablet/version.h"
#include "wire/proto.h"

#include <stdlib.h>

enum {
    AHEAD_US = 500 * 1000, /* how far a version may be ahead of the versions' clock here */
    WRITES_MOST = 256,     /* that enter the commit queue together */
    WRITES_BYTES = 4 << 20,
    ARENA_BYTES = 64 << 20,
};

/* A table that the peer has named. */
struct known_table {
    uint64_t uid;
    struct table *table; /* with a reference; NULL: it is not here */
    int64_t missed_us;   /* clock_steady_us, when it was not found first */
    uint64_t ruled_in;   /* the answer that the rule is for */
    enum placed_rule rule;
};

struct pull_apply {
    struct pull_apply_options options;
    struct known_table *tables;
    size_t table_count;
    size_t table_capacity;
    struct known_table *last;
    uint64_t answers;               /* how many there were */
    struct stream_position reached; /* of this one */
    struct arena *arena;            /* of the writes that are gathered */
    struct foreign_write writes[WRITES_MOST];
    struct packed_change changes[WRITES_MOST];
    size_t write_count;
    size_t write_bytes;
    int64_t family_missed_us; /* clock_steady_us, when one was not known first; 0: all are */
};

const char *park_words(enum park_reason reason)
{
    switch (reason) {
    case PARK_CLOCK_AHEAD:
        return "clock ahead";
    case PARK_TABLE_UNKNOWN:
        return "table unknown";
    case PARK_FAMILY_UNKNOWN:
        return "family unknown";
    case PARK_INSTANCE_UNKNOWN:
        return "instance unknown";
    case PARK_LOST:
        return "too far behind";
    case PARK_NONE:
        break;
    }
    return "";
}

static status park(enum park_reason reason, enum park_reason *parked)
{
    *parked = reason;
    return status_make(STATUS_UNAVAILABLE, "Changes wait: %s", park_words(reason));
}

static int64_t steady_us(const struct pull_apply *apply)
{
    return clock_steady_us(cluster_clock(apply->options.cluster));
}

/* --- tables --- */

static struct known_table *find_table(struct pull_apply *apply, uint64_t uid)
{
    if (apply->last != NULL && apply->last->uid == uid)
        return apply->last;
    for (size_t i = 0; i < apply->table_count; i++)
        if (apply->tables[i].uid == uid)
            return apply->last = &apply->tables[i];
    return NULL;
}

static status add_table(struct pull_apply *apply, uint64_t uid)
{
    if (find_table(apply, uid) != NULL)
        return status_ok();
    if (apply->table_count == apply->table_capacity) {
        size_t capacity = apply->table_capacity == 0 ? 16 : 2 * apply->table_capacity;
        struct known_table *tables = realloc(apply->tables, capacity * sizeof *tables);
        if (tables == NULL)
            return status_out_of_memory();
        apply->tables = tables;
        apply->table_capacity = capacity;
        apply->last = NULL;
    }
    apply->tables[apply->table_count++] = (struct known_table){.uid = uid};
    return status_ok();
}

void pull_apply_forget_tables(struct pull_apply *apply)
{
    for (size_t i = 0; i < apply->table_count; i++) {
        if (apply->tables[i].table != NULL)
            table_release(apply->tables[i].table);
        apply->tables[i].table = NULL;
    }
}

/* `*out` NULL: the table is nowhere any more. */
static status take_table(struct pull_apply *apply, uint64_t uid, struct table **out,
                         enum park_reason *parked)
{
    struct known_table *known = find_table(apply, uid);
    *out = NULL;
    if (known == NULL)
        return status_make(STATUS_DATA_LOSS, "a peer changes a table that it has not named");
    if (known->table == NULL) {
        status s = cluster_table_of_uid(apply->options.cluster, uid, &known->table);
        if (s.code != STATUS_NOT_FOUND && !status_is_ok(s))
            return s;
        status_free(s);
    }
    *out = known->table;
    if (*out != NULL)
        return status_ok();
    if (known->missed_us == 0)
        known->missed_us = steady_us(apply);
    bool is_gone = apply->options.knows_schema_since(apply->options.context, known->missed_us);
    return is_gone ? status_ok() : park(PARK_TABLE_UNKNOWN, parked);
}

/* Of what is no instance's, as Datastore's tables, all is applied. */
static enum placed_rule rule_of(struct pull_apply *apply, const struct table *table)
{
    const struct pull_apply_options *options = &apply->options;
    bytes instance = sites_instance_of(bytes_of(table_name(table)));
    return options->placed == NULL || instance.size == 0
               ? PLACED_APPLY
               : placed_rule(options->placed, instance, options->origin, apply->reached);
}

/* `table` is the one that was found last (take_table). */
static status check_rule(struct pull_apply *apply, const struct table *table, bool *applies,
                         enum park_reason *parked)
{
    struct known_table *known = apply->last;
    DCHECK(known->table == table);
    if (known->ruled_in != apply->answers) {
        known->rule = rule_of(apply, table);
        known->ruled_in = apply->answers;
    }
    *applies = known->rule == PLACED_APPLY;
    return known->rule == PLACED_UNKNOWN ? park(PARK_INSTANCE_UNKNOWN, parked) : status_ok();
}

/* --- rows --- */

static status bad_change(void)
{
    return status_make(STATUS_DATA_LOSS, "a peer's change of a row does not parse");
}

/* A family that the schema does not have yet: of one that was dropped the cells go in folds. */
static bool is_of_unknown_family(const struct schema *schema, const struct packed_change *change,
                                 bool *is_bad)
{
    struct fragment_reader reader;
    struct entry entry;
    uint32_t greatest = 0;
    *is_bad = !fragment_reader_start(&reader, buffer_bytes(&change->fragment));
    while (!*is_bad && fragment_reader_next(&reader, &entry))
        greatest = entry.family > greatest ? entry.family : greatest;
    *is_bad = *is_bad || reader.is_bad;
    for (size_t i = 0; i < change->big_count; i++)
        greatest = change->big[i].family > greatest ? change->big[i].family : greatest;
    return greatest >= schema->next_family_id;
}

/* The fragment is copied: it gets its version in place. */
static status unpack(const Replica__PulledChange *pulled, struct arena *arena,
                     struct packed_change *out)
{
    struct event_change change;
    if (!event_change_read(proto_bytes(pulled->change), &change))
        return bad_change();
    *out = (struct packed_change){.big_count = change.count};
    if (change.count > 0)
        out->big = arena_alloc(arena, change.count * sizeof *out->big);
    buffer_append_bytes(&out->fragment, change.value);
    if (out->fragment.failed || (change.count > 0 && out->big == NULL)) {
        packed_change_free(out);
        return status_out_of_memory();
    }
    if (change.count > 0)
        event_big_cells(&change, out->big);
    return status_ok();
}

static status flush(struct pull_apply *apply)
{
    status s = status_ok();
    if (apply->write_count > 0)
        s = foreign_rows_write(apply->writes, apply->write_count);
    for (size_t i = 0; i < apply->write_count; i++)
        packed_change_free(&apply->changes[i]);
    apply->write_count = 0;
    apply->write_bytes = 0;
    arena_reset(apply->arena);
    return s;
}

/* One that the leader did not have after the change came was given by a former leader, and nobody
 * has it: its cells are of no family, and nobody else's id is that one (cluster/shared_table.h). A
 * change that comes while others are looked at so may be taken before its family is here: folds
 * leave alone what is newer than their schema, and it is read as soon as that has come. */
static bool waits_for_family(struct pull_apply *apply, bool is_unknown)
{
    if (!is_unknown)
        return false;
    if (apply->family_missed_us == 0)
        apply->family_missed_us = steady_us(apply);
    return !apply->options.knows_schema_since(apply->options.context, apply->family_missed_us);
}

static status check_families(struct pull_apply *apply, const struct table *table,
                             const struct packed_change *change, enum park_reason *parked)
{
    bool is_bad;
    bool is_unknown = is_of_unknown_family(table_schema(table), change, &is_bad);
    if (is_bad)
        return bad_change();
    return waits_for_family(apply, is_unknown) ? park(PARK_FAMILY_UNKNOWN, parked) : status_ok();
}

static status add_row(struct pull_apply *apply, struct table *table,
                      const Replica__PulledChange *pulled, enum park_reason *parked)
{
    bytes key = proto_bytes(pulled->from);
    struct packed_change *change = &apply->changes[apply->write_count];
    if (key.size == 0 || key.size > LIMIT_ROW_KEY_BYTES)
        return bad_change();
    TRY(unpack(pulled, apply->arena, change));
    status s = check_families(apply, table, change, parked);
    if (!status_is_ok(s)) {
        packed_change_free(change);
        return s;
    }
    apply->writes[apply->write_count++] = (struct foreign_write){.table = table,
                                                                 .row_key = key,
                                                                 .change = change,
                                                                 .version = pulled->version,
                                                                 .is_lazy = true};
    apply->write_bytes += pulled->change.len;
    bool is_full = apply->write_count == WRITES_MOST || apply->write_bytes >= WRITES_BYTES;
    return is_full ? flush(apply) : status_ok();
}

/* --- an answer --- */

static status check_version(const struct pull_apply *apply, uint64_t version,
                            enum park_reason *parked)
{
    int64_t now_us = cluster_version_us(apply->options.cluster);
    if (version == 0)
        return bad_change();
    return version_time_us(version) > now_us + AHEAD_US ? park(PARK_CLOCK_AHEAD, parked)
                                                        : status_ok();
}

static status add_change(struct pull_apply *apply, const Replica__PulledChange *change,
                         enum park_reason *parked)
{
    struct table *table;
    bool applies = false;
    TRY(check_version(apply, change->version, parked));
    TRY(take_table(apply, change->table, &table, parked));
    if (table != NULL)
        TRY(check_rule(apply, table, &applies, parked));
    if (!applies)
        return status_ok();
    if (!change->is_drop)
        return add_row(apply, table, change, parked);
    TRY(flush(apply));
    return foreign_rows_drop(table, proto_bytes(change->from), proto_bytes(change->to),
                             change->version);
}

/* A table that was deleted here meanwhile is looked for anew. */
static status after_failure(struct pull_apply *apply, status s)
{
    if (s.code != STATUS_NOT_FOUND)
        return s;
    pull_apply_forget_tables(apply);
    status_free(s);
    return status_make(STATUS_UNAVAILABLE, "A table was deleted meanwhile");
}

status pull_apply_run(struct pull_apply *apply, const Replica__PullChangesResponse *answer,
                      enum park_reason *parked)
{
    DCHECK(apply->write_count == 0);
    *parked = PARK_NONE;
    apply->answers++;
    if (answer->reached != NULL)
        apply->reached =
            (struct stream_position){answer->reached->sequence, answer->reached->ordinal};
    status s = status_ok();
    for (size_t i = 0; status_is_ok(s) && i < answer->n_tables; i++)
        s = add_table(apply, answer->tables[i]->uid);
    for (size_t i = 0; status_is_ok(s) && i < answer->n_changes; i++)
        s = add_change(apply, answer->changes[i], parked);
    status last = flush(apply);
    if (status_is_ok(s))
        s = last;
    else
        status_free(last);
    if (status_is_ok(s))
        apply->family_missed_us = 0;
    return after_failure(apply, s);
}

status pull_apply_create(const struct pull_apply_options *options, struct pull_apply **out)
{
    struct pull_apply *apply = *out = calloc(1, sizeof *apply);
    if (apply == NULL)
        return status_out_of_memory();
    apply->options = *options;
    apply->arena = arena_create(ARENA_BYTES);
    if (apply->arena != NULL)
        return status_ok();
    free(apply);
    *out = NULL;
    return status_out_of_memory();
}

void pull_apply_destroy(struct pull_apply *apply)
{
    if (apply == NULL)
        return;
    pull_apply_forget_tables(apply);
    arena_destroy(apply->arena);
    free(apply->tables);
    free(apply);
}
