/* See whole_repair.h. */
#include "backup/whole_repair.h"

#include "backup/whole_former.h"
#include "cluster/refill.h"

#include <inttypes.h>
#include <stdlib.h>

struct whole_repair {
    struct whole_repair_options options;
    struct whole_former *former; /* of the last table */
};

/* --- ranges --- */

struct looking {
    const struct whole_repair_table *of;
    const struct foreign_table *table;
};

/* Rows, or large cells. */
static status count_range(const struct foreign_table *table, const struct lost_rows *lost,
                          uint64_t *count)
{
    const struct refill_cells cells = {lost->first_key, lost->end_key, lost->from, lost->to};
    return lost->is_large_cells ? refill_count_cells(table, &cells, count)
                                : refill_count(table, lost->from, lost->to, count);
}

static status look_at_range(void *context, const struct lost_rows *lost)
{
    const struct looking *looking = context;
    uint64_t count;
    return count_range(looking->table, lost, &count);
}

static status look(void *context, const struct foreign_table *table)
{
    struct looking *looking = context;
    const struct refill_target target = {looking->of->id, looking->of->keyspace_id, NULL};
    looking->table = table;
    TRY(refill_check(table, &target));
    return looking->of->each(looking->of->context, look_at_range, looking);
}

/* Of a table that may lack names: whether it is one that was claimed since, and lacks them. */
static status look_at_record(void *context, const struct foreign_table *table)
{
    const struct looking *looking = context;
    const struct refill_target target = {looking->of->id, looking->of->keyspace_id,
                                         looking->of->schema};
    return refill_names(table, &target)
               ? status_ok()
               : status_make(STATUS_FAILED_PRECONDITION, "the table lacks nothing of it");
}

/* --- when --- */

struct span {
    uint64_t ranges;
    int64_t first_us; /* when the first was found; 0: unknown */
};

static status note_range(void *context, const struct lost_rows *lost)
{
    struct span *span = context;
    span->ranges++;
    if (lost->found_us != 0 && (span->first_us == 0 || lost->found_us < span->first_us))
        span->first_us = lost->found_us;
    return status_ok();
}

static status open_former(struct whole_repair *repair, const struct whole_repair_table *table,
                          const struct span *span)
{
    bool only_record = span->ranges == 0;
    const struct whole_repair_options *options = &repair->options;
    struct looking looking = {.of = table};
    const struct whole_former_options former = {.directory = options->directory,
                                                .place = options->place,
                                                .name = options->name,
                                                .server = options->server,
                                                .before_us = span->first_us,
                                                .table = table->name,
                                                .files = options->files,
                                                .scratch = options->scratch,
                                                .work = options->work,
                                                .only_record = only_record,
                                                .look = only_record ? look_at_record : look,
                                                .context = &looking};
    return whole_former_open(&former, &repair->former);
}

static void let_go(struct whole_repair *repair)
{
    whole_former_close(repair->former);
    repair->former = NULL;
}

status whole_repair_begin(struct whole_repair *repair, const struct whole_repair_table *table,
                          const struct foreign_table **source)
{
    struct span span = {0};
    *source = NULL;
    let_go(repair);
    TRY(table->each(table->context, note_range, &span));
    bool wants_names = table->schema != NULL && refill_may_lack_names(table->schema);
    if (span.ranges == 0 && !wants_names)
        return status_ok();
    status s = open_former(repair, table, &span);
    if (span.ranges == 0 && !status_is_ok(s) && whole_repair_is_refusal(s)) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    *source = whole_former_table(repair->former);
    return status_ok();
}

static status each_of_table(void *context, status (*visit)(void *visitor, const struct lost_rows *),
                            void *visitor)
{
    return table_list_damage(context, visit, visitor);
}

status whole_repair_begin_table(struct whole_repair *repair, struct table *table, bool names,
                                const struct foreign_table **source)
{
    const struct schema *schema = table_schema(table);
    const struct whole_repair_table wanted = {.name = table_name(table),
                                              .id = table_id(table),
                                              .keyspace_id = table_keyspace_id(table),
                                              .schema = names ? schema : NULL,
                                              .each = each_of_table,
                                              .context = table};
    return whole_repair_begin(repair, &wanted, source);
}

const char *whole_repair_name(const struct whole_repair *repair, int64_t *instant_us)
{
    return whole_former_name(repair->former, instant_us);
}

bool whole_repair_is_refusal(status s)
{
    return s.code == STATUS_NOT_FOUND || s.code == STATUS_DATA_LOSS ||
           s.code == STATUS_FAILED_PRECONDITION;
}

/* --- words --- */

void whole_repair_append_former(const struct whole_repair *repair, struct buffer *out)
{
    whole_former_describe(repair->former, out);
}

static void append_source(const struct whole_repair *repair, bool is_cells, uint64_t count,
                          struct buffer *out)
{
    const char *what = is_cells ? "large cell" : "row";
    const char *to = is_cells ? "to large cells of these rows" : "to them";
    buffer_append_format(out, "%" PRIu64 " %s%s from ", count, what,
                         count == 1 ? " comes" : "s come");
    whole_former_describe(repair->former, out);
    buffer_append_format(out,
                         ": what was written %s after that is lost, and what was deleted after it "
                         "is there again",
                         to);
}

status whole_repair_describe(const struct whole_repair *repair, const struct lost_rows *lost,
                             struct buffer *out, uint64_t *count)
{
    TRY(count_range(whole_former_table(repair->former), lost, count));
    buffer_append_format(out, "%s; ", lost->words);
    append_source(repair, lost->is_large_cells, *count, out);
    buffer_append_byte(out, 0);
    return out->failed ? status_out_of_memory() : status_ok();
}

/* --- life --- */

status whole_repair_create(const struct whole_repair_options *options, struct whole_repair **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    (*out)->options = *options;
    return status_ok();
}

void whole_repair_destroy(struct whole_repair *repair)
{
    if (repair == NULL)
        return;
    let_go(repair);
    free(repair);
}
