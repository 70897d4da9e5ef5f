/* ListHotTablets: see cluster/heat.h. One process serves all clusters of an instance, so the same
 * tablets are hot in each of them. A page token is the id of the page's last hot tablet. */
#include "base/utf8.h"
#include "bigtable/instance_methods.h"
#include "bigtable/names.h"
#include "bigtable/resource_call.h"
#include "bigtable/timestamps.h"
#include "cluster/heat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST_PAGE = 1000, ID_CHARACTERS = 20 };

struct listing {
    struct arena *arena;
    const char *parent; /* the cluster */
    bytes tables;       /* what the names of its instance's tables begin with */
    int64_t from_us;
    int64_t until_us;
    size_t limit;
    BtAdmin__ListHotTabletsResponse *response;
    uint64_t last_id;
    bool has_more;
    status failure;
};

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
    listing->last_id = hot->id;
    return fill(listing, hot, message);
}

static bool visit(void *context, const struct hot_tablet *hot)
{
    struct listing *listing = context;
    if (!bytes_start_with(bytes_of(hot->table), listing->tables) ||
        hot->from_us < listing->from_us || hot->from_us > listing->until_us)
        return true;
    listing->has_more = listing->response->n_hot_tablets == listing->limit;
    if (listing->has_more)
        return false;
    listing->failure = add(listing, hot);
    return status_is_ok(listing->failure);
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

static status read_token(const char *text, uint64_t *after)
{
    char *end = NULL;
    *after = 0;
    if (text[0] == '\0')
        return status_ok();
    errno = 0;
    *after = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
        return status_make(STATUS_INVALID_ARGUMENT, "Invalid page_token");
    return status_ok();
}

static status check_request(const struct admin_request *request,
                            const BtAdmin__ListHotTabletsRequest *message)
{
    ProtobufCMessage *cluster;
    TRY(get_resource(request, RESOURCE_CLUSTER, message->parent, &cluster));
    if (message->page_size < 0)
        return status_make(STATUS_INVALID_ARGUMENT, "page_size must not be negative");
    return status_ok();
}

static status begin(const struct admin_request *request,
                    const BtAdmin__ListHotTabletsRequest *message, struct listing *listing)
{
    bool by_default = message->page_size == 0 || message->page_size > LARGEST_PAGE;
    char *instance = name_parent(request->arena, message->parent);
    char *tables = instance == NULL ? NULL : name_of_table(request->arena, instance, "");
    if (tables == NULL)
        return status_out_of_memory();
    *listing = (struct listing){.arena = request->arena,
                                .parent = message->parent,
                                .tables = bytes_of(tables),
                                .limit = by_default ? LARGEST_PAGE : (size_t)message->page_size,
                                .failure = status_ok()};
    TRY(read_times(message, listing));
    PROTO_NEW(request->arena, listing->response, BT_ADMIN__LIST_HOT_TABLETS_RESPONSE__INIT);
    listing->response->hot_tablets =
        arena_alloc(request->arena, listing->limit * sizeof(*listing->response->hot_tablets));
    return listing->response->hot_tablets == NULL ? status_out_of_memory() : status_ok();
}

status list_hot_tablets(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__ListHotTabletsRequest *message = (const void *)request->message;
    struct listing listing;
    uint64_t after;
    TRY(check_request(request, message));
    TRY(read_token(message->page_token, &after));
    TRY(begin(request, message, &listing));
    cluster_hot_tablets(request->bigtable->cluster, after, visit, &listing);
    TRY(listing.failure);
    if (listing.has_more) {
        listing.response->next_page_token = id_text(request->arena, listing.last_id);
        if (listing.response->next_page_token == NULL)
            return status_out_of_memory();
    }
    *response = &listing.response->base;
    return status_ok();
}
