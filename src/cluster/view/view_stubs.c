/* What is not built yet of views: each says so. Goes with the last of them. */
#include "base/check.h"
#include "cluster/view/view_commit.h"
#include "cluster/view/view_feed.h"
#include "cluster/view/view_records.h"
#include "cluster/view/view_table.h"

static status not_built(void)
{
    return status_make(STATUS_UNIMPLEMENTED, "Materialized views are not kept yet");
}

status cluster_create_view(struct cluster *cluster, const struct view_spec *spec,
                           struct table **out)
{
    (void)cluster, (void)spec;
    *out = NULL;
    return not_built();
}

status cluster_ensure_view(struct cluster *cluster, const struct view_spec *spec,
                           struct table **out, bool *is_new)
{
    *is_new = false;
    return cluster_create_view(cluster, spec, out);
}

status cluster_delete_view(struct cluster *cluster, bytes name, struct catalog_txn *txn)
{
    (void)cluster, (void)name, (void)txn;
    return not_built();
}

bool table_is_view(const struct table *table)
{
    (void)table;
    return false;
}

uint64_t table_view_source_id(const struct table *view)
{
    (void)view;
    return 0;
}

status table_view_source(struct table *view, struct table **out)
{
    (void)view;
    *out = NULL;
    return not_built();
}

bool table_is_viewed(const struct table *table)
{
    (void)table;
    return false;
}

size_t table_view_count(struct table *source)
{
    (void)source;
    return 0;
}

status view_feed_end(struct table *source, struct stream_position *out)
{
    (void)source;
    *out = (struct stream_position){0, 0};
    return not_built();
}

status view_feed_read(struct table *source, struct stream_position after, size_t most_bytes,
                      status (*visit)(void *context, const struct view_change *change,
                                      bool *enough),
                      void *context, struct stream_position *reached, bool *is_end)
{
    (void)source, (void)most_bytes, (void)visit, (void)context;
    *reached = after;
    *is_end = false;
    return not_built();
}

bool view_feed_may_have(struct table *source, struct stream_position after)
{
    (void)source, (void)after;
    return false;
}

status view_feed_first_us(struct table *source, struct stream_position after, int64_t *out)
{
    (void)source, (void)after;
    *out = INT64_MAX;
    return not_built();
}

void view_feed_keep(struct table *view, uint64_t from_sequence)
{
    (void)view, (void)from_sequence;
}

void view_feed_wait(struct table *source, struct view_feed_waiter *waiter)
{
    (void)source, (void)waiter;
}

bool view_feed_forget(struct table *source, struct view_feed_waiter *waiter)
{
    (void)source, (void)waiter;
    return true;
}

status view_records_get(struct table *view, bytes key, struct buffer *value, bool *is_there)
{
    (void)view, (void)key, (void)value;
    *is_there = false;
    return not_built();
}

status view_records_get_many(struct table *view, const bytes *keys, size_t count,
                             status (*visit)(void *context, size_t i, bytes value), void *context)
{
    (void)view, (void)keys, (void)count, (void)visit, (void)context;
    return not_built();
}

status view_records_visit(struct table *view, const struct view_range *range,
                          status (*visit)(void *context, bytes key, bytes value, bool *enough),
                          void *context)
{
    (void)view, (void)range, (void)visit, (void)context;
    return not_built();
}

status view_cursor_create(struct table *view, struct view_cursor **out)
{
    (void)view;
    *out = NULL;
    return not_built();
}

void view_cursor_destroy(struct view_cursor *cursor)
{
    (void)cursor;
}

void view_cursor_seek(struct view_cursor *cursor, bytes key)
{
    (void)cursor, (void)key;
}

void view_cursor_seek_before(struct view_cursor *cursor, bytes key)
{
    (void)cursor, (void)key;
}

void view_cursor_next(struct view_cursor *cursor)
{
    (void)cursor;
}

void view_cursor_previous(struct view_cursor *cursor)
{
    (void)cursor;
}

bool view_cursor_valid(const struct view_cursor *cursor)
{
    (void)cursor;
    return false;
}

status view_cursor_status(const struct view_cursor *cursor)
{
    (void)cursor;
    return not_built();
}

bytes view_cursor_key(const struct view_cursor *cursor)
{
    (void)cursor;
    return bytes_make(NULL, 0);
}

bytes view_cursor_value(const struct view_cursor *cursor)
{
    (void)cursor;
    return bytes_make(NULL, 0);
}

struct view_sizes view_sizes(struct table *view)
{
    (void)view;
    return (struct view_sizes){0, 0};
}

status view_commit_begin(struct table *view, struct view_commit **out)
{
    (void)view;
    *out = NULL;
    return not_built();
}

void view_commit_cancel(struct view_commit *commit)
{
    (void)commit;
}

void view_commit_row(struct view_commit *commit, bytes key, struct row_change *change)
{
    (void)commit, (void)key, (void)change;
}

void view_commit_put(struct view_commit *commit, bytes key, bytes value)
{
    (void)commit, (void)key, (void)value;
}

void view_commit_delete(struct view_commit *commit, bytes key)
{
    (void)commit, (void)key;
}

void view_commit_delete_range(struct view_commit *commit, bytes from, bytes to)
{
    (void)commit, (void)from, (void)to;
}

size_t view_commit_size(const struct view_commit *commit)
{
    (void)commit;
    return 0;
}

status view_commit_write(struct view_commit *commit, uint64_t *sequence)
{
    (void)commit, (void)sequence;
    return not_built();
}
