/* See pull_message.h. A message's encoding is that of its fields one after the other, so each field
 * is written by itself, as a message's that has nothing else. */
#include "replica/pull_message.h"

#include "trestle/replica/v1/replica.pb-c.h"
#include "wire/proto.h"

void pull_message_table(struct buffer *out, uint64_t uid, const char *name)
{
    pull_message_sized_table(out, uid, name, 0);
}

void pull_message_sized_table(struct buffer *out, uint64_t uid, const char *name,
                              uint64_t size_bytes)
{
    Replica__PulledTable table = REPLICA__PULLED_TABLE__INIT;
    Replica__PulledTable *tables[] = {&table};
    Replica__PullChangesResponse response = REPLICA__PULL_CHANGES_RESPONSE__INIT;
    table.uid = uid;
    table.name = name;
    table.size_bytes = (int64_t)size_bytes;
    response.tables = tables;
    response.n_tables = 1;
    proto_encode(&response.base, out);
}

void pull_message_change(struct buffer *out, uint64_t uid, const struct origin_change *of)
{
    Replica__PulledChange change = REPLICA__PULLED_CHANGE__INIT;
    Replica__PulledChange *changes[] = {&change};
    Replica__PullChangesResponse response = REPLICA__PULL_CHANGES_RESPONSE__INIT;
    change.table = uid;
    change.from = proto_data(of->from);
    change.to = proto_data(of->to);
    change.is_drop = of->is_drop;
    change.version = of->version;
    change.change = proto_data(of->encoded);
    response.changes = changes;
    response.n_changes = 1;
    proto_encode(&response.base, out);
}

void pull_message_reached(struct buffer *out, struct stream_position at, uint64_t complete_version)
{
    Replica__Position reached = REPLICA__POSITION__INIT;
    Replica__PullChangesResponse response = REPLICA__PULL_CHANGES_RESPONSE__INIT;
    reached.sequence = at.sequence;
    reached.ordinal = at.ordinal;
    response.reached = &reached;
    response.complete_version = complete_version;
    proto_encode(&response.base, out);
}

void pull_message_place(struct buffer *out, unsigned number, struct stream_position at,
                        uint64_t complete_version)
{
    Replica__Position after = REPLICA__POSITION__INIT;
    Replica__Place place = REPLICA__PLACE__INIT;
    Replica__Place *places[] = {&place};
    Replica__PullChangesResponse response = REPLICA__PULL_CHANGES_RESPONSE__INIT;
    after.sequence = at.sequence;
    after.ordinal = at.ordinal;
    place.number = number;
    place.after = &after;
    place.complete_version = complete_version;
    response.places = places;
    response.n_places = 1;
    proto_encode(&response.base, out);
}

void pull_message_edit_version(struct buffer *out, uint64_t version)
{
    Replica__PullChangesResponse response = REPLICA__PULL_CHANGES_RESPONSE__INIT;
    response.edit_version = version;
    proto_encode(&response.base, out);
}

void pull_message_whole(struct buffer *out)
{
    Replica__PullChangesResponse response = REPLICA__PULL_CHANGES_RESPONSE__INIT;
    response.is_whole = true;
    proto_encode(&response.base, out);
}
