/* Chunks, read back by protobuf and put together again as a client does. */
#include "bigtable/read_chunks.h"

#include "base/testing/testing.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "wire/proto.h"

enum { ARENA_LIMIT = 64 << 20 };

static const struct family family_f = {.id = 1, .name = {(const uint8_t *)"f", 1}};
static const struct family family_g = {.id = 2, .name = {(const uint8_t *)"g", 1}};

struct fixture {
    struct arena *arena;
    struct cell_list cells;
    struct buffer message;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->arena = arena_create(ARENA_LIMIT);
    f->cells.items = arena_zalloc(f->arena, 16 * sizeof *f->cells.items);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    buffer_free(&f->message);
    arena_destroy(f->arena);
    free(f);
    return 0;
}

static void add_cell(struct fixture *f, const struct family *family, const char *qualifier,
                     int64_t timestamp_us, bytes value)
{
    f->cells.items[f->cells.count++] = (struct cell){.family = family,
                                                     .qualifier = bytes_of(qualifier),
                                                     .timestamp_us = timestamp_us,
                                                     .value = value};
}

static Bt__ReadRowsResponse *decode(struct fixture *f)
{
    ProtobufCMessage *message;
    assert_ok(proto_decode(&bt__read_rows_response__descriptor, buffer_bytes(&f->message), f->arena,
                           &message));
    return (Bt__ReadRowsResponse *)message;
}

static Bt__ReadRowsResponse *write_whole_row(struct fixture *f)
{
    struct row_writer writer;
    row_writer_start(&writer, bytes_of("key"), &f->cells);
    row_writer_write(&writer, &f->message, SIZE_MAX);
    assert_true(row_writer_is_done(&writer));
    return decode(f);
}

static void assert_bytes(ProtobufCBinaryData found, const char *expected)
{
    assert_int_equal(found.len, strlen(expected));
    assert_memory_equal(found.data, expected, found.len);
}

static void one_cell_is_one_chunk_that_commits(void **state)
{
    struct fixture *f = *state;
    add_cell(f, &family_f, "q", 5000, bytes_of("value"));
    Bt__ReadRowsResponse *response = write_whole_row(f);
    assert_int_equal(response->n_chunks, 1);
    const Bt__ReadRowsResponse__CellChunk *chunk = response->chunks[0];
    assert_bytes(chunk->row_key, "key");
    assert_string_equal(chunk->family_name->value, "f");
    assert_bytes(chunk->qualifier->value, "q");
    assert_int_equal(chunk->timestamp_micros, 5000);
    assert_bytes(chunk->value, "value");
    assert_int_equal(chunk->value_size, 0);
    assert_int_equal(chunk->row_status_case,
                     BT__READ_ROWS_RESPONSE__CELL_CHUNK__ROW_STATUS_COMMIT_ROW);
    assert_true(chunk->commit_row);
}

static void what_stays_the_same_is_not_repeated(void **state)
{
    struct fixture *f = *state;
    add_cell(f, &family_f, "a", 2000, bytes_of("1"));
    add_cell(f, &family_f, "a", 1000, bytes_of("2"));
    add_cell(f, &family_f, "b", 1000, bytes_of("3"));
    add_cell(f, &family_g, "b", 1000, bytes_of("4"));
    Bt__ReadRowsResponse *response = write_whole_row(f);
    assert_int_equal(response->n_chunks, 4);
    static const bool has_family[] = {true, false, false, true};
    static const bool has_qualifier[] = {true, false, true, true};
    for (size_t i = 0; i < 4; i++) {
        const Bt__ReadRowsResponse__CellChunk *chunk = response->chunks[i];
        assert_int_equal(chunk->row_key.len, i == 0 ? 3 : 0);
        assert_int_equal(chunk->family_name != NULL, has_family[i]);
        assert_int_equal(chunk->qualifier != NULL, has_qualifier[i]);
        assert_int_equal(chunk->commit_row, i == 3);
    }
}

static void empty_qualifiers_and_values_are_there(void **state)
{
    struct fixture *f = *state;
    add_cell(f, &family_f, "", 0, bytes_of(""));
    add_cell(f, &family_f, "b", 0, bytes_of(""));
    Bt__ReadRowsResponse *response = write_whole_row(f);
    assert_non_null(response->chunks[0]->qualifier);
    assert_int_equal(response->chunks[0]->qualifier->value.len, 0);
    assert_int_equal(response->chunks[1]->value.len, 0);
}

static void labels_keep_their_order(void **state)
{
    struct fixture *f = *state;
    const struct label second = {.text = bytes_of("second")};
    const struct label first = {.text = bytes_of("first"), .next = &second};
    add_cell(f, &family_f, "q", 0, bytes_of("v"));
    f->cells.items[0].labels = &first;
    Bt__ReadRowsResponse *response = write_whole_row(f);
    assert_int_equal(response->chunks[0]->n_labels, 2);
    assert_string_equal(response->chunks[0]->labels[0], "first");
    assert_string_equal(response->chunks[0]->labels[1], "second");
}

static bytes pattern(struct fixture *f, size_t size)
{
    uint8_t *data = arena_alloc(f->arena, size);
    assert_non_null(data);
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)(i * 131 >> 3);
    return bytes_make(data, size);
}

/* Sizes around the limits of a piece, each followed by a small cell. */
static void large_values_come_in_pieces(void **state)
{
    static const size_t sizes[] = {CHUNK_VALUE_BYTES - 1, CHUNK_VALUE_BYTES, CHUNK_VALUE_BYTES + 1,
                                   3 * CHUNK_VALUE_BYTES};
    static const size_t pieces[] = {1, 1, 2, 3};
    enum { FILLS_A_MESSAGE = 1 << 20 };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        buffer_clear(&f->message);
        f->cells.count = 0;
        bytes value = pattern(f, sizes[i]);
        add_cell(f, &family_f, "q", 1000, value);
        add_cell(f, &family_f, "r", 1000, bytes_of("after"));
        Bt__ReadRowsResponse *response = write_whole_row(f);
        assert_int_equal(response->n_chunks, pieces[i] + 1);
        size_t at = 0;
        for (size_t j = 0; j < pieces[i]; j++) {
            const Bt__ReadRowsResponse__CellChunk *chunk = response->chunks[j];
            bool is_last = j + 1 == pieces[i];
            assert_int_equal(chunk->value_size, is_last ? 0 : sizes[i]);
            assert_int_equal(chunk->qualifier != NULL, j == 0);
            assert_int_equal(chunk->timestamp_micros, j == 0 ? 1000 : 0);
            assert_false(chunk->commit_row);
            assert_true(chunk->value.len >= FILLS_A_MESSAGE);
            assert_memory_equal(chunk->value.data, value.data + at, chunk->value.len);
            at += chunk->value.len;
        }
        assert_int_equal(at, sizes[i]);
        assert_bytes(response->chunks[pieces[i]]->qualifier->value, "r");
        assert_true(response->chunks[pieces[i]]->commit_row);
    }
}

static void a_row_may_be_written_in_steps(void **state)
{
    struct fixture *f = *state;
    static const char *const qualifiers[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < 4; i++)
        add_cell(f, &family_f, qualifiers[i], 1000, pattern(f, 100));
    struct row_writer writer;
    row_writer_start(&writer, bytes_of("key"), &f->cells);
    size_t chunks = 0;
    for (size_t steps = 0; !row_writer_is_done(&writer); steps++) {
        assert_true(steps < 4);
        buffer_clear(&f->message);
        row_writer_next_message(&writer);
        row_writer_write(&writer, &f->message, 1);
        Bt__ReadRowsResponse *response = decode(f);
        assert_int_equal(response->n_chunks, 1);
        assert_int_equal(response->chunks[0]->commit_row, steps == 3);
        assert_bytes(response->chunks[0]->row_key, "key"); /* it begins a message */
        assert_int_equal(response->chunks[0]->family_name != NULL, steps == 0);
        chunks += response->n_chunks;
    }
    assert_int_equal(chunks, 4);
}

/* Google's Python client takes the key of a message's first chunk for the row's, whatever row was
 * under way: seen when the Debian example's rows first crossed messages. */
static void every_message_begins_with_the_key_and_a_cell(void **state)
{
    struct fixture *f = *state;
    uint8_t *large = arena_zalloc(f->arena, CHUNK_VALUE_BYTES);
    add_cell(f, &family_f, "a", 1000, bytes_of("first"));
    add_cell(f, &family_f, "b", 1000, bytes_make(large, CHUNK_VALUE_BYTES));
    add_cell(f, &family_f, "c", 1000, bytes_of("last"));
    struct row_writer writer;
    row_writer_start(&writer, bytes_of("key"), &f->cells);
    const size_t chunks[] = {1, 1, 1};
    for (size_t i = 0; i < 3; i++) {
        buffer_clear(&f->message);
        row_writer_next_message(&writer);
        row_writer_write(&writer, &f->message, 1);
        Bt__ReadRowsResponse *response = decode(f);
        assert_int_equal(response->n_chunks, chunks[i]);
        assert_bytes(response->chunks[0]->row_key, "key");
        assert_non_null(response->chunks[0]->qualifier);
    }
    assert_true(row_writer_is_done(&writer));
}

/* Clients refuse a row key there. */
static void a_message_that_begins_within_a_value_has_no_key(void **state)
{
    struct fixture *f = *state;
    add_cell(f, &family_f, "q", 1000, pattern(f, 2 * CHUNK_VALUE_BYTES));
    struct row_writer writer;
    row_writer_start(&writer, bytes_of("key"), &f->cells);
    row_writer_write(&writer, &f->message, 1);
    buffer_clear(&f->message);
    row_writer_next_message(&writer);
    row_writer_write(&writer, &f->message, 1);
    assert_int_equal(decode(f)->chunks[0]->row_key.len, 0);
    assert_true(row_writer_is_done(&writer));
}

static void rows_follow_one_another_in_a_message(void **state)
{
    struct fixture *f = *state;
    add_cell(f, &family_f, "q", 1000, bytes_of("v"));
    (void)write_whole_row(f);
    Bt__ReadRowsResponse *response = write_whole_row(f);
    assert_int_equal(response->n_chunks, 2);
    assert_bytes(response->chunks[1]->row_key, "key");
    assert_non_null(response->chunks[1]->family_name);
}

/* Around the sizes at which a chunk's length takes a byte more: as protobuf itself writes it, and
 * as large as it was said to be. */
static void assert_canonical(struct fixture *f, size_t value_size)
{
    f->cells.count = 0;
    add_cell(f, &family_f, "q", 1700000000000000, pattern(f, value_size));
    buffer_clear(&f->message);
    Bt__ReadRowsResponse *response = write_whole_row(f);
    struct row_writer writer;
    row_writer_start(&writer, bytes_of("key"), &f->cells);
    assert_int_equal(row_writer_size(&writer), f->message.size);
    struct buffer again = {0};
    proto_encode(&response->base, &again);
    assert_int_equal(again.size, f->message.size);
    assert_memory_equal(again.data, f->message.data, again.size);
    buffer_free(&again);
}

static void chunks_of_any_size_are_canonical(void **state)
{
    struct fixture *f = *state;
    for (size_t size = 0; size < 200; size++)
        assert_canonical(f, size);
    for (size_t size = (1 << 14) - 100; size < (1 << 14) + 10; size++)
        assert_canonical(f, size);
}

/* Values that are given one by one make the same bytes as those that are all at hand. */
static void values_may_be_given_when_it_is_their_turn(void **state)
{
    static const size_t sizes[] = {100, CHUNK_VALUE_BYTES + 5, 0, 7, 3};
    static const char *const qualifiers[] = {"a", "b", "c", "d", "e"};
    enum { CELLS = 5, AT_HAND = 3, GIVEN = 3 };
    struct fixture *f = *state;
    bytes values[CELLS];
    for (size_t i = 0; i < CELLS; i++) {
        values[i] = pattern(f, sizes[i]);
        add_cell(f, &family_f, qualifiers[i], 1000, values[i]);
    }
    (void)write_whole_row(f);
    struct buffer whole = f->message;
    f->message = (struct buffer){0};
    for (size_t i = 0; i < CELLS; i++)
        if (i != AT_HAND)
            f->cells.items[i].value.data = NULL;
    struct row_writer writer;
    row_writer_start(&writer, bytes_of("key"), &f->cells);
    assert_int_equal(row_writer_size(&writer), whole.size);
    size_t given = 0;
    for (size_t steps = 0; !row_writer_is_done(&writer); steps++) {
        assert_true(steps < 2 * CELLS);
        const struct cell *cell = row_writer_lacks(&writer);
        assert_false(cell != NULL && row_writer_holds_value(&writer));
        if (cell != NULL) {
            row_writer_give(&writer, values[cell - f->cells.items]);
            given++;
        }
        assert_int_equal(row_writer_size(&writer), whole.size);
        row_writer_write(&writer, &f->message, f->message.size + 1);
    }
    assert_false(row_writer_holds_value(&writer));
    assert_int_equal(given, GIVEN);
    assert_int_equal(f->message.size, whole.size);
    assert_memory_equal(f->message.data, whole.data, whole.size);
    buffer_free(&whole);
}

static void nothing_is_written_while_a_value_is_lacking(void **state)
{
    struct fixture *f = *state;
    add_cell(f, &family_f, "a", 1000, bytes_of("at hand"));
    add_cell(f, &family_f, "b", 1000, bytes_make(NULL, 3));
    struct row_writer writer;
    row_writer_start(&writer, bytes_of("key"), &f->cells);
    assert_null(row_writer_lacks(&writer));
    row_writer_write(&writer, &f->message, SIZE_MAX);
    size_t before = f->message.size;
    assert_ptr_equal(row_writer_lacks(&writer), &f->cells.items[1]);
    row_writer_write(&writer, &f->message, SIZE_MAX);
    assert_int_equal(f->message.size, before);
    row_writer_give(&writer, bytes_of("now"));
    row_writer_write(&writer, &f->message, SIZE_MAX);
    assert_true(row_writer_is_done(&writer));
    assert_null(row_writer_lacks(&writer));
    assert_bytes(decode(f)->chunks[1]->value, "now");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_cell_is_one_chunk_that_commits),
        TEST(what_stays_the_same_is_not_repeated),
        TEST(empty_qualifiers_and_values_are_there),
        TEST(labels_keep_their_order),
        TEST(large_values_come_in_pieces),
        TEST(a_row_may_be_written_in_steps),
        TEST(every_message_begins_with_the_key_and_a_cell),
        TEST(a_message_that_begins_within_a_value_has_no_key),
        TEST(chunks_of_any_size_are_canonical),
        TEST(values_may_be_given_when_it_is_their_turn),
        TEST(nothing_is_written_while_a_value_is_lacking),
        TEST(rows_follow_one_another_in_a_message),
    };
    return cmocka_run_group_tests_name("read_chunks", tests, NULL, NULL);
}
