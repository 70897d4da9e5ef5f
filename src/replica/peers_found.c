/* See peers.h: a server that has the data of a peer, from a backup, or was one, begins a group of
 * its own.
 *
 * Its number is one that nobody of its former peers had, as far as these data know: what it gives
 * from now on has versions that none of the rows here has, wherever they come from. (What its
 * former peers have given since, and may give, never comes here: it is none of them, and they are
 * not let in with what they have.) Its epoch is greater, and so are the ids of the families that it
 * makes (cluster/shared_table.h). */
#include "replica/peers_private.h"

#include "base/check.h"

#include <stdio.h>

struct founding {
    struct peers *peers;
    struct arena *arena;
    const Replica__PromotePeerRequest *request;
    const Replica__PeerList *standing; /* NULL, or of one that has left */
    struct peer_record record;
    struct peer_notes notes;
};

static status check_may_found(const struct founding *founding)
{
    if (peers_own_number(founding->peers) != 0)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "this server has peers: it is number %u, and is promoted without "
                           "--from-backup",
                           peers_own_number(founding->peers));
    if (founding->record.list == NULL)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "the data here are no peer's: others may join this server as it is");
    return status_ok();
}

static status note_origin(struct founding *founding, unsigned number)
{
    char text[512];
    const Replica__PeerList *list = founding->record.list;
    unsigned former = founding->record.own_number;
    const Replica__Peer *peer = peer_list_find(list, former);
    if (peer == NULL)
        peer = peer_list_former(list, former);
    snprintf(
        text, sizeof text,
        "This server is number %u of a group of its own, and leads it. It has the data of peer "
        "%u, in %s, of epoch %llu; the numbers of all peers of then are given to nobody here.",
        number, former, peer == NULL ? "?" : peer->location, (unsigned long long)list->epoch);
    return peers_note(&founding->notes, founding->arena, text);
}

static status note_lost(struct founding *founding)
{
    return peers_note(
        &founding->notes, founding->arena,
        "Lost, as far as it is not in these data, is what clients changed at any of the peers, and "
        "what was administered, after they were copied; and what peers had taken before and that "
        "one had not pulled yet. Peers of then that still run stay a group without this server, "
        "and nothing of theirs comes here: if there are any, rather have this one join them, "
        "empty.");
}

/* With `change` held. */
static status make_list(struct founding *founding, const Replica__PeerList **out)
{
    Replica__Peer *own;
    TRY(peers_describe_oneself(founding->peers, founding->request->own_address, founding->arena,
                               &own));
    return peer_list_found(founding->record.list, own, founding->record.seen, founding->arena, out);
}

static status found(struct founding *founding)
{
    struct peers *peers = founding->peers;
    const Replica__PeerList *list;
    TRY(peer_record_read(peers->options.cluster, founding->arena, &founding->record));
    TRY(check_may_found(founding));
    TRY(peers_list(peers, founding->arena, &founding->standing));
    pthread_mutex_lock(&peers->change);
    status s = make_list(founding, &list);
    pthread_mutex_unlock(&peers->change);
    TRY(s);
    TRY(peers_check_address(peers, list->peers[0]->address));
    peers_note_seen(peers, founding->record.seen, founding->record.gone);
    TRY(peers_replace_list(peers, founding->standing, list, list->leader));
    TRY(note_origin(founding, list->leader));
    return note_lost(founding);
}

status peers_found(struct peers *peers, const Replica__PromotePeerRequest *request,
                   struct arena *arena, const Replica__ChangePeersResponse **out)
{
    struct founding founding = {.peers = peers, .arena = arena, .request = request};
    TRY(peers_changing_begin(peers));
    status s = found(&founding);
    peers_changing_end(peers);
    TRY(s);
    return peers_tell_change(peers, &founding.notes, arena, out);
}
