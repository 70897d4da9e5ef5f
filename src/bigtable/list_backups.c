/* ListBackups: see backup_filter.h for what it may be asked. */
#include "bigtable/backup_facts.h"
#include "bigtable/backup_filter.h"
#include "bigtable/backup_methods.h"
#include "bigtable/default_instance.h"
#include "bigtable/names.h"
#include "wire/grpc_text.h"

#include <stdlib.h>

struct listing {
    const struct admin_request *request;
    const struct backup_filter *filter;
    struct backup_ordering ordering;
    const BtAdmin__Backup *after; /* the last one of the page before; NULL: none */
    BtAdmin__Backup **backups;
    size_t count;
};

/* --- page tokens: the last backup of a page, as far as an order can look at it --- */

static status make_token(const BtAdmin__Backup *last, struct arena *arena, const char **out)
{
    BtAdmin__Backup seen = *last;
    struct buffer packed = {0}, text = {0};
    seen.encryption_info = NULL;
    proto_encode(&seen.base, &packed);
    base64_encode(buffer_bytes(&packed), &text);
    bool failed = packed.failed || text.failed;
    *out = failed ? NULL : arena_string(arena, buffer_bytes(&text));
    buffer_free(&packed);
    buffer_free(&text);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status bad_token(void)
{
    return status_make(STATUS_INVALID_ARGUMENT, "page_token is not one that was given out");
}

static status read_token(const char *token, struct arena *arena, const BtAdmin__Backup **out)
{
    size_t size;
    ProtobufCMessage *message;
    *out = NULL;
    if (*token == '\0')
        return status_ok();
    uint8_t *packed = arena_alloc(arena, base64_decoded_most(strlen(token)));
    if (packed == NULL)
        return status_out_of_memory();
    if (!base64_decode(bytes_of(token), packed, &size))
        return bad_token();
    status s =
        proto_decode(&bt_admin__backup__descriptor, bytes_make(packed, size), arena, &message);
    *out = (const void *)message;
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status_free(s);
    return bad_token();
}

/* --- which backups --- */

static bool is_wanted(const struct listing *listing, const char *parent,
                      const BtAdmin__Backup *backup)
{
    return name_is_under(backup->name, parent) && backup_filter_matches(listing->filter, backup) &&
           (listing->after == NULL ||
            backup_ordering_compare(&listing->ordering, listing->after, backup) < 0);
}

static status select_wanted(struct listing *listing, const char *parent)
{
    struct arena *arena = listing->request->arena;
    struct backup_info *infos;
    size_t count;
    char *prefix = arena_string(arena, bytes_make(parent, name_shared_size(parent)));
    if (prefix == NULL)
        return status_out_of_memory();
    TRY(backups_list(listing->request->bigtable->backups, prefix, arena, &infos, &count));
    listing->backups = arena_alloc(arena, count * sizeof(*listing->backups));
    if (listing->backups == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        struct backup_facts facts;
        TRY(backup_facts_of(&infos[i], arena, &facts));
        if (is_wanted(listing, parent, facts.backup))
            listing->backups[listing->count++] = facts.backup;
    }
    return status_ok();
}

static int compare(const void *a, const void *b, void *ordering)
{
    return backup_ordering_compare(ordering, *(BtAdmin__Backup *const *)a,
                                   *(BtAdmin__Backup *const *)b);
}

/* Backups that were carried here are listed, though there is no such instance. */
static status check_parent(const struct admin_request *request, const char *parent)
{
    const struct bigtable *bigtable = request->bigtable;
    char *instance = name_parent(request->arena, parent);
    char *prefix = name_join(request->arena, parent, "backups", "");
    if (instance == NULL || prefix == NULL)
        return status_out_of_memory();
    bool is_any = strcmp(name_id(parent), "-") == 0;
    if (backups_have_any(bigtable->backups, prefix))
        return status_ok();
    if (is_any || !control_has(bigtable->control, RESOURCE_INSTANCE, instance))
        return check_instance_to_list(bigtable, instance);
    if (control_has(bigtable->control, RESOURCE_CLUSTER, parent))
        return status_ok();
    return status_make(STATUS_NOT_FOUND, "Not found: %s", parent);
}

status list_backups(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__ListBackupsRequest *message = (const void *)request->message;
    struct listing listing = {.request = request};
    BtAdmin__ListBackupsResponse *page;
    size_t limit;
    TRY(check_cluster_name(message->parent));
    TRY(page_limit(message->page_size, &limit));
    TRY(backup_filter_parse(message->filter, request->arena, &listing.filter));
    TRY(backup_ordering_parse(message->order_by, &listing.ordering));
    TRY(read_token(message->page_token, request->arena, &listing.after));
    TRY(check_parent(request, message->parent));
    TRY(select_wanted(&listing, message->parent));
    if (listing.count > 0)
        qsort_r(listing.backups, listing.count, sizeof(*listing.backups), compare,
                &listing.ordering);
    PROTO_NEW(request->arena, page, BT_ADMIN__LIST_BACKUPS_RESPONSE__INIT);
    page->backups = listing.backups;
    page->n_backups = listing.count < limit ? listing.count : limit;
    if (listing.count > limit)
        TRY(make_token(listing.backups[limit - 1], request->arena, &page->next_page_token));
    *response = &page->base;
    return status_ok();
}
