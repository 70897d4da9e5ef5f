/* See change_listing.h. */
#include "client/change_listing.h"

#include "base/vector.h"

#include <stdlib.h>

#define LIST_PARTITIONS "/google.bigtable.v2.Bigtable/GenerateInitialChangeStreamPartitions"

enum {
    LISTING_LIMIT = 256 << 20,    /* bytes of memory */
    SILENT_US = 60 * 1000 * 1000, /* without a message: the connection is dead */
};

struct listed_range {
    bytes start, end;
};

static void forget(struct change_listing *listing)
{
    change_call_destroy(listing->call);
    arena_destroy(listing->arena);
    listing->call = NULL;
    listing->arena = NULL;
    listing->ranges = (struct vector){0};
}

void change_listing_free(struct change_listing *listing)
{
    forget(listing);
}

static status fail(struct change_listing *listing, status s, int64_t now_us)
{
    forget(listing);
    return change_retry_after(&listing->retry, s, now_us);
}

status change_listing_begin(struct change_listing *listing,
                            const struct change_call_options *options, const char *table,
                            const char *app_profile, int64_t now_us)
{
    if (listing->call != NULL || now_us < listing->retry.at_us)
        return status_ok();
    Bt__GenerateInitialChangeStreamPartitionsRequest request =
        BT__GENERATE_INITIAL_CHANGE_STREAM_PARTITIONS_REQUEST__INIT;
    request.table_name = table;
    request.app_profile_id = app_profile;
    struct change_call_options calling = *options;
    calling.path = LIST_PARTITIONS;
    calling.request = &request.base;
    listing->arena = arena_create(LISTING_LIMIT);
    status s = listing->arena == NULL ? status_out_of_memory()
                                      : change_call_create(&calling, &listing->call);
    return status_is_ok(s) ? s : fail(listing, s, now_us);
}

/* --- what comes --- */

static status take_message(struct change_listing *listing, bytes message)
{
    ProtobufCMessage *decoded;
    bytes kept = arena_copy(listing->arena, message);
    if (kept.data == NULL)
        return status_out_of_memory();
    TRY(proto_decode(&bt__generate_initial_change_stream_partitions_response__descriptor, kept,
                     listing->arena, &decoded));
    const Bt__GenerateInitialChangeStreamPartitionsResponse *response = (const void *)decoded;
    if (response->partition == NULL || response->partition->row_range == NULL)
        return status_make(STATUS_DATA_LOSS, "the server listed a partition without a range");
    const Bt__RowRange *range = response->partition->row_range;
    struct listed_range listed = {0};
    if (range->start_key_case == BT__ROW_RANGE__START_KEY_START_KEY_CLOSED)
        listed.start = proto_bytes(range->start_key_closed);
    if (range->end_key_case == BT__ROW_RANGE__END_KEY_END_KEY_OPEN)
        listed.end = proto_bytes(range->end_key_open);
    return vector_add(&listing->ranges, listing->arena, &listed, sizeof listed);
}

static int compare(const void *a, const void *b)
{
    const struct listed_range *x = a, *y = b;
    return bytes_compare(x->start, y->start);
}

static status make_partitions(const struct change_listing *listing,
                              struct change_partitions *partitions)
{
    struct listed_range *ranges = listing->ranges.items;
    if (listing->ranges.count > 0)
        qsort(ranges, listing->ranges.count, sizeof *ranges, compare);
    for (size_t i = 0; i < listing->ranges.count; i++)
        TRY(change_partitions_add(partitions, ranges[i].start, ranges[i].end, NULL, 0, 0));
    return change_partitions_check(partitions);
}

/* Of partitions that split or merge meanwhile the list may not fit together: then it is asked for
 * again. */
static status as_passing(status s)
{
    if (s.code != STATUS_DATA_LOSS)
        return s;
    status passing = status_make(STATUS_UNAVAILABLE, "%s", status_message(s));
    status_free(s);
    return passing;
}

static status take_end(struct change_listing *listing, struct change_partitions *partitions,
                       status how, int64_t now_us, bool *is_whole)
{
    status s = status_is_ok(how) ? as_passing(make_partitions(listing, partitions)) : how;
    *is_whole = status_is_ok(s);
    if (!*is_whole) {
        change_partitions_free(partitions);
        return fail(listing, s, now_us);
    }
    forget(listing);
    return s;
}

status change_listing_take(struct change_listing *listing, struct change_partitions *partitions,
                           int64_t now_us, bool *is_whole)
{
    bytes message;
    status how;
    *is_whole = false;
    while (listing->call != NULL && change_call_message(listing->call, &message)) {
        status s = take_message(listing, message);
        if (!status_is_ok(s))
            return fail(listing, s, now_us);
        change_call_drop_message(listing->call);
    }
    if (listing->call == NULL)
        return status_ok();
    if (now_us - change_call_heard_us(listing->call) > SILENT_US)
        return fail(listing,
                    status_make(STATUS_DEADLINE_EXCEEDED, "the server does not list partitions"),
                    now_us);
    if (!change_call_has_ended(listing->call, &how))
        return status_ok();
    return take_end(listing, partitions, how, now_us, is_whole);
}
