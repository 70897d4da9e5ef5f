/* What peers.c (who they are), peers_calls.c (what is asked), peers_settle.c (what takes a
 * majority), peers_promote.c (who leads), peers_leave.c, peers_gate.c and peer_link.c (asking)
 * share. */
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

/* Who may change what is administered here: clients' calls while this server leads, or a mirror of
 * the one that does; never both. */
struct peer_gate {
    pthread_mutex_t lock;
    pthread_cond_t wake;     /* one of the next has ended */
    unsigned administering;  /* calls */
    bool is_mirroring;       /* or about to be, and not leading */
    unsigned frozen_for;     /* the peer that is about to lead; 0: none is */
    int64_t frozen_until_us; /* by the steady clock */
};

struct peers {
    struct peers_options options;
    char identity[STORE_IDENTITY_SIZE];
    uint64_t incarnation; /* of this process; not 0 */
    struct peer_gate gate;
    pthread_rwlock_t schema_lock; /* of the next: read while it is used */
    struct peers_schema schema;   /* all NULL: there is none */
    void (*tell_progress)(void *context, struct arena *arena, Replica__PeerState *state);
    void *progress_context;

    /* Held by who changes the list, while that is written, too; taken before `lock`. */
    pthread_mutex_t change;
    bool is_joining;  /* `change` */
    bool is_changing; /* `change`: by a call that asks others first (peers_changing_begin) */
    struct peer_ballot promised; /* `change`: as in the record, as is the next */
    uint64_t led_epoch;          /* `change` */
    bool has_begun;              /* `change` */
    bool is_stopping;            /* `change` and `lock`: set with both, seen with either */
    struct buffer address; /* `change`: HOST:PORT, and a NUL; empty: others cannot reach that */

    pthread_mutex_t lock;
    struct arena *arena;            /* `lock`: of the list */
    const Replica__PeerList *list;  /* `lock`; NULL: none */
    struct peer_address *addresses; /* `lock` */

    atomic_uint own_number;
    atomic_uint leader;
    atomic_ullong generation;
    atomic_uint seen; /* peer_set: as in the record, with what was heard since it was written */
    atomic_uint gone;
    atomic_bool has_left;                   /* then own_number is 0 */
    atomic_bool is_leaving;                 /* it is to be so soon: it serves no data meanwhile */
    struct peer_link links[PEERS_MOST + 1]; /* by number */
};

/* With `change` held. Makes it the list, durably: and versions name the number. */
status peers_change_list(struct peers *peers, const Replica__PeerList *list, unsigned own_number);
/* The same if the list is still `former` (NULL: none): else ABORTED. Takes `change`. */
status peers_replace_list(struct peers *peers, const Replica__PeerList *former,
                          const Replica__PeerList *list, unsigned own_number);
/* With `change` held: writes down what is to be kept, with another promise. */
status peers_write_promise(struct peers *peers, struct peer_ballot promised);
/* What another one has seen, too. */
void peers_note_seen(struct peers *peers, peer_set seen, peer_set gone);
/* Makes it the list if it is newer, and not of before what was promised. If this server led, what
 * it has is to be compared (peers_led_epoch), unless it has handed all of it over. Takes `change`.
 */
status peers_adopt(struct peers *peers, const Replica__PeerList *list, bool is_handed_over);

/* Whether others could speak to this server at that address, as the next says: looks it up. Blocks.
 */
status peers_check_address(const struct peers *peers, const char *address);
/* A session with the server of that address: FAILED_PRECONDITION if its owner may not speak to
 * such a one. */
status peers_connect(struct peers *peers, const char *address, struct client_session **out);

/* --- peers_calls.c --- */

/* Whether who asks is that peer of the list: FAILED_PRECONDITION. */
struct peer_caller {
    unsigned number;
    const char *identity;
    uint64_t incarnation;
};
status peers_check_caller(struct peers *peers, const Replica__PeerList *list,
                          const struct peer_caller *caller);
/* With `change` held: how others know this server. */
status peers_describe_oneself(struct peers *peers, const char *own_address, struct arena *arena,
                              Replica__Peer **out);
bool peers_another_leads(const struct peers *peers);
/* Whether that peer did not answer when it was asked last. */
bool peers_is_silent(struct peers *peers, unsigned number);

/* --- peers_settle.c --- */

/* One at a time changes the list that asks others before: ABORTED if another one takes too long. */
status peers_changing_begin(struct peers *peers);
void peers_changing_end(struct peers *peers);

/* Asks a peer of the list, once. */
status peers_ask(struct peers *peers, unsigned number, const struct session_call *call,
                 const ProtobufCMessageDescriptor *type, struct arena *arena,
                 const ProtobufCMessage **out);
/* Has the others take the list, which is this server's, those first that answer: until a majority
 * has it, of those that do not answer. ABORTED: another one has a newer list, which is taken. */
status peers_settle(struct peers *peers, const Replica__PeerList *list, struct arena *arena,
                    struct peer_support *out);
/* With a list that is the one of this server, which leads, or leads from then on: lets the peer in.
 */
status peers_admit_new(struct peers *peers, const Replica__PeerList *former,
                       const Replica__PeerList *list, const Replica__Peer *peer,
                       struct arena *arena, const Replica__PeerList **out, unsigned *number);

/* Microseconds since 1970, for people; 0: it is not known. */
enum { PEER_TIME_SIZE = 48 };
void peers_format_time(int64_t us, char out[PEER_TIME_SIZE]);

/* What a change of the peers tells of itself. */
enum { PEER_NOTES_MOST = 8 };
struct peer_notes {
    char *text[PEER_NOTES_MOST];
    size_t count;
};
/* In the arena; what does not find room is left out. */
status peers_note(struct peer_notes *notes, struct arena *arena, const char *text);
status peers_tell_change(struct peers *peers, const struct peer_notes *notes, struct arena *arena,
                         const Replica__ChangePeersResponse **out);

/* --- peers_found.c --- */

/* peers_promote, of one that has no peers. */
status peers_found(struct peers *peers, const Replica__PromotePeerRequest *request,
                   struct arena *arena, const Replica__ChangePeersResponse **out);

/* --- peers_gate.c --- */

void peer_gate_init(struct peer_gate *gate);
void peer_gate_destroy(struct peer_gate *gate);
/* Lets no call change what is administered for so long, or until it is let go, and waits for those
 * under way: false if they take too long. */
bool peer_gate_freeze(struct peers *peers, unsigned frozen_for);
void peer_gate_thaw(struct peers *peers, unsigned frozen_for);

/* --- peer_link.c --- */

status peer_check_answer(const Replica__Peer *peer, const Replica__ExchangePeersResponse *answer);

/* With `change` held: starts the thread, if none runs. */
status peer_link_start(struct peer_link *link);
/* Ends it. Nobody starts one meanwhile. */
void peer_link_stop(struct peer_link *link);

#endif
