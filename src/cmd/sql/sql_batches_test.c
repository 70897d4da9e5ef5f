/* Tests of results out of the server's messages: each says what comes, and what is shown. */
#include "base/crc32c.h"
#include "base/testing/testing.h"
#include "cmd/sql/sql_batches.h"
#include "wire/proto.h"

struct fixture {
    struct sql_batches batches;
    struct buffer shown; /* the rows handed on: "1,2;" */
    status refusal;      /* what the taker says, if it is not OK; given once */
};

static status take_row(void *context, const Bt__Value *const *values)
{
    struct fixture *f = context;
    buffer_append_format(&f->shown, "%lld,%lld;", (long long)values[0]->int_value,
                         (long long)values[1]->int_value);
    status s = f->refusal;
    f->refusal = status_ok();
    return s;
}

/* Two columns of type INT64. */
static void set_up(struct fixture *f)
{
    static Bt__Type__Int64 int64 = BT__TYPE__INT64__INIT;
    static Bt__Type type = BT__TYPE__INIT;
    static Bt__ColumnMetadata column = BT__COLUMN_METADATA__INIT;
    static Bt__ColumnMetadata *columns[] = {&column, &column};
    static Bt__ProtoSchema schema = BT__PROTO_SCHEMA__INIT;
    type.kind_case = BT__TYPE__KIND_INT64_TYPE;
    type.int64_type = &int64;
    column.type = &type;
    schema.n_columns = 2;
    schema.columns = columns;
    *f = (struct fixture){0};
    assert_ok(sql_batches_create(&schema, take_row, f, &f->batches));
}

static void tear_down(struct fixture *f)
{
    sql_batches_free(&f->batches);
    buffer_free(&f->shown);
}

static void assert_shown(struct fixture *f, const char *expected)
{
    buffer_append_byte(&f->shown, '\0');
    assert_string_equal((const char *)f->shown.data, expected);
    f->shown.size--;
}

/* A ProtoRows of the values `from` to `to`. */
static void append_values(struct buffer *out, int64_t from, int64_t to)
{
    for (int64_t i = from; i <= to; i++) {
        const uint8_t value[] = {0x12, 2, 0x30, (uint8_t)i};
        buffer_append(out, value, sizeof value);
    }
}

enum { NO_SUM = 1, WRONG_SUM = 2, RESET = 4 };

/* Adds a message: bytes of a batch, with the sum of `whole` if it is the last part of it. */
static status add(struct fixture *f, bytes part, bytes whole, const char *token, unsigned flags)
{
    Bt__ProtoRowsBatch rows = BT__PROTO_ROWS_BATCH__INIT;
    Bt__PartialResultSet results = BT__PARTIAL_RESULT_SET__INIT;
    rows.batch_data = proto_data(part);
    results.partial_rows_case = BT__PARTIAL_RESULT_SET__PARTIAL_ROWS_PROTO_ROWS_BATCH;
    results.proto_rows_batch = &rows;
    results.resume_token = proto_data(bytes_of(token));
    results.reset = (flags & RESET) != 0;
    if (!(flags & NO_SUM)) {
        results.has_batch_checksum_case = BT__PARTIAL_RESULT_SET__HAS_BATCH_CHECKSUM_BATCH_CHECKSUM;
        results.batch_checksum = crc32c_of(whole);
        results.batch_checksum ^= flags & WRONG_SUM;
    }
    return sql_batches_add(&f->batches, &results);
}

static status add_batch(struct fixture *f, int64_t from, int64_t to, const char *token,
                        unsigned flags)
{
    struct buffer batch = {0};
    append_values(&batch, from, to);
    status s = add(f, buffer_bytes(&batch), buffer_bytes(&batch), token, flags);
    buffer_free(&batch);
    return s;
}

static void assert_fails_with(status s, enum status_code code, const char *words)
{
    assert_int_equal(s.code, code);
    assert_non_null(strstr(status_message(s), words));
    status_free(s);
}

static void rows_wait_for_their_token(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_ok(add_batch(&f, 1, 4, "", 0));
    assert_shown(&f, "");
    assert_ok(add_batch(&f, 5, 6, "t", 0));
    assert_shown(&f, "1,2;3,4;5,6;");
    assert_ok(sql_batches_end(&f.batches));
    tear_down(&f);
}

static void a_batch_comes_in_parts(void **state)
{
    (void)state;
    struct fixture f;
    struct buffer batch = {0};
    set_up(&f);
    append_values(&batch, 1, 4);
    for (size_t i = 0; i < batch.size; i++) {
        bool is_last = i + 1 == batch.size;
        assert_ok(add(&f, bytes_make(batch.data + i, 1), buffer_bytes(&batch), is_last ? "t" : "",
                      is_last ? 0 : NO_SUM));
    }
    assert_shown(&f, "1,2;3,4;");
    buffer_free(&batch);
    tear_down(&f);
}

static void a_row_lies_across_batches(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_ok(add_batch(&f, 1, 3, "", 0));
    assert_ok(add_batch(&f, 4, 4, "t", 0));
    assert_shown(&f, "1,2;3,4;");
    tear_down(&f);
}

static void nothing_is_shown_of_a_batch_with_a_wrong_sum(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_fails_with(add_batch(&f, 1, 2, "t", WRONG_SUM), STATUS_DATA_LOSS, "CRC32C");
    assert_shown(&f, "");
    tear_down(&f);
}

static void a_reset_forgets_what_has_no_token(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_ok(add_batch(&f, 1, 2, "t", RESET));
    assert_ok(add_batch(&f, 3, 4, "", 0));
    assert_ok(add_batch(&f, 5, 6, "", NO_SUM));
    assert_ok(add_batch(&f, 7, 8, "u", RESET));
    assert_shown(&f, "1,2;7,8;");
    tear_down(&f);
}

static void a_call_made_again_goes_on_behind_the_token(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_ok(add_batch(&f, 1, 2, "t", 0));
    assert_ok(add_batch(&f, 3, 4, "", 0));
    assert_true(sql_batches_rewind(&f.batches));
    assert_true(bytes_equal(buffer_bytes(&f.batches.token), bytes_of("t")));
    assert_ok(add_batch(&f, 3, 6, "u", 0));
    assert_shown(&f, "1,2;3,4;5,6;");
    tear_down(&f);
}

/* 8 MB of values, and no token: they are shown, and then there is no way back until the next. */
static void rows_held_back_are_bounded(void **state)
{
    (void)state;
    struct fixture f;
    struct buffer batch = {0};
    set_up(&f);
    while (batch.size <= BATCHES_HELD_MOST)
        append_values(&batch, 1, 127);
    append_values(&batch, 1, 1); /* perhaps half a row */
    if (batch.size / 4 % 2 == 0)
        append_values(&batch, 2, 2);
    assert_ok(add(&f, buffer_bytes(&batch), buffer_bytes(&batch), "", 0));
    assert_true(f.shown.size > BATCHES_HELD_MOST / 4);
    assert_true(f.batches.held.size < 8);
    assert_false(sql_batches_rewind(&f.batches));
    assert_fails_with(add_batch(&f, 1, 2, "", RESET), STATUS_ABORTED, "after rows");
    buffer_free(&batch);
    tear_down(&f);
}

static void a_token_ends_batches_and_rows(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_fails_with(add_batch(&f, 1, 2, "t", NO_SUM), STATUS_INTERNAL, "within a batch");
    tear_down(&f);
    set_up(&f);
    assert_fails_with(add_batch(&f, 1, 3, "t", 0), STATUS_INTERNAL, "within a row");
    tear_down(&f);
}

static void an_answer_ends_with_a_token(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_fails_with(sql_batches_end(&f.batches), STATUS_INTERNAL, "last resume token");
    assert_ok(add_batch(&f, 1, 2, "t", 0));
    assert_ok(sql_batches_end(&f.batches));
    assert_ok(add_batch(&f, 3, 4, "", 0));
    assert_fails_with(sql_batches_end(&f.batches), STATUS_INTERNAL, "last resume token");
    tear_down(&f);
}

static void an_empty_result_is_whole(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_ok(add(&f, bytes_of(""), bytes_of(""), "", RESET | NO_SUM));
    assert_ok(add(&f, bytes_of(""), bytes_of(""), "end", NO_SUM));
    assert_ok(sql_batches_end(&f.batches));
    assert_shown(&f, "");
    tear_down(&f);
}

static void values_that_make_no_row_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    const char *const bad[] = {"\x12\x7f", "\x0a\x02\x30\x01", "\x12\x03\x1a\x01x",
                               "\x12\x02\x12\x7f"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        set_up(&f);
        status s = add(&f, bytes_of(bad[i]), bytes_of(bad[i]), "t", 0);
        assert_false(status_is_ok(s));
        status_free(s);
        assert_shown(&f, "");
        tear_down(&f);
    }
}

static void the_taker_may_refuse(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    f.refusal = status_make(STATUS_UNAVAILABLE, "nobody reads");
    assert_fails_with(add_batch(&f, 1, 4, "t", 0), STATUS_UNAVAILABLE, "nobody reads");
    assert_shown(&f, "1,2;");
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_wait_for_their_token),
        cmocka_unit_test(a_batch_comes_in_parts),
        cmocka_unit_test(a_row_lies_across_batches),
        cmocka_unit_test(nothing_is_shown_of_a_batch_with_a_wrong_sum),
        cmocka_unit_test(a_reset_forgets_what_has_no_token),
        cmocka_unit_test(a_call_made_again_goes_on_behind_the_token),
        cmocka_unit_test(rows_held_back_are_bounded),
        cmocka_unit_test(a_token_ends_batches_and_rows),
        cmocka_unit_test(an_answer_ends_with_a_token),
        cmocka_unit_test(an_empty_result_is_whole),
        cmocka_unit_test(values_that_make_no_row_are_refused),
        cmocka_unit_test(the_taker_may_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
