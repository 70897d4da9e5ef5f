/* An update of a row that looks at its values, CheckAndMutateRow or ReadModifyWriteRow, and the
 * room in memory that these take: large ones wait for it in turn, beside those that ReadRows sends
 * (value_turn.h).
 *
 * It waits with the row's lock held. A call that has room either ends or lets go of it, and takes
 * no lock of a row for that: so the turn of those that wait comes. */
#ifndef TRESTLE_BIGTABLE_UPDATE_ROOM_H
#define TRESTLE_BIGTABLE_UPDATE_ROOM_H

#include "bigtable/data_call.h"
#include "bigtable/value_turn.h"
#include "cluster/rows.h"

/* All zeroes is one that has not begun. On the loop's thread. */
struct update_room {
    struct row_update update; /* set by the caller, except `ask_room` */
    unsigned times;           /* set by the caller: 1, and so often what is made of the values */
    struct value_turn turn;
    struct grpc_call *call;
    /* of an update that cannot even wait */
    struct task refused;
    status refusal;
};

/* rows_update. */
void update_room_begin(struct update_room *room, const struct data_call *data);

/* When the update is done. */
void update_room_end(struct update_room *room);

#endif
