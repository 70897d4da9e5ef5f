/* A stream of three shards that a fake server keeps: the first was split into two. */
#include "aws/dynamo_stream.h"
#include "aws/testing/testing.h"

#include "base/testing/testing.h"

#include <stdio.h>

enum { ARENA_LIMIT = 1 << 20, SINCE_S = 1000 };

static const struct aws_credentials credentials = {
    .access_key = "AK", .secret_key = "secret", .region = "r"};

#define RECORD(sequence, key, seconds)                                                             \
    "{\"eventName\":\"MODIFY\",\"dynamodb\":{\"Keys\":{\"k\":{\"S\":\"" key                        \
    "\"}},\"NewImage\":{\"k\":{\"S\":\"" key "\"}},\"SequenceNumber\":\"" sequence                 \
    "\",\"ApproximateCreationDateTime\":" seconds "}}"

struct fixture {
    struct fake_server server;
    struct loop *loop;
    struct dynamo_client *client;
    struct arena *arena;
    bool is_split; /* the shard "one" */
    bool expires;  /* its iterators, once */
    bool is_trimmed;
    struct buffer order; /* of what was asked for, "one/5" for records behind 5 */
};

static const char *shards_of(const struct fixture *f)
{
    return f->is_split ? "{\"StreamDescription\":{\"Shards\":["
                         "{\"ShardId\":\"left\",\"ParentShardId\":\"one\"},"
                         "{\"ShardId\":\"one\",\"ParentShardId\":\"gone\"}]}}"
                       : "{\"StreamDescription\":{\"Shards\":[{\"ShardId\":\"one\","
                         "\"ParentShardId\":\"gone\"},{\"ShardId\":\"old\",\"SequenceNumberRange\":"
                         "{\"EndingSequenceNumber\":\"0\"}}]}}";
}

static void answer_iterator(struct fixture *f, const char *request, struct buffer *body)
{
    const char *shard = strstr(request, "\"ShardId\":\"left\"") != NULL ? "left" : "one";
    const char *after = strstr(request, "\"SequenceNumber\":\"");
    unsigned long number =
        after == NULL ? 0 : strtoul(after + strlen("\"SequenceNumber\":\""), NULL, 10);
    buffer_append_format(&f->order, "%s/%lu ", shard, number);
    buffer_append_format(body, "{\"ShardIterator\":\"%s/%lu\"}", shard, number);
}

/* The shard one has the changes 1 to 3, of which the first is old. */
static const char *records_of(struct fixture *f, const char *request)
{
    if (strstr(request, "\"one/0\"") != NULL)
        return "{\"Records\":[" RECORD("1", "a", "999") "," RECORD(
            "2", "b", "1000") "],"
                              "\"NextShardIterator\":\"one/2\"}";
    if (strstr(request, "\"one/2\"") != NULL)
        return f->is_split ? "{\"Records\":[" RECORD("3", "c", "1001") "]}"
                           : "{\"Records\":[],\"NextShardIterator\":\"one/2\"}";
    if (strstr(request, "\"left/0\"") != NULL)
        return "{\"Records\":[{\"bad\":1}," RECORD("4", "d",
                                                   "1002") "],"
                                                           "\"NextShardIterator\":\"left/4\"}";
    if (strstr(request, "\"one/3\"") != NULL)
        return "{\"Records\":[]}";
    return "{\"Records\":[],\"NextShardIterator\":\"left/4\"}";
}

static void answer_stream(void *context, unsigned number, const char *request, struct buffer *out)
{
    struct fixture *f = context;
    struct buffer body = {0};
    int http_status = 200;
    (void)number;
    if (strstr(request, ".DescribeStream\r\n") != NULL) {
        buffer_append_bytes(&body, bytes_of(shards_of(f)));
    } else if (strstr(request, ".GetShardIterator\r\n") != NULL && f->is_trimmed) {
        http_status = 400;
        buffer_append_bytes(&body, bytes_of("{\"__type\":\"x#TrimmedDataAccessException\"}"));
    } else if (strstr(request, ".GetShardIterator\r\n") != NULL) {
        answer_iterator(f, request, &body);
    } else if (f->expires && strstr(request, "\"one/2\"") != NULL) {
        f->expires = false;
        http_status = 400;
        buffer_append_bytes(&body, bytes_of("{\"__type\":\"x#ExpiredIteratorException\"}"));
    } else {
        buffer_append_bytes(&body, bytes_of(records_of(f, request)));
    }
    buffer_append_byte(&body, '\0');
    fake_answer(out, http_status, (const char *)body.data);
    buffer_free(&body);
}

static void start(struct fixture *f)
{
    f->server = (struct fake_server){.answer = answer_stream, .context = f};
    fake_server_start(&f->server);
    assert_ok(loop_create(clock_system(), &f->loop));
    f->arena = arena_create(ARENA_LIMIT);
    const struct dynamo_client_options options = {
        .loop = f->loop, .endpoint = f->server.url, .credentials = &credentials};
    assert_ok(dynamo_client_create(&options, &f->client));
}

static void stop(struct fixture *f)
{
    dynamo_client_destroy(f->client);
    loop_destroy(f->loop);
    fake_server_stop(&f->server);
    arena_destroy(f->arena);
    buffer_free(&f->order);
}

static const struct dynamo_table table = {.name = "T",
                                          .partition_key = "k",
                                          .stream = "arn",
                                          .stream_view = "NEW_IMAGE",
                                          .server_us = (SINCE_S + 60) * 1000000ll};

static struct dynamo_stream *open_stream(struct fixture *f, json_t *position)
{
    const struct dynamo_stream_options options = {
        .client = f->client, .stream = table.stream, .poll_us = 1};
    struct dynamo_stream *stream;
    assert_ok(dynamo_stream_create(&options, position, &stream));
    json_decref(position);
    return stream;
}

/* The next changes' keys, as long as there are any; and what comes then. */
static enum dynamo_streamed take(struct fixture *f, struct dynamo_stream *stream, unsigned most,
                                 char *keys)
{
    enum dynamo_streamed what = STREAM_CHANGE;
    while (most-- > 0) {
        struct dynamo_change change;
        do
            assert_ok(dynamo_stream_next(stream, f->arena, &change, &what));
        while (what == STREAM_RESTS);
        if (what != STREAM_CHANGE)
            break;
        *keys++ = status_is_ok(change.failure)
                      ? (char)item_find(&change.record.item, bytes_of("k"))->text.data[0]
                      : '!';
        status_free(change.failure);
    }
    *keys = '\0';
    return what;
}

static json_t *note(struct fixture *f)
{
    json_t *position;
    assert_ok(dynamo_stream_note(f->client, &table, &position));
    return position;
}

static void changes_come_parents_first(void **state)
{
    struct fixture f = {0};
    char keys[16];
    (void)state;
    start(&f);
    json_t *position = note(&f);
    f.is_split = true;
    struct dynamo_stream *stream = open_stream(&f, position);
    assert_int_equal(take(&f, stream, 10, keys), STREAM_CAUGHT_UP);
    assert_string_equal(keys, "bc!d");
    buffer_append_byte(&f.order, '\0');
    assert_string_equal((const char *)f.order.data, "one/0 left/0 ");
    assert_true(dynamo_stream_bytes(stream) > 0);
    dynamo_stream_destroy(stream);
    stop(&f);
}

static void a_stream_goes_on_behind_each_change(void **state)
{
    /* A record that cannot be read has no number, and comes again. */
    static const char *const rests[] = {"bc!d", "c!d", "!d", "!d", ""};
    struct fixture f = {0};
    (void)state;
    start(&f);
    for (unsigned ended = 0; ended < sizeof rests / sizeof *rests; ended++) {
        char keys[16], rest[16];
        f.is_split = false;
        json_t *position = note(&f);
        f.is_split = true;
        struct dynamo_stream *stream = open_stream(&f, position);
        assert_int_equal(take(&f, stream, ended, keys), STREAM_CHANGE);
        position = dynamo_stream_save(stream);
        dynamo_stream_destroy(stream);
        stream = open_stream(&f, position);
        assert_int_equal(take(&f, stream, 10, rest), STREAM_CAUGHT_UP);
        dynamo_stream_destroy(stream);
        assert_string_equal(rest, rests[ended]);
    }
    stop(&f);
}

static void expired_iterators_are_asked_for_again(void **state)
{
    struct fixture f = {.expires = true};
    char keys[16];
    (void)state;
    start(&f);
    json_t *position = note(&f);
    f.is_split = true;
    struct dynamo_stream *stream = open_stream(&f, position);
    assert_int_equal(take(&f, stream, 10, keys), STREAM_CAUGHT_UP);
    assert_string_equal(keys, "bc!d");
    dynamo_stream_destroy(stream);
    stop(&f);
}

static void a_trimmed_position_is_told(void **state)
{
    struct fixture f = {.is_trimmed = true};
    struct dynamo_change change;
    enum dynamo_streamed what;
    (void)state;
    start(&f);
    struct dynamo_stream *stream = open_stream(&f, note(&f));
    assert_ok(dynamo_stream_next(stream, f.arena, &change, &what));
    assert_int_equal(what, STREAM_RESTS);
    status s = dynamo_stream_next(stream, f.arena, &change, &what);
    assert_non_null(strstr(status_message(s), "no longer has what follows the beginning"));
    assert_status(s, STATUS_DATA_LOSS);
    dynamo_stream_destroy(stream);
    stop(&f);
}

static void stop_it(struct timer *timer);

struct stopper {
    struct timer timer;
    struct dynamo_stream *stream;
};

static void stop_it(struct timer *timer)
{
    dynamo_stream_stop(LIST_ENTRY(timer, struct stopper, timer)->stream);
}

static void a_stream_can_be_stopped(void **state)
{
    struct fixture f = {0};
    char keys[16];
    (void)state;
    start(&f);
    struct stopper stopper = {.timer = {.run = stop_it}};
    stopper.stream = open_stream(&f, note(&f));
    assert_int_equal(take(&f, stopper.stream, 10, keys), STREAM_CAUGHT_UP);
    assert_string_equal(keys, "b");
    assert_ok(loop_timer_set(f.loop, &stopper.timer, 0));
    assert_int_equal(take(&f, stopper.stream, 10, keys), STREAM_STOPPED);
    assert_int_equal(take(&f, stopper.stream, 10, keys), STREAM_STOPPED);
    dynamo_stream_destroy(stopper.stream);
    stop(&f);
}

static void tables_without_new_images_are_refused(void **state)
{
    struct fixture f = {0};
    struct dynamo_table none = table, keys = table;
    json_t *position;
    (void)state;
    start(&f);
    none.stream = NULL;
    assert_status(dynamo_stream_note(f.client, &none, &position), STATUS_FAILED_PRECONDITION);
    keys.stream_view = "KEYS_ONLY";
    assert_status(dynamo_stream_note(f.client, &keys, &position), STATUS_FAILED_PRECONDITION);
    stop(&f);
}

static void positions_are_looked_at(void **state)
{
    struct fixture f = {0};
    json_t *positions[] = {json_object(), json_pack("{s:i, s:[]}", "from_us", 1, "shards")};
    (void)state;
    start(&f);
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        const struct dynamo_stream_options options = {.client = f.client, .stream = "arn"};
        struct dynamo_stream *stream;
        assert_status(dynamo_stream_create(&options, positions[i], &stream), STATUS_DATA_LOSS);
        json_decref(positions[i]);
    }
    stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_come_parents_first),
        cmocka_unit_test(a_stream_goes_on_behind_each_change),
        cmocka_unit_test(expired_iterators_are_asked_for_again),
        cmocka_unit_test(a_trimmed_position_is_told),
        cmocka_unit_test(a_stream_can_be_stopped),
        cmocka_unit_test(tables_without_new_images_are_refused),
        cmocka_unit_test(positions_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
