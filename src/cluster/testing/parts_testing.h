/* What tests of tables whose rows lie in several keyspaces share. */
#ifndef TRESTLE_CLUSTER_TESTING_PARTS_TESTING_H
#define TRESTLE_CLUSTER_TESTING_PARTS_TESTING_H

#include "cluster/testing/testing.h"
static inline void set_cells(struct cluster_fixture *f, const char *keys)
{
    for (const char *at = keys; *at != '\0'; at++) {
        const char key[] = {*at, '\0'};
        set_cell(f, key, key);
    }
}

/* A value that gets a record of its own. */
static inline const char *large_value(void)
{
    static char large[1000];
    memset(large, 'v', sizeof large - 1);
    return large;
}

/* Of one of the table's keyspaces, by its place among them; empty bounds: none. */
static inline size_t count_keys(struct cluster_fixture *f, unsigned keyspace, bytes from, bytes to)
{
    const struct store_cursor_options options = {
        .lower = from, .upper = to, .read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    size_t count = 0;
    assert_ok(store_cursor_create(f->table->spaces[keyspace].keyspace, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor))
        count++;
    assert_ok(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
    return count;
}

#endif
