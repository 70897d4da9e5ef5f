/* A place that is a directory: see place.h. An object is a file, a folder a directory.
 *
 * An object is written under its name with ".new" at its end, synced, renamed, and the directory
 * synced. What a crash leaves has that end, is never listed, and makes way for the next put of the
 * name. */
#include "base/arena.h"
#include "base/limits.h"
#include "place/place.h"

#include <stdlib.h>

struct directory_place {
    struct place place;
    struct files *files;
    size_t path_size; /* of the title, which is the path */
};

enum { LIST_MEMORY = 1 << 30 }; /* more names than that are not in one folder */

static struct directory_place *directory_of(struct place *place)
{
    return (struct directory_place *)place;
}

/* --- paths --- */

/* NULL without memory. */
static const char *path_of(struct place *place, const char *name, const char *suffix,
                           struct buffer *out)
{
    buffer_clear(out);
    buffer_append_bytes(out, bytes_of(place->title));
    if (name[0] != 0)
        buffer_append_byte(out, '/');
    buffer_append_bytes(out, bytes_of(name));
    buffer_append(out, suffix, strlen(suffix) + 1);
    return out->failed ? NULL : (const char *)out->data;
}

/* The paths of an object's file while it is written, of the file, and of its directory. */
struct paths {
    struct buffer fresh;
    struct buffer file;
    struct buffer directory;
};

static void free_paths(struct paths *paths)
{
    buffer_free(&paths->fresh);
    buffer_free(&paths->file);
    buffer_free(&paths->directory);
}

static const char *text(const struct buffer *path)
{
    return (const char *)path->data;
}

static status make_paths(struct place *place, const char *name, struct paths *paths)
{
    *paths = (struct paths){0};
    if (path_of(place, name, ".new", &paths->fresh) == NULL ||
        path_of(place, name, "", &paths->file) == NULL ||
        path_of(place, name, "", &paths->directory) == NULL)
        return status_out_of_memory();
    *strrchr((char *)paths->directory.data, '/') = 0; /* the path of the place comes before it */
    return status_ok();
}

/* --- folders --- */

static status make_folder(struct place *place, const char *folder)
{
    struct directory_place *directory = directory_of(place);
    struct buffer path = {0};
    if (path_of(place, folder, "", &path) == NULL) {
        buffer_free(&path);
        return status_out_of_memory();
    }
    status s = status_ok();
    char *at = (char *)path.data + directory->path_size;
    while (status_is_ok(s) && at != NULL) {
        at = strchr(at + 1, '/');
        if (at != NULL)
            *at = 0;
        s = files_make_directory(directory->files, text(&path));
        if (at != NULL)
            *at = '/';
    }
    buffer_free(&path);
    return s;
}

static status remove_folder(struct place *place, const char *folder)
{
    struct buffer path = {0};
    status s = status_out_of_memory();
    if (path_of(place, folder, "", &path) != NULL)
        s = files_remove_directory(directory_of(place)->files, text(&path));
    buffer_free(&path);
    return s;
}

/* --- objects --- */

/* The file that was written and synced gets the name. */
static status publish(struct place *place, const struct paths *paths)
{
    struct files *files = directory_of(place)->files;
    TRY(files_rename(files, text(&paths->fresh), text(&paths->file)));
    return files_sync_directory(files, text(&paths->directory));
}

static status put(struct place *place, const char *name, bytes content)
{
    struct paths paths;
    status s = make_paths(place, name, &paths);
    if (status_is_ok(s))
        s = files_replace(directory_of(place)->files, text(&paths.file), content);
    free_paths(&paths);
    return s;
}

static status put_file(struct place *place, const char *name, const char *path,
                       const struct store_pacer *pacer)
{
    struct paths paths;
    struct file_sum sum;
    status s = make_paths(place, name, &paths);
    if (status_is_ok(s))
        s = files_copy(directory_of(place)->files, path, text(&paths.fresh), pacer, &sum);
    if (status_is_ok(s))
        s = publish(place, &paths);
    free_paths(&paths);
    return s;
}

static status get(struct place *place, const char *name, size_t most, struct buffer *out)
{
    struct buffer path = {0};
    status s = status_out_of_memory();
    if (path_of(place, name, "", &path) != NULL)
        s = files_read(directory_of(place)->files, text(&path), most, out);
    buffer_free(&path);
    return s;
}

static status get_file(struct place *place, const char *name, const char *path,
                       const struct store_pacer *pacer)
{
    struct buffer from = {0};
    struct file_sum sum;
    status s = status_out_of_memory();
    if (path_of(place, name, "", &from) != NULL)
        s = files_copy(directory_of(place)->files, text(&from), path, pacer, &sum);
    buffer_free(&from);
    return s;
}

static status remove_object(struct place *place, const char *name)
{
    struct buffer path = {0};
    status s = status_out_of_memory();
    if (path_of(place, name, "", &path) != NULL)
        s = files_remove(directory_of(place)->files, text(&path));
    buffer_free(&path);
    return s;
}

/* --- lists --- */

struct listing {
    struct place *place;
    const char *folder;
    struct arena *arena;
    struct buffer path;
    struct buffer name;
    struct buffer entries; /* struct place_entry */
};

/* What is no name of ours, as what a crash left or another program made, is not in the place. */
static status note_entry(void *context, const char *name)
{
    struct listing *listing = context;
    struct file_look look;
    if (strchr(name, '/') != NULL || !place_name_is_sound(name))
        return status_ok();
    buffer_clear(&listing->name);
    if (listing->folder[0] != 0)
        buffer_append_format(&listing->name, "%s/", listing->folder);
    buffer_append(&listing->name, name, strlen(name) + 1);
    if (listing->name.failed ||
        path_of(listing->place, (const char *)listing->name.data, "", &listing->path) == NULL)
        return status_out_of_memory();
    status s = files_look(directory_of(listing->place)->files, text(&listing->path), &look);
    if (s.code == STATUS_NOT_FOUND) { /* removed meanwhile */
        status_free(s);
        return status_ok();
    }
    TRY(s);
    const struct place_entry entry = {.name = arena_string(listing->arena, bytes_of(name)),
                                      .size = look.is_directory ? 0 : look.size,
                                      .is_folder = look.is_directory};
    buffer_append(&listing->entries, &entry, sizeof entry);
    return entry.name == NULL || listing->entries.failed ? status_out_of_memory() : status_ok();
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct place_entry *)a)->name, ((const struct place_entry *)b)->name);
}

static status gather(struct listing *listing)
{
    struct buffer path = {0};
    status s = status_out_of_memory();
    if (path_of(listing->place, listing->folder, "", &path) != NULL)
        s = files_list(directory_of(listing->place)->files, text(&path), note_entry, listing);
    buffer_free(&path);
    return s;
}

static status visit_all(struct listing *listing,
                        status (*visit)(void *context, const struct place_entry *entry),
                        void *context)
{
    struct place_entry *entries = (struct place_entry *)(void *)listing->entries.data;
    size_t count = listing->entries.size / sizeof *entries;
    if (count > 0)
        qsort(entries, count, sizeof *entries, compare_names);
    for (size_t i = 0; i < count; i++)
        TRY(visit(context, &entries[i]));
    return status_ok();
}

static status list(struct place *place, const char *folder,
                   status (*visit)(void *context, const struct place_entry *entry), void *context)
{
    struct listing listing = {.place = place, .folder = folder, .arena = arena_create(LIST_MEMORY)};
    status s = listing.arena == NULL ? status_out_of_memory() : gather(&listing);
    if (status_is_ok(s))
        s = visit_all(&listing, visit, context);
    arena_destroy(listing.arena);
    buffer_free(&listing.path);
    buffer_free(&listing.name);
    buffer_free(&listing.entries);
    return s;
}

/* --- life --- */

static void close_directory(struct place *place)
{
    free(directory_of(place));
}

static const struct place_methods methods = {.make_folder = make_folder,
                                             .put = put,
                                             .put_file = put_file,
                                             .get = get,
                                             .get_file = get_file,
                                             .list = list,
                                             .remove = remove_object,
                                             .remove_folder = remove_folder,
                                             .close = close_directory};

status place_of_directory(struct files *files, const char *path, struct place **out)
{
    struct directory_place *directory = calloc(1, sizeof *directory);
    char *title = strdup(path);
    *out = NULL;
    if (directory == NULL || title == NULL) {
        free(directory);
        free(title);
        return status_out_of_memory();
    }
    directory->place = (struct place){.methods = &methods, .title = title};
    directory->files = files;
    directory->path_size = strlen(path);
    *out = &directory->place;
    return status_ok();
}
