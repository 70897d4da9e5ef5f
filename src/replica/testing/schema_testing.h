/* What the tests of schemas share: peers in one process, each a cluster with its control plane, and
 * what an administrator does at one. */
#ifndef TRESTLE_REPLICA_TESTING_SCHEMA_TESTING_H
#define TRESTLE_REPLICA_TESTING_SCHEMA_TESTING_H

#include "cluster/testing/testing.h"
#include "cluster/view/view_table.h"
#include "control/operations.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"
#include "replica/schema_snapshot.h"
#include "wire/proto.h"

#define INSTANCE "projects/p/instances/i"
#define TABLE_T  INSTANCE "/tables/t"

struct schema_peer {
    struct cluster_fixture *base;
    struct control *control;
};

/* --- life --- */

static inline void open_peer(struct schema_peer *peer)
{
    open_test_cluster(peer->base);
    assert_ok(control_open(peer->base->cluster, &peer->base->log, &peer->control));
    assert_ok(operations_start(peer->control, NULL, 0));
}

static inline void close_peer(struct schema_peer *peer)
{
    control_close(peer->control);
    close_test_cluster(peer->base);
}

static inline void reopen_peer(struct schema_peer *peer)
{
    close_peer(peer);
    open_peer(peer);
}

/* Empty, with that number. */
static inline void make_peer(struct schema_peer *peer, unsigned number)
{
    char directory[] = "/tmp/trestle-schema-XXXXXX";
    assert_non_null(mkdtemp(directory));
    peer->base = cluster_fixture_create_at(directory);
    peer->base->options.number = number;
    peer->base->options.undelete_window_us = INT64_C(3600) * 1000000;
    open_peer(peer);
}

static inline void end_peer(struct schema_peer *peer)
{
    close_peer(peer);
    pool_destroy(peer->base->pool);
    arena_destroy(peer->base->arena);
    remove_test_directory(peer->base->directory);
    free(peer->base);
}

/* --- resources --- */

struct named_resource {
    enum resource_kind kind;
    const char *name;
};

static inline status put_resource(void *context, struct edit *edit)
{
    const struct named_resource *named = context;
    BtAdmin__Instance body = BT_ADMIN__INSTANCE__INIT;
    body.name = named->kind == RESOURCE_POLICY ? "" : named->name; /* field 1 of the others */
    return edit_put(edit, named->kind, named->name, &body.base, bytes_of(""));
}

static inline void put(struct schema_peer *peer, enum resource_kind kind, const char *name)
{
    struct named_resource named = {kind, name};
    assert_ok(control_edit(peer->control, put_resource, &named));
}

static inline status delete_resource(void *context, struct edit *edit)
{
    const struct named_resource *named = context;
    return edit_delete(edit, named->kind, named->name);
}

static inline void take_away(struct schema_peer *peer, enum resource_kind kind, const char *name)
{
    struct named_resource named = {kind, name};
    assert_ok(control_edit(peer->control, delete_resource, &named));
}

static inline bool has(struct schema_peer *peer, enum resource_kind kind, const char *name)
{
    return control_has(peer->control, kind, name);
}

/* --- tables --- */

/* With a reference; NULL: there is none. */
static inline struct table *table_named(struct schema_peer *peer, const char *name)
{
    struct table *table;
    status_ignore(cluster_table(peer->base->cluster, bytes_of(name), &table));
    return table;
}

static inline bool has_table(struct schema_peer *peer, const char *name)
{
    struct table *table = table_named(peer, name);
    if (table != NULL)
        table_release(table);
    return table != NULL;
}

static inline uint64_t uid_at(struct schema_peer *peer, const char *name)
{
    struct table *table = table_named(peer, name);
    assert_non_null(table);
    uint64_t uid = table_uid(table);
    table_release(table);
    return uid;
}

/* Within an edit, as the services do it. */
struct table_step {
    struct schema_peer *peer;
    const char *name;
    struct family_change *change;
};

static inline status make_in_edit(void *context, struct edit *edit)
{
    const struct table_step *step = context;
    const struct family family = {.id = 1, .name = bytes_of("f")};
    const bytes splits[] = {bytes_of("h"), bytes_of("q")};
    struct schema *schema;
    struct table *table;
    (void)edit;
    assert_ok(schema_create(GRANULARITY_MILLIS, &family, 1, 2, &schema));
    const struct table_spec spec = {
        .name = step->name, .schema = schema, .split_keys = splits, .split_count = 2};
    assert_ok(cluster_create_table(step->peer->base->cluster, &spec, &table));
    schema_destroy(schema);
    table_release(table);
    return status_ok();
}

static inline void make_table(struct schema_peer *peer, const char *name)
{
    struct table_step step = {peer, name, NULL};
    assert_ok(control_edit(peer->control, make_in_edit, &step));
}

/* The family "f", which is made anew, or else stays, and `count` others, at most 4. */
struct family_change {
    unsigned count;
    bool is_anew;
    bool is_protected;
    bool has_stream;
};

static inline status change_families(void *context, const struct table_info *now,
                                     struct arena *arena, struct table_change *next)
{
    static const char *const names[] = {"f", "g", "h", "i", "j"};
    static const struct gc_rule rule = {.kind = GC_MAX_VERSIONS, .max_versions = 3};
    const struct family_change *change = context;
    struct family *families = arena_zalloc(arena, sizeof names / sizeof *names * sizeof *families);
    assert_non_null(families);
    for (unsigned i = 0; i <= change->count; i++) {
        const struct family *standing = schema_family_named(now->schema, bytes_of(names[i]));
        families[i] = (struct family){.name = bytes_of(names[i]), .gc = i % 2 == 0 ? &rule : NULL};
        if (standing != NULL && !(i == 0 && change->is_anew))
            families[i].id = standing->id;
    }
    *next = (struct table_change){.families = families,
                                  .family_count = change->count + 1,
                                  .deletion_protection = change->is_protected,
                                  .extra = now->extra,
                                  .stream_retention_us =
                                      change->has_stream ? INT64_C(86400) * 1000000 : 0};
    return status_ok();
}

static inline status change_in_edit(void *context, struct edit *edit)
{
    const struct table_step *step = context;
    struct arena *arena = arena_create(1 << 20);
    struct table *table = table_named(step->peer, step->name);
    (void)edit;
    assert_non_null(table);
    status s = table_change_schema(table, arena, change_families, step->change);
    table_release(table);
    arena_destroy(arena);
    return s;
}

static inline void change_table(struct schema_peer *peer, const char *name,
                                struct family_change change)
{
    struct table_step step = {peer, name, &change};
    assert_ok(control_edit(peer->control, change_in_edit, &step));
}

static inline status delete_in_edit(void *context, struct edit *edit)
{
    const struct table_step *step = context;
    struct catalog_txn *txn;
    struct table *table = table_named(step->peer, step->name);
    assert_non_null(table);
    assert_ok(table_unprotect(table));
    assert_ok(edit_keep_under(edit, step->name, table_id(table)));
    table_release(table);
    TRY(edit_txn(edit, &txn));
    return cluster_delete_table(step->peer->base->cluster, bytes_of(step->name), txn);
}

static inline void delete_table_at(struct schema_peer *peer, const char *name)
{
    struct table_step step = {peer, name, NULL};
    assert_ok(control_edit(peer->control, delete_in_edit, &step));
}

static inline status undelete_in_edit(void *context, struct edit *edit)
{
    const struct table_step *step = context;
    struct cluster *cluster = step->peer->base->cluster;
    struct catalog_txn *txn;
    struct table *table;
    TRY(cluster_deleted_table(cluster, bytes_of(step->name), &table));
    status s = edit_put_back(edit, table_id(table));
    if (status_is_ok(s))
        s = edit_txn(edit, &txn);
    if (status_is_ok(s))
        s = cluster_undelete_table(cluster, table, txn);
    table_release(table);
    return s;
}

/* False: none is kept, or there is another one. */
static inline bool undelete_at(struct schema_peer *peer, const char *name)
{
    struct table_step step = {peer, name, NULL};
    status s = control_edit(peer->control, undelete_in_edit, &step);
    bool is_back = status_is_ok(s);
    status_free(s);
    return is_back;
}

static inline bool unprotect_each(void *context, struct table *table)
{
    (void)context;
    assert_ok(table_unprotect(table));
    return true;
}

static inline status delete_instance_in_edit(void *context, struct edit *edit)
{
    const struct table_step *step = context;
    struct cluster *cluster = step->peer->base->cluster;
    struct catalog_txn *txn;
    char prefix[128];
    snprintf(prefix, sizeof prefix, "%s/", step->name);
    TRY(cluster_list_tables(cluster, bytes_of(prefix), bytes_of(prefix), unprotect_each, NULL));
    TRY(edit_delete(edit, RESOURCE_INSTANCE, step->name));
    TRY(edit_txn(edit, &txn));
    return cluster_delete_tables(cluster, bytes_of(prefix), txn);
}

static inline void delete_instance_at(struct schema_peer *peer, const char *name)
{
    struct table_step step = {peer, name, NULL};
    assert_ok(control_edit(peer->control, delete_instance_in_edit, &step));
}

/* --- pictures --- */

static inline struct schema_snapshot *picture(struct schema_peer *peer)
{
    struct schema_snapshot *snapshot;
    assert_ok(schema_snapshot_take(peer->control, &snapshot));
    return snapshot;
}

/* All the way over the wire, in memory. */
struct way {
    struct schema_snapshot *received;
    unsigned pieces;
    size_t largest;
    bool is_whole;
};

static inline status carry_in(struct way *way, const Replica__PullSchemaResponse *piece,
                              struct arena *arena)
{
    ProtobufCMessage *message;
    bytes packed = proto_encode_in(arena, &piece->base);
    if (packed.data == NULL)
        return status_out_of_memory();
    way->pieces++;
    way->largest = packed.size > way->largest ? packed.size : way->largest;
    TRY(proto_decode(&replica__pull_schema_response__descriptor, packed, arena, &message));
    return schema_snapshot_add(way->received, (void *)message, &way->is_whole);
}

static inline status carry(void *context, const Replica__PullSchemaResponse *piece)
{
    struct way *way = context;
    struct arena *arena = arena_create(64 << 20);
    assert_false(way->is_whole);
    status s = arena == NULL ? status_out_of_memory() : carry_in(way, piece, arena);
    arena_destroy(arena);
    return s;
}

static inline struct schema_snapshot *carried(const struct schema_snapshot *snapshot,
                                              struct way *way)
{
    *way = (struct way){0};
    assert_ok(schema_snapshot_create(&way->received));
    assert_ok(schema_snapshot_send(snapshot, 7, carry, way));
    assert_true(way->is_whole);
    return way->received;
}

#endif
