/* ListHotTablets: see cluster/heat/heat.h. One process serves all clusters of an instance, so the
 * same tablets are hot in each of them. The hottest come first, and a range that was hot more than
 * once in a quarter of an hour is told once, as it was at its hottest; so the API has it. A page
 * token is where the page's last hot tablet stands in that order. */
#include "base/utf8.h"
#include "bigtable/instance_methods.h"
#include "bigtable/names.h"
#include "bigtable/resource_call.h"
#include "cluster/heat/heat.h"
#include "wire/timestamps.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ID_CHARACTERS = 20, TOLD_ONCE_IN_S = 15 * 60 };

struct listing {
    struct arena *arena;
    const char *parent; /* the cluster */
    bytes tables;       /* what the names of its instance's tables begin with */
    int64_t from_us;
    int64_t until_us;
    size_t limit;
    struct buffer found; /* struct hot_tablet */
    BtAdmin__ListHotTabletsResponse *response;
};

/* --- which there are, and in which order --- */

/* Under a lock: it only copies. */
static bool visit(void *context, const struct hot_tablet *hot)
{
    struct listing *listing = context;
    struct hot_tablet copy = *hot;
    if (!bytes_start_with(bytes_of(hot->table), listing->tables) ||
        hot->from_us < listing->from_us || hot->from_us > listing->until_us)
        return true;
    copy.table = arena_string(listing->arena, bytes_of(hot->table));
    copy.start = arena_copy(listing->arena, hot->start);
    copy.end = arena_copy(listing->arena, hot->end);
    listing->found.failed |= copy.table == NULL || copy.start.data == NULL || copy.end.data == NULL;
    buffer_append(&listing->found, &copy, sizeof copy);
    return !listing->found.failed;
}

/* The place of a hot tablet among the others: by falling share, then by rising id. */
struct place {
    uint64_t millionths; /* of a percent */
    uint64_t id;
};

static struct place place_of(const struct hot_tablet *hot)
{
    return (struct place){.millionths = (uint64_t)llround(fmax(hot->cpu_percent, 0) * 1e6),
                          .id = hot->id};
}

static int compare_places(struct place a, struct place b)
{
    if (a.millionths != b.millionths)
        return a.millionths > b.millionths ? -1 : 1;
    return (a.id > b.id) - (a.id < b.id);
}

static int by_place(const void *a, const void *b)
{
    return compare_places(place_of(a), place_of(b));
}

static int64_t quarter_of(const struct hot_tablet *hot)
{
    return hot->from_us / (TOLD_ONCE_IN_S * INT64_C(1000000));
}

static int compare_ranges(const struct hot_tablet *a, const struct hot_tablet *b)
{
    int order = strcmp(a->table, b->table);
    if (order == 0)
        order = bytes_compare(a->start, b->start);
    if (order == 0)
        order = bytes_compare(a->end, b->end);
    if (order == 0)
        order = (quarter_of(a) > quarter_of(b)) - (quarter_of(a) < quarter_of(b));
    return order;
}

static int by_range(const void *a, const void *b)
{
    int order = compare_ranges(a, b);
    return order != 0 ? order : by_place(a, b);
}

/* How many are left: of those with one range and one quarter of an hour the first in place. */
static size_t keep_hottest(struct hot_tablet *hot, size_t count)
{
    size_t kept = 0;
    qsort(hot, count, sizeof *hot, by_range);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || compare_ranges(&hot[kept - 1], &hot[i]) != 0)
            hot[kept++] = hot[i];
    return kept;
}

/* --- messages --- */

/* Row keys are bytes, and the field is text: what is no UTF-8 shows its bytes as \xNN. */
static char *key_text(struct arena *arena, bytes key)
{
    static const char digits[] = "0123456789abcdef";
    bool is_text = utf8_is_valid(key) && memchr(key.data, 0, key.size) == NULL;
    if (key.size == 0 || is_text)
        return arena_string(arena, key);
    char *text = arena_alloc(arena, key.size * strlen("\\xNN") + 1), *at = text;
    if (text == NULL)
        return NULL;
    for (size_t i = 0; i < key.size; i++) {
        if (key.data[i] >= ' ' && key.data[i] <= '~' && key.data[i] != '\\') {
            *at++ = (char)key.data[i];
            continue;
        }
        *at++ = '\\';
        *at++ = 'x';
        *at++ = digits[key.data[i] >> 4];
        *at++ = digits[key.data[i] & 15];
    }
    *at = '\0';
    return text;
}

static char *id_text(struct arena *arena, uint64_t id)
{
    char *text = arena_alloc(arena, ID_CHARACTERS + 1);
    if (text != NULL)
        snprintf(text, ID_CHARACTERS + 1, "%" PRIu64, id);
    return text;
}

static status fill(struct listing *listing, const struct hot_tablet *hot,
                   BtAdmin__HotTablet *message)
{
    struct arena *arena = listing->arena;
    char *id = id_text(arena, hot->id);
    message->name = id == NULL ? NULL : name_join(arena, listing->parent, "hotTablets", id);
    message->table_name = arena_string(arena, bytes_of(hot->table));
    message->start_key = key_text(arena, hot->start);
    message->end_key = key_text(arena, hot->end);
    message->node_cpu_usage_percent = (float)hot->cpu_percent;
    if (message->name == NULL || message->table_name == NULL || message->start_key == NULL ||
        message->end_key == NULL)
        return status_out_of_memory();
    TRY(timestamp_message(hot->from_us, arena, &message->start_time));
    return timestamp_message(hot->until_us, arena, &message->end_time);
}

static status add(struct listing *listing, const struct hot_tablet *hot)
{
    BtAdmin__HotTablet *message;
    PROTO_NEW(listing->arena, message, BT_ADMIN__HOT_TABLET__INIT);
    listing->response->hot_tablets[listing->response->n_hot_tablets++] = message;
    return fill(listing, hot, message);
}

static status set_token(struct listing *listing, struct place last)
{
    size_t size = 2 * ID_CHARACTERS + sizeof ".";
    char *text = arena_alloc(listing->arena, size);
    if (text == NULL)
        return status_out_of_memory();
    snprintf(text, size, "%" PRIu64 ".%" PRIu64, last.millionths, last.id);
    listing->response->next_page_token = text;
    return status_ok();
}

static status fill_page(struct listing *listing, const struct hot_tablet *hot, size_t count)
{
    size_t size = count < listing->limit ? count : listing->limit;
    PROTO_NEW(listing->arena, listing->response, BT_ADMIN__LIST_HOT_TABLETS_RESPONSE__INIT);
    listing->response->hot_tablets =
        arena_alloc(listing->arena, size * sizeof(*listing->response->hot_tablets));
    if (listing->response->hot_tablets == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < size; i++)
        TRY(add(listing, &hot[i]));
    return size < count ? set_token(listing, place_of(&hot[size - 1])) : status_ok();
}

/* --- the request --- */

static status read_times(const BtAdmin__ListHotTabletsRequest *message, struct listing *listing)
{
    listing->from_us = 0;
    listing->until_us = INT64_MAX;
    if (message->start_time != NULL) {
        TRY(timestamp_check("start_time", message->start_time));
        listing->from_us = timestamp_us(message->start_time);
    }
    if (message->end_time != NULL) {
        TRY(timestamp_check("end_time", message->end_time));
        listing->until_us = timestamp_us(message->end_time);
    }
    if (listing->from_us > listing->until_us)
        return status_make(STATUS_INVALID_ARGUMENT, "start_time must not be after end_time");
    return status_ok();
}

static bool read_number(const char **at, uint64_t *number)
{
    char *end = NULL;
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    *number = strtoull(*at, &end, 10);
    *at = end;
    return errno == 0;
}

/* The token is the place behind which the page begins; without one that is before everything. */
static status read_token(const char *text, struct place *after)
{
    *after = (struct place){.millionths = UINT64_MAX};
    if (text[0] == '\0')
        return status_ok();
    if (!read_number(&text, &after->millionths) || *text++ != '.' ||
        !read_number(&text, &after->id) || *text != '\0')
        return status_make(STATUS_INVALID_ARGUMENT, "Invalid page_token");
    return status_ok();
}

static status begin(const struct admin_request *request,
                    const BtAdmin__ListHotTabletsRequest *message, struct listing *listing)
{
    char *instance = name_parent(request->arena, message->parent);
    char *tables = instance == NULL ? NULL : name_of_table(request->arena, instance, "");
    if (tables == NULL)
        return status_out_of_memory();
    *listing = (struct listing){
        .arena = request->arena, .parent = message->parent, .tables = bytes_of(tables)};
    TRY(page_limit(message->page_size, &listing->limit));
    return read_times(message, listing);
}

static status list_page(const struct admin_request *request, struct listing *listing,
                        struct place after)
{
    cluster_hot_tablets(request->bigtable->cluster, visit, listing);
    if (listing->found.failed)
        return status_out_of_memory();
    struct hot_tablet *hot = (struct hot_tablet *)(void *)listing->found.data;
    size_t count = listing->found.size / sizeof *hot, first = 0;
    if (count == 0)
        return fill_page(listing, NULL, 0);
    count = keep_hottest(hot, count);
    qsort(hot, count, sizeof *hot, by_place);
    while (first < count && compare_places(place_of(&hot[first]), after) <= 0)
        first++;
    return fill_page(listing, hot + first, count - first);
}

status list_hot_tablets(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__ListHotTabletsRequest *message = (const void *)request->message;
    ProtobufCMessage *cluster;
    struct listing listing;
    struct place after;
    TRY(get_resource(request, RESOURCE_CLUSTER, message->parent, &cluster));
    TRY(read_token(message->page_token, &after));
    TRY(begin(request, message, &listing));
    status s = list_page(request, &listing, after);
    buffer_free(&listing.found);
    if (status_is_ok(s))
        *response = &listing.response->base;
    return s;
}
