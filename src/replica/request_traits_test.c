/* Tests of request_traits.h, of requests as Google's messages have them. */
#include "replica/request_traits.h"

#include "base/testing/testing.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "wire/proto.h"

static char family[] = "f";

static Bt__Mutation__SetCell set_cell = BT__MUTATION__SET_CELL__INIT;
static Bt__Mutation__DeleteFromRow delete_row = BT__MUTATION__DELETE_FROM_ROW__INIT;
static Bt__Mutation__AddToCell add = BT__MUTATION__ADD_TO_CELL__INIT;
static Bt__Mutation__MergeToCell merge = BT__MUTATION__MERGE_TO_CELL__INIT;

/* A cell of that time; add, merge, and a deletion. */
static Bt__Mutation cell_of(int64_t timestamp_us)
{
    Bt__Mutation mutation = BT__MUTATION__INIT;
    set_cell.family_name = family;
    set_cell.timestamp_micros = timestamp_us;
    mutation.mutation_case = BT__MUTATION__MUTATION_SET_CELL;
    mutation.set_cell = &set_cell;
    return mutation;
}

static Bt__Mutation deletion(void)
{
    Bt__Mutation mutation = BT__MUTATION__INIT;
    mutation.mutation_case = BT__MUTATION__MUTATION_DELETE_FROM_ROW;
    mutation.delete_from_row = &delete_row;
    return mutation;
}

static Bt__Mutation addition(void)
{
    Bt__Mutation mutation = BT__MUTATION__INIT;
    mutation.mutation_case = BT__MUTATION__MUTATION_ADD_TO_CELL;
    mutation.add_to_cell = &add;
    return mutation;
}

static Bt__Mutation merging(void)
{
    Bt__Mutation mutation = BT__MUTATION__INIT;
    mutation.mutation_case = BT__MUTATION__MUTATION_MERGE_TO_CELL;
    mutation.merge_to_cell = &merge;
    return mutation;
}

static ProtobufCBinaryData data(const char *text)
{
    return proto_data(bytes_of(text));
}

static struct buffer encode(const ProtobufCMessage *message)
{
    struct buffer wire = {0};
    proto_encode(message, &wire);
    assert_false(wire.failed);
    return wire;
}

/* --- mutations --- */

static struct buffer mutate_row(Bt__Mutation *first, Bt__Mutation *second)
{
    Bt__Mutation *mutations[] = {first, second};
    Bt__MutateRowRequest request = BT__MUTATE_ROW_REQUEST__INIT;
    request.table_name = family;
    request.row_key = data("k");
    request.mutations = mutations;
    request.n_mutations = second == NULL ? 1 : 2;
    return encode(&request.base);
}

static struct buffer mutate_rows(Bt__Mutation *first, Bt__Mutation *second)
{
    Bt__MutateRowsRequest__Entry entries[2] = {BT__MUTATE_ROWS_REQUEST__ENTRY__INIT,
                                               BT__MUTATE_ROWS_REQUEST__ENTRY__INIT};
    Bt__MutateRowsRequest__Entry *list[] = {&entries[0], &entries[1]};
    Bt__MutateRowsRequest request = BT__MUTATE_ROWS_REQUEST__INIT;
    entries[0].row_key = data("k");
    entries[0].mutations = &first;
    entries[1].row_key = data("l");
    entries[1].mutations = &second;
    entries[0].n_mutations = entries[1].n_mutations = 1;
    request.entries = list;
    request.n_entries = second == NULL ? 1 : 2;
    return encode(&request.base);
}

/* Both as a row's, and each as a row's of its own. */
static void assert_repeats(Bt__Mutation first, Bt__Mutation second, bool expected)
{
    struct buffer row = mutate_row(&first, &second), rows = mutate_rows(&first, &second);
    assert_int_equal(mutations_may_repeat(buffer_bytes(&row), 3, 0), expected);
    assert_int_equal(mutations_may_repeat(buffer_bytes(&rows), 2, 2), expected);
    buffer_free(&row);
    buffer_free(&rows);
}

static void test_mutations_that_come_to_the_same(void **state)
{
    (void)state;
    assert_repeats(cell_of(0), deletion(), true);
    assert_repeats(deletion(), cell_of(INT64_C(1700000000000000)), true);
}

static void test_mutations_that_do_not(void **state)
{
    (void)state;
    assert_repeats(deletion(), cell_of(-1), false);
    assert_repeats(deletion(), addition(), false);
    assert_repeats(addition(), deletion(), false);
    assert_repeats(deletion(), merging(), false);
}

static void test_a_mutation_that_is_not_known(void **state)
{
    static const uint8_t request[] = {3 << 3 | 2, 2, 8 << 3 | 2, 0};
    (void)state;
    assert_false(mutations_may_repeat(bytes_make(request, sizeof request), 3, 0));
}

/* Whatever is cut off: nothing is said of it that the whole would not say. */
static void test_malformed(void **state)
{
    Bt__Mutation first = cell_of(7), second = cell_of(-1);
    struct buffer row = mutate_row(&first, &second);
    bytes key;
    (void)state;
    for (size_t size = 0; size < row.size; size++) {
        bytes part = bytes_make(row.data, size);
        bool has_key = request_row_key(part, ROW_KEY, 2, &key);
        assert_true(!has_key || bytes_equal(key, bytes_of("k")));
        (void)mutations_may_repeat(part, 3, 0);
    }
    assert_false(mutations_may_repeat(bytes_make(row.data, row.size - 1), 3, 0));
    buffer_free(&row);
}

/* --- keys --- */

static void assert_key(struct buffer wire, enum row_key_place place, const char *expected)
{
    bytes key;
    bool is_found = request_row_key(buffer_bytes(&wire), place, 2, &key);
    assert_int_equal(is_found, expected != NULL);
    if (is_found)
        assert_true(bytes_equal(key, bytes_of(expected)));
    buffer_free(&wire);
}

static struct buffer read_rows(size_t keys, size_t ranges)
{
    ProtobufCBinaryData list[] = {data("a"), data("b")};
    Bt__RowRange range = BT__ROW_RANGE__INIT, *range_list[] = {&range};
    Bt__RowSet set = BT__ROW_SET__INIT;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    request.table_name = family;
    request.rows = &set;
    set.row_keys = list;
    set.n_row_keys = keys;
    set.row_ranges = range_list;
    set.n_row_ranges = ranges;
    return encode(&request.base);
}

static void test_keys(void **state)
{
    Bt__Mutation mutation = deletion();
    Bt__ReadRowsRequest all = BT__READ_ROWS_REQUEST__INIT;
    (void)state;
    assert_key(mutate_row(&mutation, NULL), ROW_KEY, "k");
    assert_key(mutate_row(&mutation, NULL), ROW_KEY_NONE, NULL);
    assert_key(mutate_rows(&mutation, NULL), ROW_KEY_ENTRY, "k");
    assert_key(mutate_rows(&mutation, &mutation), ROW_KEY_ENTRY, NULL);
    assert_key(read_rows(1, 0), ROW_KEY_SET, "a");
    assert_key(read_rows(2, 0), ROW_KEY_SET, NULL);
    assert_key(read_rows(0, 0), ROW_KEY_SET, NULL);
    assert_key(read_rows(1, 1), ROW_KEY_SET, NULL);
    assert_key(encode(&all.base), ROW_KEY_SET, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutations_that_come_to_the_same),
        cmocka_unit_test(test_mutations_that_do_not),
        cmocka_unit_test(test_a_mutation_that_is_not_known),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
