/* An update of a row, as a service asks for it: what follows from a read. */
#ifndef TRESTLE_CLUSTER_TESTING_UPDATE_TESTING_H
#define TRESTLE_CLUSTER_TESTING_UPDATE_TESTING_H

#include "cluster/rows.h"
#include "cluster/testing/testing.h"

/* The first member of what a test's `decide` knows. */
struct test_update {
    struct row_update update;
    struct task start;
    struct event *event;
};

static inline void test_update_done(struct row_update *update, status result)
{
    event_add(((struct test_update *)(void *)update)->event, result);
}

static inline void test_update_start(struct task *task)
{
    rows_update(&LIST_ENTRY(&task->link, struct test_update, start.link)->update);
}

/* Asks for it; its end is added to the event, and then its arena is to be destroyed. */
static inline void test_update_post(struct cluster_fixture *f, struct test_update *self,
                                    const char *row_key, struct event *event)
{
    struct row_update *update = &self->update;
    update->table = f->table;
    update->row_key = bytes_of(row_key);
    update->schema = table_schema(f->table);
    update->arena = arena_create(1 << 20);
    update->loop = f->loop;
    update->done = test_update_done;
    self->start.run = test_update_start;
    self->event = event;
    assert_non_null(update->arena);
    loop_post(f->loop, &self->start);
}

/* And waits. */
static inline void test_update_run(struct cluster_fixture *f, struct test_update *self,
                                   const char *row_key)
{
    struct event event;
    event_init(&event);
    test_update_post(f, self, row_key, &event);
    assert_ok(event_wait(&event, 1));
    arena_destroy(self->update.arena);
}

#endif
