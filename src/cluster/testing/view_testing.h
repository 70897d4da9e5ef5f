/* What tests of views share: a view of the fixture's table, what is written to it, and what its
 * source's feed says as a text. */
#ifndef TRESTLE_CLUSTER_TESTING_VIEW_TESTING_H
#define TRESTLE_CLUSTER_TESTING_VIEW_TESTING_H

#include "cluster/testing/testing.h"
#include "cluster/view/view_commit.h"
#include "cluster/view/view_feed.h"
#include "cluster/view/view_records.h"
#include "cluster/view/view_table.h"

static const char TEST_VIEW[] = "projects/p/instances/i/materializedViews/v";
static const char OTHER_VIEW[] = "projects/p/instances/i/materializedViews/w";

enum { FAMILY_DEFAULT = 1 };

static inline struct view_spec view_spec_of(struct cluster_fixture *f, const char *name)
{
    static const char *const families[] = {"default", "result"};
    return (struct view_spec){
        .name = name, .source = f->table, .families = families, .family_count = 2};
}

static inline struct table *create_view(struct cluster_fixture *f, const char *name)
{
    const struct view_spec spec = view_spec_of(f, name);
    struct table *view;
    assert_ok(cluster_create_view(f->cluster, &spec, &view));
    return view;
}

static inline struct table *find_view(struct cluster_fixture *f, const char *name)
{
    struct table *view;
    assert_ok(cluster_table(f->cluster, bytes_of(name), &view));
    assert_true(table_is_view(view));
    return view;
}

/* --- writing --- */

static inline void change_view_row(struct cluster_fixture *f, struct view_commit *commit,
                                   const char *key, const char *value)
{
    struct row_change *change = row_change_create(f->arena);
    assert_non_null(change);
    row_change_delete_row(change);
    if (value != NULL)
        row_change_set(change, FAMILY_DEFAULT, bytes_of("q"), 0, bytes_of(value));
    view_commit_row(commit, bytes_of(key), change);
}

/* A row, and a record of the same key; NULL: both are deleted. */
static inline status try_put_both(struct cluster_fixture *f, struct table *view, const char *key,
                                  const char *value)
{
    struct view_commit *commit;
    assert_ok(view_commit_begin(view, NULL, &commit));
    change_view_row(f, commit, key, value);
    if (value != NULL)
        view_commit_put(commit, bytes_of(key), bytes_of(value));
    else
        view_commit_delete(commit, bytes_of(key));
    return view_commit_write(commit, NULL);
}

static inline void put_both(struct cluster_fixture *f, struct table *view, const char *key,
                            const char *value)
{
    assert_ok(try_put_both(f, view, key, value));
}

/* --- reading --- */

static inline status tell_view_record(void *context, bytes key, bytes value, bool *enough)
{
    struct buffer *out = context;
    (void)enough;
    if (out->size > 0)
        buffer_append_byte(out, ' ');
    buffer_append_bytes(out, key);
    buffer_append_byte(out, '=');
    buffer_append_bytes(out, value);
    return status_ok();
}

static inline void assert_records(struct table *view, const struct view_range *range,
                                  const char *expected)
{
    struct buffer text = {0};
    assert_ok(view_records_visit(view, range, tell_view_record, &text));
    buffer_append_byte(&text, 0);
    assert_string_equal((const char *)text.data, expected);
    buffer_free(&text);
}

/* All rows and all records of the view. */
static inline void assert_view(struct cluster_fixture *f, struct table *view, const char *rows,
                               const char *records)
{
    struct table *table = f->table;
    f->table = view;
    assert_scan(f, "", "", false, rows);
    f->table = table;
    assert_records(view, &(struct view_range){.is_reversed = false}, records);
}

/* --- the feed --- */

struct feed_text {
    struct buffer text;
    struct stream_position last;
};

/* "a" of a row, "[a,b)" of a range, "-[a,b)" of one that was dropped. */
static inline status tell_change(void *context, const struct view_change *change, bool *enough)
{
    struct feed_text *out = context;
    (void)enough;
    assert_true(stream_position_compare(change->position, out->last) > 0);
    out->last = change->position;
    if (out->text.size > 0)
        buffer_append_byte(&out->text, ' ');
    if (change->is_range)
        buffer_append_format(&out->text, change->is_drop ? "-[" : "[");
    buffer_append_bytes(&out->text, change->from);
    if (!change->is_range)
        return status_ok();
    buffer_append_byte(&out->text, ',');
    buffer_append_bytes(&out->text, change->to);
    buffer_append_byte(&out->text, ')');
    return status_ok();
}

/* What comes behind the position, which moves on, in reads of some bytes each. */
static inline void assert_changes(struct cluster_fixture *f, struct stream_position *after,
                                  const char *expected)
{
    struct feed_text out = {.last = *after};
    bool is_end = false;
    while (!is_end)
        assert_ok(view_feed_read(f->table, *after, 64, tell_change, &out, after, &is_end));
    buffer_append_byte(&out.text, 0);
    assert_string_equal((const char *)out.text.data, expected);
    buffer_free(&out.text);
    assert_false(view_feed_may_have(f->table, *after));
}

#endif
