/* Tests of partitions: splits, merges, several generations of both, tokens in any order, and what
 * is kept of them. Random histories: `change_partitions_test SEED`. */
#include "client/change_partitions.h"

#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"
#include "client/change_state.h"
#include "wire/proto.h"

#include <stdio.h>

enum { PARTS_MOST = 32, TEXT_MOST = 1000 };

/* A CloseStream while it is made. "b-d:b-k" is a token of [b, d), with [b, k) as the new partition.
 */
struct close {
    Bt__ReadChangeStreamResponse__CloseStream message;
    Rpc__Status status;
    Bt__StreamContinuationToken tokens[PARTS_MOST];
    Bt__StreamContinuationToken *token_pointers[PARTS_MOST];
    Bt__StreamPartition parts[2 * PARTS_MOST];
    Bt__StreamPartition *part_pointers[2 * PARTS_MOST];
    Bt__RowRange ranges[2 * PARTS_MOST];
    char texts[PARTS_MOST][16];
};

static Bt__StreamPartition *range_at(struct close *close, size_t i, bytes start, bytes end)
{
    close->ranges[i] = (Bt__RowRange)BT__ROW_RANGE__INIT;
    close->ranges[i].start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_CLOSED;
    close->ranges[i].start_key_closed = proto_data(start);
    close->ranges[i].end_key_case = BT__ROW_RANGE__END_KEY_END_KEY_OPEN;
    close->ranges[i].end_key_open = proto_data(end);
    close->parts[i] = (Bt__StreamPartition)BT__STREAM_PARTITION__INIT;
    close->parts[i].row_range = &close->ranges[i];
    return &close->parts[i];
}

static void close_init(struct close *close)
{
    *close = (struct close){.message = BT__READ_CHANGE_STREAM_RESPONSE__CLOSE_STREAM__INIT,
                            .status = RPC__STATUS__INIT};
    close->status.code = STATUS_OUT_OF_RANGE;
    close->message.status = &close->status;
    close->message.continuation_tokens = close->token_pointers;
    close->message.new_partitions = close->part_pointers;
}

static void close_add(struct close *close, bytes start, bytes end, bytes new_start, bytes new_end)
{
    size_t i = close->message.n_continuation_tokens++;
    assert_true(i < PARTS_MOST);
    close->message.n_new_partitions++;
    snprintf(close->texts[i], sizeof close->texts[i], "%.*s-%.*s", (int)start.size,
             (const char *)start.data, (int)end.size, (const char *)end.data);
    close->tokens[i] = (Bt__StreamContinuationToken)BT__STREAM_CONTINUATION_TOKEN__INIT;
    close->tokens[i].token = close->texts[i];
    close->tokens[i].partition = range_at(close, 2 * i, start, end);
    close->token_pointers[i] = &close->tokens[i];
    close->part_pointers[i] = range_at(close, 2 * i + 1, new_start, new_end);
}

/* Up to one of the bytes, or the text's end; steps over both. */
static bytes take_until(const char **text, const char *stops)
{
    size_t size = strcspn(*text, stops);
    bytes taken = bytes_make(*text, size);
    *text += size + ((*text)[size] != '\0');
    return taken;
}

static void close_fill(struct close *close, const char *text)
{
    close_init(close);
    while (*text != '\0') {
        bytes start = take_until(&text, "-"), end = take_until(&text, ":");
        bytes new_start = take_until(&text, "-"), new_end = take_until(&text, " ");
        close_add(close, start, end, new_start, new_end);
    }
}

/* --- what there is --- */

static void append_range(struct buffer *out, bytes start, bytes end)
{
    buffer_append_bytes(out, start);
    buffer_append_byte(out, '-');
    buffer_append_bytes(out, end);
}

/* "-m(-k,k-m) m-?": one that is read with two tokens, and one that waits. An ended one has a dot.
 */
static void tell(const struct change_partitions *partitions, char out[TEXT_MOST])
{
    struct buffer text = {0};
    for (size_t i = 0; i < partitions->count; i++) {
        const struct feed_partition *partition = partitions->items[i];
        if (i > 0)
            buffer_append_byte(&text, ' ');
        append_range(&text, partition->start, partition->end);
        for (size_t j = 0; j < partition->token_count && partition->token_count > 1; j++)
            buffer_append_format(&text, "%s%s", j == 0 ? "(" : ",", partition->tokens[j].text);
        buffer_append_format(&text, "%s%s", partition->token_count > 1 ? ")" : "",
                             partition->state == PARTITION_WAITING ? "?"
                             : partition->state == PARTITION_ENDED ? "."
                                                                   : "");
    }
    assert_false(text.failed);
    snprintf(out, TEXT_MOST, "%.*s", (int)text.size, (const char *)text.data);
    buffer_free(&text);
}

static void assert_are(const struct change_partitions *partitions, const char *expected)
{
    char text[TEXT_MOST];
    tell(partitions, text);
    assert_string_equal(text, expected);
}

/* Boundaries between them: "bq" are three. */
static void make(struct change_partitions *partitions, const char *boundaries)
{
    bytes start = bytes_of("");
    *partitions = (struct change_partitions){0};
    for (const char *b = boundaries;; b++) {
        bytes end = bytes_make(b, *b != '\0');
        assert_ok(change_partitions_add(partitions, start, end, NULL, 0, 0));
        if (end.size == 0)
            break;
        start = end;
    }
    assert_ok(change_partitions_check(partitions));
}

static struct feed_partition *find(const struct change_partitions *partitions, bytes start)
{
    for (size_t i = 0; i < partitions->count; i++)
        if (bytes_equal(partitions->items[i]->start, start))
            return partitions->items[i];
    fail_msg("no partition begins there");
    return NULL;
}

static status close_at(struct change_partitions *partitions, const char *start, const char *text)
{
    struct close close;
    close_fill(&close, text);
    return change_partitions_close(partitions, find(partitions, bytes_of(start)), &close.message,
                                   1000);
}

static status end(struct change_partitions *partitions, struct feed_partition *partition)
{
    struct close close;
    close_init(&close);
    close.status.code = STATUS_OK;
    return change_partitions_close(partitions, partition, &close.message, 1000);
}

static status end_at(struct change_partitions *partitions, const char *start)
{
    return end(partitions, find(partitions, bytes_of(start)));
}

/* --- single steps --- */

static void children_of_a_split_are_read_at_once(void **state)
{
    struct change_partitions p;
    (void)state;
    make(&p, "m");
    assert_ok(close_at(&p, "", "-f:-f f-m:f-m"));
    assert_are(&p, "-f f-m m-");
    assert_string_equal(p.items[0]->tokens[0].text, "-f");
    assert_int_equal(p.items[2]->token_count, 0);
    change_partitions_free(&p);
}

static void a_merge_waits_for_all_tokens(void **state)
{
    struct change_partitions p;
    (void)state;
    make(&p, "fmt");
    assert_ok(close_at(&p, "m", "m-t:-t"));
    assert_ok(close_at(&p, "", "-f:-t"));
    assert_are(&p, "-f? f-m m-t? t-");
    assert_ok(close_at(&p, "f", "f-m:-t"));
    assert_are(&p, "-t(-f,f-m,m-t) t-");
    change_partitions_free(&p);
}

static void tokens_may_come_in_any_order(void **state)
{
    struct change_partitions p;
    (void)state;
    make(&p, "");
    assert_ok(close_at(&p, "", "t-:t- -f:-f f-t:f-t"));
    assert_are(&p, "-f f-t t-");
    change_partitions_free(&p);
}

/* [b, d) is closed with [a, c) and [c, e). */
static void boundaries_may_shift(void **state)
{
    struct change_partitions p;
    (void)state;
    make(&p, "bd");
    assert_ok(close_at(&p, "b", "b-c:-c c-d:c-"));
    assert_are(&p, "-b b-c? c-d? d-");
    assert_ok(close_at(&p, "d", "d-:c-"));
    assert_are(&p, "-b b-c? c-(c-d,d-)");
    assert_ok(close_at(&p, "", "-b:-c"));
    assert_are(&p, "-c(-b,b-c) c-(c-d,d-)");
    change_partitions_free(&p);
}

/* m- heard of the merge; then it was split again, at k, before -m did. */
static void generations_may_be_passed_over(void **state)
{
    struct change_partitions p;
    (void)state;
    make(&p, "m");
    assert_ok(close_at(&p, "m", "m-:-"));
    assert_ok(close_at(&p, "", "-k:-k k-m:k-"));
    assert_are(&p, "-k k-(k-m,m-)");
    change_partitions_free(&p);
}

/* The partition that m- was merged with is there again, and never heard of it. */
static void who_waits_in_vain_is_read_alone(void **state)
{
    struct change_partitions p;
    (void)state;
    make(&p, "m");
    assert_ok(close_at(&p, "m", "m-:-"));
    assert_false(change_partitions_probe(&p, 999));
    assert_are(&p, "-m m-?");
    assert_true(change_partitions_probe(&p, 1000));
    assert_are(&p, "-m m-");
    assert_string_equal(p.items[1]->tokens[0].text, "m-");
    change_partitions_free(&p);
}

/* Production has put the merged range beside such a token. */
static void a_token_is_of_the_partition_that_was_closed(void **state)
{
    struct change_partitions p;
    (void)state;
    make(&p, "m");
    assert_ok(close_at(&p, "", "-:-"));
    assert_ok(close_at(&p, "m", "-:-"));
    assert_are(&p, "-(-,-)");
    assert_true(bytes_equal(p.items[0]->tokens[1].start, bytes_of("m")));
    change_partitions_free(&p);
}

static void what_does_not_fit_is_refused(void **state)
{
    static const char *const closes[] = {"-f:-f",         "-f:-f g-m:g-m",
                                         "-g:-g f-m:f-m", "-f:-f f-:f-m x-:x-",
                                         "f-m:f-m",       "-f:-f f-f:f-f f-m:f-m"};
    struct change_partitions p;
    (void)state;
    make(&p, "m");
    for (size_t i = 0; i < sizeof closes / sizeof *closes; i++)
        assert_status(close_at(&p, "", closes[i]), STATUS_DATA_LOSS);
    assert_are(&p, "-m m-");
    assert_status(change_partitions_add(&p, bytes_of("x"), bytes_of(""), NULL, 0, 0),
                  STATUS_DATA_LOSS);
    change_partitions_free(&p);
    assert_status(change_partitions_add(&p, bytes_of("x"), bytes_of(""), NULL, 0, 0),
                  STATUS_DATA_LOSS);
    assert_ok(change_partitions_add(&p, bytes_of(""), bytes_of("x"), NULL, 0, 0));
    assert_status(change_partitions_check(&p), STATUS_DATA_LOSS);
    change_partitions_free(&p);
}

static void an_end_is_told_from_a_failure(void **state)
{
    struct change_partitions p;
    struct close close;
    (void)state;
    make(&p, "m");
    p.end_us = 77;
    close_init(&close);
    assert_status(change_partitions_close(&p, p.items[0], &close.message, 1), STATUS_OUT_OF_RANGE);
    assert_ok(end_at(&p, ""));
    assert_are(&p, "-m. m-");
    assert_false(change_partitions_have_ended(&p));
    assert_ok(end_at(&p, "m"));
    assert_true(change_partitions_have_ended(&p));
    assert_int_equal(change_partitions_watermark_us(&p), 77);
    change_partitions_free(&p);
}

/* A tail with an end stood still when a tablet whose changes it had merged with one whose changes
 * it was still reading: nobody had a token of the former any more. */
static void what_has_ended_is_merged_by_its_last_tokens(void **state)
{
    struct change_partitions p;
    (void)state;
    make(&p, "fm");
    p.end_us = 77;
    assert_ok(close_at(&p, "", "-f:-m"));
    assert_ok(close_at(&p, "f", "f-m:-m"));
    assert_ok(end_at(&p, "")); /* it has two */
    assert_are(&p, "-m(-f,f-m). m-");
    assert_ok(close_at(&p, "m", "m-:-"));
    assert_are(&p, "-(-f,f-m,m-)");
    assert_int_equal(change_partitions_watermark_us(&p), 0);
    assert_ok(end_at(&p, ""));
    assert_true(change_partitions_have_ended(&p));
    change_partitions_free(&p);
}

static void an_end_may_be_what_is_waited_for(void **state)
{
    struct change_partitions p;
    (void)state;
    make(&p, "m");
    assert_ok(feed_partition_advance(p.items[0], "last", 5));
    assert_ok(close_at(&p, "m", "m-:-"));
    assert_ok(end_at(&p, ""));
    assert_are(&p, "-(last,m-)");
    assert_false(p.items[0]->has_ended);
    change_partitions_free(&p);
}

/* It is read again at the end, for the token. */
static void what_ended_without_a_token_is_asked_for_one(void **state)
{
    struct change_partitions p;
    (void)state;
    make(&p, "m");
    p.end_us = 77;
    assert_ok(end_at(&p, ""));
    assert_ok(close_at(&p, "m", "m-:-"));
    assert_are(&p, "-m. m-?");
    assert_true(change_partitions_probe(&p, 1000));
    assert_are(&p, "-m m-");
    assert_true(p.items[0]->has_ended);
    assert_int_equal(p.items[0]->token_count, 0);
    assert_int_equal(p.items[0]->watermark_us, 77); /* it does not go back */
    assert_ok(close_at(&p, "m", "m-:-"));
    assert_ok(close_at(&p, "", "-m:-"));
    assert_are(&p, "-(-m,m-)");
    change_partitions_free(&p);
}

/* Only a part of what has ended is of the merged one. What is not waited for stays at its end. */
static void an_end_may_have_been_split(void **state)
{
    struct change_partitions p;
    (void)state;
    make(&p, "cmt");
    assert_ok(feed_partition_advance(p.items[1], "c-m", 5));
    assert_ok(end_at(&p, ""));
    assert_ok(end_at(&p, "c"));
    assert_ok(end_at(&p, "t"));
    assert_ok(close_at(&p, "m", "m-t:f-t"));
    assert_are(&p, "-c. c-m. m-t? t-.");
    assert_true(change_partitions_probe(&p, 1000));
    assert_are(&p, "-c. c-m m-t t-.");
    assert_ok(close_at(&p, "c", "c-f:c-f f-m:f-t"));
    assert_ok(close_at(&p, "m", "m-t:f-t"));
    assert_are(&p, "-c. c-f f-t(f-m,m-t) t-.");
    change_partitions_free(&p);
}

static void the_watermark_is_the_least(void **state)
{
    struct change_partitions p;
    (void)state;
    make(&p, "m");
    assert_ok(feed_partition_advance(p.items[0], "one", 5));
    assert_int_equal(change_partitions_watermark_us(&p), 0);
    assert_ok(feed_partition_advance(p.items[1], "two", 7));
    assert_int_equal(change_partitions_watermark_us(&p), 5);
    assert_ok(feed_partition_advance(p.items[0], "three", 4));
    assert_int_equal(change_partitions_watermark_us(&p), 5);
    assert_ok(close_at(&p, "m", "m-:-"));
    assert_ok(close_at(&p, "", "-m:-"));
    assert_int_equal(change_partitions_watermark_us(&p), 5);
    change_partitions_free(&p);
}

/* --- what is kept --- */

static void keep(const struct change_partitions *partitions, struct buffer *out)
{
    const struct change_state state = {.table = "t", .from_us = 9};
    change_state_write(&state, partitions, out);
    assert_false(out->failed);
}

static void a_state_is_read_back(void **state)
{
    struct change_partitions p, again = {0};
    struct change_state read = {.table = "t"}, other = {.table = "u"};
    struct buffer text = {0}, text_again = {0};
    (void)state;
    make(&p, "fmt");
    assert_ok(close_at(&p, "m", "m-t:f-t"));
    assert_ok(close_at(&p, "f", "f-m:f-t"));
    assert_ok(close_at(&p, "t", "t-:f-"));
    assert_ok(feed_partition_advance(p.items[0], "\"\\\n\303\244", 5));
    keep(&p, &text);
    assert_ok(change_state_read(buffer_bytes(&text), &read, &again));
    assert_int_equal(read.from_us, 9);
    assert_are(&again, "-f f-t(f-m,m-t) t-"); /* what waits is asked for again */
    assert_string_equal(again.items[0]->tokens[0].text, "\"\\\n\303\244");
    keep(&again, &text_again);
    assert_true(bytes_equal(buffer_bytes(&text), buffer_bytes(&text_again)));
    change_partitions_free(&again);
    assert_status(change_state_read(buffer_bytes(&text), &other, &again), STATUS_INVALID_ARGUMENT);
    change_partitions_free(&again);
    for (size_t size = 0; size < text.size; size++) {
        assert_status(change_state_read(bytes_make(text.data, size), &read, &again),
                      STATUS_INVALID_ARGUMENT);
        change_partitions_free(&again);
    }
    buffer_free(&text);
    buffer_free(&text_again);
    change_partitions_free(&p);
}

static void another_state_is_refused(void **state)
{
    static const char *const texts[] = {
        "[]",
        "{\"change_feed\":2,\"table\":\"t\",\"from\":0,\"partitions\":[]}",
        "{\"change_feed\":1,\"table\":\"t\",\"from\":0,\"partitions\":[{}]}",
        "{\"change_feed\":1,\"table\":\"t\",\"from\":0,\"partitions\":[{\"start\":\"YQ\",\"end\":"
        "\"\",\"watermark\":0,\"tokens\":[]}]}",
        "{\"change_feed\":1,\"table\":\"t\",\"from\":0,\"partitions\":[{\"start\":\"!\",\"end\":"
        "\"\",\"watermark\":0,\"tokens\":[]}]}",
        "{\"change_feed\":1,\"table\":\"t\",\"from\":0,\"partitions\":[{\"start\":\"\",\"end\":"
        "\"\",\"watermark\":0,\"tokens\":[{}]}]}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct change_state read = {.table = "t"};
        struct change_partitions p = {0};
        assert_status(change_state_read(bytes_of(texts[i]), &read, &p), STATUS_INVALID_ARGUMENT);
        change_partitions_free(&p);
    }
}

/* --- random histories --- */

/* The server's partitions: boundaries among 25 keys. */
struct server {
    bool is_boundary['z'];
    uint64_t seed;
    bool is_past_end;
};

static uint64_t draw(struct server *server, uint64_t below)
{
    server->seed = server->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (server->seed >> 33) % below;
}

static char first_of(const struct feed_partition *partition)
{
    return partition->start.size == 0 ? 'a' : (char)partition->start.data[0];
}

static char end_of(const struct feed_partition *partition)
{
    return partition->end.size == 0 ? 'z' : (char)partition->end.data[0];
}

static const char letters[] = "abcdefghijklmnopqrstuvwxyz";

static bytes key_of(char letter, char none)
{
    return bytes_make(&letters[letter - 'a'], letter != none);
}

static void reshape(struct server *server)
{
    char at = (char)('b' + draw(server, 24));
    server->is_boundary[(size_t)at] = !server->is_boundary[(size_t)at];
}

static char last_boundary(const struct server *server, char at)
{
    while (at > 'a' && !server->is_boundary[(size_t)at])
        at--;
    return at;
}

static char next_boundary(const struct server *server, char at)
{
    do
        at++;
    while (at < 'z' && !server->is_boundary[(size_t)at]);
    return at;
}

static bool is_current(const struct server *server, const struct feed_partition *partition)
{
    char first = first_of(partition), end = end_of(partition);
    return (first == 'a' || server->is_boundary[(size_t)first]) &&
           next_boundary(server, first) == end;
}

/* Closes it as the server would now. */
static void close_as(const struct server *server, struct change_partitions *partitions,
                     struct feed_partition *partition)
{
    struct close close;
    char end = end_of(partition);
    close_init(&close);
    for (char at = first_of(partition), next; at < end; at = next) {
        char whole_end = next_boundary(server, at);
        next = whole_end < end ? whole_end : end;
        close_add(&close, key_of(at, 'a'), key_of(next, 'z'),
                  key_of(last_boundary(server, at), 'a'), key_of(whole_end, 'z'));
    }
    assert_ok(change_partitions_close(partitions, partition, &close.message, 1));
}

/* The tokens of each tile it, and all tile the keys. */
static void check_tiling(const struct change_partitions *partitions)
{
    bytes at = bytes_of("");
    assert_ok(change_partitions_check(partitions));
    for (size_t i = 0; i < partitions->count; i++) {
        const struct feed_partition *partition = partitions->items[i];
        assert_true(bytes_equal(partition->start, at));
        for (size_t j = 0; j < partition->token_count; j++) {
            assert_true(bytes_equal(partition->tokens[j].start, at));
            at = partition->tokens[j].end;
        }
        at = partition->end;
        if (partition->token_count > 0)
            assert_true(bytes_equal(partition->tokens[partition->token_count - 1].end, at));
    }
}

/* Of a server that has passed the end, some are at theirs sooner than others. */
static void hear_of_one(struct server *server, struct change_partitions *partitions)
{
    struct feed_partition *partition = partitions->items[draw(server, partitions->count)];
    if (partition->state == PARTITION_READING && !is_current(server, partition))
        close_as(server, partitions, partition);
    else if (partition->state == PARTITION_READING && server->is_past_end && draw(server, 4) == 0)
        assert_ok(end(partitions, partition));
    check_tiling(partitions);
}

static bool all_are_current(const struct server *server, const struct change_partitions *partitions)
{
    for (size_t i = 0; i < partitions->count; i++)
        if (partitions->items[i]->state != PARTITION_READING ||
            !is_current(server, partitions->items[i]))
            return false;
    return true;
}

static bool are_settled(const struct server *server, const struct change_partitions *partitions)
{
    return server->is_past_end ? change_partitions_have_ended(partitions)
                               : all_are_current(server, partitions);
}

/* The server reshapes, readers hear of it late; then it rests, and they find its partitions, or
 * their ends. */
static void play(uint64_t seed, bool has_end)
{
    enum { STEPS = 200, REST_MOST = 20000 };
    struct server server = {.seed = seed, .is_past_end = has_end};
    struct change_partitions p;
    int rest = 0;
    make(&p, "");
    for (int i = 0; i < STEPS; i++) {
        if (draw(&server, 3) == 0)
            reshape(&server);
        else
            hear_of_one(&server, &p);
        if (draw(&server, 50) == 0)
            change_partitions_probe(&p, 1000);
    }
    for (; !are_settled(&server, &p); rest++) {
        if (rest > REST_MOST)
            fail_msg("seed %llu never finds them", (unsigned long long)seed);
        hear_of_one(&server, &p);
        if (rest % 100 == 99)
            change_partitions_probe(&p, 1000);
    }
    change_partitions_free(&p);
}

static void random_histories_find_the_partitions(void **state)
{
    uint64_t *seed = *state;
    for (int i = 0; i < 300; i++)
        play(*seed + (uint64_t)i, false);
}

static void random_histories_find_the_ends(void **state)
{
    uint64_t *seed = *state;
    for (int i = 0; i < 300; i++)
        play(*seed + (uint64_t)i, true);
}

/* --- memory that runs out --- */

static void try_close(void *context)
{
    struct change_partitions p = {0};
    (void)context;
    status s = change_partitions_add(&p, bytes_of(""), bytes_of("m"), NULL, 0, 0);
    if (status_is_ok(s))
        s = change_partitions_add(&p, bytes_of("m"), bytes_of(""), NULL, 0, 0);
    if (status_is_ok(s))
        s = close_at(&p, "", "-b:-b b-m:b-");
    if (status_is_ok(s))
        s = close_at(&p, "m", "m-:b-");
    if (status_is_ok(s))
        s = feed_partition_advance(p.items[0], "a token", 1);
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    if (p.count > 1)
        check_tiling(&p);
    change_partitions_free(&p);
}

static void try_state(void *context)
{
    struct change_partitions p = {0};
    struct change_state state = {.table = "t"};
    status s = change_state_read(buffer_bytes(context), &state, &p);
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    change_partitions_free(&p);
}

static void memory_may_run_out(void **state)
{
    struct change_partitions p;
    struct buffer text = {0};
    (void)state;
    failmalloc_each(try_close, NULL);
    make(&p, "m");
    assert_ok(feed_partition_advance(p.items[0], "a token", 1));
    keep(&p, &text);
    failmalloc_each(try_state, &text);
    buffer_free(&text);
    change_partitions_free(&p);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 20261129;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_of_a_split_are_read_at_once),
        cmocka_unit_test(a_merge_waits_for_all_tokens),
        cmocka_unit_test(tokens_may_come_in_any_order),
        cmocka_unit_test(boundaries_may_shift),
        cmocka_unit_test(generations_may_be_passed_over),
        cmocka_unit_test(who_waits_in_vain_is_read_alone),
        cmocka_unit_test(a_token_is_of_the_partition_that_was_closed),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(an_end_is_told_from_a_failure),
        cmocka_unit_test(what_has_ended_is_merged_by_its_last_tokens),
        cmocka_unit_test(an_end_may_be_what_is_waited_for),
        cmocka_unit_test(what_ended_without_a_token_is_asked_for_one),
        cmocka_unit_test(an_end_may_have_been_split),
        cmocka_unit_test(the_watermark_is_the_least),
        cmocka_unit_test(a_state_is_read_back),
        cmocka_unit_test(another_state_is_refused),
        cmocka_unit_test_prestate(random_histories_find_the_partitions, &seed),
        cmocka_unit_test_prestate(random_histories_find_the_ends, &seed),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
