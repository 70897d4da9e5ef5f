/* Pictures on their way from peer to peer: see schema_snapshot.h. */
#include "base/check.h"
#include "replica/schema_snapshot.h"
#include "wire/proto.h"

enum {
    PIECE_BYTES = 1 << 20,
    PIECE_MEMORY = 256 << 20, /* of one with the largest table */
};

/* --- sending --- */

/* The next piece. */
struct sending {
    struct arena *arena; /* of the piece */
    struct vector tables;
    struct vector resources;
    size_t size;
    uint64_t epoch;
    status (*send)(void *context, const Replica__PullSchemaResponse *piece);
    void *context;
};

/* `digest` is empty but for the last. */
static status send_piece(struct sending *sending, bytes digest)
{
    Replica__PullSchemaResponse piece = REPLICA__PULL_SCHEMA_RESPONSE__INIT;
    piece.tables = sending->tables.items;
    piece.n_tables = sending->tables.count;
    piece.resources = sending->resources.items;
    piece.n_resources = sending->resources.count;
    piece.digest = proto_data(digest);
    piece.epoch = sending->epoch;
    TRY(sending->send(sending->context, &piece));
    arena_reset(sending->arena);
    sending->tables = sending->resources = (struct vector){0};
    sending->size = 0;
    return status_ok();
}

/* Room for something of that size, in this piece or the next. */
static status make_room(struct sending *sending, size_t size)
{
    if (sending->size > 0 && sending->size + size > PIECE_BYTES)
        TRY(send_piece(sending, bytes_make(NULL, 0)));
    sending->size += size;
    return status_ok();
}

static size_t size_of_table(const struct shared_table *table)
{
    size_t size = 16 + strlen(table->name) + table->record.size;
    for (size_t i = 0; i < table->split_count; i++)
        size += 8 + table->split_keys[i].size;
    return size;
}

static status send_table(struct sending *sending, const struct shared_table *table)
{
    Replica__SharedTable *message;
    TRY(make_room(sending, size_of_table(table)));
    PROTO_NEW(sending->arena, message, REPLICA__SHARED_TABLE__INIT);
    message->uid = table->uid;
    message->name = table->name;
    message->record = proto_data(table->record);
    message->n_split_keys = table->split_count;
    message->split_keys =
        arena_alloc(sending->arena, table->split_count * sizeof *message->split_keys);
    if (message->split_keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < table->split_count; i++)
        message->split_keys[i] = proto_data(table->split_keys[i]);
    return vector_add(&sending->tables, sending->arena, &message, sizeof message);
}

static status send_resource(struct sending *sending, const struct resource *resource)
{
    Replica__SharedResource *message;
    TRY(make_room(sending,
                  32 + strlen(resource->name) + resource->body.size + resource->extra.size));
    PROTO_NEW(sending->arena, message, REPLICA__SHARED_RESOURCE__INIT);
    message->kind = (uint32_t)resource->kind;
    message->name = resource->name;
    message->body = proto_data(resource->body);
    message->extra = proto_data(resource->extra);
    message->version = resource->version;
    return vector_add(&sending->resources, sending->arena, &message, sizeof message);
}

static status send_all(const struct schema_snapshot *snapshot, struct sending *sending)
{
    const struct shared_table *tables = snapshot->tables.items;
    struct resource *const *resources = snapshot->resources.items;
    for (size_t i = 0; i < snapshot->tables.count; i++)
        TRY(send_table(sending, &tables[i]));
    for (size_t i = 0; i < snapshot->resources.count; i++)
        TRY(send_resource(sending, resources[i]));
    return send_piece(sending, schema_snapshot_digest(snapshot));
}

status schema_snapshot_send(const struct schema_snapshot *snapshot, uint64_t epoch,
                            status (*send)(void *context, const Replica__PullSchemaResponse *piece),
                            void *context)
{
    struct sending sending = {
        .arena = arena_create(PIECE_MEMORY), .epoch = epoch, .send = send, .context = context};
    if (sending.arena == NULL)
        return status_out_of_memory();
    status s = send_all(snapshot, &sending);
    arena_destroy(sending.arena);
    return s;
}

/* --- receiving --- */

static status not_one(const char *what)
{
    return status_make(STATUS_INVALID_ARGUMENT, "A peer's schema %s", what);
}

static status check_table(const struct schema_snapshot *snapshot,
                          const Replica__SharedTable *message)
{
    const struct vector *tables = &snapshot->tables;
    const struct shared_table *last =
        tables->count == 0 ? NULL : (const struct shared_table *)tables->items + tables->count - 1;
    if (message->uid == 0 || message->name[0] == 0)
        return not_one("has a table without a name or a uid");
    if (snapshot->resources.count > 0 || (last != NULL && strcmp(last->name, message->name) >= 0))
        return not_one("is out of order");
    for (size_t i = 0; i < message->n_split_keys; i++) {
        bytes before = i == 0 ? bytes_make(NULL, 0) : proto_bytes(message->split_keys[i - 1]);
        if (bytes_compare(before, proto_bytes(message->split_keys[i])) >= 0)
            return not_one("splits a table at keys that do not rise");
    }
    return status_ok();
}

static status copy_splits(const Replica__SharedTable *message, struct arena *arena,
                          struct shared_table *out)
{
    bytes *keys = arena_alloc(arena, message->n_split_keys * sizeof *keys);
    if (keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < message->n_split_keys; i++) {
        keys[i] = arena_copy(arena, proto_bytes(message->split_keys[i]));
        if (keys[i].data == NULL)
            return status_out_of_memory();
    }
    out->split_keys = keys;
    out->split_count = message->n_split_keys;
    return status_ok();
}

static status receive_table(struct schema_snapshot *snapshot, const Replica__SharedTable *message)
{
    struct arena *arena = snapshot->arena;
    TRY(check_table(snapshot, message));
    struct shared_table table = {.uid = message->uid,
                                 .name = arena_string(arena, bytes_of(message->name)),
                                 .record = arena_copy(arena, proto_bytes(message->record))};
    if (table.name == NULL || table.record.data == NULL)
        return status_out_of_memory();
    TRY(copy_splits(message, arena, &table));
    return vector_add(&snapshot->tables, arena, &table, sizeof table);
}

static status check_body(const struct resource *resource)
{
    struct arena *arena = arena_create(PIECE_MEMORY);
    ProtobufCMessage *message;
    status s = arena == NULL ? status_out_of_memory() : resource_decode(resource, arena, &message);
    arena_destroy(arena);
    return s;
}

static status check_resource(const struct schema_snapshot *snapshot,
                             const struct resource *resource)
{
    const struct vector *resources = &snapshot->resources;
    const struct resource *last =
        resources->count == 0 ? NULL
                              : ((struct resource *const *)resources->items)[resources->count - 1];
    if (resource->version == 0 || !resource_is_shared(resource->kind, resource->name))
        return not_one("has something that is each cluster's own");
    if (last != NULL && resource_compare(last, resource->kind, resource->name) >= 0)
        return not_one("is out of order");
    return check_body(resource);
}

static status receive_resource(struct schema_snapshot *snapshot,
                               const Replica__SharedResource *message)
{
    struct resource *resource;
    if (resource_type((enum resource_kind)message->kind) == NULL)
        return status_ok();
    TRY(resource_create((enum resource_kind)message->kind, message->name, message->version,
                        proto_bytes(message->body), proto_bytes(message->extra), &resource));
    status s = check_resource(snapshot, resource);
    if (status_is_ok(s))
        s = vector_add(&snapshot->resources, snapshot->arena, &resource, sizeof(void *));
    if (!status_is_ok(s))
        resource_release(resource);
    return s;
}

status schema_snapshot_add(struct schema_snapshot *snapshot,
                           const Replica__PullSchemaResponse *piece, bool *is_whole)
{
    *is_whole = false;
    for (size_t i = 0; i < piece->n_tables; i++)
        TRY(receive_table(snapshot, piece->tables[i]));
    for (size_t i = 0; i < piece->n_resources; i++)
        TRY(receive_resource(snapshot, piece->resources[i]));
    if (piece->digest.len == 0)
        return status_ok();
    if (piece->digest.len != SCHEMA_DIGEST_BYTES)
        return not_one("has a digest of another kind");
    memcpy(snapshot->digest, piece->digest.data, SCHEMA_DIGEST_BYTES);
    *is_whole = true;
    return status_ok();
}
