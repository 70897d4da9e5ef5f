/* See stream_request.h. */
#include "bigtable/stream_request.h"

#include "base/dates.h"
#include "bigtable/stream_config.h"
#include "wire/proto.h"
#include "wire/timestamps.h"

static status invalid(const char *what)
{
    return status_make(STATUS_INVALID_ARGUMENT, "%s", what);
}

/* --- partitions --- */

static bool is_of_form(const Bt__StreamPartition *partition)
{
    const Bt__RowRange *range = partition == NULL ? NULL : partition->row_range;
    return range != NULL && range->start_key_case == BT__ROW_RANGE__START_KEY_START_KEY_CLOSED &&
           range->end_key_case == BT__ROW_RANGE__END_KEY_END_KEY_OPEN;
}

static status read_partition(const Bt__StreamPartition *partition, bytes *start, bytes *end)
{
    if (!is_of_form(partition))
        return invalid("partition.row_range must be the form of [start_key, end_key)");
    *start = proto_bytes(partition->row_range->start_key_closed);
    *end = proto_bytes(partition->row_range->end_key_open);
    if (end->size > 0 && bytes_compare(*start, *end) >= 0)
        return invalid("partition.row_range must not be empty");
    return status_ok();
}

/* --- tokens --- */

/* The string says its range; what is beside it must be the same. */
static status read_token(const Bt__StreamContinuationToken *message, struct arena *arena,
                         struct stream_token *out)
{
    bytes start, end;
    TRY(read_partition(message->partition, &start, &end));
    TRY(stream_token_read(bytes_of(message->token), arena, out));
    if (bytes_equal(out->start, start) && bytes_equal(stream_token_end(out), end))
        return status_ok();
    return invalid("The continuation token is of another partition than the one beside it");
}

static status read_tokens(const Bt__StreamContinuationTokens *message, struct arena *arena,
                          struct stream_request *out)
{
    struct stream_token *tokens = arena_alloc(arena, message->n_tokens * sizeof *tokens);
    if (tokens == NULL)
        return status_out_of_memory();
    if (message->n_tokens == 0)
        return invalid("continuation_tokens must not be empty");
    for (size_t i = 0; i < message->n_tokens; i++)
        TRY(read_token(message->tokens[i], arena, &tokens[i]));
    out->has_tokens = true;
    out->tokens = tokens;
    out->token_count = message->n_tokens;
    return stream_token_join(tokens, message->n_tokens, out->start, out->end, arena, &out->token);
}

/* --- times --- */

static status read_heartbeat(const Pb__Duration *duration, int64_t *out)
{
    enum { MOST_SECONDS = 24 * 3600 };
    *out = STREAM_HEARTBEAT_US;
    if (duration == NULL)
        return status_ok();
    if (duration->seconds < 0 || duration->nanos < 0 || duration->nanos >= 1000000000 ||
        (duration->seconds == 0 && duration->nanos == 0))
        return invalid("heartbeat_duration must be positive");
    int64_t seconds = duration->seconds < MOST_SECONDS ? duration->seconds : MOST_SECONDS;
    *out = seconds * 1000000 + duration->nanos / 1000;
    if (*out < STREAM_LEAST_HEARTBEAT_US)
        *out = STREAM_LEAST_HEARTBEAT_US;
    return status_ok();
}

static status read_times(const Bt__ReadChangeStreamRequest *message, struct stream_request *out)
{
    out->start_us = INT64_MIN;
    out->end_us = INT64_MAX;
    if (message->end_time != NULL) {
        TRY(timestamp_check("end_time", message->end_time));
        out->end_us = timestamp_us(message->end_time);
    }
    out->has_start_time =
        message->start_from_case == BT__READ_CHANGE_STREAM_REQUEST__START_FROM_START_TIME;
    if (out->has_start_time) {
        TRY(timestamp_check("start_time", message->start_time));
        out->start_us = timestamp_us(message->start_time);
    }
    return read_heartbeat(message->heartbeat_duration, &out->heartbeat_us);
}

status stream_request_read(const Bt__ReadChangeStreamRequest *message, struct arena *arena,
                           struct stream_request *out)
{
    *out = (struct stream_request){0};
    TRY(read_partition(message->partition, &out->start, &out->end));
    TRY(read_times(message, out));
    if (message->start_from_case == BT__READ_CHANGE_STREAM_REQUEST__START_FROM_CONTINUATION_TOKENS)
        return read_tokens(message->continuation_tokens, arena, out);
    return status_ok();
}

/* --- against the stream --- */

status stream_facts_check(const struct stream_facts *facts, const char *table)
{
    if (facts->retention_us > 0)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION, "Change stream is not enabled for table '%s'",
                       table);
}

status stream_token_check_age(const struct stream_token *token, const struct stream_facts *facts)
{
    if (token->time_us >= facts->oldest_us)
        return status_ok();
    date_text oldest;
    dates_tell_from(stream_facts_from(facts), oldest);
    return status_make(STATUS_OUT_OF_RANGE,
                       "The continuation token is older than what the change stream keeps: the "
                       "oldest time that can be read is %s",
                       oldest);
}

/* Whether the start, by a client's clock, may be of after the moment when the stream was switched
 * on, which is by the versions' clock: that one may be ahead after a start. What is older than the
 * shortest retention is no such moment: there may have been changes before it. */
static bool is_from_the_start(const struct stream_request *request,
                              const struct stream_facts *facts, const struct stream_now *now)
{
    int64_t lead_us = now->version_us - now->wall_us;
    return lead_us > 0 && stream_facts_from(facts) == facts->oldest_us &&
           facts->oldest_us > now->version_us - STREAM_LEAST_RETENTION_US &&
           request->start_us >= facts->oldest_us - lead_us;
}

static status check_start_time(struct stream_request *request, const struct stream_facts *facts,
                               const struct stream_now *now)
{
    int64_t from_us = stream_facts_from(facts);
    if (request->start_us < from_us && is_from_the_start(request, facts, now))
        request->start_us = from_us;
    if (request->start_us < from_us) {
        date_text oldest;
        dates_tell_from(from_us, oldest);
        return status_make(STATUS_INVALID_ARGUMENT,
                           "start_time is before what the change stream keeps: the oldest time "
                           "that can be read is %s",
                           oldest);
    }
    if (request->start_us > now->version_us + STREAM_SKEW_US)
        return invalid("start_time must not be in the future");
    if (request->start_us > now->version_us)
        request->start_us = now->version_us;
    return status_ok();
}

status stream_request_check(struct stream_request *request, const struct stream_facts *facts,
                            const struct stream_now *now)
{
    if (request->has_tokens && request->token.life != facts->life)
        return invalid("The continuation token is of another change stream, or of the time before "
                       "this one was switched on");
    if (request->has_tokens)
        return stream_token_check_age(&request->token, facts);
    if (request->has_start_time)
        return check_start_time(request, facts, now);
    request->start_us = now->version_us;
    return status_ok();
}
