/* Tests of which requests are traced, of what is sent of them, and of a collector that takes it or
 * does not. The collector is a function here; requests, and what they name, are made up. */
#include "introspect/tracer.h"

#include "access/rules.h"
#include "base/testing/testing.h"
#include "introspect/span.h"
#include "os/thread.h"
#include "trestle/trace.pb-c.h"

#include <stdatomic.h>
#include <stdio.h>

#define TRACE_ID "0af7651916cd43dd8448eb211c80319c"
#define SPAN_ID  "b7ad6b7169203331"

struct grpc_call {
    const char *traceparent; /* NULL: none */
};

/* --- the fakes --- */

bool grpc_call_header(struct grpc_call *call, const char *name, bytes *value)
{
    assert_string_equal(name, "traceparent");
    if (call->traceparent != NULL)
        *value = bytes_of(call->traceparent);
    return call->traceparent != NULL;
}

bytes rule_name_of(const char *service, const char *method, bytes request)
{
    (void)service;
    (void)method;
    return request;
}

/* The collector. */
struct collector {
    enum status_code code; /* what it answers */
    atomic_size_t asked;
    atomic_size_t taken; /* spans */
    Trace__Export *last; /* batch; NULL: none */
};

static void forget_last(struct collector *collector)
{
    if (collector->last != NULL)
        protobuf_c_message_free_unpacked(&collector->last->base, NULL);
    collector->last = NULL;
}

static status take(void *context, bytes batch, int64_t timeout_us)
{
    struct collector *collector = context;
    assert_true(timeout_us > 0);
    atomic_fetch_add(&collector->asked, 1);
    if (collector->code != STATUS_OK)
        return status_make(collector->code, "not now");
    forget_last(collector);
    collector->last = (Trace__Export *)protobuf_c_message_unpack(&trace__export__descriptor, NULL,
                                                                 batch.size, batch.data);
    assert_non_null(collector->last);
    atomic_fetch_add(&collector->taken,
                     collector->last->resource_spans[0]->scope_spans[0]->n_spans);
    return status_ok();
}

/* --- */

static struct {
    struct collector collector;
    struct log log;
    struct metrics *metrics;
    struct tracer *tracer;
    struct grpc_call call;
} f;

static void start(uint64_t one_in, enum status_code code)
{
    f.collector = (struct collector){.code = code};
    f.call.traceparent = NULL;
    f.log = (struct log){.fd = -1, .level = LOG_ERROR, .clock = clock_system()};
    assert_ok(metrics_create(&f.metrics));
    const struct tracer_options options = {.one_in = one_in,
                                           .log = &f.log,
                                           .clock = clock_system(),
                                           .metrics = f.metrics,
                                           .version = "1",
                                           .send = take,
                                           .context = &f.collector};
    assert_ok(tracer_create(&options, &f.tracer));
}

/* All that was added has been sent or lost after it. */
static void end(void)
{
    tracer_destroy(f.tracer);
}

static int64_t sent(void)
{
    return metrics_value(f.metrics, METRIC_trace_spans_sent_total);
}

static int64_t dropped(void)
{
    return metrics_value(f.metrics, METRIC_trace_spans_dropped_total);
}

static int tear_down(void **state)
{
    (void)state;
    forget_last(&f.collector);
    metrics_destroy(f.metrics);
    return 0;
}

static const struct grpc_service service = {.name = "S"};
static const struct grpc_method method = {.name = "M", .kind = GRPC_UNARY};

static struct grpc_call_record record_of(enum status_code code)
{
    return (struct grpc_call_record){.service = &service,
                                     .method = &method,
                                     .code = code,
                                     .duration_us = 2500,
                                     .client_us = 500,
                                     .request_bytes = 5,
                                     .response_bytes = 6,
                                     .items = 7,
                                     .seen = 8,
                                     .request = bytes_of("tables/t"),
                                     .call = &f.call};
}

static void add(enum status_code code, bool is_slow)
{
    const struct grpc_call_record record = record_of(code);
    tracer_add(f.tracer, &record, is_slow);
}

static const Trace__Span *last_span(void)
{
    assert_non_null(f.collector.last);
    const Trace__ScopeSpans *spans = f.collector.last->resource_spans[0]->scope_spans[0];
    return spans->spans[spans->n_spans - 1];
}

static const Trace__Value *attribute(const Trace__Span *span, const char *key)
{
    for (size_t i = 0; i < span->n_attributes; i++)
        if (strcmp(span->attributes[i]->key, key) == 0)
            return span->attributes[i]->value;
    return NULL;
}

static int64_t number(const Trace__Span *span, const char *key)
{
    const Trace__Value *value = attribute(span, key);
    assert_non_null(value);
    assert_int_equal(value->value_case, TRACE__VALUE__VALUE_NUMBER);
    return value->number;
}

static void assert_hex(ProtobufCBinaryData data, const char *expected)
{
    assert_int_equal(data.len, strlen(expected) / 2);
    for (size_t i = 0; i < data.len; i++) {
        char text[3];
        snprintf(text, sizeof text, "%02x", data.data[i]);
        assert_memory_equal(text, expected + 2 * i, 2);
    }
}

/* --- what a span says --- */

static void test_a_child_of_the_client_s(void **state)
{
    (void)state;
    start(0, STATUS_OK);
    f.call.traceparent = "00-" TRACE_ID "-" SPAN_ID "-01";
    add(STATUS_OK, false);
    end();
    assert_int_equal(sent(), 1);
    const Trace__Span *span = last_span();
    assert_hex(span->trace_id, TRACE_ID);
    assert_hex(span->parent_span_id, SPAN_ID);
    assert_int_equal(span->span_id.len, SPAN_ID_SIZE);
    assert_string_equal(span->name, "S/M");
    assert_int_equal(span->kind, 2);
    assert_int_equal(span->end_time - span->start_time, 2500000);
    assert_string_equal(attribute(span, "rpc.system")->text, "grpc");
    assert_string_equal(attribute(span, "rpc.service")->text, "S");
    assert_string_equal(attribute(span, "rpc.method")->text, "M");
    assert_string_equal(attribute(span, "trestle.resource")->text, "tables/t");
    assert_int_equal(number(span, "rpc.grpc.status_code"), STATUS_OK);
    assert_int_equal(number(span, "trestle.rows"), 7);
    assert_int_equal(number(span, "trestle.rows_seen"), 8);
    assert_int_equal(number(span, "trestle.request_bytes"), 5);
    assert_int_equal(number(span, "trestle.answer_bytes"), 6);
    assert_int_equal(number(span, "trestle.client_us"), 500);
    assert_null(attribute(span, "trestle.slow"));
    assert_null(span->status);
}

static void test_steps(void **state)
{
    (void)state;
    start(1, STATUS_OK);
    struct grpc_call_record record = record_of(STATUS_OK);
    const struct call_steps steps = {
        .count = 2,
        .told = {{CALL_AWAITS_COMMIT, 100, 300}, {CALL_COMMITS, 300, 2000}},
        .untold = 3,
        .total_us = {[CALL_COMMITS] = 2200}};
    record.steps = &steps;
    tracer_add(f.tracer, &record, false);
    end();
    assert_int_equal(sent(), 3);
    const Trace__ScopeSpans *spans = f.collector.last->resource_spans[0]->scope_spans[0];
    assert_int_equal(spans->n_spans, 3);
    const Trace__Span *request = spans->spans[0], *commit = spans->spans[2];
    assert_string_equal(spans->spans[1]->name, "wait_for_commit");
    assert_string_equal(commit->name, "commit");
    assert_int_equal(commit->kind, 1);
    assert_memory_equal(commit->trace_id.data, request->trace_id.data, TRACE_ID_SIZE);
    assert_memory_equal(commit->parent_span_id.data, request->span_id.data, SPAN_ID_SIZE);
    assert_memory_not_equal(commit->span_id.data, spans->spans[1]->span_id.data, SPAN_ID_SIZE);
    assert_int_equal(commit->start_time - request->start_time, 300000);
    assert_int_equal(commit->end_time - request->start_time, 2000000);
    assert_int_equal(number(request, "trestle.steps_untold"), 3);
    assert_int_equal(number(request, "trestle.commit_us"), 2200);
    assert_null(attribute(request, "trestle.read_us"));
}

static void test_a_long_name_is_cut(void **state)
{
    (void)state;
    char name[2 * SPAN_NAME_MOST + 1] = "";
    memset(name, 'a', sizeof name - 1);
    start(1, STATUS_OK);
    struct grpc_call_record record = record_of(STATUS_OK);
    record.request = bytes_of(name);
    tracer_add(f.tracer, &record, false);
    end();
    const char *resource = attribute(last_span(), "trestle.resource")->text;
    assert_int_equal(strlen(resource), SPAN_NAME_MOST);
    assert_memory_equal(resource, name, SPAN_NAME_MOST);
}

static void test_errors(void **state)
{
    (void)state;
    start(1, STATUS_OK);
    add(STATUS_NOT_FOUND, false);
    add(STATUS_INTERNAL, true);
    end();
    const Trace__ScopeSpans *spans = f.collector.last->resource_spans[0]->scope_spans[0];
    assert_int_equal(spans->n_spans, 2);
    assert_null(spans->spans[0]->status); /* the client's fault */
    assert_int_equal(spans->spans[0]->parent_span_id.len, 0);
    assert_int_equal(spans->spans[1]->status->code, 2);
    assert_string_equal(spans->spans[1]->status->message, "INTERNAL");
    assert_true(attribute(spans->spans[1], "trestle.slow")->truth);
    assert_memory_not_equal(spans->spans[0]->trace_id.data, spans->spans[1]->trace_id.data,
                            TRACE_ID_SIZE);
}

/* --- which are traced --- */

static void test_one_in_so_many(void **state)
{
    enum { REQUESTS = 1000, ONE_IN = 10 };
    (void)state;
    start(ONE_IN, STATUS_OK);
    for (int i = 0; i < REQUESTS; i++)
        add(STATUS_OK, false);
    end();
    assert_int_equal(sent(), REQUESTS / ONE_IN);
}

static void test_slow_ones_always(void **state)
{
    (void)state;
    start(0, STATUS_OK);
    add(STATUS_OK, false);
    f.call.traceparent = "00-" TRACE_ID "-" SPAN_ID "-00";
    add(STATUS_OK, false);
    add(STATUS_OK, true);
    end();
    assert_int_equal(sent(), 1);
    assert_hex(last_span()->trace_id, TRACE_ID);
}

/* --- collectors --- */

static void test_a_collector_that_does_not_answer(void **state)
{
    (void)state;
    start(1, STATUS_UNAVAILABLE);
    for (int i = 0; i < 3; i++)
        add(STATUS_OK, false);
    end(); /* waits for no second attempt */
    assert_int_equal(sent(), 0);
    assert_int_equal(dropped(), 3);
    assert_in_range(f.collector.asked, 1, 3); /* batches */
}

static void test_a_collector_that_refuses(void **state)
{
    (void)state;
    start(1, STATUS_FAILED_PRECONDITION);
    add(STATUS_OK, false);
    end();
    assert_int_equal(dropped(), 1);
    assert_int_equal(f.collector.asked, 1);
}

enum { THREADS = 4, EACH = 20000 };

static void *add_many(void *argument)
{
    (void)argument;
    for (int i = 0; i < EACH; i++)
        add(STATUS_OK, false);
    return NULL;
}

/* Each span is sent or counted, whatever the queue had room for. How many are sent of those that
 * wait at the end depends on how much the machine gets done within the time that there is then. */
static void test_many_threads(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    start(1, STATUS_OK);
    for (int i = 0; i < THREADS; i++)
        assert_ok(thread_start(&threads[i], "adds", add_many, NULL));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    end();
    assert_int_equal(sent(), f.collector.taken);
    assert_int_equal(sent() + dropped(), THREADS * EACH);
    assert_true(sent() > 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_child_of_the_client_s),
        TEST(test_steps),
        TEST(test_a_long_name_is_cut),
        TEST(test_errors),
        TEST(test_one_in_so_many),
        TEST(test_slow_ones_always),
        TEST(test_a_collector_that_does_not_answer),
        TEST(test_a_collector_that_refuses),
        TEST(test_many_threads),
    };
    return cmocka_run_group_tests_name("insight_tracer", tests, NULL, NULL);
}
