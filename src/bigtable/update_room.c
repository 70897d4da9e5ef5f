/* See update_room.h. */
#include "bigtable/update_room.h"

static void turn_ended(struct value_turn *turn, status s)
{
    struct update_room *room = LIST_ENTRY(turn, struct update_room, turn);
    if (status_is_ok(s))
        grpc_call_is_at(room->call, CALL_READS);
    rows_update_go_on(&room->update, s);
}

/* It has no client to wait for. */
static void is_wanted(struct value_turn *turn)
{
    (void)turn;
}

/* Without memory to wait the call ends as one that has waited in vain, once this has returned. */
static void run_refused(struct task *task)
{
    struct update_room *room = LIST_ENTRY(task, struct update_room, refused);
    rows_update_go_on(&room->update, room->refusal);
}

static bool ask_room(struct row_update *update, uint64_t size)
{
    struct update_room *room = LIST_ENTRY(update, struct update_room, update);
    bool has_room;
    status s = value_turn_ask(&room->turn, size * room->times, &has_room);
    if (!status_is_ok(s)) {
        room->refusal = s;
        room->refused.run = run_refused;
        loop_post(room->turn.loop, &room->refused);
        return false;
    }
    if (!has_room)
        grpc_call_is_at(room->call, CALL_AWAITS_ROOM);
    return has_room;
}

void update_room_begin(struct update_room *room, const struct data_call *data)
{
    room->call = data->call;
    room->turn = (struct value_turn){.room = data->bigtable->values,
                                     .loop = grpc_call_loop(data->call),
                                     .ended = turn_ended,
                                     .wanted = is_wanted};
    room->update.ask_room = data->bigtable->values == NULL ? NULL : ask_room;
    grpc_call_step(data->call, CALL_AWAITS_LOCK);
    rows_update(&room->update);
}

void update_room_end(struct update_room *room)
{
    if (room->turn.held > 0)
        value_turn_shrink(&room->turn, 0);
}
