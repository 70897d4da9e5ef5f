/* See change_partitions.h. A partition's keys, and the tokens that it began with, are in an arena
 * of its own; the token that it has come to since is in a buffer. */
#include "client/change_partitions.h"

#include "base/arena.h"
#include "base/check.h"
#include "base/key_range.h"
#include "wire/proto.h"

#include <stdlib.h>

enum { PARTITION_LIMIT = 64 << 20 }; /* bytes of memory */

static status bad_close(const char *what)
{
    return status_make(STATUS_DATA_LOSS, "the server's partitions do not fit: %s", what);
}

/* --- one partition --- */

void feed_partition_destroy(struct feed_partition *partition)
{
    if (partition == NULL)
        return;
    CHECK(partition->stream == NULL);
    buffer_free(&partition->latest);
    arena_destroy(partition->arena);
    free(partition);
}

static bool copy_key(struct arena *arena, bytes key, bytes *out)
{
    *out = arena_copy(arena, key);
    return out->data != NULL;
}

static status copy_token(struct arena *arena, const struct partition_token *token,
                         struct partition_token *out)
{
    out->text = arena_string(arena, bytes_of(token->text));
    if (out->text != NULL && copy_key(arena, token->start, &out->start) &&
        copy_key(arena, token->end, &out->end))
        return status_ok();
    return status_out_of_memory();
}

static status fill(struct feed_partition *partition, bytes start, bytes end,
                   const struct partition_token *tokens, size_t count)
{
    partition->arena = arena_create(PARTITION_LIMIT);
    if (partition->arena == NULL || !copy_key(partition->arena, start, &partition->start) ||
        !copy_key(partition->arena, end, &partition->end))
        return status_out_of_memory();
    partition->tokens = arena_alloc(partition->arena, (count + 1) * sizeof *tokens);
    if (partition->tokens == NULL)
        return status_out_of_memory();
    for (; partition->token_count < count; partition->token_count++)
        TRY(copy_token(partition->arena, &tokens[partition->token_count],
                       &partition->tokens[partition->token_count]));
    return status_ok();
}

/* To be read; what it is given is copied. */
static status make_partition(bytes start, bytes end, const struct partition_token *tokens,
                             size_t count, struct feed_partition **out)
{
    struct feed_partition *partition = *out = calloc(1, sizeof *partition);
    if (partition == NULL)
        return status_out_of_memory();
    status s = fill(partition, start, end, tokens, count);
    if (status_is_ok(s))
        return s;
    feed_partition_destroy(partition);
    *out = NULL;
    return s;
}

/* The former token stays where it is until there is room for the new one. */
status feed_partition_advance(struct feed_partition *partition, const char *token,
                              int64_t watermark_us)
{
    struct buffer *latest = &partition->latest;
    size_t size = strlen(token) + 1;
    if (buffer_reserve(latest, size) == NULL) {
        latest->failed = false;
        return status_out_of_memory();
    }
    memcpy(latest->data, token, size);
    latest->size = size;
    partition->tokens[0] = (struct partition_token){
        .start = partition->start, .end = partition->end, .text = (const char *)latest->data};
    partition->token_count = 1;
    if (watermark_us > partition->watermark_us)
        partition->watermark_us = watermark_us;
    return status_ok();
}

/* --- all of them --- */

void change_partitions_free(struct change_partitions *partitions)
{
    for (size_t i = 0; i < partitions->count; i++)
        feed_partition_destroy(partitions->items[i]);
    free(partitions->items);
    *partitions = (struct change_partitions){.end_us = partitions->end_us};
}

static status make_room(struct change_partitions *partitions, size_t extra)
{
    size_t capacity = partitions->capacity == 0 ? 8 : partitions->capacity;
    while (capacity < partitions->count + extra)
        capacity *= 2;
    if (capacity == partitions->capacity)
        return status_ok();
    struct feed_partition **items = realloc(partitions->items, capacity * sizeof(void *));
    if (items == NULL)
        return status_out_of_memory();
    partitions->items = items;
    partitions->capacity = capacity;
    return status_ok();
}

/* Puts `fresh` in the place of `gone` of them, from `at` on; there is room. */
static void put_in_place(struct change_partitions *partitions, size_t at, size_t gone,
                         struct feed_partition **fresh, size_t count)
{
    for (size_t i = at; i < at + gone; i++)
        feed_partition_destroy(partitions->items[i]);
    struct feed_partition **place = &partitions->items[at];
    memmove(place + count, place + gone, (partitions->count - at - gone) * sizeof *place);
    memcpy(place, fresh, count * sizeof *place);
    partitions->count = partitions->count - gone + count;
}

status change_partitions_add(struct change_partitions *partitions, bytes start, bytes end,
                             const struct partition_token *tokens, size_t token_count,
                             int64_t watermark_us)
{
    struct feed_partition *partition;
    size_t count = partitions->count;
    bytes last_end = count == 0 ? bytes_make(NULL, 0) : partitions->items[count - 1]->end;
    if (!bytes_equal(start, last_end) || (count > 0 && last_end.size == 0))
        return bad_close("one does not begin where the one before it ends");
    if (!key_is_before_end(start, end))
        return bad_close("one has no keys");
    TRY(make_room(partitions, 1));
    TRY(make_partition(start, end, tokens, token_count, &partition));
    partition->watermark_us = watermark_us;
    partitions->items[partitions->count++] = partition;
    return status_ok();
}

status change_partitions_check(const struct change_partitions *partitions)
{
    size_t count = partitions->count;
    return count > 0 && partitions->items[count - 1]->end.size == 0
               ? status_ok()
               : bad_close("some keys are of none");
}

/* --- closing --- */

struct successor {
    struct partition_token token;
    bytes claim_start, claim_end;
};

static status read_range(const Bt__StreamPartition *partition, bytes *start, bytes *end)
{
    const Bt__RowRange *range = partition == NULL ? NULL : partition->row_range;
    if (range == NULL || range->start_key_case != BT__ROW_RANGE__START_KEY_START_KEY_CLOSED ||
        range->end_key_case != BT__ROW_RANGE__END_KEY_END_KEY_OPEN)
        return bad_close("one is of no form [start, end)");
    *start = proto_bytes(range->start_key_closed);
    *end = proto_bytes(range->end_key_open);
    return key_is_before_end(*start, *end) ? status_ok() : bad_close("one has no keys");
}

static bytes earlier_end(bytes a, bytes b)
{
    if (a.size == 0 || b.size == 0)
        return a.size == 0 ? b : a;
    return bytes_compare(a, b) < 0 ? a : b;
}

/* A token that is said to be of more than the partition that was closed is of what they share:
 * merges have been told so. */
static status read_successor(const struct feed_partition *closed,
                             const Bt__ReadChangeStreamResponse__CloseStream *close, size_t i,
                             struct successor *out)
{
    const Bt__StreamContinuationToken *token = close->continuation_tokens[i];
    bytes start, end;
    TRY(read_range(token->partition, &start, &end));
    if (*token->token == '\0')
        return bad_close("a token is empty");
    out->token = (struct partition_token){
        .start = bytes_compare(start, closed->start) > 0 ? start : closed->start,
        .end = earlier_end(end, closed->end),
        .text = token->token};
    if (close->n_new_partitions > 0)
        return read_range(close->new_partitions[i], &out->claim_start, &out->claim_end);
    out->claim_start = out->token.start;
    out->claim_end = out->token.end;
    return status_ok();
}

static int compare_successors(const void *a, const void *b)
{
    const struct successor *x = a, *y = b;
    return bytes_compare(x->token.start, y->token.start);
}

static status check_tiling(const struct feed_partition *closed, const struct successor *successors,
                           size_t count)
{
    bytes at = closed->start;
    for (size_t i = 0; i < count; i++) {
        const struct partition_token *token = &successors[i].token;
        bool is_last = i + 1 == count;
        if (!bytes_equal(token->start, at) || !key_is_before_end(token->start, token->end) ||
            (!is_last && token->end.size == 0))
            return bad_close("a stream's tokens do not tile what it was of");
        at = token->end;
    }
    return bytes_equal(at, closed->end) ? status_ok()
                                        : bad_close("a stream's tokens do not tile what it was of");
}

static status make_waiting(const struct feed_partition *closed, const struct successor *from,
                           int64_t now_us, struct feed_partition **out)
{
    const struct partition_token *token = &from->token;
    TRY(make_partition(token->start, token->end, token, 1, out));
    (*out)->state = PARTITION_WAITING;
    (*out)->watermark_us = closed->watermark_us;
    (*out)->waits_since_us = now_us;
    if (copy_key((*out)->arena, from->claim_start, &(*out)->claim_start) &&
        copy_key((*out)->arena, from->claim_end, &(*out)->claim_end))
        return status_ok();
    return status_out_of_memory();
}

/* Puts the successors in the place of the partition at `at`. */
static status replace(struct change_partitions *partitions, size_t at,
                      const struct successor *successors, size_t count, int64_t now_us)
{
    struct feed_partition **fresh = calloc(count, sizeof *fresh);
    status s = fresh == NULL ? status_out_of_memory() : make_room(partitions, count);
    for (size_t i = 0; i < count && status_is_ok(s); i++)
        s = make_waiting(partitions->items[at], &successors[i], now_us, &fresh[i]);
    if (status_is_ok(s))
        put_in_place(partitions, at, 1, fresh, count);
    for (size_t i = 0; i < count && fresh != NULL && !status_is_ok(s); i++)
        feed_partition_destroy(fresh[i]);
    free(fresh);
    return s;
}

/* --- what waits becomes whole --- */

/* The one whose range begins there; `count` if none does. */
static size_t find_start(const struct change_partitions *partitions, bytes start)
{
    size_t at = 0;
    while (at < partitions->count && !bytes_equal(partitions->items[at]->start, start))
        at++;
    return at;
}

/* Nobody reads it, and its tokens say where its keys go on. */
static bool can_be_joined(const struct feed_partition *partition)
{
    return partition->state != PARTITION_READING && partition->token_count > 0;
}

/* How many that can be joined tile the claim, from `at` on; 0: they do not. */
static size_t count_tiles(const struct change_partitions *partitions, size_t at, bytes end)
{
    for (size_t i = at; i < partitions->count; i++) {
        const struct feed_partition *partition = partitions->items[i];
        if (!can_be_joined(partition))
            return 0;
        if (bytes_equal(partition->end, end))
            return i + 1 - at;
    }
    return 0;
}

/* All their tokens, in an array that is the caller's; NULL: no memory. */
static struct partition_token *gather_tokens(struct feed_partition *const *parts, size_t count,
                                             size_t *token_count)
{
    *token_count = 0;
    for (size_t i = 0; i < count; i++)
        *token_count += parts[i]->token_count;
    struct partition_token *tokens = calloc(*token_count, sizeof *tokens), *to = tokens;
    for (size_t i = 0; i < count && tokens != NULL; i++) {
        memcpy(to, parts[i]->tokens, parts[i]->token_count * sizeof *to);
        to += parts[i]->token_count;
    }
    return tokens;
}

static int64_t least_watermark_us(struct feed_partition *const *parts, size_t count)
{
    int64_t least_us = INT64_MAX;
    for (size_t i = 0; i < count; i++)
        if (parts[i]->watermark_us < least_us)
            least_us = parts[i]->watermark_us;
    return least_us;
}

static status join(struct change_partitions *partitions, size_t at, size_t count)
{
    struct feed_partition **parts = &partitions->items[at], *whole;
    size_t token_count;
    struct partition_token *tokens = gather_tokens(parts, count, &token_count);
    if (tokens == NULL)
        return status_out_of_memory();
    status s = make_partition(parts[0]->start, parts[count - 1]->end, tokens, token_count, &whole);
    free(tokens);
    TRY(s);
    whole->watermark_us = least_watermark_us(parts, count);
    put_in_place(partitions, at, count, &whole, 1);
    return status_ok();
}

/* Whether the one at `at` was joined with all of its claim. Without memory it waits on, and will be
 * probed. */
static bool join_if_whole(struct change_partitions *partitions, size_t at)
{
    const struct feed_partition *partition = partitions->items[at];
    if (partition->state != PARTITION_WAITING)
        return false;
    size_t first = find_start(partitions, partition->claim_start);
    size_t count = count_tiles(partitions, first, partition->claim_end);
    if (count == 0)
        return false;
    status s = join(partitions, first, count);
    bool is_joined = status_is_ok(s);
    status_free(s);
    return is_joined;
}

/* The partitions behind one that was joined have other places. */
static void join_what_is_whole(struct change_partitions *partitions)
{
    for (size_t i = 0; i < partitions->count;)
        i = join_if_whole(partitions, i) ? 0 : i + 1;
}

/* --- what a close says --- */

/* Others may wait for it. */
static status close_at_end(struct change_partitions *partitions, struct feed_partition *partition)
{
    partition->state = PARTITION_ENDED;
    partition->has_ended = true;
    if (partitions->end_us > partition->watermark_us)
        partition->watermark_us = partitions->end_us;
    join_what_is_whole(partitions);
    return status_ok();
}

static status close_failed(const Bt__ReadChangeStreamResponse__CloseStream *close)
{
    int32_t code = close->status->code;
    if (code < 0 || code > STATUS_UNAUTHENTICATED)
        code = STATUS_UNKNOWN;
    return status_make((enum status_code)code, "the server closed the stream: %s",
                       close->status->message);
}

static status replace_by_tokens(struct change_partitions *partitions, size_t at,
                                const Bt__ReadChangeStreamResponse__CloseStream *close,
                                struct successor *successors, int64_t now_us)
{
    const struct feed_partition *closed = partitions->items[at];
    size_t count = close->n_continuation_tokens;
    for (size_t i = 0; i < count; i++)
        TRY(read_successor(closed, close, i, &successors[i]));
    qsort(successors, count, sizeof *successors, compare_successors);
    TRY(check_tiling(closed, successors, count));
    return replace(partitions, at, successors, count, now_us);
}

static size_t place_of(const struct change_partitions *partitions,
                       const struct feed_partition *partition)
{
    size_t at = find_start(partitions, partition->start);
    CHECK(at < partitions->count && partitions->items[at] == partition);
    return at;
}

status change_partitions_close(struct change_partitions *partitions,
                               struct feed_partition *partition,
                               const Bt__ReadChangeStreamResponse__CloseStream *close,
                               int64_t now_us)
{
    size_t count = close->n_continuation_tokens;
    if (count == 0 && (close->status == NULL || close->status->code == STATUS_OK))
        return close_at_end(partitions, partition);
    if (count == 0)
        return close_failed(close);
    if (close->n_new_partitions != 0 && close->n_new_partitions != count)
        return bad_close("there are not as many of them as tokens");
    struct successor *successors = calloc(count, sizeof *successors);
    if (successors == NULL)
        return status_out_of_memory();
    status s =
        replace_by_tokens(partitions, place_of(partitions, partition), close, successors, now_us);
    free(successors);
    if (status_is_ok(s))
        join_what_is_whole(partitions);
    return s;
}

/* --- looking after them --- */

static bool claims(const struct feed_partition *waiting, const struct feed_partition *partition)
{
    return key_ranges_meet(partition->start, partition->end, waiting->claim_start,
                           waiting->claim_end);
}

/* Their tokens do not tile the claim: the server is to say which of them do. */
static void read_ended_again(struct change_partitions *partitions,
                             const struct feed_partition *waiting)
{
    for (size_t i = 0; i < partitions->count; i++) {
        struct feed_partition *partition = partitions->items[i];
        if (partition->state == PARTITION_ENDED && claims(waiting, partition))
            partition->state = PARTITION_READING;
    }
}

bool change_partitions_probe(struct change_partitions *partitions, int64_t since_us)
{
    bool found = false;
    for (size_t i = 0; i < partitions->count; i++) {
        struct feed_partition *partition = partitions->items[i];
        if (partition->state != PARTITION_WAITING || partition->waits_since_us > since_us)
            continue;
        partition->state = PARTITION_READING;
        read_ended_again(partitions, partition);
        found = true;
    }
    return found;
}

int64_t change_partitions_watermark_us(const struct change_partitions *partitions)
{
    return partitions->count == 0 ? 0 : least_watermark_us(partitions->items, partitions->count);
}

bool change_partitions_have_ended(const struct change_partitions *partitions)
{
    for (size_t i = 0; i < partitions->count; i++)
        if (partitions->items[i]->state != PARTITION_ENDED)
            return false;
    return true;
}
