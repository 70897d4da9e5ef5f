/* Tests of tokens.h: what is remembered, for how long, and over a restart. */
#include "tablet/tokens.h"

#include "base/limits.h"
#include "tablet/testing/testing.h"

#define MINUTE_US (INT64_C(60) * 1000000)

struct fixture {
    struct tablet_fixture *base;
    struct turned_clock hand;
    struct tokens *tokens;
};

static void open_tokens(struct fixture *f)
{
    struct tokens_options options = {
        .store = f->base->store, .catalog = f->base->options.catalog, .clock = &f->hand.clock};
    assert_ok(tokens_open(&options, &f->tokens));
}

static void reopen(struct fixture *f)
{
    tokens_close(f->tokens);
    close_queue(f->base);
    open_queue(f->base);
    open_tokens(f);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->base = tablet_fixture_create();
    f->hand.clock = (struct clock)TURNED_CLOCK;
    open_tokens(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tokens_close(f->tokens);
    tablet_fixture_destroy(f->base);
    free(f);
    return 0;
}

/* All in one shard, and next to one another in its sets. */
static struct fingerprint numbered(uint64_t number)
{
    return (struct fingerprint){{1, number}};
}

static bool claim(struct fixture *f, struct fingerprint fingerprint)
{
    bool is_repeated;
    uint64_t failures;
    assert_ok(tokens_claim(f->tokens, fingerprint, &is_repeated, &failures));
    return !is_repeated;
}

static bool remembers(struct fixture *f, struct fingerprint fingerprint)
{
    uint64_t failures;
    return tokens_remember(f->tokens, fingerprint, &failures);
}

/* A record alone, without the change that it stands for. */
static void put_record(struct fixture *f, uint64_t version, struct fingerprint fingerprint)
{
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    tokens_put_record(f->tokens, batch, version, fingerprint);
    assert_ok(store_write(f->base->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
}

static uint64_t count_records(struct fixture *f)
{
    uint64_t records;
    uint64_t damaged;
    assert_ok(tokens_count_records(f->base->options.catalog, &records, &damaged));
    assert_int_equal(damaged, 0);
    return records;
}

/* --- fingerprints --- */

static struct fingerprint make(uint64_t table_id, const char *row_key, const char *token)
{
    return token_fingerprint(table_id, bytes_of(row_key), bytes_of(token));
}

static void a_fingerprint_is_of_table_row_and_token(void **state)
{
    (void)state;
    struct fingerprint one = make(1, "ab", "cd");
    assert_true(fingerprint_equal(one, make(1, "ab", "cd")));
    assert_false(fingerprint_equal(one, make(2, "ab", "cd")));
    assert_false(fingerprint_equal(one, make(1, "abc", "d")));
    assert_false(fingerprint_equal(one, make(1, "ab", "ce")));
    assert_true(one.words[0] & 1);
}

/* --- in memory --- */

static void a_repetition_is_known(void **state)
{
    struct fixture *f = *state;
    assert_false(remembers(f, numbered(1)));
    assert_true(claim(f, numbered(1)));
    assert_true(remembers(f, numbered(1)));
    assert_false(claim(f, numbered(1)));
    assert_true(claim(f, numbered(2)));
}

static void a_failed_write_may_be_tried_again(void **state)
{
    struct fixture *f = *state;
    assert_true(claim(f, numbered(1)));
    tokens_forget(f->tokens, numbered(1));
    assert_false(remembers(f, numbered(1)));
    assert_true(claim(f, numbered(1)));
    tokens_forget(f->tokens, numbered(2)); /* never there */
}

/* Between a repetition and its answer the first may fail and a third come. */
static void a_token_claimed_again_is_told_apart(void **state)
{
    struct fixture *f = *state;
    bool is_repeated;
    uint64_t then, now;
    assert_true(claim(f, numbered(1)));
    assert_ok(tokens_claim(f->tokens, numbered(1), &is_repeated, &then));
    assert_true(tokens_remember(f->tokens, numbered(1), &now));
    assert_int_equal(now, then);
    tokens_forget(f->tokens, numbered(1));
    assert_true(claim(f, numbered(1)));
    assert_true(tokens_remember(f->tokens, numbered(1), &now));
    assert_int_not_equal(now, then);
}

/* Claims and forgets among few numbers, whose slots therefore run into one another and wrap around
 * the end, against a table of which are in. */
static void sets_lose_no_fingerprint(void **state)
{
    struct fixture *f = *state;
    enum { NUMBERS = 48, STEPS = 100000 };
    bool is_in[NUMBERS] = {false};
    uint32_t random = 1;
    for (int i = 0; i < STEPS; i++) {
        random = random * 1664525 + 1013904223;
        unsigned number = (random >> 16) % NUMBERS;
        struct fingerprint fingerprint = numbered((uint64_t)number * number);
        if (random >> 31) {
            assert_int_equal(claim(f, fingerprint), !is_in[number]);
            is_in[number] = true;
        } else {
            tokens_forget(f->tokens, fingerprint);
            is_in[number] = false;
        }
    }
    for (unsigned number = 0; number < NUMBERS; number++)
        assert_int_equal(remembers(f, numbered((uint64_t)number * number)), is_in[number]);
}

static void tokens_are_kept_as_long_as_promised(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 40; i++, f->hand.now_us += MINUTE_US) {
        claim(f, numbered((uint64_t)i + 1));
        if (i >= 16)
            assert_true(remembers(f, numbered((uint64_t)i + 1 - 16)));
        if (i >= 20)
            assert_false(remembers(f, numbered((uint64_t)i + 1 - 20)));
    }
    f->hand.now_us += 1000 * MINUTE_US;
    assert_false(remembers(f, numbered(40)));
}

static void there_may_not_be_too_many(void **state)
{
    struct fixture *f = *state;
    uint64_t most = LIMIT_IDEMPOTENCY_TOKENS / 64;
    bool is_repeated;
    uint64_t failures;
    for (uint64_t i = 0; i < most; i++)
        assert_true(claim(f, numbered(i)));
    status s = tokens_claim(f->tokens, numbered(most), &is_repeated, &failures);
    assert_true(status_details(s).size > 0); /* RetryInfo */
    assert_status(s, STATUS_RESOURCE_EXHAUSTED);
    assert_false(claim(f, numbered(most - 1))); /* a repetition needs no room */
    tokens_forget(f->tokens, numbered(7));
    assert_true(claim(f, numbered(most)));
    f->hand.now_us += TOKEN_FORGOTTEN_US;
    assert_true(claim(f, numbered(1)));
}

/* --- records --- */

static void records_survive_a_restart(void **state)
{
    struct fixture *f = *state;
    assert_true(claim(f, make(1, "row", "12345678")));
    put_record(f, 1, make(1, "row", "12345678"));
    assert_true(claim(f, make(1, "row", "not committed")));
    reopen(f);
    assert_false(claim(f, make(1, "row", "12345678")));
    assert_true(claim(f, make(1, "row", "not committed")));
}

static void records_of_forgotten_tokens_go(void **state)
{
    struct fixture *f = *state;
    for (uint64_t minute = 0; minute < 60; minute++, f->hand.now_us += MINUTE_US) {
        put_record(f, minute + 1, numbered(minute));
        assert_ok(tokens_delete_records(f->tokens));
        uint64_t records = count_records(f);
        assert_true(records >= (minute < 16 ? minute + 1 : 17));
        assert_true(records <= 21);
    }
    f->hand.now_us += TOKEN_FORGOTTEN_US;
    assert_ok(tokens_delete_records(f->tokens));
    assert_int_equal(count_records(f), 0);
}

/* The records' age is not known at a start. */
static void records_found_at_a_start_are_as_good_as_new(void **state)
{
    struct fixture *f = *state;
    put_record(f, 1, numbered(1));
    put_record(f, 2, numbered(2));
    reopen(f);
    f->hand.now_us += 15 * MINUTE_US;
    assert_ok(tokens_delete_records(f->tokens));
    assert_int_equal(count_records(f), 2);
    assert_true(remembers(f, numbered(1)));
    f->hand.now_us += 5 * MINUTE_US;
    assert_ok(tokens_delete_records(f->tokens));
    assert_int_equal(count_records(f), 0);
    assert_false(remembers(f, numbered(2)));
}

static void damaged_records_are_found(void **state)
{
    static const char *const keys[] = {"I1234567", "I12345678", "I23456789", "I34567890"};
    static const char *const values[] = {"a234567812345678", "a234567812345678", "a23456781234567",
                                         "b234567812345678"}; /* even */
    struct fixture *f = *state;
    struct tokens_options options = {
        .store = f->base->store, .catalog = f->base->options.catalog, .clock = &f->hand.clock};
    for (int i = 0; i < 4; i++)
        put(f->base->store, f->base->options.catalog, keys[i], values[i]);
    uint64_t records;
    uint64_t damaged;
    assert_ok(tokens_count_records(f->base->options.catalog, &records, &damaged));
    assert_int_equal(records, 4);
    assert_int_equal(damaged, 3);
    struct tokens *tokens;
    assert_status(tokens_open(&options, &tokens), STATUS_DATA_LOSS);
    assert_null(tokens);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fingerprint_is_of_table_row_and_token),
        TEST(a_repetition_is_known),
        TEST(a_failed_write_may_be_tried_again),
        TEST(a_token_claimed_again_is_told_apart),
        TEST(sets_lose_no_fingerprint),
        TEST(tokens_are_kept_as_long_as_promised),
        TEST(there_may_not_be_too_many),
        TEST(records_survive_a_restart),
        TEST(records_of_forgotten_tokens_go),
        TEST(records_found_at_a_start_are_as_good_as_new),
        TEST(damaged_records_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
