/* See whole_order.h. */
#include "backup/whole_order.h"

#include "backup/whole_private.h"

#include <stdlib.h>

int whole_compare(const struct whole_age *a, const struct whole_age *b)
{
    if (a->version != b->version)
        return a->version < b->version ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* --- names by age --- */

struct entry {
    struct whole_age age;
    const char *server; /* NULL: the manifest could not be read */
};

struct ordering {
    struct place *place;
    struct arena *arena;
    struct arena *manifest_arena;
    struct entry *entries; /* rising names */
    size_t count;
};

static int compare_entries(const void *a, const void *b)
{
    return whole_compare(&((const struct entry *)a)->age, &((const struct entry *)b)->age);
}

static status add_read(struct ordering *o, const char *name, const struct whole_backup *backup)
{
    const char *server = arena_string(o->arena, bytes_of(backup->server));
    if (server == NULL)
        return status_out_of_memory();
    o->entries[o->count++] =
        (struct entry){.age = {.version = backup->version, .name = name}, .server = server};
    return status_ok();
}

/* A backup that was removed after it was listed is passed over. */
static status look_at(struct ordering *o, const char *name)
{
    struct whole_backup backup;
    arena_reset(o->manifest_arena);
    status s = whole_read(o->place, name, o->manifest_arena, &backup);
    if (status_is_ok(s))
        return add_read(o, name, &backup);
    if (s.code == STATUS_UNAVAILABLE || s.code == STATUS_RESOURCE_EXHAUSTED)
        return s;
    if (s.code != STATUS_NOT_FOUND)
        o->entries[o->count++] = (struct entry){.age = {.name = name}};
    status_free(s);
    return status_ok();
}

/* Whether a server has made it after one of a later name. */
static bool is_out_of_order(const struct ordering *o, size_t i)
{
    const struct entry *it = &o->entries[i];
    for (size_t j = 0; it->server != NULL && j < i; j++) {
        const struct entry *before = &o->entries[j];
        if (before->server != NULL && strcmp(before->server, it->server) == 0 &&
            before->age.version > it->age.version)
            return true;
    }
    return false;
}

static bool are_names_true(const struct ordering *o)
{
    for (size_t i = 0; i < o->count; i++)
        if (is_out_of_order(o, i))
            return false;
    return true;
}

/* Backups that could not be read get the version of the one before them, or the greatest. */
static void place_unread(struct ordering *o)
{
    bool by_name = are_names_true(o);
    uint64_t version = 0;
    for (size_t i = 0; i < o->count; i++) {
        struct entry *it = &o->entries[i];
        if (it->server == NULL)
            it->age.version = by_name ? version : UINT64_MAX;
        else if (it->age.version > version)
            version = it->age.version;
    }
}

static status order(struct ordering *o, const char *const *names, size_t count, const char **sorted)
{
    for (size_t i = 0; i < count; i++)
        TRY(look_at(o, names[i]));
    place_unread(o);
    if (o->count > 0)
        qsort(o->entries, o->count, sizeof *o->entries, compare_entries);
    for (size_t i = 0; i < o->count; i++)
        sorted[i] = o->entries[i].age.name;
    return status_ok();
}

status whole_names_by_age(struct place *place, struct arena *arena, const char *const **out,
                          size_t *count)
{
    struct ordering o = {.place = place, .arena = arena};
    const char *const *names;
    TRY(whole_names(place, arena, &names, count));
    const char **sorted = arena_alloc(arena, (*count + 1) * sizeof *sorted);
    o.entries = arena_alloc(arena, (*count + 1) * sizeof *o.entries);
    o.manifest_arena = arena_create(WHOLE_MEMORY);
    status s = sorted == NULL || o.entries == NULL || o.manifest_arena == NULL
                   ? status_out_of_memory()
                   : order(&o, names, *count, sorted);
    arena_destroy(o.manifest_arena);
    *out = sorted;
    *count = o.count;
    return s;
}
