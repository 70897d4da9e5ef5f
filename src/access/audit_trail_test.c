/* The ring of administrative calls: order, bound, memory that is not there, many threads. */
#include "access/audit_trail.h"

#include "base/limits.h"
#include "base/testing/testing.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

enum { ARENA_LIMIT = 16 << 20, WRITERS = 3, EACH = 2000 };

static struct audit_entry entry_of(const char *resource, int64_t duration_us)
{
    return (struct audit_entry){.ended_us = 1000 + duration_us,
                                .duration_us = duration_us,
                                .code = STATUS_NOT_FOUND,
                                .service = "service",
                                .method = "Method",
                                .principal = bytes_of("user:a"),
                                .resource = bytes_of(resource),
                                .source = bytes_of("projects/source"),
                                .changes = bytes_of("ADD role=r member=m"),
                                .address = bytes_of("127.0.0.1:1")};
}

static void add(struct audit_trail *trail, int64_t number)
{
    char resource[32];
    snprintf(resource, sizeof resource, "projects/%" PRId64, number);
    struct audit_entry entry = entry_of(resource, number);
    audit_trail_add(trail, &entry);
}

static void is_number(const struct audit_entry *entry, int64_t number)
{
    char resource[32];
    snprintf(resource, sizeof resource, "projects/%" PRId64, number);
    assert_int_equal(entry->duration_us, number);
    assert_int_equal(entry->ended_us, 1000 + number);
    assert_int_equal(entry->code, STATUS_NOT_FOUND);
    assert_string_equal(entry->method, "Method");
    assert_true(bytes_equal(entry->principal, bytes_of("user:a")));
    assert_true(bytes_equal(entry->resource, bytes_of(resource)));
    assert_true(bytes_equal(entry->source, bytes_of("projects/source")));
    assert_true(bytes_equal(entry->changes, bytes_of("ADD role=r member=m")));
    assert_true(bytes_equal(entry->address, bytes_of("127.0.0.1:1")));
}

/* The latest, as long as there are any. */
static void holds(struct audit_trail *trail, size_t most, size_t count, int64_t latest)
{
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct audit_entry *entries;
    size_t found;
    assert_ok(audit_trail_list(trail, most, arena, &entries, &found));
    assert_int_equal(found, count);
    for (size_t i = 0; i < found; i++)
        is_number(&entries[i], latest - (int64_t)i);
    arena_destroy(arena);
}

static struct audit_trail *new_trail(void)
{
    struct audit_trail *trail;
    assert_ok(audit_trail_create(7, &trail));
    assert_int_equal(audit_trail_since_us(trail), 7);
    return trail;
}

static void the_latest_come_first(void **state)
{
    (void)state;
    struct audit_trail *trail = new_trail();
    holds(trail, 10, 0, 0);
    for (int64_t i = 1; i <= 3; i++)
        add(trail, i);
    holds(trail, 10, 3, 3);
    holds(trail, 2, 2, 3);
    holds(trail, 0, 0, 3);
    audit_trail_destroy(trail);
}

static void the_oldest_make_room(void **state)
{
    (void)state;
    struct audit_trail *trail = new_trail();
    for (int64_t i = 0; i < 2 * LIMIT_AUDIT_ENTRIES + 5; i++)
        add(trail, i);
    holds(trail, SIZE_MAX, LIMIT_AUDIT_ENTRIES, 2 * LIMIT_AUDIT_ENTRIES + 4);
    audit_trail_destroy(trail);
}

static void long_texts_are_cut_and_none_are_fine(void **state)
{
    (void)state;
    static char text[5000];
    memset(text, 'x', sizeof text - 1);
    struct audit_trail *trail = new_trail();
    struct audit_entry entry = entry_of(text, 1), *entries;
    entry.principal = bytes_make(NULL, 0);
    audit_trail_add(trail, &entry);
    struct arena *arena = arena_create(ARENA_LIMIT);
    size_t count;
    assert_ok(audit_trail_list(trail, 1, arena, &entries, &count));
    assert_int_equal(entries[0].resource.size, 1024);
    assert_int_equal(entries[0].principal.size, 0);
    arena_destroy(arena);
    audit_trail_destroy(trail);
}

static void a_list_that_has_no_room(void **state)
{
    (void)state;
    struct audit_trail *trail = new_trail();
    add(trail, 1);
    struct arena *arena = arena_create(1); /* none for an entry */
    struct audit_entry *entries;
    size_t count;
    assert_status(audit_trail_list(trail, 10, arena, &entries, &count), STATUS_RESOURCE_EXHAUSTED);
    arena_destroy(arena);
    audit_trail_destroy(trail);
}

static void *write_many(void *context)
{
    for (int64_t i = 0; i < EACH; i++)
        add(context, i);
    return NULL;
}

/* ThreadSanitizer looks on; what is read is whole. */
static void many_threads_write_beside_a_reader(void **state)
{
    (void)state;
    struct audit_trail *trail = new_trail();
    pthread_t writers[WRITERS];
    for (size_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, write_many, trail), 0);
    for (int round = 0; round < 50; round++) {
        struct arena *arena = arena_create(ARENA_LIMIT);
        struct audit_entry *entries;
        size_t count;
        assert_ok(audit_trail_list(trail, SIZE_MAX, arena, &entries, &count));
        for (size_t i = 0; i < count; i++)
            is_number(&entries[i], entries[i].duration_us);
        arena_destroy(arena);
    }
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct audit_entry *entries;
    size_t count;
    assert_ok(audit_trail_list(trail, SIZE_MAX, arena, &entries, &count));
    assert_int_equal(count, LIMIT_AUDIT_ENTRIES);
    arena_destroy(arena);
    audit_trail_destroy(trail);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_latest_come_first),
        cmocka_unit_test(the_oldest_make_room),
        cmocka_unit_test(long_texts_are_cut_and_none_are_fine),
        cmocka_unit_test(a_list_that_has_no_room),
        cmocka_unit_test(many_threads_write_beside_a_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
