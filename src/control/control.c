/* Opening, reading, verifying: see control.h. */
#include "base/check.h"
#include "control/control_private.h"
#include "control/operations.h"

#include <stdio.h>
#include <stdlib.h>

static status open_parts(struct control *control)
{
    TRY(registry_load(control));
    return operations_open(control);
}

status control_open(struct cluster *cluster, const struct log *log, struct control **out)
{
    *out = NULL;
    struct control *control = calloc(1, sizeof *control);
    if (control == NULL)
        return status_out_of_memory();
    control->magic = CONTROL_MAGIC;
    control->cluster = cluster;
    control->log = log;
    pthread_rwlock_init(&control->index_lock, NULL);
    pthread_mutex_init(&control->edit_lock, NULL);
    status s = open_parts(control);
    if (status_is_ok(s))
        *out = control;
    else
        control_close(control);
    return s;
}

void control_close(struct control *control)
{
    if (control == NULL)
        return;
    CHECK_MAGIC(control, CONTROL_MAGIC);
    operations_close(control);
    for (size_t i = 0; i < control->count; i++)
        resource_release(control->resources[i]);
    free(control->resources);
    pthread_mutex_destroy(&control->edit_lock);
    pthread_rwlock_destroy(&control->index_lock);
    control->magic = 0;
    free(control);
}

void control_set_location(struct control *control, const char *zone)
{
    control->location = zone;
}

const char *control_location(const struct control *control)
{
    return control->location == NULL ? "local" : control->location;
}

struct cluster *control_cluster(struct control *control)
{
    return control->cluster;
}

const struct log *control_log(struct control *control)
{
    return control->log;
}

/* With edit_lock held no other thread changes the index. */
void control_watch(struct control *control, struct control_watcher *watcher)
{
    pthread_mutex_lock(&control->edit_lock);
    watcher->next = control->watchers;
    control->watchers = watcher;
    for (size_t i = 0; i < control->count; i++)
        if (control->resources[i]->kind == watcher->kind)
            watcher->changed(watcher->context, control->resources[i]->name, control->resources[i]);
    pthread_mutex_unlock(&control->edit_lock);
}

/* --- reading --- */

status control_find(struct control *control, enum resource_kind kind, const char *name,
                    struct resource **out)
{
    *out = registry_find(control, kind, name);
    if (*out == NULL)
        return status_make(STATUS_NOT_FOUND, "Not found: %s", name);
    return status_ok();
}

bool control_has(struct control *control, enum resource_kind kind, const char *name)
{
    struct resource *found = registry_find(control, kind, name);
    resource_release(found);
    return found != NULL;
}

static status list_from(struct control *control, enum resource_kind kind, const char *parent,
                        struct buffer *name, resource_visitor *visit, void *context)
{
    size_t shared = name_shared_size(parent);
    bool goes_on = true;
    while (goes_on) {
        buffer_append_byte(name, 0);
        if (name->failed)
            return status_out_of_memory();
        struct resource *resource = registry_from(control, kind, (const char *)name->data);
        if (resource == NULL)
            break;
        goes_on = strncmp(resource->name, parent, shared) == 0;
        if (goes_on && name_is_under(resource->name, parent))
            goes_on = visit(context, resource);
        buffer_clear(name);
        buffer_append_bytes(name, bytes_of(resource->name));
        buffer_append_byte(name, 1); /* what comes right after it: no name has a NUL */
        resource_release(resource);
    }
    return status_ok();
}

status control_list(struct control *control, enum resource_kind kind, const char *parent,
                    const char *after, resource_visitor *visit, void *context)
{
    struct buffer name = {0};
    if (*after == '\0') {
        buffer_append(&name, parent, name_shared_size(parent));
    } else {
        buffer_append_bytes(&name, bytes_of(after));
        buffer_append_byte(&name, 1);
    }
    status s = list_from(control, kind, parent, &name, visit, context);
    buffer_free(&name);
    return s;
}

static bool see_one(void *context, struct resource *resource)
{
    (void)resource;
    *(bool *)context = true;
    return false;
}

bool control_has_any(struct control *control, enum resource_kind kind, const char *parent)
{
    bool has = false;
    status s = control_list(control, kind, parent, "", see_one, &has);
    bool is_unknown = !status_is_ok(s);
    status_free(s);
    return has || is_unknown; /* in doubt, something is there: nothing is deleted by mistake */
}
