/* What the services ask of a server's peers, which are known further up (replica/). */
#ifndef TRESTLE_BIGTABLE_PEERS_HOOK_H
#define TRESTLE_BIGTABLE_PEERS_HOOK_H

#include "base/bytes.h"
#include "base/status.h"

struct bigtable;

struct bigtable_peers {
    /* Whether what is administered here is what is administered at another server; appends that
     * one's address, HOST:PORT, if it is known. Any thread; may wait for a lock, not for more. */
    bool (*follows)(void *context, struct buffer *leader_address);
    void *context;
};

/* FAILED_PRECONDITION, saying where to ask, if this server follows another one: to be asked before
 * anything is changed that peers share. */
status check_leads(const struct bigtable *bigtable);

#endif
