/* See peers.h: who changes what is administered here. */
#include "replica/peers_private.h"

#include "base/check.h"

enum {
    WAIT_US = 5 * 1000 * 1000,    /* for calls under way, or a mirror */
    FROZEN_US = 20 * 1000 * 1000, /* a promotion that has not ended by then has failed */
};

static int64_t now_us(const struct peers *peers)
{
    return clock_steady_us(peers->options.clock);
}

void peer_gate_init(struct peer_gate *gate)
{
    pthread_mutex_init(&gate->lock, NULL);
    thread_init_steady_wake(&gate->wake);
}

void peer_gate_destroy(struct peer_gate *gate)
{
    pthread_mutex_destroy(&gate->lock);
    pthread_cond_destroy(&gate->wake);
}

/* With the lock held: until neither calls nor a mirror are under way. False: that takes too long.
 */
static bool await_rest(struct peer_gate *gate)
{
    const struct timespec until = thread_time_in(WAIT_US);
    int failed = 0;
    DCHECK(check_is_held(&gate->lock));
    while (failed == 0 && (gate->administering > 0 || gate->is_mirroring))
        failed = pthread_cond_timedwait(&gate->wake, &gate->lock, &until);
    return gate->administering == 0 && !gate->is_mirroring;
}

/* --- calls --- */

/* With the lock held. */
static status check_may_administer(const struct peers *peers)
{
    const struct peer_gate *gate = &peers->gate;
    unsigned own_number = peers_own_number(peers);
    if (peers_has_left(peers))
        return status_make(STATUS_FAILED_PRECONDITION, "This server was removed from its peers");
    if (own_number == 0)
        return status_ok();
    if (peers_leader(peers) != own_number)
        return status_make(STATUS_UNAVAILABLE, "Another server leads now: ask again");
    if (gate->is_mirroring)
        return status_make(STATUS_UNAVAILABLE, "This server is about to lead: ask again");
    if (gate->frozen_for != 0 && now_us(peers) < gate->frozen_until_us)
        return status_make(STATUS_UNAVAILABLE, "Another server is about to lead: ask again");
    return status_ok();
}

status peers_administer_begin(void *context)
{
    struct peers *peers = context;
    pthread_mutex_lock(&peers->gate.lock);
    status s = check_may_administer(peers);
    if (status_is_ok(s))
        peers->gate.administering++;
    pthread_mutex_unlock(&peers->gate.lock);
    return s;
}

void peers_administer_end(void *context)
{
    struct peers *peers = context;
    pthread_mutex_lock(&peers->gate.lock);
    DCHECK(peers->gate.administering > 0);
    peers->gate.administering--;
    pthread_cond_broadcast(&peers->gate.wake);
    pthread_mutex_unlock(&peers->gate.lock);
}

/* --- a mirror --- */

bool peers_mirror_begin(struct peers *peers, unsigned leader)
{
    pthread_mutex_lock(&peers->gate.lock);
    bool begins = await_rest(&peers->gate);
    unsigned own_number = peers_own_number(peers);
    begins = begins && own_number != 0 && peers_leader(peers) == leader && leader != own_number;
    if (begins)
        peers->gate.is_mirroring = true;
    pthread_mutex_unlock(&peers->gate.lock);
    return begins;
}

void peers_mirror_end(struct peers *peers)
{
    pthread_mutex_lock(&peers->gate.lock);
    DCHECK(peers->gate.is_mirroring);
    peers->gate.is_mirroring = false;
    pthread_cond_broadcast(&peers->gate.wake);
    pthread_mutex_unlock(&peers->gate.lock);
}

bool peers_leads_here(struct peers *peers)
{
    unsigned own_number = peers_own_number(peers);
    pthread_mutex_lock(&peers->gate.lock);
    bool leads = own_number != 0 && peers_leader(peers) == own_number && !peers->gate.is_mirroring;
    pthread_mutex_unlock(&peers->gate.lock);
    return leads;
}

/* --- a hand-over --- */

bool peer_gate_freeze(struct peers *peers, unsigned frozen_for)
{
    struct peer_gate *gate = &peers->gate;
    pthread_mutex_lock(&gate->lock);
    gate->frozen_for = frozen_for;
    gate->frozen_until_us = now_us(peers) + FROZEN_US;
    bool is_at_rest = await_rest(gate);
    pthread_mutex_unlock(&gate->lock);
    return is_at_rest;
}

void peer_gate_thaw(struct peers *peers, unsigned frozen_for)
{
    pthread_mutex_lock(&peers->gate.lock);
    if (peers->gate.frozen_for == frozen_for)
        peers->gate.frozen_for = 0;
    pthread_mutex_unlock(&peers->gate.lock);
}
