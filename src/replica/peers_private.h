/* What peers.c (who they are), peers_calls.c (what is asked) and peer_link.c (asking) share. */
#ifndef TRESTLE_REPLICA_PEERS_PRIVATE_H
#define TRESTLE_REPLICA_PEERS_PRIVATE_H

#include "os/thread.h"
#include "replica/peer_list.h"
#include "replica/peers.h"
#include "store/store.h"

#include <stdatomic.h>

enum { PEER_MEMORY = 1 << 20, PEER_TIMEOUT_US = 2 * 1000 * 1000 };

/* One of the others, and the thread that asks it. */
struct peer_link {
    struct peers *peers;
    unsigned number;
    bool is_running; /* the thread; `change` */
    pthread_t thread;
    struct thread_stop stop;

    /* `lock`: */
    struct client_session *session; /* its thread's, to be cancelled by others; NULL: none */
    int64_t heard_us;               /* as in PeerState */
    int64_t clock_ahead_us;
    char *failure; /* NULL: none */
    enum status_code failure_code;
    /* Of the process that answers at the peer's address; 0: none has. And when it was asked what it
     * answered, by the steady clock. */
    uint64_t incarnation;
    int64_t asked_us;
    /* Another one that calls itself that peer, and since when; 0: none does. If what answers at the
     * peer's address after that is not it, there are two. */
    uint64_t stranger;
    int64_t stranger_us;
    bool has_told_stranger;
    int64_t refused_us; /* such a one, last, by the steady clock; 0: none was */
};

/* An address that sessions may refer to for as long as they like. */
struct peer_address {
    struct peer_address *next;
    char text[];
};

struct peers {
    struct peers_options options;
    char identity[STORE_IDENTITY_SIZE];
    uint64_t incarnation; /* of this process; not 0 */
    void (*tell_progress)(void *context, struct arena *arena, Replica__PeerState *state);
    void *progress_context;

    /* Held by who changes the list, while that is written, too; taken before `lock`. */
    pthread_mutex_t change;
    bool is_joining;       /* `change` */
    bool has_begun;        /* `change` */
    bool is_stopping;      /* `change` and `lock`: set with both, seen with either */
    struct buffer address; /* `change`: HOST:PORT, and a NUL; empty: others cannot reach that */

    pthread_mutex_t lock;
    struct arena *arena;            /* `lock`: of the list */
    const Replica__PeerList *list;  /* `lock`; NULL: none */
    struct peer_address *addresses; /* `lock` */

    atomic_uint own_number;
    atomic_uint leader;
    atomic_ullong generation;
    struct peer_link links[PEERS_MOST + 1]; /* by number */
};

/* With `change` held. Makes it the list, durably: and versions name the number. */
status peers_change_list(struct peers *peers, const Replica__PeerList *list, unsigned own_number);
/* Makes it the list if it is newer. Takes `change`. */
status peers_adopt(struct peers *peers, const Replica__PeerList *list);

/* Whether others could speak to this server at that address, as the next says: looks it up. Blocks.
 */
status peers_check_address(const struct peers *peers, const char *address);
/* A session with the server of that address: FAILED_PRECONDITION if its owner may not speak to
 * such a one. */
status peers_connect(struct peers *peers, const char *address, struct client_session **out);

/* --- peer_link.c --- */

/* With `change` held: starts the thread, if none runs. */
status peer_link_start(struct peer_link *link);
/* Ends it. Nobody starts one meanwhile. */
void peer_link_stop(struct peer_link *link);

#endif
