/* Edits: what is staged, its way to the disk, and then into the index.
 *
 * All that may fail comes before the write: the resources are made when they are staged, and the
 * index has room for them. After the write nothing fails. */
#include "base/check.h"
#include "control/control_private.h"

#include "wire/proto.h"

#include <stdlib.h>

struct staged {
    struct staged *next;
    struct resource *resource; /* what is to be, or what is to go */
    bool is_deletion;
    uint64_t kept_by; /* the id of the table that was deleted with it; 0: none, it goes for good */
};

struct edit {
    struct control *control;
    uint64_t version;
    uint64_t newest; /* of those that are staged and of its own: later edits have greater ones */
    struct staged *first;
    struct staged **last;
    size_t count;
    bool grows; /* makes or changes something: subject to the disk's reserve */
    struct catalog_txn *txn;
    struct list on_commits;
};

struct control *edit_control(const struct edit *edit)
{
    return edit->control;
}

uint64_t edit_version(const struct edit *edit)
{
    return edit->version;
}

void edit_add_on_commit(struct edit *edit, struct edit_on_commit *on_commit)
{
    list_append(&edit->on_commits, &on_commit->link);
}

/* --- staging --- */

static struct staged *find_staged(const struct edit *edit, enum resource_kind kind,
                                  const char *name)
{
    struct staged *found = NULL;
    for (struct staged *at = edit->first; at != NULL; at = at->next)
        if (resource_compare(at->resource, kind, name) == 0)
            found = at;
    return found;
}

/* The index does not change under an edit, and it holds a reference: so a borrowed one will do. */
const struct resource *edit_find(const struct edit *edit, enum resource_kind kind, const char *name)
{
    const struct staged *staged = find_staged(edit, kind, name);
    if (staged != NULL)
        return staged->is_deletion ? NULL : staged->resource;
    struct resource *standing = registry_find(edit->control, kind, name);
    resource_release(standing);
    return standing;
}

/* Takes the reference, also on failure. */
static status stage(struct edit *edit, struct resource *resource, bool is_deletion)
{
    CHECK(edit->txn == NULL);
    struct staged *staged = malloc(sizeof *staged);
    if (staged == NULL) {
        resource_release(resource);
        return status_out_of_memory();
    }
    *staged = (struct staged){.resource = resource, .is_deletion = is_deletion};
    *edit->last = staged;
    edit->last = &staged->next;
    edit->count++;
    edit->grows |= !is_deletion;
    return status_ok();
}

status edit_put(struct edit *edit, enum resource_kind kind, const char *name,
                const ProtobufCMessage *body, bytes extra)
{
    struct buffer packed = {0};
    struct resource *resource = NULL;
    proto_encode(body, &packed);
    status s = packed.failed ? status_out_of_memory()
                             : resource_create(kind, name, edit->version, buffer_bytes(&packed),
                                               extra, &resource);
    buffer_free(&packed);
    TRY(s);
    return stage(edit, resource, false);
}

status edit_put_as_is(struct edit *edit, struct resource *resource)
{
    resource_retain(resource);
    if (resource->version > edit->newest)
        edit->newest = resource->version;
    return stage(edit, resource, false);
}

/* A project is taken as there; a table is looked for by the function that stages something under
 * it. */
static status check_parent(const struct edit *edit, const struct resource_type *type,
                           const char *name)
{
    if (type->parent != RESOURCE_INSTANCE)
        return status_ok();
    struct buffer parent = {0};
    buffer_append(&parent, name, resource_parent_size(name));
    buffer_append_byte(&parent, 0);
    status s = status_ok();
    if (parent.failed)
        s = status_out_of_memory();
    else if (edit_find(edit, type->parent, (char *)parent.data) == NULL)
        s = status_make(STATUS_NOT_FOUND, "Not found: %s", (char *)parent.data);
    buffer_free(&parent);
    return s;
}

status edit_create(struct edit *edit, enum resource_kind kind, const char *name,
                   const ProtobufCMessage *body, bytes extra)
{
    const struct resource_type *type = resource_type(kind);
    TRY(check_parent(edit, type, name));
    if (edit_find(edit, kind, name) != NULL)
        return status_make(STATUS_ALREADY_EXISTS, "%s already exists: %s", type->label, name);
    return edit_put(edit, kind, name, body, extra);
}

static status stage_deletions_under(struct edit *edit, enum resource_kind kind, const char *parent)
{
    struct buffer name = {0};
    size_t size = strlen(parent) + 1;
    status s = status_ok();
    buffer_append_format(&name, "%s/", parent);
    buffer_append_byte(&name, 0);
    struct resource *at =
        name.failed ? NULL : registry_from(edit->control, kind, (char *)name.data);
    while (at != NULL && status_is_ok(s) && strncmp(at->name, (char *)name.data, size) == 0) {
        struct buffer next = {0};
        buffer_append_format(&next, "%s\1", at->name);
        buffer_append_byte(&next, 0);
        s = stage(edit, at, true);
        at = next.failed ? NULL : registry_from(edit->control, kind, (char *)next.data);
        if (next.failed)
            s = status_is_ok(s) ? status_out_of_memory() : s;
        buffer_free(&next);
    }
    resource_release(at);
    if (name.failed)
        s = status_out_of_memory();
    buffer_free(&name);
    return s;
}

static status stage_deletion_of(struct edit *edit, enum resource_kind kind, const char *name)
{
    struct resource *standing = registry_find(edit->control, kind, name);
    return standing == NULL ? status_ok() : stage(edit, standing, true);
}

status edit_delete_under(struct edit *edit, const char *name)
{
    const struct resource_type *type;
    for (size_t i = 0; (type = resource_type_at(i)) != NULL; i++)
        TRY(stage_deletions_under(edit, type->kind, name));
    return stage_deletion_of(edit, RESOURCE_POLICY, name);
}

status edit_keep_under(struct edit *edit, const char *name, uint64_t table_id)
{
    struct staged **first = edit->last;
    TRY(edit_delete_under(edit, name));
    for (struct staged *at = *first; at != NULL; at = at->next)
        at->kept_by = table_id;
    return status_ok();
}

static status put_back(void *context, bytes key, bytes value, struct arena *arena)
{
    struct resource *resource;
    uint64_t table_id;
    TRY(kept_parse(key, value, arena, &table_id, &resource));
    return stage(context, resource, false);
}

status edit_put_back(struct edit *edit, uint64_t table_id)
{
    return kept_read(cluster_catalog(edit->control->cluster), table_id, put_back, edit);
}

status edit_delete(struct edit *edit, enum resource_kind kind, const char *name)
{
    TRY(stage_deletion_of(edit, kind, name));
    return edit_delete_under(edit, name);
}

/* --- the write --- */

static status add_record(struct edit *edit, const struct staged *staged)
{
    const struct resource *resource = staged->resource;
    struct buffer key = {0};
    struct buffer value = {0};
    resource_append_key(&key, resource->kind, resource->name);
    resource_append_value(&value, resource);
    bool failed = key.failed || value.failed;
    if (!failed && staged->is_deletion)
        catalog_txn_delete(edit->txn, buffer_bytes(&key));
    else if (!failed)
        catalog_txn_put(edit->txn, buffer_bytes(&key), buffer_bytes(&value));
    buffer_free(&key);
    buffer_free(&value);
    if (failed)
        return status_out_of_memory();
    return staged->kept_by == 0 ? status_ok() : kept_put(edit->txn, staged->kept_by, resource);
}

status edit_txn(struct edit *edit, struct catalog_txn **out)
{
    CHECK(edit->txn == NULL);
    *out = edit->txn = catalog_txn_create(cluster_catalog(edit->control->cluster));
    if (edit->txn == NULL)
        return status_out_of_memory();
    TRY(registry_make_room(edit->control, edit->count));
    for (const struct staged *at = edit->first; at != NULL; at = at->next)
        TRY(add_record(edit, at));
    return registry_save_version(edit->newest, edit->txn);
}

static status write_alone(struct edit *edit)
{
    struct catalog_txn *txn;
    if (edit->count == 0)
        return status_ok();
    TRY(edit_txn(edit, &txn));
    struct cluster *cluster = edit->control->cluster;
    return edit->grows ? cluster_write_catalog(cluster, txn) : cluster_write_removal(cluster, txn);
}

static void tell_watchers(const struct edit *edit, const struct staged *staged)
{
    const struct resource *resource = staged->resource;
    for (const struct control_watcher *w = edit->control->watchers; w != NULL; w = w->next)
        if (w->kind == resource->kind)
            w->changed(w->context, resource->name, staged->is_deletion ? NULL : resource);
}

static void publish(struct edit *edit)
{
    for (struct staged *at = edit->first; at != NULL; at = at->next) {
        if (at->is_deletion) {
            registry_remove(edit->control, at->resource->kind, at->resource->name);
        } else {
            resource_retain(at->resource);
            registry_put(edit->control, at->resource);
        }
        tell_watchers(edit, at);
    }
    edit->control->last_version = edit->newest;
}

static void run_sequels(struct edit *edit, bool has_happened)
{
    struct link *link;
    while ((link = list_take(&edit->on_commits)) != NULL) {
        struct edit_on_commit *on_commit = LIST_ENTRY(link, struct edit_on_commit, link);
        (has_happened ? on_commit->run : on_commit->drop)(on_commit);
    }
}

static void free_edit(struct edit *edit)
{
    for (struct staged *at = edit->first, *next; at != NULL; at = next) {
        next = at->next;
        resource_release(at->resource);
        free(at);
    }
    catalog_txn_destroy(edit->txn);
}

/* --- one edit --- */

/* Microseconds since 1970, unless the clock was set back. */
static uint64_t next_version(const struct control *control)
{
    uint64_t now = (uint64_t)cluster_wall_us(control->cluster);
    return now > control->last_version ? now : control->last_version + 1;
}

status control_edit(struct control *control, edit_function *change, void *context)
{
    pthread_mutex_lock(&control->edit_lock);
    struct edit edit = {.control = control, .version = next_version(control)};
    edit.newest = edit.version;
    edit.last = &edit.first;
    status s = change(context, &edit);
    if (status_is_ok(s) && edit.txn == NULL)
        s = write_alone(&edit);
    if (status_is_ok(s))
        publish(&edit);
    run_sequels(&edit, status_is_ok(s));
    free_edit(&edit);
    atomic_fetch_add(&control->edit_count, 1); /* also if it failed: it may have done a part */
    pthread_mutex_unlock(&control->edit_lock);
    return s;
}

uint64_t control_edit_count(const struct control *control)
{
    return atomic_load(&control->edit_count);
}

uint64_t control_last_version(struct control *control)
{
    pthread_mutex_lock(&control->edit_lock);
    uint64_t version = control->last_version;
    pthread_mutex_unlock(&control->edit_lock);
    return version;
}

status control_look(struct control *control, status (*look)(void *context), void *context)
{
    pthread_mutex_lock(&control->edit_lock);
    status s = look(context);
    pthread_mutex_unlock(&control->edit_lock);
    return s;
}
