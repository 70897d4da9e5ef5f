/* The list of the peers of a server: the record that it keeps of it, and what may become of one.
 *
 * Invariants
 *  1. A list names the peers by rising number from 1 to PEERS_MOST, the leader among them;
 *     no two have one identity, one location or one address. Those who have left it names apart.
 *  2. A number is given once: to one identity, for good.
 *  3. Only the leader makes a new list, of a greater revision; only who is to lead makes one of a
 *     greater epoch, and leads in it. Of two lists the newer one counts: of the greater epoch, then
 *     of the greater leader's number (two may have been made to lead in one epoch by force), then
 *     of the greater revision.
 *
 * A *majority* is one of the peers of a list. What has one leads on from everything that had one
 * before: one peer at least has both, and tells (peers_settle.c; peers_promote.c asks before it
 * leads, and has others promise not to take lists of before). A list may be changed without one, by
 * force: then it keeps for whom it was changed (`voters`), and a majority is one of the peers and
 * one of the voters, until a list has both.
 *
 * Numbers. Two lists may be made apart, without each other's knowledge: on both sides of what
 * parts the peers. At one of the two sides there is no majority. So
 *   - with a majority the least number up to 16 is given that nobody of it has *seen*: in whatever
 *     list, also in one that does not count any more. Before it is told a majority has it. Whoever
 *     gives the next one hears of it, from the peer that is in both majorities.
 *   - without a majority a leader gives one number, once: its own and 16 more, of which nobody else
 *     gives any without having asked it (of numbers above 15: none). So it may on both sides.
 *   - above 16 a majority gives a number as well if all peers answer, and the one of them whose
 *     number is 16 less has not seen it.
 * After that there are none: RESOURCE_EXHAUSTED, or without a majority FAILED_PRECONDITION.
 *
 * The record is `peers` of the catalog's keyspace (cluster/catalog.h), a PeersRecord. */
#ifndef TRESTLE_REPLICA_PEER_LIST_H
#define TRESTLE_REPLICA_PEER_LIST_H

#include "base/arena.h"
#include "cluster/cluster.h"
#include "trestle/replica/v1/replica.pb-c.h"

enum { PEERS_MOST = 31, PEERS_BY_MAJORITY = 16, PEER_TEXT_MOST = 255 };

/* A set of numbers, a bit each. */
typedef uint32_t peer_set;
static inline peer_set peer_bit(unsigned number)
{
    return (peer_set)1 << (number & PEERS_MOST);
}

/* In which a server leads: of two the greater epoch, then the greater leader counts. */
struct peer_ballot {
    uint64_t epoch;
    unsigned leader;
};
/* As memcmp. */
int peer_ballot_compare(struct peer_ballot a, struct peer_ballot b);

struct peer_record {
    const Replica__PeerList *list; /* NULL: there is none */
    unsigned own_number;           /* 0: it has no peers */
    struct peer_ballot promised;   /* lists of before it do not count */
    uint64_t led_epoch;            /* as in PeersRecord, as are the next */
    peer_set seen;
    peer_set gone;
};

/* What the record has goes into the arena. DATA_LOSS if it does not parse. May wait for the disk.
 */
status peer_record_read(struct cluster *cluster, struct arena *arena, struct peer_record *out);
/* Durably. Blocks. */
status peer_record_write(struct cluster *cluster, const struct peer_record *record);

/* Whether it keeps to invariant 1: INVALID_ARGUMENT says where not. */
status peer_list_check(const Replica__PeerList *list);

/* That of no list is all zeroes. */
struct peer_ballot peer_list_ballot(const Replica__PeerList *list);
/* Any may be NULL, which is older than any list. */
bool peer_list_is_newer(const Replica__PeerList *a, const Replica__PeerList *b);

/* NULL: there is none such, or no list. */
const Replica__Peer *peer_list_find(const Replica__PeerList *list, unsigned number);
const Replica__Peer *peer_list_of_identity(const Replica__PeerList *list, const char *identity);
/* One that has left. */
const Replica__Peer *peer_list_former(const Replica__PeerList *list, unsigned number);

/* The numbers of the peers; and of those who have left. */
peer_set peer_list_numbers(const Replica__PeerList *list);
peer_set peer_list_gone(const Replica__PeerList *list);
/* Whether these, of the peers and the voters, are a majority; and without one of the peers (0: with
 * all), as of one that has just been let in. */
bool peer_list_has_majority(const Replica__PeerList *list, peer_set numbers);
bool peer_list_has_majority_but(const Replica__PeerList *list, peer_set numbers, unsigned but);

/* A copy in the arena, and of nothing else. */
status peer_list_copy(const Replica__PeerList *list, struct arena *arena,
                      const Replica__PeerList **out);

/* What is known of a list by asking the peers. */
struct peer_support {
    peer_set have; /* whose list it is, the one that asks among them */
    peer_set seen; /* in any list that one of these has heard of */
};

/* What the list is once the peer has been admitted, in the arena and in what it is given: the same
 * list if it has that peer already. `*number` is the peer's, whose own is not looked at.
 * ALREADY_EXISTS: another one has its identity or its address; FAILED_PRECONDITION: another one has
 * its location, or there is no majority and no number without one; RESOURCE_EXHAUSTED: there are as
 * many as there may be; INVALID_ARGUMENT: it lacks something. */
status peer_list_admit(const Replica__PeerList *list, const Replica__Peer *peer,
                       const struct peer_support *support, struct arena *arena,
                       const Replica__PeerList **out, unsigned *number);

/* What it is once that peer of it leads, in an epoch that is greater than the list's. */
status peer_list_promote(const Replica__PeerList *list, struct peer_ballot ballot,
                         const struct peer_support *support, struct arena *arena,
                         const Replica__PeerList **out);

/* What it is once that peer of it, which does not lead, has left. */
status peer_list_dismiss(const Replica__PeerList *list, unsigned number,
                         const struct peer_support *support, struct arena *arena,
                         const Replica__PeerList **out);

/* What the list is once that peer of it has another address. ALREADY_EXISTS: another one has that;
 * INVALID_ARGUMENT: it is none. */
status peer_list_move(const Replica__PeerList *list, unsigned number, const char *address,
                      struct arena *arena, const Replica__PeerList **out);

/* The first list of a group of its own, of one that has the data of a peer of that list, or was
 * one: all of that have left, and its number, and the epoch, are new. RESOURCE_EXHAUSTED: there is
 * no number that has not been seen. */
status peer_list_found(const Replica__PeerList *list, const Replica__Peer *peer, peer_set seen,
                       struct arena *arena, const Replica__PeerList **out);

/* The first list: `leader` gets number 1, and is alone so far. */
status peer_list_begin(const Replica__Peer *leader, struct arena *arena,
                       const Replica__PeerList **out);

#endif
