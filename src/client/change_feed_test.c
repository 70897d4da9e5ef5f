/* Tests of the feed, against a server that splits, merges, breaks off in the midst of changes and
 * cuts connections, and holds requests against the rules: each row's changes come once, in their
 * order, also to who goes on from a state that was saved. Histories: `change_feed_test SEED STEPS`.
 */
#include "client/change_feed.h"

#include "base/testing/testing.h"
#include "base/testing/testing_clock.h"
#include "client/testing/fake_endpoint.h"
#include "wire/proto.h"

#include <stdio.h>

enum {
    LETTERS = 26,
    LOG_MOST = 100000,
    CALLS_MOST = 256,
    TURNS_MOST = 2000,
    WAIT_US = 1000,
    AHEAD_US = 200 * 1000,
    TOKEN_MOST = 400,
    COMMIT_US = 1000000, /* of the first change; each is a microsecond after the one before */
};

#define TABLE "projects/p/instances/i/tables/t"

typedef Bt__ReadChangeStreamResponse__DataChange data_change;

/* A ReadChangeStream that runs: keys from `first` to before `end`, letters; 'z' + 1 is no bound. */
struct reader {
    struct grpc_call *call; /* NULL: none */
    int first, end;
    size_t passed[LETTERS]; /* of the log, for each key */
    size_t next;
    bool is_half; /* the first message of the next change was sent */
};

struct fixture {
    struct ahead_clock clock;
    struct loop *loop;
    struct fake_endpoint endpoint;
    struct grpc_service service;
    struct client_session *session;
    struct change_feed *feed;
    uint64_t seed;
    uint8_t log[LOG_MOST]; /* whose row each change is of */
    size_t log_size;
    bool is_boundary[LETTERS + 1]; /* of partitions, at that letter */
    struct reader readers[CALLS_MOST];
    enum status_code refuses;   /* every read; OK: none */
    struct grpc_call *unlisted; /* the first request for partitions, if it is not answered */
    bool is_silent;             /* it is not */
    bool ends_early;            /* streams, with a close at the end time */
    size_t end_at;              /* the last of the log that is wanted; LOG_MOST: all are */
    bool begins_now;            /* the client does not say from when */
    size_t begun_now;           /* reads that do not, either */
    int64_t asked_us;           /* from when the last read begins that says so */
    int64_t beats_us;           /* the watermark of heartbeats */
    size_t got[LETTERS];        /* the place behind the last change of each row */
    size_t opened;              /* reads */
    size_t joined;              /* of them with several tokens */
};

static uint64_t draw(struct fixture *f, uint64_t below)
{
    f->seed = f->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (f->seed >> 33) % below;
}

/* --- the server: ranges and tokens --- */

static bytes key_of(int letter, int none)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    return bytes_make(&letters[letter % LETTERS], letter != none);
}

static Bt__StreamPartition *partition_of(struct arena *arena, int first, int end)
{
    Bt__StreamPartition *partition = arena_alloc(arena, sizeof *partition);
    Bt__RowRange *range = arena_alloc(arena, sizeof *range);
    assert_non_null(partition);
    assert_non_null(range);
    *partition = (Bt__StreamPartition)BT__STREAM_PARTITION__INIT;
    *range = (Bt__RowRange)BT__ROW_RANGE__INIT;
    range->start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_CLOSED;
    range->start_key_closed = proto_data(key_of(first, 0));
    range->end_key_case = BT__ROW_RANGE__END_KEY_END_KEY_OPEN;
    range->end_key_open = proto_data(key_of(end, LETTERS));
    partition->row_range = range;
    return partition;
}

static void read_partition(const Bt__StreamPartition *partition, int *first, int *end)
{
    const Bt__RowRange *range = partition->row_range;
    assert_int_equal(range->start_key_case, BT__ROW_RANGE__START_KEY_START_KEY_CLOSED);
    assert_int_equal(range->end_key_case, BT__ROW_RANGE__END_KEY_END_KEY_OPEN);
    *first = range->start_key_closed.len == 0 ? 0 : range->start_key_closed.data[0] - 'a';
    *end = range->end_key_open.len == 0 ? LETTERS : range->end_key_open.data[0] - 'a';
    assert_true(*first < *end);
}

static int next_boundary(const struct fixture *f, int at)
{
    do
        at++;
    while (at < LETTERS && !f->is_boundary[at]);
    return at;
}

static int last_boundary(const struct fixture *f, int at)
{
    while (at > 0 && !f->is_boundary[at])
        at--;
    return at;
}

static bool is_current(const struct fixture *f, const struct reader *reader)
{
    return last_boundary(f, reader->first) == reader->first &&
           next_boundary(f, reader->first) == reader->end;
}

/* How far each key of the range is: "c3.5.0" begins at c. */
static void write_token(const struct reader *reader, int first, int end, char text[TOKEN_MOST])
{
    int used = snprintf(text, TOKEN_MOST, "%c", 'a' + first);
    for (int i = first; i < end; i++)
        used += snprintf(text + used, (size_t)(TOKEN_MOST - used), "%zu.", reader->passed[i]);
}

static const char *token_of(const struct reader *reader, int first, int end, struct arena *arena)
{
    char *text = arena_alloc(arena, TOKEN_MOST);
    assert_non_null(text);
    write_token(reader, first, end, text);
    return text;
}

static void read_token(struct reader *reader, const Bt__StreamContinuationToken *token, int *at)
{
    int first, end;
    const char *text = token->token;
    read_partition(token->partition, &first, &end);
    assert_int_equal(first, *at);
    assert_int_equal(*text++, 'a' + first);
    for (int i = first; i < end; i++) {
        char *rest;
        reader->passed[i] = strtoull(text, &rest, 10);
        assert_int_equal(*rest, '.');
        text = rest + 1;
    }
    assert_int_equal(*text, '\0');
    *at = end;
}

/* --- the server: answers --- */

static void send_message(struct reader *reader, const ProtobufCMessage *message)
{
    struct buffer wire = {0};
    grpc_message_start(&wire);
    proto_encode(message, &wire);
    grpc_call_send(reader->call, &wire);
}

static void finish(struct reader *reader, status s)
{
    grpc_call_finish(reader->call, s);
    reader->call = NULL;
}

static struct arena *answer_arena(void)
{
    struct arena *arena = arena_create(16 << 20);
    assert_non_null(arena);
    return arena;
}

static void send_heartbeat(struct reader *reader, int64_t beats_us)
{
    struct arena *arena = answer_arena();
    Bt__ReadChangeStreamResponse response = BT__READ_CHANGE_STREAM_RESPONSE__INIT;
    Bt__ReadChangeStreamResponse__Heartbeat heartbeat =
        BT__READ_CHANGE_STREAM_RESPONSE__HEARTBEAT__INIT;
    Bt__StreamContinuationToken token = BT__STREAM_CONTINUATION_TOKEN__INIT;
    Pb__Timestamp time = PB__TIMESTAMP__INIT;
    time.seconds = beats_us / 1000000;
    token.token = token_of(reader, reader->first, reader->end, arena);
    token.partition = partition_of(arena, reader->first, reader->end);
    heartbeat.continuation_token = &token;
    heartbeat.estimated_low_watermark = &time;
    response.stream_record_case = BT__READ_CHANGE_STREAM_RESPONSE__STREAM_RECORD_HEARTBEAT;
    response.heartbeat = &heartbeat;
    send_message(reader, &response.base);
    arena_destroy(arena);
}

static void add_successor(const struct fixture *f, const struct reader *reader, int at, int end,
                          struct arena *arena, Bt__ReadChangeStreamResponse__CloseStream *close)
{
    Bt__StreamContinuationToken *token = arena_alloc(arena, sizeof *token);
    assert_non_null(token);
    *token = (Bt__StreamContinuationToken)BT__STREAM_CONTINUATION_TOKEN__INIT;
    token->partition = partition_of(arena, at, end);
    token->token = token_of(reader, at, end, arena);
    close->continuation_tokens[close->n_continuation_tokens++] = token;
    close->new_partitions[close->n_new_partitions++] =
        partition_of(arena, last_boundary(f, at), next_boundary(f, at));
}

/* With the partitions that there are now; at the end, with none. */
static void close_reader(const struct fixture *f, struct reader *reader, bool is_end)
{
    struct arena *arena = answer_arena();
    Bt__ReadChangeStreamResponse response = BT__READ_CHANGE_STREAM_RESPONSE__INIT;
    Bt__ReadChangeStreamResponse__CloseStream close =
        BT__READ_CHANGE_STREAM_RESPONSE__CLOSE_STREAM__INIT;
    Rpc__Status status = RPC__STATUS__INIT;
    Bt__StreamContinuationToken *tokens[LETTERS];
    Bt__StreamPartition *partitions[LETTERS];
    close.status = &status;
    close.continuation_tokens = tokens;
    close.new_partitions = partitions;
    status.code = is_end ? STATUS_OK : STATUS_OUT_OF_RANGE;
    for (int at = reader->first, end; at < reader->end && !is_end; at = end) {
        end = next_boundary(f, at);
        if (end > reader->end)
            end = reader->end;
        add_successor(f, reader, at, end, arena, &close);
    }
    response.stream_record_case = BT__READ_CHANGE_STREAM_RESPONSE__STREAM_RECORD_CLOSE_STREAM;
    response.close_stream = &close;
    send_message(reader, &response.base);
    finish(reader, status_ok());
    arena_destroy(arena);
}

/* --- the server: changes --- */

struct change_draft {
    data_change data;
    Bt__ReadChangeStreamResponse__MutationChunk chunk;
    Bt__ReadChangeStreamResponse__MutationChunk *chunks[1];
    Bt__Mutation mutation;
    Bt__Mutation__DeleteFromFamily family;
    Pb__Timestamp time;
    char token[TOKEN_MOST];
};

static void draft_init(struct change_draft *d)
{
    *d = (struct change_draft){
        .data = BT__READ_CHANGE_STREAM_RESPONSE__DATA_CHANGE__INIT,
        .chunk = BT__READ_CHANGE_STREAM_RESPONSE__MUTATION_CHUNK__INIT,
        .mutation = BT__MUTATION__INIT,
        .family = BT__MUTATION__DELETE_FROM_FAMILY__INIT,
        .time = PB__TIMESTAMP__INIT,
    };
    d->family.family_name = "f";
    d->mutation.mutation_case = BT__MUTATION__MUTATION_DELETE_FROM_FAMILY;
    d->mutation.delete_from_family = &d->family;
    d->chunk.mutation = &d->mutation;
    d->chunks[0] = &d->chunk;
    d->data.chunks = d->chunks;
    d->data.n_chunks = 1;
    d->data.type = BT__READ_CHANGE_STREAM_RESPONSE__DATA_CHANGE__TYPE__CONTINUATION;
    d->time.seconds = 1;
}

static void send_data(struct reader *reader, data_change *data)
{
    Bt__ReadChangeStreamResponse response = BT__READ_CHANGE_STREAM_RESPONSE__INIT;
    response.stream_record_case = BT__READ_CHANGE_STREAM_RESPONSE__STREAM_RECORD_DATA_CHANGE;
    response.data_change = data;
    send_message(reader, &response.base);
}

/* Makes it the first message of the reader's next change, or the last. */
static void begin_draft(const struct fixture *f, struct reader *reader, struct change_draft *d)
{
    d->data.type = BT__READ_CHANGE_STREAM_RESPONSE__DATA_CHANGE__TYPE__USER;
    d->data.source_cluster_id = "c";
    d->data.row_key = proto_data(key_of(f->log[reader->next], -1));
    d->data.commit_timestamp = &d->time;
    d->time.nanos = (int32_t)reader->next * 1000;
    reader->is_half = true;
}

static void end_draft(const struct fixture *f, struct reader *reader, struct change_draft *d)
{
    reader->passed[f->log[reader->next]] = reader->next + 1;
    reader->next++;
    write_token(reader, reader->first, reader->end, d->token);
    d->data.done = true;
    d->data.token = d->token;
    d->data.estimated_low_watermark = &d->time;
    reader->is_half = false;
}

/* In two messages. */
static void send_half(struct fixture *f, struct reader *reader)
{
    struct change_draft d;
    draft_init(&d);
    if (reader->is_half)
        end_draft(f, reader, &d);
    else
        begin_draft(f, reader, &d);
    send_data(reader, &d.data);
}

/* Steps over what is not the reader's, or has been passed. Behind the end there is none. */
static bool has_change(const struct fixture *f, struct reader *reader)
{
    for (; reader->next < f->log_size && reader->next <= f->end_at; reader->next++) {
        int letter = f->log[reader->next];
        if (letter >= reader->first && letter < reader->end &&
            reader->next >= reader->passed[letter])
            return true;
    }
    return false;
}

/* No change up to the end can come any more. */
static bool is_at_end(const struct fixture *f, struct reader *reader)
{
    return (f->ends_early || f->log_size > f->end_at) && !has_change(f, reader);
}

/* A message, or what becomes of the stream. */
static void serve(struct fixture *f, struct reader *reader)
{
    bool is_moved = !f->ends_early && !is_current(f, reader);
    if (!reader->is_half && (is_moved || is_at_end(f, reader)))
        close_reader(f, reader, !is_moved);
    else if (reader->is_half || has_change(f, reader))
        send_half(f, reader);
    else if (draw(f, 4) == 0)
        send_heartbeat(reader, f->beats_us);
}

/* --- the server: requests --- */

static const Bt__ReadChangeStreamRequest *decode(struct grpc_call *call,
                                                 const ProtobufCMessageDescriptor *type, bytes wire)
{
    ProtobufCMessage *message;
    bytes routing;
    assert_ok(proto_decode(type, wire, grpc_call_arena(call), &message));
    assert_true(grpc_call_header(call, "x-goog-request-params", &routing));
    assert_true(bytes_equal(routing, bytes_of("table_name=projects%2Fp%2Finstances%2Fi%2Ftables%2Ft"
                                              "&app_profile_id=one")));
    return (const void *)message;
}

static void list_partitions(void *context, struct grpc_call *call, bytes request)
{
    struct fixture *f = context;
    struct reader listing = {.call = call};
    struct arena *arena = answer_arena();
    decode(call, &bt__generate_initial_change_stream_partitions_request__descriptor, request);
    if (f->is_silent && f->unlisted == NULL) {
        f->unlisted = call;
        arena_destroy(arena);
        return;
    }
    for (int at = 0; at < LETTERS; at = next_boundary(f, at)) {
        Bt__GenerateInitialChangeStreamPartitionsResponse response =
            BT__GENERATE_INITIAL_CHANGE_STREAM_PARTITIONS_RESPONSE__INIT;
        response.partition = partition_of(arena, at, next_boundary(f, at));
        send_message(&listing, &response.base);
    }
    arena_destroy(arena);
    grpc_call_finish(call,
                     draw(f, 3) == 0 ? status_make(STATUS_UNAVAILABLE, "later") : status_ok());
}

static struct reader *free_reader(struct fixture *f)
{
    for (size_t i = 0; i < CALLS_MOST; i++)
        if (f->readers[i].call == NULL)
            return &f->readers[i];
    fail_msg("too many calls");
    return NULL;
}

static void begin_at_time(struct fixture *f, struct reader *reader,
                          const Bt__ReadChangeStreamRequest *request)
{
    if (request->start_from_case == BT__READ_CHANGE_STREAM_REQUEST__START_FROM__NOT_SET) {
        assert_true(f->begins_now);
        f->begun_now++;
        return;
    }
    assert_int_equal(request->start_from_case,
                     BT__READ_CHANGE_STREAM_REQUEST__START_FROM_START_TIME);
    f->asked_us = request->start_time->seconds * 1000000 + request->start_time->nanos / 1000;
    if (f->begins_now)
        return;
    for (int i = reader->first; i < reader->end; i++)
        reader->passed[i] = (size_t)(f->asked_us - COMMIT_US);
}

static void read_stream(void *context, struct grpc_call *call, bytes wire)
{
    struct fixture *f = context;
    int first, end, at;
    const Bt__ReadChangeStreamRequest *request =
        decode(call, &bt__read_change_stream_request__descriptor, wire);
    struct reader *reader = free_reader(f);
    read_partition(request->partition, &first, &end);
    *reader = (struct reader){.call = call, .first = first, .end = end};
    f->opened++;
    if (request->start_from_case ==
        BT__READ_CHANGE_STREAM_REQUEST__START_FROM_CONTINUATION_TOKENS) {
        const Bt__StreamContinuationTokens *tokens = request->continuation_tokens;
        f->joined += tokens->n_tokens > 1;
        at = first;
        for (size_t i = 0; i < tokens->n_tokens; i++)
            read_token(reader, tokens->tokens[i], &at);
        assert_int_equal(at, end);
    } else {
        begin_at_time(f, reader, request);
    }
    if (f->refuses != STATUS_OK)
        finish(reader, status_make(f->refuses, "refused"));
}

/* Those that the client has cancelled are over; one of the others goes on. */
static void serve_one(struct fixture *f)
{
    struct reader *reader = &f->readers[draw(f, CALLS_MOST)];
    for (size_t i = 0; i < CALLS_MOST && reader->call == NULL; i++)
        reader = &f->readers[(size_t)(reader - f->readers + 1) % CALLS_MOST];
    if (reader->call == NULL)
        return;
    if (grpc_call_is_cancelled(reader->call))
        finish(reader, status_make(STATUS_CANCELLED, "cancelled"));
    else
        serve(f, reader);
}

static struct reader *reader_at(struct fixture *f, int first)
{
    for (size_t i = 0; i < CALLS_MOST; i++)
        if (f->readers[i].call != NULL && f->readers[i].first == first)
            return &f->readers[i];
    fail_msg("nobody reads there");
    return NULL;
}

static void break_one(struct fixture *f)
{
    static const enum status_code codes[] = {STATUS_UNAVAILABLE, STATUS_ABORTED,
                                             STATUS_DEADLINE_EXCEEDED};
    struct reader *reader = &f->readers[draw(f, CALLS_MOST)];
    for (size_t i = 0; i < CALLS_MOST && reader->call == NULL; i++)
        reader = &f->readers[(size_t)(reader - f->readers + 1) % CALLS_MOST];
    if (reader->call != NULL)
        finish(reader, status_make(codes[draw(f, 3)], "broken"));
}

static void drop_readers(struct fixture *f)
{
    for (size_t i = 0; i < CALLS_MOST; i++)
        if (f->readers[i].call != NULL)
            finish(&f->readers[i], status_make(STATUS_CANCELLED, "cancelled"));
}

/* --- the client --- */

static int64_t end_us(const struct fixture *f)
{
    if (f->ends_early)
        return COMMIT_US;
    return f->end_at == LOG_MOST ? 0 : COMMIT_US + (int64_t)f->end_at;
}

static void open_feed(struct fixture *f, bytes state)
{
    bool begins_now = f->begins_now || state.size > 0;
    const struct change_feed_options options = {.session = f->session,
                                                .table = TABLE,
                                                .app_profile = "one",
                                                .from_us = begins_now ? 0 : COMMIT_US,
                                                .end_us = end_us(f),
                                                .state = state};
    assert_ok(change_feed_create(&options, &f->feed));
}

/* As a command that is killed, and goes on. */
static void open_feed_again(struct fixture *f)
{
    struct buffer state = {0};
    assert_ok(change_feed_save(f->feed, &state));
    change_feed_destroy(f->feed);
    open_feed(f, buffer_bytes(&state));
    buffer_free(&state);
}

/* The next change of its row, of those that there are. */
static void take(struct fixture *f, const struct feed_change *change)
{
    int letter = change->row_key.data[0] - 'a';
    size_t at = (size_t)(change->commit_us - COMMIT_US), due = f->got[letter];
    while (due < f->log_size && f->log[due] != letter)
        due++;
    assert_int_equal(at, due);
    assert_true(at <= f->end_at);
    assert_int_equal(change->count, 2);
    f->got[letter] = at + 1;
}

static bool take_next(struct fixture *f, int64_t wait_us, bool *is_end)
{
    const struct feed_change *change;
    assert_ok(change_feed_next(f->feed, wait_us, &change, is_end));
    if (change != NULL)
        take(f, change);
    return change != NULL;
}

/* A turn, and some of the time that a client waits before it asks again. Whether the feed ends. */
static bool pass(struct fixture *f)
{
    bool is_end;
    take_next(f, 1000, &is_end);
    f->clock.steady_ahead_us += 10 * 1000;
    return is_end;
}

static size_t missing(const struct fixture *f)
{
    size_t count = 0;
    for (size_t i = 0; i < f->log_size && i <= f->end_at; i++)
        count += i >= f->got[f->log[i]];
    return count;
}

static struct fixture *start(uint64_t seed)
{
    static const struct grpc_method methods[] = {
        {"GenerateInitialChangeStreamPartitions", GRPC_SERVER_STREAMING, list_partitions},
        {"ReadChangeStream", GRPC_SERVER_STREAMING, read_stream},
    };
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->seed = seed;
    f->end_at = LOG_MOST;
    f->beats_us = COMMIT_US;
    f->clock.clock = (struct clock)AHEAD_CLOCK;
    f->service = (struct grpc_service){
        .name = "google.bigtable.v2.Bigtable", .methods = methods, .method_count = 2, .context = f};
    assert_ok(loop_create(&f->clock.clock, &f->loop));
    fake_endpoint_start(&f->endpoint, f->loop, &f->service);
    const struct client_session_options session = {
        .target = {.server = {.address = f->endpoint.address},
                   .project = "p",
                   .instance = "i",
                   .app_profile = "one"},
        .loop = f->loop};
    assert_ok(client_session_create(&session, &f->session));
    return f;
}

static void stop(struct fixture *f)
{
    change_feed_destroy(f->feed);
    client_session_destroy(f->session);
    fake_endpoint_cut(&f->endpoint);
    drop_readers(f);
    fake_endpoint_stop(&f->endpoint);
    loop_destroy(f->loop);
    free(f);
}

/* --- histories --- */

static void step(struct fixture *f)
{
    bool is_end;
    uint64_t what = draw(f, 100);
    if (what < 20)
        f->log[f->log_size++] = (uint8_t)draw(f, LETTERS);
    else if (what < 25)
        f->is_boundary[1 + draw(f, LETTERS - 1)] ^= true;
    else if (what < 27)
        break_one(f);
    else if (what == 27 && draw(f, 10) == 0)
        fake_endpoint_cut(&f->endpoint);
    else if (what == 28 && draw(f, 5) == 0)
        open_feed_again(f);
    else if (what < 60)
        serve_one(f);
    else
        take_next(f, 0, &is_end);
}

/* Until nothing is missing, since the server rests; and the end has come, if there is one. */
static void settle(struct fixture *f)
{
    bool is_end = false;
    for (int i = 0; missing(f) > 0 || (f->end_at < LOG_MOST && !is_end); i++) {
        if (i == TURNS_MOST)
            fail_msg("%zu of %zu never come, or the end", missing(f), f->log_size);
        for (int j = 0; j < CALLS_MOST; j++)
            serve_one(f);
        while (take_next(f, WAIT_US, &is_end))
            ;
        f->clock.steady_ahead_us += AHEAD_US; /* who waits in vain asks */
    }
}

struct plan {
    uint64_t seed;
    size_t steps;
};

static void each_change_comes_once_and_in_order(void **state)
{
    const struct plan *plan = *state;
    struct fixture *f = start(plan->seed);
    open_feed(f, bytes_make(NULL, 0));
    for (size_t i = 0; i < plan->steps && f->log_size < LOG_MOST; i++)
        step(f);
    settle(f);
    assert_true(f->opened > 10);
    assert_true(f->joined > 0);
    assert_true(change_feed_partitions(f->feed) > 0);
    stop(f);
}

/* Partitions end, and merge with such as have not, also in a state that was saved. */
static void each_change_up_to_the_end_comes_once(void **state)
{
    const struct plan *plan = *state;
    for (uint64_t i = 0; i < 5; i++) {
        struct fixture *f = start(plan->seed + i);
        f->end_at = plan->steps / 40 + i;
        open_feed(f, bytes_make(NULL, 0));
        for (size_t j = 0; j < plan->steps / 4; j++)
            step(f);
        settle(f);
        assert_true(f->log_size > f->end_at);
        assert_int_equal(change_feed_partitions(f->feed), 0);
        stop(f);
    }
}

/* --- ends and failures --- */

static void a_feed_ends_when_all_partitions_have(void **state)
{
    struct fixture *f = start(1);
    bool is_end = false;
    (void)state;
    f->ends_early = f->is_boundary[5] = f->is_boundary[9] = true;
    for (int i = 0; i < 50; i++)
        f->log[f->log_size++] = (uint8_t)(i % LETTERS);
    open_feed(f, bytes_make(NULL, 0));
    for (int i = 0; i < TURNS_MOST && !is_end; i++) {
        serve_one(f);
        is_end = pass(f);
    }
    assert_true(is_end);
    assert_int_equal(missing(f), 0);
    assert_int_equal(change_feed_partitions(f->feed), 0);
    assert_int_equal(change_feed_watermark_us(f->feed), COMMIT_US);
    stop(f);
}

static void what_does_not_pass_is_told_at_once(void **state)
{
    static const enum status_code codes[] = {STATUS_OUT_OF_RANGE, STATUS_NOT_FOUND,
                                             STATUS_FAILED_PRECONDITION};
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct fixture *f = start(i);
        const struct feed_change *change;
        bool is_end;
        f->refuses = codes[i];
        open_feed(f, bytes_make(NULL, 0));
        assert_status(change_feed_next(f->feed, INT64_MAX, &change, &is_end), codes[i]);
        assert_null(change);
        stop(f);
    }
}

static void the_watermark_is_known_when_all_have_answered(void **state)
{
    struct fixture *f = start(3);
    bool is_end;
    (void)state;
    f->is_boundary[13] = true;
    open_feed(f, bytes_make(NULL, 0));
    for (int i = 0; i < TURNS_MOST && f->opened < 2; i++)
        pass(f);
    send_heartbeat(&f->readers[0], f->beats_us);
    for (int i = 0; i < 20; i++)
        take_next(f, 1000, &is_end);
    assert_int_equal(change_feed_watermark_us(f->feed), 0);
    send_heartbeat(&f->readers[1], f->beats_us);
    for (int i = 0; i < TURNS_MOST && change_feed_watermark_us(f->feed) == 0; i++)
        pass(f);
    assert_int_equal(change_feed_watermark_us(f->feed), 1000000);
    stop(f);
}

/* --- a start that is not given --- */

enum { SERVER_SECONDS = 5000, WAITED_US = 3000 * 1000 };

/* Two streams, at a and at n, that begin now; then a while without an answer. */
static struct fixture *begin_now(int64_t *begun_us)
{
    struct fixture *f = start(9);
    f->begins_now = f->is_boundary[13] = true;
    f->beats_us = SERVER_SECONDS * INT64_C(1000000);
    *begun_us = clock_steady_us(&f->clock.clock);
    open_feed(f, bytes_make(NULL, 0));
    for (int i = 0; i < TURNS_MOST && f->opened < 2; i++)
        pass(f);
    assert_int_equal(f->begun_now, 2);
    assert_int_equal(change_feed_start_us(f->feed), 0);
    f->clock.steady_ahead_us += WAITED_US;
    return f;
}

static void take_heartbeat(struct fixture *f, int first)
{
    bool is_end;
    send_heartbeat(reader_at(f, first), f->beats_us);
    for (int i = 0; i < TURNS_MOST && change_feed_start_us(f->feed) == 0; i++)
        take_next(f, 1000, &is_end);
}

/* What was committed meanwhile was lost to who was stopped before all had answered. */
static void who_has_not_answered_goes_on_at_the_start(void **state)
{
    int64_t begun_us, start_us;
    struct fixture *f = begin_now(&begun_us);
    (void)state;
    take_heartbeat(f, 13);
    start_us = change_feed_start_us(f->feed);
    assert_in_range(start_us, f->beats_us - (clock_steady_us(&f->clock.clock) - begun_us),
                    f->beats_us - WAITED_US);
    assert_int_equal(change_feed_watermark_us(f->feed), 0);
    finish(reader_at(f, 0), status_make(STATUS_ABORTED, "broken"));
    for (int i = 0; i < TURNS_MOST && f->opened < 3; i++)
        pass(f);
    assert_int_equal(f->asked_us, start_us);
    f->asked_us = 0;
    open_feed_again(f);
    for (int i = 0; i < TURNS_MOST && f->opened < 5; i++)
        pass(f);
    assert_int_equal(f->asked_us, start_us);
    assert_int_equal(f->begun_now, 2);
    stop(f);
}

static void a_start_can_be_saved_when_it_is_known(void **state)
{
    int64_t begun_us, start_us;
    struct fixture *f = begin_now(&begun_us);
    struct buffer kept = {0};
    (void)state;
    take_heartbeat(f, 0);
    start_us = change_feed_start_us(f->feed);
    assert_ok(change_feed_save_start(f->feed, &kept));
    change_feed_destroy(f->feed);
    open_feed(f, buffer_bytes(&kept));
    assert_int_equal(change_feed_start_us(f->feed), start_us);
    f->asked_us = 0;
    for (int i = 0; i < TURNS_MOST && f->opened < 4; i++)
        pass(f);
    assert_int_equal(f->opened, 4);
    assert_int_equal(f->asked_us, start_us);
    assert_int_equal(f->begun_now, 2); /* none since */
    buffer_free(&kept);
    stop(f);
}

/* --- bounds --- */

/* Asks for the partitions, and for two streams that begin at a and at n. */
static void open_two(struct fixture *f)
{
    f->is_boundary[13] = true;
    open_feed(f, bytes_make(NULL, 0));
    for (int i = 0; i < TURNS_MOST && f->opened < 2; i++)
        pass(f);
    assert_int_equal(f->opened, 2);
}

enum { PIECE = 300 << 10 };

/* One of the two pieces of a value of the reader's next change. */
static void send_piece(struct fixture *f, struct reader *reader, bool is_last)
{
    static uint8_t value[PIECE];
    struct change_draft d;
    Bt__Mutation__SetCell cell = BT__MUTATION__SET_CELL__INIT;
    Bt__ReadChangeStreamResponse__MutationChunk__ChunkInfo info =
        BT__READ_CHANGE_STREAM_RESPONSE__MUTATION_CHUNK__CHUNK_INFO__INIT;
    draft_init(&d);
    cell.family_name = "f";
    cell.value = proto_data(bytes_make(value, sizeof value));
    d.mutation.mutation_case = BT__MUTATION__MUTATION_SET_CELL;
    d.mutation.set_cell = &cell;
    info.chunked_value_size = 2 * PIECE;
    info.chunked_value_offset = is_last ? PIECE : 0;
    info.last_chunk = is_last;
    d.chunk.chunk_info = &info;
    if (is_last)
        end_draft(f, reader, &d);
    else
        begin_draft(f, reader, &d);
    send_data(reader, &d.data);
}

/* The first letter of the next change's row; 0 if there is none. */
static char next_row(struct fixture *f)
{
    const struct feed_change *change;
    bool is_end;
    for (int i = 0; i < 20; i++) {
        assert_ok(change_feed_next(f->feed, 1000, &change, &is_end));
        if (change != NULL)
            return (char)change->row_key.data[0];
    }
    return 0;
}

static struct fixture *begin_two_large(void)
{
    struct fixture *f = start(4);
    f->log[f->log_size++] = 0;
    f->log[f->log_size++] = 13;
    open_two(f);
    assert_true(has_change(f, reader_at(f, 0)) && has_change(f, reader_at(f, 13)));
    send_piece(f, reader_at(f, 0), false);
    assert_int_equal(next_row(f), 0);
    send_piece(f, reader_at(f, 13), false);
    send_piece(f, reader_at(f, 13), true);
    assert_int_equal(next_row(f), 0); /* it waits for its turn */
    return f;
}

static void large_values_are_put_together_in_turn(void **state)
{
    struct fixture *f = begin_two_large();
    (void)state;
    send_piece(f, reader_at(f, 0), true);
    assert_int_equal(next_row(f), 'a');
    assert_int_equal(next_row(f), 'n');
    stop(f);
}

static void a_turn_ends_with_its_stream(void **state)
{
    struct fixture *f = begin_two_large();
    (void)state;
    finish(reader_at(f, 0), status_make(STATUS_ABORTED, "broken"));
    assert_int_equal(next_row(f), 'n');
    stop(f);
}

static void who_is_not_heard_of_is_asked_again(void **state)
{
    struct fixture *f = start(5);
    bool is_end;
    (void)state;
    open_two(f);
    f->clock.steady_ahead_us += 50 * 1000 * 1000;
    take_next(f, 1000, &is_end);
    send_heartbeat(reader_at(f, 13), f->beats_us);
    for (int i = 0; i < 20; i++)
        take_next(f, 1000, &is_end);
    f->clock.steady_ahead_us += 11 * 1000 * 1000;
    for (int i = 0; i < TURNS_MOST && f->opened < 3; i++) {
        pass(f);
    }
    assert_int_equal(f->opened, 3);
    assert_true(
        grpc_call_is_cancelled(f->readers[0].first == 0 ? f->readers[0].call : f->readers[1].call));
    stop(f);
}

/* Google's front ends ask for that now and then. */
static void a_server_may_want_another_connection(void **state)
{
    struct fixture *f = start(7);
    bool is_end;
    (void)state;
    open_two(f);
    fake_endpoint_drain(&f->endpoint);
    for (int i = 0; i < 20; i++)
        take_next(f, 1000, &is_end);
    finish(reader_at(f, 0), status_make(STATUS_ABORTED, "broken"));
    for (int i = 0; i < TURNS_MOST && f->opened < 3; i++) {
        pass(f);
    }
    assert_int_equal(f->opened, 3);
    f->log[f->log_size++] = 13;
    while (reader_at(f, 13)->next < f->log_size) /* it goes on where it is */
        serve(f, reader_at(f, 13));
    assert_int_equal(next_row(f), 'n');
    stop(f);
}

static void partitions_are_asked_for_again(void **state)
{
    struct fixture *f = start(8);
    (void)state;
    f->is_silent = true;
    open_feed(f, bytes_make(NULL, 0));
    for (int i = 0; i < TURNS_MOST && f->unlisted == NULL; i++)
        pass(f);
    assert_non_null(f->unlisted);
    f->clock.steady_ahead_us += 61 * 1000 * 1000;
    for (int i = 0; i < TURNS_MOST && f->opened == 0; i++) {
        pass(f);
    }
    assert_int_equal(f->opened, 1);
    grpc_call_finish(f->unlisted, status_make(STATUS_CANCELLED, "cancelled"));
    stop(f);
}

/* A server that is not waited for stops, when so much has come that nobody wants. */
static void what_nobody_takes_is_bounded(void **state)
{
    enum { AHEAD = 64 << 20, ROOM = 8 << 20, TURNS = 20 };
    struct fixture *f = start(6);
    size_t sent = 0;
    (void)state;
    for (int i = 0; i < LETTERS; i++)
        f->log[f->log_size++] = 0;
    open_two(f);
    struct reader *reader = reader_at(f, 0);
    for (int idle = 0; idle < TURNS; idle++) {
        for (; !grpc_call_is_congested(reader->call) && sent < 4 * (size_t)AHEAD; idle = 0) {
            assert_true(has_change(f, reader));
            send_piece(f, reader, false);
            sent += PIECE;
        }
        assert_ok(client_session_wait(f->session, 1000));
    }
    assert_in_range(sent, AHEAD / 2, AHEAD / 2 + ROOM); /* half of it for each of two */
    stop(f);
}

int main(int argc, char **argv)
{
    struct plan plan = {.seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 20261129,
                        .steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 4000};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(each_change_comes_once_and_in_order, &plan),
        cmocka_unit_test_prestate(each_change_up_to_the_end_comes_once, &plan),
        cmocka_unit_test(a_feed_ends_when_all_partitions_have),
        cmocka_unit_test(what_does_not_pass_is_told_at_once),
        cmocka_unit_test(the_watermark_is_known_when_all_have_answered),
        cmocka_unit_test(who_has_not_answered_goes_on_at_the_start),
        cmocka_unit_test(a_start_can_be_saved_when_it_is_known),
        cmocka_unit_test(large_values_are_put_together_in_turn),
        cmocka_unit_test(a_turn_ends_with_its_stream),
        cmocka_unit_test(who_is_not_heard_of_is_asked_again),
        cmocka_unit_test(a_server_may_want_another_connection),
        cmocka_unit_test(partitions_are_asked_for_again),
        cmocka_unit_test(what_nobody_takes_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
