/* See dynamo_stream.h.
 *
 * A shard's life:
 *
 *     waits for its parent ──► asks for an iterator ──► asks for records ──► gives them out
 *                                     ▲                   ▲    │ nothing: rests     │
 *                                     └── it expired ─────┴────┴────────────────────┤
 *                                                     no iterator behind the page: done */
#include "aws/dynamo_stream.h"

#include "base/check.h"
#include "formats/dynamo_page.h"

#include <stdlib.h>

enum {
    RECORDS_MOST = 1000, /* of an answer */
    POLL_US = 250 * 1000,
    EMPTY_ANSWERS = 10, /* until a shard counts as read to its end */
    DESCRIBE_US = 1000 * 1000,
    EMPTY_LOOKS = 10, /* for shards, until the stream counts as closed */
    MARGIN_US = 60 * 1000 * 1000,
    SHARDS_MOST = 100 * 1000, /* a stream has a few for each partition of its table */
    PAGES_MOST = 10 * 1000,
};

struct shard {
    struct shard *next;
    char *id;
    char *parent; /* NULL: none */
    char *after;  /* the sequence number of what was given out last; NULL: nothing was */
    json_t *iterator;
    struct dynamo_call call;
    struct dynamo_page page;
    bool asks_iterator; /* that is what the call is */
    bool has_answer;    /* that was not looked at yet */
    bool has_page;      /* that is being given out */
    bool is_last_page;
    bool is_done;
    unsigned empty_answers; /* in a row */
    int64_t rests_until_us;
};

struct dynamo_stream {
    struct dynamo_stream_options options;
    struct shard *shards;
    struct shard *current; /* whose page is being given out; NULL: none */
    size_t count;
    int64_t from_us; /* changes before that are passed over */
    struct timer timer;
    bool is_waiting; /* the loop runs for us */
    bool is_stopped;
    bool wants_shards; /* one is done: there may be children */
    bool has_rested;   /* STREAM_RESTS was said since the last change */
    unsigned empty_looks;
    uint64_t bytes;
};

/* --- shards --- */

static void destroy_shard(struct shard *shard)
{
    dynamo_call_clear(&shard->call);
    json_decref(shard->iterator);
    free(shard->id);
    free(shard->parent);
    free(shard->after);
    free(shard);
}

static struct shard *find_shard(const struct dynamo_stream *stream, const char *id)
{
    struct shard *shard = stream->shards;
    while (shard != NULL && strcmp(shard->id, id) != 0)
        shard = shard->next;
    return shard;
}

static void wake(struct dynamo_stream *stream)
{
    if (stream->is_waiting)
        loop_stop(dynamo_client_loop(stream->options.client));
}

static void answered(struct dynamo_call *call)
{
    LIST_ENTRY(call, struct shard, call)->has_answer = true;
    wake(call->context);
}

static void timer_is_due(struct timer *timer)
{
    wake(LIST_ENTRY(timer, struct dynamo_stream, timer));
}

/* `*out` stays NULL for NULL. */
static status copy_string(const char *text, char **out)
{
    if (text == NULL)
        return status_ok();
    *out = bytes_to_string(bytes_of(text));
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status add_shard(struct dynamo_stream *stream, const char *id, struct shard **out)
{
    if (stream->count++ == SHARDS_MOST)
        return status_make(STATUS_RESOURCE_EXHAUSTED, "the stream has more than %d shards",
                           SHARDS_MOST);
    struct shard *shard = *out = calloc(1, sizeof *shard);
    if (shard == NULL)
        return status_out_of_memory();
    shard->call.done = answered;
    shard->call.context = stream;
    shard->next = stream->shards;
    stream->shards = shard;
    return copy_string(id, &shard->id);
}

/* --- which shards there are --- */

typedef status take_shard(void *context, const json_t *shard);

static status take_page_of_shards(const json_t *description, take_shard *take, void *context)
{
    size_t i;
    const json_t *shard;
    json_array_foreach(json_object_get(description, "Shards"), i, shard)
    {
        if (json_string_value(json_object_get(shard, "ShardId")) == NULL)
            return status_make(STATUS_DATA_LOSS, "DescribeStream: a shard has no ShardId");
        TRY(take(context, shard));
    }
    return status_ok();
}

static status describe_stream(struct dynamo_client *client, const char *stream, take_shard *take,
                              void *context, int64_t *server_us)
{
    json_t *last = NULL;
    status s = status_ok();
    for (unsigned pages = 0; status_is_ok(s) && (pages == 0 || last != NULL); pages++) {
        json_t *answer = NULL;
        if (pages == PAGES_MOST)
            return status_make(STATUS_DATA_LOSS, "DescribeStream: the list does not end");
        s = dynamo_client_call(
            client, DYNAMO_STREAMS, "DescribeStream",
            json_pack("{s:s, s:o*}", "StreamArn", stream, "ExclusiveStartShardId", last), server_us,
            &answer);
        const json_t *description = json_object_get(answer, "StreamDescription");
        if (status_is_ok(s))
            s = take_page_of_shards(description, take, context);
        last = json_object_get(description, "LastEvaluatedShardId");
        last = json_is_string(last) ? json_incref(last) : NULL;
        json_decref(answer);
    }
    json_decref(last);
    return s;
}

/* All of them, closed or not, are known from now on: what is new later is new. */
static status note_shard(void *context, const json_t *shard)
{
    const json_t *range = json_object_get(shard, "SequenceNumberRange");
    bool is_closed = json_is_string(json_object_get(range, "EndingSequenceNumber"));
    const char *id = json_string_value(json_object_get(shard, "ShardId"));
    const char *parent = json_string_value(json_object_get(shard, "ParentShardId"));
    json_t *noted = json_pack("{s:s*, s:b}", "parent", parent, "done", is_closed);
    return json_object_set_new(context, id, noted) == 0 ? status_ok() : status_out_of_memory();
}

status dynamo_stream_note(struct dynamo_client *client, const struct dynamo_table *table,
                          json_t **out)
{
    *out = NULL;
    if (table->stream == NULL)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "the table %s has no stream: its changes cannot be followed",
                           table->name);
    if (table->stream_view == NULL || (strcmp(table->stream_view, "NEW_IMAGE") != 0 &&
                                       strcmp(table->stream_view, "NEW_AND_OLD_IMAGES") != 0))
        return status_make(STATUS_FAILED_PRECONDITION,
                           "the stream of the table %s has %s: new images are needed", table->name,
                           table->stream_view == NULL ? "no images" : table->stream_view);
    json_t *shards = json_object();
    status s = shards == NULL ? status_out_of_memory()
                              : describe_stream(client, table->stream, note_shard, shards, NULL);
    if (!status_is_ok(s)) {
        json_decref(shards);
        return s;
    }
    *out = json_pack("{s:I, s:o}", "from_us", (json_int_t)(table->server_us - MARGIN_US), "shards",
                     shards);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

/* A shard that is there now; new ones are added. */
static status see_shard(void *context, const json_t *seen)
{
    struct dynamo_stream *stream = context;
    struct shard *shard;
    const char *id = json_string_value(json_object_get(seen, "ShardId"));
    if (find_shard(stream, id) != NULL)
        return status_ok();
    TRY(add_shard(stream, id, &shard));
    stream->empty_looks = 0;
    return copy_string(json_string_value(json_object_get(seen, "ParentShardId")), &shard->parent);
}

static status look_for_shards(struct dynamo_stream *stream)
{
    stream->wants_shards = false;
    stream->empty_looks++;
    return describe_stream(stream->options.client, stream->options.stream, see_shard, stream, NULL);
}

/* --- positions --- */

static status restore_shard(struct dynamo_stream *stream, const char *id, const json_t *saved)
{
    struct shard *shard;
    TRY(add_shard(stream, id, &shard));
    shard->is_done = json_is_true(json_object_get(saved, "done"));
    TRY(copy_string(json_string_value(json_object_get(saved, "parent")), &shard->parent));
    return copy_string(json_string_value(json_object_get(saved, "after")), &shard->after);
}

static status restore(struct dynamo_stream *stream, const json_t *position)
{
    const json_t *from = json_object_get(position, "from_us");
    const char *id;
    json_t *saved;
    json_t *shards = json_object_get(position, "shards");
    if (!json_is_integer(from) || !json_is_object(shards))
        return status_make(STATUS_DATA_LOSS, "the checkpoint's position cannot be read");
    stream->from_us = json_integer_value(from);
    json_object_foreach(shards, id, saved) TRY(restore_shard(stream, id, saved));
    return status_ok();
}

status dynamo_stream_create(const struct dynamo_stream_options *options, const json_t *position,
                            struct dynamo_stream **out)
{
    struct dynamo_stream *stream = *out = calloc(1, sizeof *stream);
    if (stream == NULL)
        return status_out_of_memory();
    stream->options = *options;
    if (stream->options.poll_us == 0)
        stream->options.poll_us = POLL_US;
    stream->timer.run = timer_is_due;
    stream->wants_shards = true;
    status s = restore(stream, position);
    if (status_is_ok(s))
        return s;
    dynamo_stream_destroy(stream);
    *out = NULL;
    return s;
}

void dynamo_stream_destroy(struct dynamo_stream *stream)
{
    if (stream == NULL)
        return;
    while (stream->shards != NULL) {
        struct shard *shard = stream->shards;
        stream->shards = shard->next;
        destroy_shard(shard);
    }
    loop_timer_clear(dynamo_client_loop(stream->options.client), &stream->timer);
    free(stream);
}

json_t *dynamo_stream_save(const struct dynamo_stream *stream)
{
    json_t *shards = json_object();
    for (const struct shard *shard = stream->shards; shard != NULL; shard = shard->next) {
        json_t *saved = json_pack("{s:s*, s:s*, s:b}", "parent", shard->parent, "after",
                                  shard->after, "done", shard->is_done);
        if (json_object_set_new(shards, shard->id, saved) != 0) {
            json_decref(shards);
            return NULL;
        }
    }
    return json_pack("{s:I, s:o}", "from_us", (json_int_t)stream->from_us, "shards", shards);
}

uint64_t dynamo_stream_bytes(const struct dynamo_stream *stream)
{
    return stream->bytes;
}

/* --- asking --- */

static int64_t now_us(const struct dynamo_stream *stream)
{
    return clock_steady_us(loop_clock(dynamo_client_loop(stream->options.client)));
}

static bool is_readable(const struct dynamo_stream *stream, const struct shard *shard)
{
    const struct shard *parent = shard->parent == NULL ? NULL : find_shard(stream, shard->parent);
    return !shard->is_done && (parent == NULL || parent->is_done);
}

static void ask_for_iterator(struct dynamo_stream *stream, struct shard *shard)
{
    const char *type = shard->after == NULL ? "TRIM_HORIZON" : "AFTER_SEQUENCE_NUMBER";
    shard->asks_iterator = true;
    dynamo_call_start(stream->options.client, &shard->call, DYNAMO_STREAMS, "GetShardIterator",
                      json_pack("{s:s, s:s, s:s, s:s*}", "StreamArn", stream->options.stream,
                                "ShardId", shard->id, "ShardIteratorType", type, "SequenceNumber",
                                shard->after));
}

static void ask_for_records(struct dynamo_stream *stream, struct shard *shard)
{
    shard->asks_iterator = false;
    dynamo_call_start(
        stream->options.client, &shard->call, DYNAMO_STREAMS, "GetRecords",
        json_pack("{s:O, s:i}", "ShardIterator", shard->iterator, "Limit", RECORDS_MOST));
}

static void ask_shards(struct dynamo_stream *stream)
{
    int64_t now = now_us(stream);
    for (struct shard *shard = stream->shards; shard != NULL; shard = shard->next) {
        if (shard->has_page || shard->has_answer || shard->call.is_under_way ||
            shard->rests_until_us > now || !is_readable(stream, shard))
            continue;
        if (shard->iterator == NULL)
            ask_for_iterator(stream, shard);
        else
            ask_for_records(stream, shard);
    }
}

/* --- answers --- */

static status is_lost(const struct dynamo_stream *stream, const struct shard *shard)
{
    return status_make(STATUS_DATA_LOSS,
                       "the stream %s no longer has what follows %s in the shard %s: the table has "
                       "to be imported anew, without the checkpoint",
                       stream->options.stream,
                       shard->after == NULL ? "the beginning" : shard->after, shard->id);
}

static status take_iterator(struct shard *shard)
{
    json_t *answer =
        json_loadb((const char *)shard->call.answer.data, shard->call.answer.size, 0, NULL);
    json_t *iterator = json_object_get(answer, "ShardIterator");
    shard->iterator = json_is_string(iterator) ? json_incref(iterator) : NULL;
    json_decref(answer);
    return shard->iterator != NULL
               ? status_ok()
               : status_make(STATUS_DATA_LOSS, "GetShardIterator: the answer has no iterator");
}

static status take_records(struct dynamo_stream *stream, struct shard *shard)
{
    TRY(dynamo_page_open(shard->call.answer, "Records", "NextShardIterator", &shard->page));
    bytes next = shard->page.next;
    json_decref(shard->iterator);
    shard->iterator = next.size == 0
                          ? NULL
                          : json_loadb((const char *)next.data, next.size, JSON_DECODE_ANY, NULL);
    if (next.size > 0 && !json_is_string(shard->iterator))
        return status_make(STATUS_DATA_LOSS, "GetRecords: NextShardIterator is no iterator");
    stream->bytes += shard->call.answer.size;
    shard->is_last_page = next.size == 0;
    shard->has_page = true;
    bool is_empty = shard->page.rest.size == 0;
    shard->empty_answers = is_empty ? shard->empty_answers + 1 : 0;
    shard->rests_until_us = is_empty ? now_us(stream) + stream->options.poll_us : 0;
    return status_ok();
}

static status take_answer(struct dynamo_stream *stream, struct shard *shard)
{
    status s = shard->call.outcome;
    shard->has_answer = false;
    if (s.code == STATUS_ABORTED && !shard->asks_iterator) {
        json_decref(shard->iterator);
        shard->iterator = NULL;
        return status_ok();
    }
    if (s.code == STATUS_DATA_LOSS || s.code == STATUS_NOT_FOUND)
        return is_lost(stream, shard);
    TRY(status_copy(s));
    return shard->asks_iterator ? take_iterator(shard) : take_records(stream, shard);
}

static void end_page(struct dynamo_stream *stream, struct shard *shard)
{
    shard->has_page = false;
    shard->is_done = shard->is_last_page;
    stream->wants_shards |= shard->is_done;
    if (stream->current == shard)
        stream->current = NULL;
}

/* Looks at all answers; the current shard is one that has records then, if there is any. */
static status take_answers(struct dynamo_stream *stream)
{
    for (struct shard *shard = stream->shards; shard != NULL; shard = shard->next) {
        if (shard->has_answer)
            TRY(take_answer(stream, shard));
        if (!shard->has_page)
            continue;
        if (shard->page.rest.size == 0)
            end_page(stream, shard);
        else if (stream->current == NULL)
            stream->current = shard;
    }
    return status_ok();
}

/* --- giving out --- */

static status take_change(struct dynamo_stream *stream, struct arena *arena,
                          struct dynamo_change *out)
{
    struct shard *shard = stream->current;
    bytes sequence = {0};
    out->failure = dynamo_record_read_stream(out->text, arena, &out->record, &sequence);
    if (sequence.size == 0)
        return status_ok();
    char *after = bytes_to_string(sequence);
    if (after == NULL) {
        status_free(out->failure);
        out->failure = status_ok();
        return status_out_of_memory();
    }
    free(shard->after);
    shard->after = after;
    return status_ok();
}

/* The next of the current page that is not too old. */
static status next_of_page(struct dynamo_stream *stream, struct arena *arena,
                           struct dynamo_change *out, bool *found)
{
    *found = false;
    while (stream->current != NULL && !*found) {
        if (!dynamo_page_next(&stream->current->page, &out->text)) {
            end_page(stream, stream->current);
            break;
        }
        arena_reset(arena);
        TRY(take_change(stream, arena, out));
        *found = !status_is_ok(out->failure) || out->record.written_us >= stream->from_us;
    }
    return status_ok();
}

/* Waits for what is pending: an answer, or the end of a rest. */
static status wait_for_answer(struct dynamo_stream *stream)
{
    struct loop *loop = dynamo_client_loop(stream->options.client);
    int64_t due_us = now_us(stream) + DESCRIBE_US;
    for (const struct shard *shard = stream->shards; shard != NULL; shard = shard->next)
        if (!shard->is_done && !shard->call.is_under_way && shard->rests_until_us > 0 &&
            shard->rests_until_us < due_us)
            due_us = shard->rests_until_us;
    TRY(loop_timer_set(loop, &stream->timer, due_us));
    stream->is_waiting = true;
    loop_run(loop);
    stream->is_waiting = false;
    return status_ok();
}

/* STREAM_CHANGE if some may come soon. */
static enum dynamo_streamed look_around(struct dynamo_stream *stream)
{
    bool is_all_done = true, is_caught_up = true;
    for (const struct shard *shard = stream->shards; shard != NULL; shard = shard->next) {
        is_all_done &= shard->is_done;
        is_caught_up &= shard->is_done || shard->empty_answers >= EMPTY_ANSWERS;
    }
    if (is_all_done) {
        stream->wants_shards = true;
        return stream->empty_looks > EMPTY_LOOKS ? STREAM_CLOSED : STREAM_CHANGE;
    }
    return is_caught_up && !stream->wants_shards ? STREAM_CAUGHT_UP : STREAM_CHANGE;
}

static void forget_caught_up(struct dynamo_stream *stream)
{
    for (struct shard *shard = stream->shards; shard != NULL; shard = shard->next)
        shard->empty_answers = 0;
}

status dynamo_stream_next(struct dynamo_stream *stream, struct arena *arena,
                          struct dynamo_change *out, enum dynamo_streamed *what)
{
    for (;;) {
        bool found;
        *what = stream->is_stopped ? STREAM_STOPPED : STREAM_CHANGE;
        if (stream->is_stopped)
            return status_ok();
        TRY(next_of_page(stream, arena, out, &found));
        if (found) {
            stream->has_rested = false;
            return status_ok();
        }
        TRY(take_answers(stream));
        if (stream->current != NULL)
            continue;
        if (stream->wants_shards) { /* answers may come meanwhile */
            TRY(look_for_shards(stream));
            continue;
        }
        ask_shards(stream);
        *what = look_around(stream);
        if (*what != STREAM_CHANGE)
            break;
        if (!stream->has_rested) {
            stream->has_rested = true;
            *what = STREAM_RESTS;
            return status_ok();
        }
        TRY(wait_for_answer(stream));
    }
    forget_caught_up(stream);
    return status_ok();
}

void dynamo_stream_stop(struct dynamo_stream *stream)
{
    stream->is_stopped = true;
    wake(stream);
}
