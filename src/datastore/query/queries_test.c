/* Tests of the methods that query, over a database in memory: what they make of the rest of their
 * requests. */
#include "datastore/query/queries.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/testing/testing.h"
#include "datastore/testing/query_fake.h"
#include "datastore/testing/testing.h"

static struct fake *current;
static int begun, ended, transactions, again_left;

status ds_read_begin(struct ds_call *call, const Ds__ReadOptions *options, struct ds_reading *out)
{
    (void)call;
    *out = fake_reading(current);
    if (options != NULL)
        out->new_transaction = bytes_of("t");
    transactions += options != NULL;
    begun++;
    return status_ok();
}

void ds_read_indexes(struct ds_reading *reading)
{
    (void)reading; /* there are none */
}

void ds_read_end(struct ds_reading *reading)
{
    (void)reading;
    ended++;
}

bool ds_reading_again(struct ds_reading *reading, status *s)
{
    bool again = status_is_ok(*s) && again_left > 0;
    (void)reading;
    again_left -= again;
    return again;
}

static int set_up(void **state)
{
    int failed = fake_setup(state);
    current = *state;
    begun = ended = transactions = again_left = 0;
    return failed;
}

static status call(ds_run *run, const ProtobufCMessageDescriptor *type, const char *json,
                   ProtobufCMessage **response)
{
    struct datastore datastore = {.clock = clock_system()};
    struct ds_call made = {
        .datastore = &datastore, .arena = current->arena, .project_id = "p", .database_id = ""};
    status s = run(&made, test_message(current->arena, type, json), response);
    assert_int_equal(begun, ended);
    return s;
}

static Ds__RunQueryResponse *query(const char *json)
{
    ProtobufCMessage *response = NULL;
    assert_ok(call(ds_run_query, &ds__run_query_request__descriptor, json, &response));
    CHECK(response != NULL);
    return (Ds__RunQueryResponse *)response;
}

static void assert_refused(const char *json, enum status_code code, const char *message)
{
    ProtobufCMessage *response;
    status s = call(ds_run_query, &ds__run_query_request__descriptor, json, &response);
    assert_int_equal(s.code, code);
    assert_string_equal(status_message(s), message);
    status_free(s);
    assert_int_equal(begun, 0);
}

#define OF_K "'query': {'kind': [{'name': 'K'}]}"

static void test_masks_leave_what_they_name(void **state)
{
    fake_put(*state, "K/1", "'a': {'integerValue': 1}, 'b': {'integerValue': 2}");
    Ds__RunQueryResponse *response = query("{" OF_K ", 'propertyMask': {'paths': ['b']}}");
    assert_int_equal(response->batch->n_entity_results, 1);
    const Ds__Entity *entity = response->batch->entity_results[0]->entity;
    assert_int_equal(entity->n_properties, 1);
    assert_string_equal(entity->properties[0]->key, "b");
    assert_int_equal(entity->key->path[0]->id, 1);
    assert_int_equal(response->transaction.len, 0);
    assert_null(response->explain_metrics);
}

static void test_a_transaction_that_began_is_told(void **state)
{
    (void)state;
    Ds__RunQueryResponse *response = query("{" OF_K ", 'readOptions': {'newTransaction': {}}}");
    assert_int_equal(response->transaction.len, 1);
}

static void test_explanations_are_with_results_or_without(void **state)
{
    fake_put(*state, "K/1", "");
    Ds__RunQueryResponse *response =
        query("{" OF_K ", 'readOptions': {'newTransaction': {}}, 'explainOptions': {}}");
    assert_int_equal(transactions, 0);
    assert_int_equal(response->batch->n_entity_results, 0);
    assert_int_equal(response->explain_metrics->plan_summary->n_indexes_used, 1);
    assert_null(response->explain_metrics->execution_stats);
    response = query("{" OF_K ", 'explainOptions': {'analyze': true}}");
    assert_int_equal(response->batch->n_entity_results, 1);
    assert_int_equal(response->explain_metrics->execution_stats->results_returned, 1);
}

/* They are counted again from the beginning, when that has to be. */
static void test_aggregations_are_answered(void **state)
{
    again_left = 1;
    ProtobufCMessage *message = NULL;
    fake_put(*state, "K/1", "");
    assert_ok(call(ds_run_aggregation_query, &ds__run_aggregation_query_request__descriptor,
                   "{'aggregationQuery': {'aggregations': [{'count': {}}], 'nestedQuery':"
                   " {'kind': [{'name': 'K'}]}}, 'explainOptions': {'analyze': true}}",
                   &message));
    CHECK(message != NULL);
    Ds__RunAggregationQueryResponse *response = (Ds__RunAggregationQueryResponse *)message;
    assert_json(&response->batch->aggregation_results[0]->base,
                "{'aggregateProperties':{'property_1':{'integerValue':'1'}}}");
    assert_non_null(response->explain_metrics->execution_stats);
}

static void test_what_requests_may_not_say(void **state)
{
    (void)state;
    assert_refused("{}", STATUS_INVALID_ARGUMENT,
                   "One of the fields query and gql_query must be set.");
    assert_refused("{'query': {'kind': [{'name': 'K'}], 'projection': [{'property': {'name': 'a'}}]"
                   "}, 'propertyMask': {'paths': ['b']}}",
                   STATUS_INVALID_ARGUMENT, "A projection query cannot have a property_mask.");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_masks_leave_what_they_name),
        TEST(test_a_transaction_that_began_is_told),
        TEST(test_explanations_are_with_results_or_without),
        TEST(test_aggregations_are_answered),
        TEST(test_what_requests_may_not_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
