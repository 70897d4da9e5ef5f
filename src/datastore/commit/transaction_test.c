/* Tests of transactions: their ids, their ends, and what they have read. */
#include "base/testing/testing.h"
#include "datastore/commit/transaction.h"
#include "datastore/database.h"
#include "datastore/usage.h"

#include <stdatomic.h>

enum { MOST_BYTES = 8 << 20 };

static const struct ds_database first = {"p", ""}, second = {"p", "other"};

/* A clock that a test sets. */
struct hands {
    struct clock clock;
    int64_t us;
};

static int64_t read_hands(struct clock *clock)
{
    return ((struct hands *)(void *)clock)->us;
}

struct fixture {
    struct hands hands;
    struct metrics *metrics;
    struct ds_transactions *transactions;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->hands.clock = (struct clock){read_hands, read_hands};
    assert_ok(metrics_create(&f->metrics));
    assert_ok(ds_transactions_create(&f->hands.clock, f->metrics, NULL, NULL, MOST_BYTES,
                                     &f->transactions));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ds_transactions_destroy(f->transactions);
    metrics_destroy(f->metrics);
    free(f);
    return 0;
}

static status begin_one(struct fixture *f, bool is_read_only, struct ds_transaction **out)
{
    const struct ds_beginning beginning = {
        .database = &first, .is_read_only = is_read_only, .at_us = 5};
    return ds_transaction_begin(f->transactions, &beginning, out);
}

/* Begins one and gives it back; its id. */
static bytes begin(struct fixture *f, uint8_t id[DS_TRANSACTION_ID_SIZE])
{
    struct ds_transaction *transaction;
    assert_ok(begin_one(f, false, &transaction));
    memcpy(id, transaction->id, DS_TRANSACTION_ID_SIZE);
    ds_transaction_give_back(f->transactions, transaction);
    return bytes_make(id, DS_TRANSACTION_ID_SIZE);
}

static void assert_gone(struct fixture *f, bytes id, const struct ds_database *database)
{
    struct ds_transaction *transaction;
    status s = ds_transaction_take(f->transactions, id, database, &transaction);
    assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
    status_free(s);
}

static void a_transaction_is_its_databases(void **state)
{
    struct fixture *f = *state;
    uint8_t a[DS_TRANSACTION_ID_SIZE], b[DS_TRANSACTION_ID_SIZE];
    struct ds_transaction *transaction;
    bytes one = begin(f, a), other = begin(f, b);
    assert_false(bytes_equal(one, other));
    assert_ok(ds_transaction_take(f->transactions, one, &first, &transaction));
    assert_int_equal(transaction->at_us, 5);
    ds_transaction_end(f->transactions, transaction);
    assert_gone(f, one, &first);
    assert_gone(f, other, &second);
    assert_gone(f, bytes_of("not one of ours"), &first);
    assert_gone(f, bytes_of(""), &first);
    a[DS_TRANSACTION_ID_SIZE - 1] ^= 1; /* another run's */
    assert_gone(f, one, &first);
}

static void idle_and_old_transactions_expire(void **state)
{
    struct fixture *f = *state;
    uint8_t a[DS_TRANSACTION_ID_SIZE], b[DS_TRANSACTION_ID_SIZE];
    struct ds_transaction *transaction;
    bytes idle = begin(f, a), busy = begin(f, b);
    for (int64_t at = DS_IDLE_US; at <= DS_TRANSACTION_US; at += DS_IDLE_US) {
        f->hands.us = at;
        assert_ok(ds_transaction_take(f->transactions, busy, &first, &transaction));
        ds_transaction_give_back(f->transactions, transaction);
    }
    assert_gone(f, idle, &first);
    f->hands.us = DS_TRANSACTION_US + 1;
    assert_gone(f, busy, &first);
}

static void an_unused_transaction_is_forgotten(void **state)
{
    struct fixture *f = *state;
    uint8_t id[DS_TRANSACTION_ID_SIZE];
    begin(f, id);
    f->hands.us = DS_IDLE_US;
    begin(f, id);
    assert_int_equal(metrics_value(f->metrics, METRIC_datastore_transactions), 2);
    f->hands.us = 2 * DS_IDLE_US;
    begin(f, id);
    assert_int_equal(metrics_value(f->metrics, METRIC_datastore_transactions), 2);
    assert_int_equal(metrics_value(f->metrics, METRIC_datastore_transactions_begun_total), 3);
    assert_int_equal(metrics_value(f->metrics, METRIC_datastore_transactions_expired_total), 1);
}

static void a_repeated_transaction_keeps_its_age(void **state)
{
    struct fixture *f = *state;
    uint8_t id[DS_TRANSACTION_ID_SIZE];
    struct ds_beginning beginning = {.database = &first, .previous = begin(f, id)};
    struct ds_transaction *other, *again, *stranger;
    assert_ok(begin_one(f, false, &other));
    for (int i = 0; i < 2; i++) {
        assert_ok(ds_transaction_begin(f->transactions, &beginning, &again));
        assert_true(again->locker.age < other->locker.age);
        assert_memory_not_equal(again->id, id, sizeof id);
        memcpy(id, again->id, sizeof id);
        ds_transaction_end(f->transactions, again);
    }
    id[DS_TRANSACTION_ID_SIZE - 1] ^= 1; /* another run's */
    assert_ok(ds_transaction_begin(f->transactions, &beginning, &stranger));
    assert_true(stranger->locker.age > other->locker.age);
    ds_transaction_end(f->transactions, other);
    ds_transaction_end(f->transactions, stranger);
}

static void reads_are_noted(void **state)
{
    struct fixture *f = *state;
    struct ds_transaction *writing, *reading;
    assert_ok(begin_one(f, false, &writing));
    assert_ok(begin_one(f, true, &reading));
    char from[] = "from";
    assert_ok(ds_transaction_note(writing, bytes_of(from), bytes_make(NULL, 0)));
    from[0] = '-';
    const struct ds_read_range *range = writing->ranges.items;
    assert_int_equal(writing->ranges.count, 1);
    assert_true(bytes_equal(range->from, bytes_of("from")));
    assert_int_equal(range->to.size, 0);
    assert_ok(ds_transaction_note(reading, bytes_of("a"), bytes_of("b")));
    assert_int_equal(reading->ranges.count, 0);
    ds_transaction_end(f->transactions, writing);
    ds_transaction_end(f->transactions, reading);
}

static void a_transaction_cannot_read_without_end(void **state)
{
    struct fixture *f = *state;
    static uint8_t large[1 << 20];
    struct ds_transaction *transaction;
    status s = status_ok();
    assert_ok(begin_one(f, false, &transaction));
    for (int i = 0; i < 100 && status_is_ok(s); i++)
        s = ds_transaction_note(transaction, bytes_make(large, sizeof large), bytes_of("b"));
    assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
    assert_string_equal(status_message(s), "The transaction has read too much.");
    status_free(s);
    ds_transaction_end(f->transactions, transaction);
}

/* --- memory --- */

/* Notes almost a MB at a time, until it is refused; how many. */
static int note_megabytes(struct fixture *f, struct ds_transaction *transaction, int most,
                          status *s)
{
    static uint8_t large[(1 << 20) - 4096];
    *s = status_ok();
    for (int i = 0; i < most; i++) {
        assert_ok(ds_transaction_note(transaction, bytes_make(large, sizeof large), bytes_of("")));
        *s = ds_transaction_charge(f->transactions, transaction);
        if (!status_is_ok(*s))
            return i;
    }
    return most;
}

static void together_they_cannot_read_without_end(void **state)
{
    struct fixture *f = *state;
    struct ds_transaction *first_one, *second_one, *third;
    status s;
    assert_ok(begin_one(f, false, &first_one));
    assert_ok(begin_one(f, false, &second_one));
    assert_ok(begin_one(f, false, &third));
    assert_int_equal(metrics_value(f->metrics, METRIC_datastore_transactions_bytes), 0);
    assert_int_equal(note_megabytes(f, first_one, 5, &s), 5);
    assert_int_equal(note_megabytes(f, second_one, 5, &s), 3);
    assert_string_equal(status_message(s),
                        "All transactions together have read too much. Please try again.");
    assert_status(s, STATUS_ABORTED);
    assert_status(ds_transaction_check(second_one), STATUS_ABORTED);
    assert_int_equal(metrics_value(f->metrics, METRIC_datastore_transactions_crowded_out_total), 1);
    assert_int_equal(note_megabytes(f, third, 2, &s), 2); /* the second has given its memory back */
    assert_true(metrics_value(f->metrics, METRIC_datastore_transactions_bytes) > 6 << 20);
    ds_transaction_end(f->transactions, first_one);
    assert_int_equal(note_megabytes(f, third, 4, &s), 4);
    ds_transaction_end(f->transactions, second_one);
    ds_transaction_end(f->transactions, third);
    assert_int_equal(metrics_value(f->metrics, METRIC_datastore_transactions_bytes), 0);
}

/* --- one request at a time --- */

struct taking {
    struct fixture *f;
    bytes id;
    atomic_bool is_given_back;
};

static void *take_and_end(void *argument)
{
    struct taking *taking = argument;
    struct ds_transaction *transaction;
    assert_ok(ds_transaction_take(taking->f->transactions, taking->id, &first, &transaction));
    assert_true(atomic_load(&taking->is_given_back));
    ds_transaction_end(taking->f->transactions, transaction);
    return NULL;
}

static void a_request_waits_for_the_one_before(void **state)
{
    struct fixture *f = *state;
    uint8_t a[DS_TRANSACTION_ID_SIZE];
    struct taking taking = {.f = f, .id = begin(f, a)};
    struct ds_transaction *transaction;
    pthread_t thread;
    assert_ok(ds_transaction_take(f->transactions, taking.id, &first, &transaction));
    assert_int_equal(pthread_create(&thread, NULL, take_and_end, &taking), 0);
    atomic_store(&taking.is_given_back, true);
    ds_transaction_give_back(f->transactions, transaction);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_gone(f, taking.id, &first);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void count_one(void *context, const struct ds_transaction *transaction)
{
    assert_false(transaction->is_read_only);
    ++*(size_t *)context;
}

/* Transactions of the database that may write and were given back at this time or before. */
static size_t left(struct fixture *f, const struct ds_database *database, int64_t until_us)
{
    size_t count = 0;
    ds_transactions_visit_left(f->transactions, database, until_us, count_one, &count);
    return count;
}

static void unused_transactions_are_told(void **state)
{
    struct fixture *f = *state;
    uint8_t id[DS_TRANSACTION_ID_SIZE];
    struct ds_transaction *read_only, *used;
    begin(f, id);
    assert_ok(begin_one(f, true, &read_only));
    ds_transaction_give_back(f->transactions, read_only);
    assert_ok(begin_one(f, false, &used));
    assert_int_equal(left(f, &first, f->hands.us), 1);
    assert_int_equal(left(f, &first, f->hands.us - 1), 0);
    assert_int_equal(left(f, &second, f->hands.us), 0);
    f->hands.us += 1000;
    ds_transaction_give_back(f->transactions, used);
    assert_int_equal(left(f, &first, f->hands.us - 1000), 1);
    assert_int_equal(left(f, &first, f->hands.us), 2);
}

/* Expired transactions that may write count for the kind that they read first. */
static void expired_transactions_are_counted(void **state)
{
    static const uint8_t row[] = {'E', 0, 1, 'O', 'r', 'd', 'e', 'r', 0, 1, 1};
    struct fixture *f = *state;
    struct ds_open_database open = {.next = NULL};
    struct ds_usage *usage;
    struct ds_usage_view view;
    struct ds_transaction *transaction;
    struct arena *arena = arena_create(1 << 20);
    assert_ok(ds_usage_create(&f->hands.clock, &usage));
    open.usage = ds_usage_database_create(usage);
    ds_transactions_destroy(f->transactions);
    assert_ok(ds_transactions_create(&f->hands.clock, f->metrics, NULL, usage, MOST_BYTES,
                                     &f->transactions));
    for (size_t i = 0; i < 3; i++) {
        assert_ok(begin_one(f, i == 0, &transaction));
        transaction->locker.database = &open;
        assert_ok(
            ds_transaction_note(transaction, bytes_make(row, sizeof row), bytes_make(row, 1)));
        ds_transaction_give_back(f->transactions, transaction);
    }
    f->hands.us += DS_IDLE_US + 1000000;
    assert_ok(begin_one(f, false, &transaction)); /* looks for those that have expired */
    ds_transaction_end(f->transactions, transaction);
    assert_ok(ds_usage_look(usage, open.usage, 0, arena, &view));
    assert_int_equal(view.kind_count, 1);
    assert_int_equal(view.kinds[0].numbers[DS_EXPIRED], 2);
    assert_memory_equal(view.kinds[0].name.text, "Order", sizeof "Order");
    ds_usage_destroy(usage);
    ds_usage_database_destroy(open.usage);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_transaction_is_its_databases),
        TEST(idle_and_old_transactions_expire),
        TEST(an_unused_transaction_is_forgotten),
        TEST(a_repeated_transaction_keeps_its_age),
        TEST(reads_are_noted),
        TEST(a_transaction_cannot_read_without_end),
        TEST(together_they_cannot_read_without_end),
        TEST(a_request_waits_for_the_one_before),
        TEST(unused_transactions_are_told),
        TEST(expired_transactions_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
