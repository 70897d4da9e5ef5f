/* See peers_hook.h. */
#include "bigtable/peers_hook.h"

#include "bigtable/names.h"
#include "bigtable/services.h"
#include "tablet/version.h"

status check_leads(const struct bigtable *bigtable)
{
    struct buffer address = {0};
    if (bigtable->peers == NULL || !bigtable->peers->follows(bigtable->peers->context, &address)) {
        buffer_free(&address);
        return status_ok();
    }
    bool is_known = address.size > 0 && !address.failed;
    status s =
        status_make(STATUS_FAILED_PRECONDITION, "this server follows %.*s: ask there",
                    is_known ? (int)address.size : 7, is_known ? (char *)address.data : "another");
    buffer_free(&address);
    return s;
}

status change_shared_begin(const struct bigtable *bigtable)
{
    const struct bigtable_peers *peers = bigtable->peers;
    TRY(check_leads(bigtable));
    return peers == NULL || peers->administer_begin == NULL
               ? status_ok()
               : peers->administer_begin(peers->context);
}

void change_shared_end(const struct bigtable *bigtable)
{
    const struct bigtable_peers *peers = bigtable->peers;
    if (peers != NULL && peers->administer_end != NULL)
        peers->administer_end(peers->context);
}

static status not_all_here(void)
{
    return status_make(STATUS_UNAVAILABLE,
                       "This cluster is being copied from another one, and has not all rows yet");
}

status check_is_whole(const struct bigtable *bigtable)
{
    const struct bigtable_peers *peers = bigtable->peers;
    if (peers != NULL && peers->has_left != NULL && peers->has_left(peers->context))
        return status_make(STATUS_UNAVAILABLE,
                           "This server was removed from its peers, and serves no data");
    return peers == NULL || !peers->is_copying(peers->replication) ? status_ok() : not_all_here();
}

/* Of an instance that there is not nothing is copied: who is asked for something in it says that.
 */
static bool is_known(const struct bigtable *bigtable, bytes instance)
{
    struct buffer name = {0};
    buffer_append_bytes(&name, instance);
    buffer_append_byte(&name, '\0');
    bool is_so =
        name.failed || control_has(bigtable->control, RESOURCE_INSTANCE, (const char *)name.data);
    buffer_free(&name);
    return is_so;
}

status check_is_here(const struct bigtable *bigtable, bytes instance)
{
    const struct bigtable_peers *peers = bigtable->peers;
    bool is_here = peers == NULL || !peers->has_peers(peers->replication) ||
                   peers->is_here(peers->replication, instance);
    return is_here || !is_known(bigtable, instance) ? status_ok() : not_all_here();
}

bool bigtable_has_peers(const struct bigtable *bigtable)
{
    const struct bigtable_peers *peers = bigtable->peers;
    return peers != NULL && peers->has_peers(peers->replication);
}

status check_has_no_peers(const struct bigtable *bigtable, const char *what)
{
    if (!bigtable_has_peers(bigtable))
        return status_ok();
    return status_make(STATUS_UNIMPLEMENTED,
                       "This server has peers, to which %s is not copied: not yet", what);
}

/* --- locations --- */

static bool is_of_peer(const struct bigtable_peers *peers, unsigned number, bytes zone)
{
    struct buffer location = {0};
    bool is_so = peers->location(peers->replication, number, &location) &&
                 bytes_equal(buffer_bytes(&location), zone);
    buffer_free(&location);
    return is_so;
}

status check_location_is_served(const struct bigtable *bigtable, const char *location)
{
    const char *zone = name_id(location);
    if (!bigtable_has_peers(bigtable))
        return status_ok();
    for (unsigned i = 1; i < VERSION_CLUSTERS; i++)
        if (is_of_peer(bigtable->peers, i, bytes_of(zone)))
            return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "Location '%s' is served by no cluster", zone);
}
