/* Fuzzer: any set of row keys and ranges. The list made of it holds just the rows that the set
 * names, in order, each once; what is refused says why. Met with the rows of some prefixes, it
 * holds those that are in both.
 *
 * Input: choices (base/testing/fuzzing.h): keys and ranges, then keys to ask for, each after a
 * prefix. */
#include "base/testing/fuzzing.h"
#include "bigtable/row_ranges.h"

enum { MOST_ITEMS = 12, MOST_KEY = 4, ARENA_LIMIT = 1 << 20 };

struct set {
    Bt__RowSet message;
    ProtobufCBinaryData keys[MOST_ITEMS];
    Bt__RowRange ranges[MOST_ITEMS];
    Bt__RowRange *range_pointers[MOST_ITEMS];
};

static ProtobufCBinaryData choose_key(struct choices *choices)
{
    return proto_data(choose_bytes(choices, MOST_KEY));
}

static void choose_range(struct choices *choices, Bt__RowRange *range)
{
    *range = (Bt__RowRange)BT__ROW_RANGE__INIT;
    switch (choose(choices, 3)) {
    case 0:
        range->start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_CLOSED;
        range->start_key_closed = choose_key(choices);
        break;
    case 1:
        range->start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_OPEN;
        range->start_key_open = choose_key(choices);
        break;
    default: /* none */
        break;
    }
    switch (choose(choices, 3)) {
    case 0:
        range->end_key_case = BT__ROW_RANGE__END_KEY_END_KEY_CLOSED;
        range->end_key_closed = choose_key(choices);
        break;
    case 1:
        range->end_key_case = BT__ROW_RANGE__END_KEY_END_KEY_OPEN;
        range->end_key_open = choose_key(choices);
        break;
    default: /* none */
        break;
    }
}

static void choose_set(struct choices *choices, struct set *set)
{
    set->message = (Bt__RowSet)BT__ROW_SET__INIT;
    set->message.row_keys = set->keys;
    set->message.row_ranges = set->range_pointers;
    set->message.n_row_keys = choose(choices, MOST_ITEMS);
    set->message.n_row_ranges = choose(choices, MOST_ITEMS);
    for (size_t i = 0; i < set->message.n_row_keys; i++)
        set->keys[i] = choose_key(choices);
    for (size_t i = 0; i < set->message.n_row_ranges; i++) {
        choose_range(choices, &set->ranges[i]);
        set->range_pointers[i] = &set->ranges[i];
    }
}

/* --- what the message means --- */

static bool is_after_start(const Bt__RowRange *range, bytes key)
{
    if (range->start_key_case == BT__ROW_RANGE__START_KEY_START_KEY_CLOSED)
        return bytes_compare(key, proto_bytes(range->start_key_closed)) >= 0;
    if (range->start_key_case == BT__ROW_RANGE__START_KEY_START_KEY_OPEN)
        return bytes_compare(key, proto_bytes(range->start_key_open)) > 0;
    return true;
}

/* An open end that is empty is none. */
static bool is_before_end(const Bt__RowRange *range, bytes key)
{
    if (range->end_key_case == BT__ROW_RANGE__END_KEY_END_KEY_CLOSED)
        return bytes_compare(key, proto_bytes(range->end_key_closed)) <= 0;
    if (range->end_key_case == BT__ROW_RANGE__END_KEY_END_KEY_OPEN && range->end_key_open.len > 0)
        return bytes_compare(key, proto_bytes(range->end_key_open)) < 0;
    return true;
}

static bool set_contains(const Bt__RowSet *set, bytes key)
{
    bool contains = set->n_row_keys == 0 && set->n_row_ranges == 0;
    for (size_t i = 0; i < set->n_row_keys; i++)
        contains = contains || bytes_equal(proto_bytes(set->row_keys[i]), key);
    for (size_t i = 0; i < set->n_row_ranges; i++)
        contains = contains || (is_after_start(set->row_ranges[i], key) &&
                                is_before_end(set->row_ranges[i], key));
    return contains;
}

/* --- what was made of it --- */

static bool list_contains(const struct row_ranges *list, bytes key)
{
    size_t times = 0;
    for (size_t i = 0; i < list->count; i++)
        times += bytes_compare(key, list->items[i].from) >= 0 &&
                 (list->items[i].to.size == 0 || bytes_compare(key, list->items[i].to) < 0);
    CHECK(times <= 1);
    return times == 1;
}

static void check_list(const struct row_ranges *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct key_range *range = &list->items[i];
        CHECK(!row_range_is_empty(range));
        CHECK(i + 1 == list->count || range->to.size > 0);
        CHECK(i + 1 == list->count || bytes_compare(range->to, range[1].from) <= 0);
        CHECK(!range->is_point ||
              (range->to.size == range->from.size + 1 && bytes_start_with(range->to, range->from)));
    }
}

/* Keys that the set names are where mistakes would be, and their neighbours. */
static void check_key(const Bt__RowSet *set, const struct row_ranges *list, bytes key)
{
    if (key.size > 0)
        CHECK(list_contains(list, key) == set_contains(set, key));
}

static void check_bounds(const Bt__RowSet *set, const struct row_ranges *list)
{
    for (size_t i = 0; i < list->count; i++) {
        check_key(set, list, list->items[i].from);
        check_key(set, list, list->items[i].to);
    }
    for (size_t i = 0; i < set->n_row_keys; i++)
        check_key(set, list, proto_bytes(set->row_keys[i]));
    for (size_t i = 0; i < set->n_row_ranges; i++) {
        check_key(set, list, proto_bytes(set->row_ranges[i]->start_key_closed));
        check_key(set, list, proto_bytes(set->row_ranges[i]->end_key_closed));
    }
}

static void check_intersection(const struct row_ranges *list, bytes prefix, bytes key,
                               struct arena *arena)
{
    ProtobufCBinaryData prefixes[] = {proto_data(prefix), proto_data(key)};
    struct row_ranges common = *list;
    struct string_set rows;
    CHECK(status_is_ok(string_set_make(NULL, 0, prefixes, 2, arena, &rows)));
    CHECK(status_is_ok(row_ranges_intersect(&common, &rows, arena)));
    check_list(&common);
    const bytes keys[] = {prefix, key};
    for (size_t i = 0; i < 2; i++)
        CHECK(keys[i].size == 0 || list_contains(&common, keys[i]) == list_contains(list, keys[i]));
    for (size_t i = 0; i < list->count; i++) {
        bytes from = list->items[i].from;
        CHECK(list_contains(&common, from) == string_set_has(&rows, from));
    }
}

static void run(struct choices *choices, const Bt__RowSet *set, struct arena *arena)
{
    struct row_ranges list;
    status s = row_ranges_from_message(set, arena, &list);
    if (status_is_ok(s)) {
        check_list(&list);
        check_bounds(set, &list);
        bytes prefix = bytes_make(NULL, 0);
        while (choices->left.size > 0) {
            bytes key = choose_bytes(choices, MOST_KEY + 1);
            check_key(set, &list, key);
            check_intersection(&list, prefix, key, arena);
            prefix = key;
        }
    } else {
        CHECK(s.code == STATUS_INVALID_ARGUMENT && status_message(s)[0] != '\0');
    }
    status_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices = choices_of(data, size);
    struct set set;
    choose_set(&choices, &set);
    struct arena *arena = arena_create(ARENA_LIMIT);
    CHECK(arena != NULL);
    run(&choices, &set.message, arena);
    arena_destroy(arena);
    return 0;
}
