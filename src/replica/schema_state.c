/* See schema_state.h. */
#include "replica/schema_state.h"

#include "base/check.h"
#include "cluster/catalog_txn.h"
#include "wire/proto.h"

static bytes record_key(void)
{
    return bytes_of("schema-mirrored");
}

/* --- the record --- */

static status parse(bytes value, struct arena *arena, const Replica__MirrorRecord **out)
{
    ProtobufCMessage *message;
    bytes kept = arena_copy(arena, value);
    if (kept.data == NULL && value.size > 0)
        return status_out_of_memory();
    TRY(proto_decode(&replica__mirror_record__descriptor, kept, arena, &message));
    *out = (const void *)message;
    return status_ok();
}

status mirror_record_read(struct cluster *cluster, struct arena *arena,
                          const Replica__MirrorRecord **out)
{
    static const Replica__MirrorRecord none = REPLICA__MIRROR_RECORD__INIT;
    struct buffer value = {0};
    bool is_there = false;
    *out = &none;
    status s = catalog_get(cluster_catalog(cluster), record_key(), &value, &is_there);
    if (status_is_ok(s) && is_there)
        s = parse(buffer_bytes(&value), arena, out);
    buffer_free(&value);
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status lost = status_make(STATUS_DATA_LOSS, "the record of what was mirrored is damaged: %s",
                              status_message(s));
    status_free(s);
    return lost;
}

status mirror_record_write(struct cluster *cluster, const Replica__MirrorRecord *record)
{
    struct buffer value = {0};
    struct catalog_txn *txn = catalog_txn_create(cluster_catalog(cluster));
    proto_encode(&record->base, &value);
    status s = txn == NULL || value.failed ? status_out_of_memory() : status_ok();
    if (status_is_ok(s)) {
        catalog_txn_put(txn, record_key(), buffer_bytes(&value));
        s = cluster_write_catalog(cluster, txn);
    }
    catalog_txn_destroy(txn);
    buffer_free(&value);
    return s;
}

/* --- what a server has --- */

static status tell_mirrored(struct control *control, struct arena *arena, Replica__SchemaState *out)
{
    const Replica__MirrorRecord *record;
    TRY(mirror_record_read(control_cluster(control), arena, &record));
    out->epoch = record->epoch;
    out->as_of_us = record->as_of_us;
    out->digest = record->digest;
    out->is_partial = record->is_partial || record->epoch == 0;
    return status_ok();
}

static status tell_led(struct control *control, uint64_t epoch, struct arena *arena,
                       Replica__SchemaState *out)
{
    struct schema_snapshot *here;
    TRY(schema_snapshot_take(control, &here));
    bytes digest = arena_copy(arena, schema_snapshot_digest(here));
    schema_snapshot_release(here);
    out->epoch = epoch;
    out->as_of_us = UINT64_MAX;
    out->digest = proto_data(digest);
    return digest.data == NULL ? status_out_of_memory() : status_ok();
}

status schema_state_tell(struct control *control, struct peers *peers, struct arena *arena,
                         Replica__SchemaState *out)
{
    const Replica__PeerList *list;
    TRY(peers_list(peers, arena, &list));
    uint64_t led = peers_led_epoch(peers);
    if (led == 0 && list != NULL && list->leader == peers_own_number(peers))
        led = list->epoch;
    return led != 0 ? tell_led(control, led, arena, out) : tell_mirrored(control, arena, out);
}

bool schema_state_is_same(const Replica__SchemaState *a, const Replica__SchemaState *b)
{
    return !a->is_partial && !b->is_partial &&
           bytes_equal(proto_bytes(a->digest), proto_bytes(b->digest));
}

bool schema_state_is_newer(const Replica__SchemaState *a, const Replica__SchemaState *b)
{
    if (a->epoch != b->epoch)
        return a->epoch > b->epoch;
    if (a->as_of_us != b->as_of_us)
        return a->as_of_us > b->as_of_us;
    return !a->is_partial && b->is_partial;
}
