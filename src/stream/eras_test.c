/* Tokens over restores: which of them stand at a place of the server that came of one. */
#include "stream/eras.h"

#include "stream/testing/testing.h"

static uint64_t at(int64_t seconds)
{
    return version_at((INT64_C(1790000000) + seconds) * TEST_SECOND);
}

static void restore_to(struct log_fixture *f, uint64_t until)
{
    close_all(f);
    open_queue(f->t);
    assert_ok(stream_eras_begin(f->t->store, f->t->options.catalog, until));
    open_log(f);
}

static struct stream_token token_of(uint64_t era, struct stream_part *parts, size_t count)
{
    return (struct stream_token){.life = 1, .era = era, .parts = parts, .part_count = count};
}

static status check(struct log_fixture *f, uint64_t era, uint64_t sequence)
{
    struct stream_part part = {.after = {sequence, UINT32_MAX}};
    const struct stream_token token = token_of(era, &part, 1);
    return stream_log_check_era(f->log, &token);
}

static void assert_behind(struct log_fixture *f, uint64_t era, uint64_t sequence, const char *date)
{
    status s = check(f, era, sequence);
    assert_int_equal(s.code, STATUS_OUT_OF_RANGE);
    assert_non_null(strstr(status_message(s), "The server was restored to "));
    assert_non_null(strstr(status_message(s), date));
    status_free(s);
}

static void a_server_that_was_not_restored_has_one_era(void **state)
{
    struct log_fixture *f = *state;
    assert_int_equal(stream_log_era(f->log), 0);
    assert_ok(check(f, 0, 0));
    assert_ok(check(f, 0, UINT64_MAX));
    assert_status(check(f, 7, 0), STATUS_INVALID_ARGUMENT);
}

static void what_is_behind_a_restore_is_out_of_range(void **state)
{
    struct log_fixture *f = *state;
    restore_to(f, at(0));
    uint64_t era = stream_log_era(f->log);
    assert_int_not_equal(era, 0);
    assert_ok(check(f, 0, at(0)));
    assert_behind(f, 0, at(0) + 1, "2026-09-21T14:13:20Z");
    assert_behind(f, era - 2, at(0) - 1, "2026-09-21T14:13:20Z"); /* of another's */
    assert_ok(check(f, era, UINT64_MAX));
    reopen(f);
    assert_int_equal(stream_log_era(f->log), era);
    assert_behind(f, 0, at(0) + 1, "2026-09-21T14:13:20Z");
}

/* What one restore left is still held against the ones after it. */
static void all_restores_count(void **state)
{
    struct log_fixture *f = *state;
    restore_to(f, at(0));
    uint64_t first = stream_log_era(f->log);
    restore_to(f, at(100));
    uint64_t second = stream_log_era(f->log);
    assert_int_not_equal(first, second);
    assert_ok(check(f, 0, at(0)));
    assert_behind(f, 0, at(50), "2026-09-21T14:13:20Z");
    assert_ok(check(f, first, at(100)));
    assert_behind(f, first, at(100) + 1, "2026-09-21T14:15:00Z");
    assert_ok(check(f, second, at(200)));
}

static void each_part_of_a_token_counts(void **state)
{
    struct log_fixture *f = *state;
    restore_to(f, at(0));
    struct stream_part parts[] = {{.end = bytes_of("m"), .after = {at(-1), 0}},
                                  {.after = {at(1), 0}}};
    const struct stream_token one = token_of(0, parts, 1), both = token_of(0, parts, 2);
    assert_ok(stream_log_check_era(f->log, &one));
    assert_status(stream_log_check_era(f->log, &both), STATUS_OUT_OF_RANGE);
}

static void a_record_of_restores_that_does_not_parse_is_damage(void **state)
{
    struct log_fixture *f = *state;
    struct store_batch *batch = store_batch_create();
    struct stream_log *other;
    store_batch_put(batch, f->t->options.catalog, bytes_of("stream-eras"), bytes_of("short"));
    assert_ok(store_write(f->t->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
    f->options.system = f->t->options.catalog;
    assert_status(stream_log_open(&f->options, &other), STATUS_DATA_LOSS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_server_that_was_not_restored_has_one_era),
        TEST(what_is_behind_a_restore_is_out_of_range),
        TEST(all_restores_count),
        TEST(each_part_of_a_token_counts),
        TEST(a_record_of_restores_that_does_not_parse_is_damage),
    };
    return cmocka_run_group_tests_name("stream_eras", tests, NULL, NULL);
}
