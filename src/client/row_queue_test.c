/* Mutations that wait: in their order, and of a row one write at a time. */
#include "client/row_queue.h"

#include "base/testing/testing.h"
#include "wire/proto.h"

#include <stdio.h>
#include <stdlib.h>

enum { ARENA_LIMIT = 256 << 20, ROWS = 7, STEPS = 20000 };

static int setup(void **state)
{
    *state = row_queue_create();
    return *state == NULL;
}

static int teardown(void **state)
{
    row_queue_destroy(*state);
    return 0;
}

/* Adds a SetCell whose timestamp is the number. */
static void add(struct row_queue *queue, const char *key, int64_t number, bytes value)
{
    Bt__Mutation__SetCell set = BT__MUTATION__SET_CELL__INIT;
    Bt__Mutation mutation = BT__MUTATION__INIT;
    Bt__Mutation *all[] = {&mutation};
    set.family_name = "f";
    set.timestamp_micros = number;
    set.value = proto_data(value);
    mutation.mutation_case = BT__MUTATION__MUTATION_SET_CELL;
    mutation.set_cell = &set;
    assert_ok(row_queue_add(queue, bytes_of(key), all, 1));
}

/* Holds the entry against the numbers that it must have, from `first` on, one behind the other. */
static size_t check_entry(const struct queued_entry *entry, const char *key, int64_t first)
{
    struct arena *arena = arena_create(ARENA_LIMIT);
    ProtobufCMessage *decoded;
    assert_non_null(arena);
    assert_ok(proto_decode(&bt__mutate_rows_request__entry__descriptor,
                           buffer_bytes(&entry->message), arena, &decoded));
    const Bt__MutateRowsRequest__Entry *read = (const void *)decoded;
    size_t count = read->n_mutations;
    assert_true(bytes_equal(proto_bytes(read->row_key), bytes_of(key)));
    assert_true(bytes_equal(queued_entry_key(entry), bytes_of(key)));
    assert_int_equal(count, entry->mutations);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(read->mutations[i]->set_cell->timestamp_micros, first + (int64_t)i);
    arena_destroy(arena);
    return count;
}

static void what_waits_joins(void **state)
{
    struct row_queue *queue = *state;
    add(queue, "a", 0, bytes_of("x"));
    add(queue, "b", 0, bytes_of("x"));
    add(queue, "a", 1, bytes_of("x"));
    assert_int_equal(row_queue_ready(queue), 2);
    struct queued_entry *a = row_queue_take(queue), *b = row_queue_take(queue);
    assert_int_equal(check_entry(a, "a", 0), 2);
    assert_int_equal(check_entry(b, "b", 0), 1);
    assert_null(row_queue_take(queue));
    row_queue_done(queue, a);
    row_queue_done(queue, b);
    assert_int_equal(row_queue_bytes(queue), 0);
}

static void a_row_that_is_being_written_waits(void **state)
{
    struct row_queue *queue = *state;
    add(queue, "a", 0, bytes_of("x"));
    struct queued_entry *first = row_queue_take(queue);
    add(queue, "a", 1, bytes_of("x"));
    assert_int_equal(row_queue_ready(queue), 0);
    assert_null(row_queue_take(queue));
    row_queue_done(queue, first);
    struct queued_entry *second = row_queue_take(queue);
    assert_int_equal(check_entry(second, "a", 1), 1);
    row_queue_done(queue, second);
    assert_null(row_queue_take(queue));
}

static void large_entries_are_cut(void **state)
{
    struct row_queue *queue = *state;
    bytes value = bytes_make(calloc(1, ROW_QUEUE_ENTRY_BYTES), ROW_QUEUE_ENTRY_BYTES);
    assert_non_null(value.data);
    add(queue, "a", 0, bytes_of("x"));
    add(queue, "a", 1, value);
    add(queue, "a", 2, bytes_of("x"));
    for (int64_t number = 0; number < 3; number++) {
        struct queued_entry *entry = row_queue_take(queue);
        assert_int_equal(check_entry(entry, "a", number), 1);
        row_queue_done(queue, entry);
    }
    free((void *)(uintptr_t)value.data);
    for (int64_t number = 0; number <= ROW_QUEUE_ENTRY_MUTATIONS; number++)
        add(queue, "a", number, bytes_of("x"));
    struct queued_entry *full = row_queue_take(queue);
    assert_int_equal(check_entry(full, "a", 0), ROW_QUEUE_ENTRY_MUTATIONS);
    row_queue_done(queue, full);
    assert_int_equal(check_entry(row_queue_take(queue), "a", ROW_QUEUE_ENTRY_MUTATIONS), 1);
}

/* Each row's numbers come once and in order, whatever is added while others are under way. */
static void random_steps_keep_each_rows_order(void **state)
{
    struct row_queue *queue = *state;
    int64_t added[ROWS] = {0}, taken[ROWS] = {0};
    struct queued_entry *under_way[ROWS] = {NULL};
    unsigned seed = 20261129;
    for (int step = 0; step < STEPS; step++) {
        unsigned row = (unsigned)rand_r(&seed) % ROWS;
        char key[8];
        int what = rand_r(&seed) % 3;
        snprintf(key, sizeof key, "%u", row);
        if (what == 0) {
            add(queue, key, added[row]++, bytes_of("x"));
        } else if (what == 1 && under_way[row] != NULL) {
            row_queue_done(queue, under_way[row]);
            under_way[row] = NULL;
        } else if (what == 2) {
            struct queued_entry *entry = row_queue_take(queue);
            if (entry == NULL)
                continue;
            row = queued_entry_key(entry).data[0] - '0';
            snprintf(key, sizeof key, "%u", row);
            assert_null(under_way[row]);
            under_way[row] = entry;
            taken[row] += (int64_t)check_entry(entry, key, taken[row]);
            assert_true(taken[row] <= added[row]);
        }
    }
    assert_true(taken[0] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_waits_joins, setup, teardown),
        cmocka_unit_test_setup_teardown(a_row_that_is_being_written_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(large_entries_are_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(random_steps_keep_each_rows_order, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
