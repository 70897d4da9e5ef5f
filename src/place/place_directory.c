/* A place that is a directory: see place.h. An object is a file, a folder a directory.
 *
 * An object is written under its name with ".new" at its end, synced, renamed, and the directory
 * synced. What a crash leaves has that end, is never listed, and makes way for the next put of the
 * name. */
#include "base/arena.h"
#include "base/limits.h"
#include "place/place.h"

#include <stdlib.h>

static const char UNFINISHED[] = ".new";

struct directory_place {
    struct place place;
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
    if (path_of(place, name, UNFINISHED, &paths->fresh) == NULL ||
        path_of(place, name, "", &paths->file) == NULL ||
        path_of(place, name, "", &paths->directory) == NULL)
        return status_out_of_memory();
    *strrchr((char *)paths->directory.data, '/') = 0; /* the path of the place comes before it */
    return status_ok();
}

/* --- folders --- */

static status make(struct place *place)
{
    return files_make_directory(place->files, place->title);
}

/* Folders of it are made with those that they are in: one that cannot be found is the place itself,
 * which is made only on request, for something may be to be mounted there. */
static status name_place(status s, const struct place *place)
{
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_make(STATUS_NOT_FOUND, "the place %s is not there", place->title);
}

static status make_folder(struct place *place, const char *folder)
{
    struct buffer path = {0};
    if (path_of(place, folder, "", &path) == NULL) {
        buffer_free(&path);
        return status_out_of_memory();
    }
    status s = status_ok();
    char *at = (char *)path.data + directory_of(place)->path_size;
    while (status_is_ok(s) && at != NULL) {
        at = strchr(at + 1, '/');
        if (at != NULL)
            *at = 0;
        s = files_make_directory(place->files, text(&path));
        if (at != NULL)
            *at = '/';
    }
    buffer_free(&path);
    return name_place(s, place);
}

static status remove_folder(struct place *place, const char *folder)
{
    struct buffer path = {0};
    status s = status_out_of_memory();
    if (path_of(place, folder, "", &path) != NULL)
        s = files_remove_directory(place->files, text(&path));
    buffer_free(&path);
    return s;
}

static status sync_folder(struct place *place, const char *folder)
{
    struct buffer path = {0};
    status s = status_out_of_memory();
    if (path_of(place, folder, "", &path) != NULL)
        s = files_sync_directory(place->files, text(&path));
    buffer_free(&path);
    return s;
}

/* --- reading --- */

struct directory_reader {
    struct place_reader reader;
    struct file_reader *file;
};

static status next(struct place_reader *reader, uint8_t *to, size_t size, size_t *got)
{
    return file_reader_next(((struct directory_reader *)reader)->file, to, size, got);
}

static void close_reader(struct place_reader *reader)
{
    file_reader_close(((struct directory_reader *)reader)->file);
    free(reader);
}

static status open_object(struct place *place, const char *name, struct place_reader **out)
{
    struct buffer path = {0};
    struct directory_reader *reader = calloc(1, sizeof *reader);
    status s = status_out_of_memory();
    if (reader != NULL && path_of(place, name, "", &path) != NULL) {
        status_free(s);
        reader->reader = (struct place_reader){.next = next, .close = close_reader};
        s = files_open(place->files, text(&path), &reader->file);
    }
    buffer_free(&path);
    if (status_is_ok(s))
        *out = &reader->reader;
    else
        free(reader);
    return s;
}

/* --- writing --- */

struct directory_writer {
    struct place_writer writer;
    struct files *files;
    struct paths paths;
    struct file_writer *file;
    bool is_named; /* it has its own name */
};

static status append(struct place_writer *writer, bytes piece)
{
    return file_writer_append(((struct directory_writer *)writer)->file, piece);
}

static status finish(struct place_writer *writer)
{
    struct directory_writer *own = (struct directory_writer *)writer;
    TRY(file_writer_finish(own->file));
    TRY(files_rename(own->files, text(&own->paths.fresh), text(&own->paths.file)));
    own->is_named = true;
    return files_sync_directory(own->files, text(&own->paths.directory));
}

static void close_writer(struct place_writer *writer)
{
    struct directory_writer *own = (struct directory_writer *)writer;
    file_writer_close(own->file);
    if (own->file != NULL && !own->is_named)
        status_ignore(files_remove(own->files, text(&own->paths.fresh)));
    free_paths(&own->paths);
    free(own);
}

/* Names what an object is to be made in and that is missing: as name_place says, the place itself,
 * or the folder. The place may have had that: another directory is there now. */
static status name_missing(status s, struct place *place, const char *directory)
{
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status there = files_sync_directory(place->files, place->title);
    bool is_gone = there.code == STATUS_NOT_FOUND;
    status_free(there);
    if (is_gone || strcmp(directory, place->title) == 0)
        return name_place(s, place);
    status_free(s);
    return status_make(STATUS_NOT_FOUND,
                       "the directory %s is not there: was it removed, or is what was mounted on "
                       "%s not there?",
                       directory, place->title);
}

static status create_object(struct place *place, const char *name, struct place_writer **out)
{
    struct directory_writer *own = calloc(1, sizeof *own);
    if (own == NULL)
        return status_out_of_memory();
    own->writer = (struct place_writer){.append = append, .finish = finish, .close = close_writer};
    own->files = place->files;
    status s = make_paths(place, name, &own->paths);
    if (status_is_ok(s))
        s = name_missing(files_create(place->files, text(&own->paths.fresh), &own->file), place,
                         text(&own->paths.directory));
    if (status_is_ok(s))
        *out = &own->writer;
    else
        close_writer(&own->writer);
    return s;
}

static status remove_object(struct place *place, const char *name)
{
    struct buffer path = {0};
    status s = status_out_of_memory();
    if (path_of(place, name, "", &path) != NULL)
        s = files_remove(place->files, text(&path));
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

/* Notes an entry. A name that is not ours, of what a crash left or another program made, is not in
 * the place. */
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
    status s = files_look(listing->place->files, text(&listing->path), &look);
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
        s = files_list(listing->place->files, text(&path), note_entry, listing);
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

/* --- lock --- */

struct sweeping {
    struct place *place;
    const char *folder;
    struct buffer name;
    struct buffer path;
};

static status remove_if_unfinished(void *context, const char *name)
{
    struct sweeping *sweeping = context;
    size_t size = strlen(name), suffix = sizeof UNFINISHED - 1;
    if (size <= suffix || strcmp(name + size - suffix, UNFINISHED) != 0)
        return status_ok();
    buffer_clear(&sweeping->name);
    buffer_append_format(&sweeping->name, "%s%s%s%c", sweeping->folder,
                         sweeping->folder[0] != 0 ? "/" : "", name, 0);
    if (sweeping->name.failed ||
        path_of(sweeping->place, text(&sweeping->name), "", &sweeping->path) == NULL)
        return status_out_of_memory();
    return files_remove(sweeping->place->files, text(&sweeping->path));
}

static status sweep(struct place *place, const char *folder)
{
    struct sweeping sweeping = {.place = place, .folder = folder};
    struct buffer path = {0};
    status s = status_out_of_memory();
    if (path_of(place, folder, "", &path) != NULL)
        s = files_list(place->files, text(&path), remove_if_unfinished, &sweeping);
    buffer_free(&path);
    buffer_free(&sweeping.path);
    buffer_free(&sweeping.name);
    return s;
}

/* A file LOCK in the directory. */
static status lock(struct place *place, struct place_lock **out)
{
    struct files_lock *held = NULL;
    status s = files_lock_directory(place->files, place->title, &held);
    *out = (struct place_lock *)(void *)held;
    return s;
}

static void unlock(struct place *place, struct place_lock *held)
{
    files_unlock_directory(place->files, (struct files_lock *)(void *)held);
}

/* --- life --- */

static void close_directory(struct place *place)
{
    free(directory_of(place));
}

static const struct place_methods methods = {.make = make,
                                             .make_folder = make_folder,
                                             .open = open_object,
                                             .create = create_object,
                                             .list = list,
                                             .remove = remove_object,
                                             .remove_folder = remove_folder,
                                             .sync_folder = sync_folder,
                                             .sweep = sweep,
                                             .lock = lock,
                                             .unlock = unlock,
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
    directory->place = (struct place){.methods = &methods, .title = title, .files = files};
    directory->path_size = strlen(path);
    *out = &directory->place;
    return status_ok();
}
