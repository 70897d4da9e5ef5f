/* Sums of accesses to data: by whom, of what, how; their bound; no memory; many threads. */
#include "access/data_sums.h"

#include "base/limits.h"
#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { TAKEN_MOST = LIMIT_DATA_SUMS + 1, THREADS = 4, CALLS = 2000, TEXT = 40 };

static const struct grpc_method methods[] = {{.name = "ReadRows"}, {.name = "MutateRow"}};
static const struct grpc_service service = {.name = "data", .methods = methods, .method_count = 2};

struct fixture {
    struct data_sums *sums;
    size_t count;
    struct {
        char principal[TEXT], resource[TEXT];
        struct data_sum sum;
    } taken[TAKEN_MOST];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    assert_ok(data_sums_create(&f->sums));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    data_sums_destroy(f->sums);
    free(f);
    return 0;
}

static struct grpc_call_record record(int method, enum status_code code)
{
    return (struct grpc_call_record){.service = &service,
                                     .method = &methods[method],
                                     .code = code,
                                     .items = 3,
                                     .request_bytes = 10,
                                     .response_bytes = 100};
}

static void add(struct fixture *f, const char *who, const char *what, int method,
                enum status_code code)
{
    const struct grpc_call_record call = record(method, code);
    data_sums_add(f->sums, bytes_of(who), bytes_of(what), &call);
}

static void keep(void *context, const struct data_sum *sum)
{
    struct fixture *f = context;
    assert_true(f->count < TAKEN_MOST);
    snprintf(f->taken[f->count].principal, TEXT, "%.*s", (int)sum->principal.size,
             (const char *)sum->principal.data);
    snprintf(f->taken[f->count].resource, TEXT, "%.*s", (int)sum->resource.size,
             (const char *)sum->resource.data);
    f->taken[f->count++].sum = *sum;
}

static size_t take(struct fixture *f)
{
    f->count = 0;
    data_sums_take(f->sums, f, keep);
    return f->count;
}

static const struct data_sum *sum_of(const struct fixture *f, const char *who, const char *what,
                                     const char *method)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->taken[i].principal, who) == 0 && strcmp(f->taken[i].resource, what) == 0 &&
            strcmp(f->taken[i].sum.method, method) == 0)
            return &f->taken[i].sum;
    fail_msg("no sum of %s, %s, %s", who, what, method);
    return NULL;
}

static void calls_are_added_up(void **state)
{
    struct fixture *f = *state;
    add(f, "user:a", "t", 0, STATUS_OK);
    add(f, "user:a", "t", 0, STATUS_NOT_FOUND);
    add(f, "user:a", "t", 1, STATUS_OK);
    add(f, "user:b", "t", 0, STATUS_OK);
    add(f, "user:a", "u", 0, STATUS_OK);
    add(f, "", "t", 0, STATUS_OK);
    assert_int_equal(take(f), 5);
    const struct data_sum *sum = sum_of(f, "user:a", "t", "ReadRows");
    assert_int_equal(sum->calls, 2);
    assert_int_equal(sum->failed, 1);
    assert_int_equal(sum->items, 6);
    assert_int_equal(sum->request_bytes, 20);
    assert_int_equal(sum->response_bytes, 200);
    assert_string_equal(sum->service, "data");
    assert_int_equal(sum_of(f, "user:a", "t", "MutateRow")->calls, 1);
    assert_int_equal(sum_of(f, "user:b", "t", "ReadRows")->calls, 1);
    assert_int_equal(sum_of(f, "user:a", "u", "ReadRows")->failed, 0);
    assert_int_equal(sum_of(f, "", "t", "ReadRows")->calls, 1);
}

static void sums_begin_at_zero_when_taken(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(take(f), 0);
    add(f, "user:a", "t", 0, STATUS_OK);
    assert_int_equal(take(f), 1);
    assert_int_equal(take(f), 0);
    add(f, "user:a", "t", 0, STATUS_OK);
    assert_int_equal(take(f), 1);
    assert_int_equal(f->taken[0].sum.calls, 1);
}

/* Names are told apart also by where one ends and the other begins. */
static void names_are_not_run_together(void **state)
{
    struct fixture *f = *state;
    add(f, "user:a", "bt", 0, STATUS_OK);
    add(f, "user:ab", "t", 0, STATUS_OK);
    assert_int_equal(take(f), 2);
}

static void beyond_the_bound_all_is_one_sum(void **state)
{
    struct fixture *f = *state;
    int64_t calls = 0, others = 0;
    for (int i = 0; i < 2 * LIMIT_DATA_SUMS; i++) {
        char name[TEXT];
        snprintf(name, sizeof name, "t%d", i);
        add(f, "user:a", name, 0, STATUS_OK);
    }
    assert_true(take(f) <= LIMIT_DATA_SUMS + 1);
    for (size_t i = 0; i < f->count; i++) {
        calls += f->taken[i].sum.calls;
        others += f->taken[i].sum.method == NULL ? f->taken[i].sum.calls : 0;
    }
    assert_int_equal(calls, 2 * LIMIT_DATA_SUMS);
    assert_true(others >= LIMIT_DATA_SUMS);
}

static void without_memory_it_is_counted_all_the_same(void **state)
{
    struct fixture *f = *state;
    add(f, "user:a", "t", 0, STATUS_OK);
    failmalloc_start(0);
    add(f, "user:a", "t", 0, STATUS_OK);
    add(f, "user:b", "t", 0, STATUS_OK);
    assert_true(failmalloc_stop());
    assert_int_equal(take(f), 2);
    assert_int_equal(f->taken[0].sum.calls, 2);
    assert_null(f->taken[1].sum.method);
    assert_int_equal(f->taken[1].sum.calls, 1);
    struct data_sums *none;
    failmalloc_start(0);
    status s = data_sums_create(&none);
    assert_true(failmalloc_stop());
    assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    assert_null(none);
}

/* --- threads --- */

static void *add_many(void *context)
{
    struct fixture *f = context;
    for (int i = 0; i < CALLS; i++)
        add(f, i % 2 == 0 ? "user:a" : "user:b", "t", 0, STATUS_OK);
    return NULL;
}

static void count_calls(void *context, const struct data_sum *sum)
{
    *(int64_t *)context += sum->calls;
}

/* Another thread takes the sums meanwhile: each call is in one of them, and in one only. */
static void no_call_is_lost_between_threads(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[THREADS];
    int64_t calls = 0;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, f), 0);
    for (int i = 0; i < CALLS / 10; i++)
        data_sums_take(f->sums, &calls, count_calls);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    data_sums_take(f->sums, &calls, count_calls);
    assert_int_equal(calls, THREADS * CALLS);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(calls_are_added_up),
        TEST(sums_begin_at_zero_when_taken),
        TEST(names_are_not_run_together),
        TEST(beyond_the_bound_all_is_one_sum),
        TEST(without_memory_it_is_counted_all_the_same),
        TEST(no_call_is_lost_between_threads),
    };
    return cmocka_run_group_tests_name("access_data_sums", tests, NULL, NULL);
}
