/* See schema_snapshot.h. */
#include "replica/schema_snapshot.h"

#include "base/big_endian.h"
#include "base/check.h"
#include "os/digest.h"

#include <stdlib.h>

enum {
    MEMORY = 1 << 30, /* of a picture */
    /* Of the keys that a table is split at: where there are more some are left out, since tablets
     * split by themselves. */
    SPLIT_BYTES = 256 << 10,
};

/* --- life --- */

status schema_snapshot_create(struct schema_snapshot **out)
{
    struct schema_snapshot *snapshot = calloc(1, sizeof *snapshot);
    struct arena *arena = arena_create(MEMORY);
    *out = snapshot;
    if (snapshot == NULL || arena == NULL) {
        free(snapshot);
        arena_destroy(arena);
        *out = NULL;
        return status_out_of_memory();
    }
    snapshot->arena = arena;
    atomic_init(&snapshot->references, 1);
    return status_ok();
}

void schema_snapshot_retain(struct schema_snapshot *snapshot)
{
    atomic_fetch_add(&snapshot->references, 1);
}

void schema_snapshot_release(struct schema_snapshot *snapshot)
{
    if (snapshot == NULL || atomic_fetch_sub(&snapshot->references, 1) > 1)
        return;
    struct resource **resources = snapshot->resources.items;
    for (size_t i = 0; i < snapshot->resources.count; i++)
        resource_release(resources[i]);
    arena_destroy(snapshot->arena);
    free(snapshot);
}

bytes schema_snapshot_digest(const struct schema_snapshot *snapshot)
{
    return bytes_make(snapshot->digest, sizeof snapshot->digest);
}

/* --- what is in it --- */

/* Datastore's tables have no instance. */
bool schema_has_table(const struct table *table)
{
    return table_uid(table) != 0 && strstr(table_name(table), "/instances/") != NULL;
}

static int compare_with_table(const void *name, const void *table)
{
    return strcmp(name, ((const struct shared_table *)table)->name);
}

const struct shared_table *schema_snapshot_table(const struct schema_snapshot *snapshot,
                                                 const char *name)
{
    const struct vector *tables = &snapshot->tables;
    return tables->count == 0 ? NULL
                              : bsearch(name, tables->items, tables->count,
                                        sizeof(struct shared_table), compare_with_table);
}

struct wanted {
    enum resource_kind kind;
    const char *name;
};

static int compare_with_resource(const void *key, const void *place)
{
    const struct wanted *wanted = key;
    return -resource_compare(*(struct resource *const *)place, wanted->kind, wanted->name);
}

struct resource *schema_snapshot_resource(const struct schema_snapshot *snapshot,
                                          enum resource_kind kind, const char *name)
{
    const struct vector *resources = &snapshot->resources;
    const struct wanted wanted = {kind, name};
    struct resource *const *place = resources->count == 0
                                        ? NULL
                                        : bsearch(&wanted, resources->items, resources->count,
                                                  sizeof *place, compare_with_resource);
    return place == NULL ? NULL : *place;
}

/* Takes the reference, also on failure. */
static status add_resource(struct schema_snapshot *snapshot, struct resource *resource)
{
    status s = vector_add(&snapshot->resources, snapshot->arena, &resource, sizeof(void *));
    if (!status_is_ok(s))
        resource_release(resource);
    return s;
}

/* --- taking one --- */

struct taking {
    struct control *control;
    struct schema_snapshot *snapshot;
    status failure;
};

/* Leaves out so many that the others fit. */
static void thin_out(bytes *keys, size_t *count)
{
    size_t size = 0, kept = 0;
    for (size_t i = 0; i < *count; i++)
        size += keys[i].size;
    const size_t step = size / SPLIT_BYTES + 1;
    for (size_t i = 0; i < *count; i += step)
        keys[kept++] = keys[i];
    *count = kept;
}

static status describe(struct table *table, struct arena *arena, struct shared_table *out)
{
    struct buffer record = {0};
    bytes *keys;
    *out = (struct shared_table){.uid = table_uid(table)};
    out->name = arena_string(arena, bytes_of(table_name(table)));
    status s = shared_table_encode(table, &record);
    if (status_is_ok(s))
        out->record = arena_copy(arena, buffer_bytes(&record));
    buffer_free(&record);
    TRY(s);
    if (out->name == NULL || out->record.data == NULL)
        return status_out_of_memory();
    TRY(shared_table_splits(table, arena, &keys, &out->split_count));
    thin_out(keys, &out->split_count);
    out->split_keys = keys;
    return status_ok();
}

static bool take_table(void *context, struct table *table)
{
    struct taking *taking = context;
    struct schema_snapshot *snapshot = taking->snapshot;
    struct shared_table shared;
    if (!schema_has_table(table))
        return true;
    taking->failure = describe(table, snapshot->arena, &shared);
    if (status_is_ok(taking->failure))
        taking->failure = vector_add(&snapshot->tables, snapshot->arena, &shared, sizeof shared);
    return status_is_ok(taking->failure);
}

static bool take_resource(void *context, struct resource *resource)
{
    struct taking *taking = context;
    if (!resource_is_shared(resource->kind, resource->name))
        return true;
    resource_retain(resource);
    taking->failure = add_resource(taking->snapshot, resource);
    return status_is_ok(taking->failure);
}

static status take_all(void *context)
{
    struct taking *taking = context;
    const struct resource_type *type;
    const bytes none = bytes_of("");
    TRY(cluster_list_tables(control_cluster(taking->control), none, none, take_table, taking));
    TRY(taking->failure);
    for (size_t i = 0; (type = resource_type_at(i)) != NULL; i++) {
        TRY(control_list(taking->control, type->kind, "", "", take_resource, taking));
        TRY(taking->failure);
    }
    return status_ok();
}

/* --- its digest --- */

static void append_text(struct buffer *out, bytes text)
{
    big_endian_append(out, text.size);
    buffer_append_bytes(out, text);
}

static void append_table(struct buffer *out, const struct shared_table *table)
{
    buffer_append_byte(out, 't');
    big_endian_append(out, table->uid);
    append_text(out, bytes_of(table->name));
    append_text(out, table->record);
}

static void append_resource(struct buffer *out, const struct resource *resource)
{
    buffer_append_byte(out, 'r');
    buffer_append_byte(out, (uint8_t)resource->kind);
    append_text(out, bytes_of(resource->name));
    append_text(out, resource->body);
    append_text(out, resource->extra);
    big_endian_append(out, resource->version);
}

/* Adds what the buffer has, and empties it. */
static status add_to(struct digest *digest, struct buffer *form)
{
    status s = form->failed ? status_out_of_memory() : digest_add(digest, buffer_bytes(form));
    buffer_clear(form);
    return s;
}

static status digest_all(const struct schema_snapshot *snapshot, struct digest *digest,
                         struct buffer *form)
{
    const struct shared_table *tables = snapshot->tables.items;
    struct resource *const *resources = snapshot->resources.items;
    for (size_t i = 0; i < snapshot->tables.count; i++) {
        append_table(form, &tables[i]);
        TRY(add_to(digest, form));
    }
    for (size_t i = 0; i < snapshot->resources.count; i++) {
        append_resource(form, resources[i]);
        TRY(add_to(digest, form));
    }
    return status_ok();
}

static status make_digest(struct schema_snapshot *snapshot)
{
    struct digest *digest;
    struct buffer form = {0};
    uint8_t out[DIGEST_MOST_BYTES];
    size_t size;
    TRY(digest_create(DIGEST_SHA256, &digest));
    status s = digest_all(snapshot, digest, &form);
    if (status_is_ok(s))
        s = digest_finish(digest, out, &size);
    if (status_is_ok(s)) {
        CHECK(size == SCHEMA_DIGEST_BYTES);
        memcpy(snapshot->digest, out, size);
    }
    buffer_free(&form);
    digest_destroy(digest);
    return s;
}

status schema_snapshot_take(struct control *control, struct schema_snapshot **out)
{
    TRY(schema_snapshot_create(out));
    struct taking taking = {control, *out, status_ok()};
    status s = control_look(control, take_all, &taking);
    if (status_is_ok(s))
        s = make_digest(*out);
    if (!status_is_ok(s)) {
        schema_snapshot_release(*out);
        *out = NULL;
    }
    return s;
}
