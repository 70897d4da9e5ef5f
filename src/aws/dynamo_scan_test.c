/* Scans of a small table that a fake server keeps: pages, positions, hostile answers. */
#include "aws/dynamo_scan.h"
#include "aws/testing/testing.h"

#include "base/testing/testing.h"

#include <stdio.h>

enum { SEGMENTS = 2, ITEMS = 7 /* of a segment */, PAGE = 3 };

static const struct aws_credentials credentials = {
    .access_key = "AK", .secret_key = "secret", .region = "r"};
static const struct dynamo_table table = {.name = "T", .partition_key = "p"};

struct fixture {
    struct fake_server server;
    struct loop *loop;
    struct dynamo_client *client;
    const char *body; /* NULL: the table's */
};

/* The number behind a member's name; -1: it is not there. */
static long number_of(const char *request, const char *name)
{
    const char *at = strstr(request, name);
    return at == NULL ? -1 : strtol(at + strlen(name), NULL, 10);
}

/* Items of segment s are "s0" to "s6", in pages of three. */
static void answer_scan(void *context, unsigned number, const char *request, struct buffer *out)
{
    const struct fixture *f = context;
    long segment = number_of(request, "\"Segment\":");
    long first = number_of(request, "\"p\":{\"N\":\"") % 100 + 1;
    struct buffer body = {0};
    (void)number;
    buffer_append_bytes(&body, bytes_of("{\"Items\":["));
    for (long i = first; i < first + PAGE && i < ITEMS; i++)
        buffer_append_format(&body, "%s{\"p\":{\"N\":\"%ld\"},\"x\":{\"S\":\"y\"}}",
                             i == first ? "" : ",", 100 * segment + i);
    buffer_append_bytes(&body, bytes_of("]"));
    if (first + PAGE < ITEMS)
        buffer_append_format(&body, ",\"LastEvaluatedKey\":{\"p\":{\"N\":\"%ld\"}}",
                             100 * segment + first + PAGE - 1);
    buffer_append_format(&body, "}%c", 0);
    fake_answer(out, 200, f->body == NULL ? (const char *)body.data : f->body);
    buffer_free(&body);
}

static void start(struct fixture *f)
{
    f->server = (struct fake_server){.answer = answer_scan, .context = f};
    fake_server_start(&f->server);
    assert_ok(loop_create(clock_system(), &f->loop));
    const struct dynamo_client_options options = {
        .loop = f->loop, .endpoint = f->server.url, .credentials = &credentials};
    assert_ok(dynamo_client_create(&options, &f->client));
}

static void stop(struct fixture *f)
{
    dynamo_client_destroy(f->client);
    loop_destroy(f->loop);
    fake_server_stop(&f->server);
}

static struct dynamo_scan *new_scan(struct fixture *f, unsigned segments)
{
    const struct dynamo_scan_options options = {
        .client = f->client, .table = &table, .segments = segments};
    struct dynamo_scan *scan;
    assert_ok(dynamo_scan_create(&options, &scan));
    return scan;
}

static void take(struct dynamo_scan *scan, unsigned *seen)
{
    bytes item;
    bool is_end;
    assert_ok(dynamo_scan_next(scan, &item, &is_end));
    assert_false(is_end);
    char text[64] = {0};
    assert_true(item.size < sizeof text);
    memcpy(text, item.data, item.size);
    seen[number_of(text, "\"p\":{\"N\":\"")]++;
}

static void check_end(struct dynamo_scan *scan)
{
    bytes item;
    bool is_end;
    assert_ok(dynamo_scan_next(scan, &item, &is_end));
    assert_true(is_end);
}

static void check_seen(const unsigned *seen)
{
    for (unsigned segment = 0; segment < SEGMENTS; segment++)
        for (unsigned i = 0; i < ITEMS; i++)
            assert_int_equal(seen[100 * segment + i], 1);
}

static void all_segments_are_read(void **state)
{
    struct fixture f = {0};
    unsigned seen[100 * SEGMENTS] = {0};
    (void)state;
    start(&f);
    struct dynamo_scan *scan = new_scan(&f, SEGMENTS);
    for (unsigned i = 0; i < SEGMENTS * ITEMS; i++)
        take(scan, seen);
    check_end(scan);
    check_seen(seen);
    assert_true(dynamo_scan_bytes(scan) > 0);
    dynamo_scan_destroy(scan);
    stop(&f);
}

/* Ended after any number of items, and gone on with by another: each item comes once. */
static void a_scan_goes_on_where_it_was(void **state)
{
    struct fixture f = {0};
    (void)state;
    start(&f);
    for (unsigned ended = 0; ended <= SEGMENTS * ITEMS; ended++) {
        unsigned seen[100 * SEGMENTS] = {0};
        struct dynamo_scan *scan = new_scan(&f, SEGMENTS);
        for (unsigned i = 0; i < ended; i++)
            take(scan, seen);
        json_t *position = dynamo_scan_save(scan);
        dynamo_scan_destroy(scan);
        scan = new_scan(&f, SEGMENTS);
        assert_ok(dynamo_scan_restore(scan, position));
        json_decref(position);
        for (unsigned i = ended; i < SEGMENTS * ITEMS; i++)
            take(scan, seen);
        check_end(scan);
        check_seen(seen);
        dynamo_scan_destroy(scan);
    }
    stop(&f);
}

static void positions_are_of_one_scan(void **state)
{
    struct fixture f = {0};
    (void)state;
    start(&f);
    struct dynamo_scan *scan = new_scan(&f, SEGMENTS);
    json_t *positions[] = {json_array(), json_pack("[n, n, n]"), json_pack("[n, s]", "x"),
                           json_object()};
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        assert_status(dynamo_scan_restore(scan, positions[i]), STATUS_DATA_LOSS);
        json_decref(positions[i]);
    }
    dynamo_scan_destroy(scan);
    stop(&f);
}

static void hostile_pages_end_the_scan(void **state)
{
    static const char *const bodies[] = {
        "",
        "[]",
        "{\"Items\":7}",
        "{\"Items\":[],\"LastEvaluatedKey\":7}",
        "{\"Items\":[{\"p\":{\"N\":\"1\"}},",
        "{\"Items\":[],\"LastEvaluatedKey\":{\"p\":{\"N\":\"1\"}}}", /* for ever */
    };
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct fixture f = {.body = bodies[i]};
        bytes item;
        bool is_end;
        start(&f);
        struct dynamo_scan *scan = new_scan(&f, 1);
        assert_status(dynamo_scan_next(scan, &item, &is_end), STATUS_DATA_LOSS);
        dynamo_scan_destroy(scan);
        stop(&f);
    }
}

/* With requests under way and pages half given out. */
static void a_scan_may_be_given_up(void **state)
{
    struct fixture f = {0};
    unsigned seen[100 * SEGMENTS] = {0};
    (void)state;
    start(&f);
    struct dynamo_scan *scan = new_scan(&f, SEGMENTS);
    for (unsigned i = 0; i < PAGE + 1; i++)
        take(scan, seen);
    dynamo_scan_destroy(scan);
    stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_segments_are_read),     cmocka_unit_test(a_scan_goes_on_where_it_was),
        cmocka_unit_test(positions_are_of_one_scan), cmocka_unit_test(hostile_pages_end_the_scan),
        cmocka_unit_test(a_scan_may_be_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
