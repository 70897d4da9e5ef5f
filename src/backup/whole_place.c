/* See whole_place.h. */
#include "backup/whole_place.h"

#include <stdlib.h>

static const char *const folder_names[] = {[WHOLE_BACKUPS] = "backups", [WHOLE_FILES] = "files"};
enum { FOLDERS = sizeof folder_names / sizeof *folder_names };

static const char NEW_SUFFIX[] = ".new";

struct whole_place {
    struct files *files;
    const char *where;
    struct buffer folders[FOLDERS]; /* their paths, with a NUL */
    struct files_lock *lock;
};

/* --- names --- */

static const char *folder_path(const struct whole_place *place, enum whole_folder folder)
{
    return (const char *)place->folders[folder].data;
}

static status path_of(const struct whole_place *place, enum whole_folder folder, const char *name,
                      const char *suffix, struct buffer *out)
{
    buffer_clear(out);
    buffer_append_format(out, "%s/%s%s%c", folder_path(place, folder), name, suffix, 0);
    return out->failed ? status_out_of_memory() : status_ok();
}

static bool is_unfinished(const char *name)
{
    size_t size = strlen(name), suffix = strlen(NEW_SUFFIX);
    return size > suffix && strcmp(name + size - suffix, NEW_SUFFIX) == 0;
}

/* --- open --- */

static status ignore_name(void *context, const char *name)
{
    (void)context, (void)name;
    return status_ok();
}

static status open_folders(struct whole_place *place, bool is_new_fine)
{
    if (is_new_fine)
        TRY(files_make_directory(place->files, place->where));
    for (size_t i = 0; i < FOLDERS; i++) {
        buffer_append_format(&place->folders[i], "%s/%s%c", place->where, folder_names[i], 0);
        if (place->folders[i].failed)
            return status_out_of_memory();
        if (is_new_fine)
            TRY(files_make_directory(place->files, folder_path(place, (enum whole_folder)i)));
    }
    status s = files_list(place->files, folder_path(place, WHOLE_BACKUPS), ignore_name, NULL);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_make(STATUS_NOT_FOUND, "there are no whole backups in %s", place->where);
}

status whole_place_open(const struct whole_place_options *options, struct whole_place **out)
{
    *out = NULL;
    if (strstr(options->where, "://") != NULL)
        return status_make(STATUS_UNIMPLEMENTED, "%s: a place is a directory", options->where);
    struct whole_place *place = calloc(1, sizeof *place);
    if (place == NULL)
        return status_out_of_memory();
    place->files = options->files != NULL ? options->files : files_of_system();
    place->where = options->where;
    status s = open_folders(place, options->is_new_fine);
    if (status_is_ok(s))
        *out = place;
    else
        whole_place_close(place);
    return s;
}

void whole_place_close(struct whole_place *place)
{
    if (place == NULL)
        return;
    files_unlock_directory(place->files, place->lock);
    for (size_t i = 0; i < FOLDERS; i++)
        buffer_free(&place->folders[i]);
    free(place);
}

/* --- lock --- */

struct sweep {
    struct whole_place *place;
    enum whole_folder folder;
    struct buffer path;
};

static status remove_if_unfinished(void *context, const char *name)
{
    struct sweep *sweep = context;
    if (!is_unfinished(name))
        return status_ok();
    TRY(path_of(sweep->place, sweep->folder, name, "", &sweep->path));
    return files_remove(sweep->place->files, (const char *)sweep->path.data);
}

static status sweep_folder(struct whole_place *place, enum whole_folder folder)
{
    struct sweep sweep = {.place = place, .folder = folder};
    status s = files_list(place->files, folder_path(place, folder), remove_if_unfinished, &sweep);
    buffer_free(&sweep.path);
    return s;
}

status whole_place_lock(struct whole_place *place)
{
    TRY(files_lock_directory(place->files, place->where, &place->lock));
    TRY(sweep_folder(place, WHOLE_FILES));
    return sweep_folder(place, WHOLE_BACKUPS);
}

/* --- reading --- */

struct listing {
    status (*visit)(void *context, const char *name);
    void *context;
};

static status visit_finished(void *context, const char *name)
{
    const struct listing *listing = context;
    return is_unfinished(name) ? status_ok() : listing->visit(listing->context, name);
}

status whole_place_list(struct whole_place *place, enum whole_folder folder,
                        status (*visit)(void *context, const char *name), void *context)
{
    struct listing listing = {visit, context};
    return files_list(place->files, folder_path(place, folder), visit_finished, &listing);
}

status whole_place_read(struct whole_place *place, enum whole_folder folder, const char *name,
                        size_t most, struct buffer *out)
{
    struct buffer path = {0};
    status s = path_of(place, folder, name, "", &path);
    if (status_is_ok(s))
        s = files_read(place->files, (const char *)path.data, most, out);
    buffer_free(&path);
    return s;
}

/* The file's reader under a name that others may have, too. */
static struct file_reader *reader_of(struct whole_place_reader *reader)
{
    return (struct file_reader *)(void *)reader;
}

status whole_place_read_begin(struct whole_place *place, enum whole_folder folder, const char *name,
                              struct whole_place_reader **out)
{
    struct buffer path = {0};
    struct file_reader *reader = NULL;
    status s = path_of(place, folder, name, "", &path);
    if (status_is_ok(s))
        s = files_open(place->files, (const char *)path.data, &reader);
    buffer_free(&path);
    *out = (struct whole_place_reader *)(void *)reader;
    return s;
}

status whole_place_reader_next(struct whole_place_reader *reader, uint8_t *to, size_t size,
                               size_t *got)
{
    return file_reader_next(reader_of(reader), to, size, got);
}

void whole_place_reader_end(struct whole_place_reader *reader)
{
    file_reader_close(reader_of(reader));
}

/* --- writing --- */

struct whole_place_writer {
    struct whole_place *place;
    struct file_writer *file;
    struct buffer fresh; /* the name under which it is written; empty once it has its own */
    struct buffer path;
};

static status begin(struct whole_place_writer *writer, enum whole_folder folder, const char *name)
{
    TRY(path_of(writer->place, folder, name, "", &writer->path));
    TRY(path_of(writer->place, folder, name, NEW_SUFFIX, &writer->fresh));
    return files_create(writer->place->files, (const char *)writer->fresh.data, &writer->file);
}

status whole_place_write_begin(struct whole_place *place, enum whole_folder folder,
                               const char *name, struct whole_place_writer **out)
{
    struct whole_place_writer *writer = calloc(1, sizeof *writer);
    *out = NULL;
    if (writer == NULL)
        return status_out_of_memory();
    writer->place = place;
    status s = begin(writer, folder, name);
    if (status_is_ok(s))
        *out = writer;
    else
        whole_place_writer_end(writer);
    return s;
}

status whole_place_writer_append(struct whole_place_writer *writer, bytes piece)
{
    return file_writer_append(writer->file, piece);
}

status whole_place_writer_finish(struct whole_place_writer *writer)
{
    TRY(file_writer_finish(writer->file));
    TRY(files_rename(writer->place->files, (const char *)writer->fresh.data,
                     (const char *)writer->path.data));
    buffer_clear(&writer->fresh);
    return status_ok();
}

void whole_place_writer_end(struct whole_place_writer *writer)
{
    if (writer == NULL)
        return;
    file_writer_close(writer->file);
    if (writer->file != NULL && writer->fresh.size > 0)
        status_ignore(files_remove(writer->place->files, (const char *)writer->fresh.data));
    buffer_free(&writer->fresh);
    buffer_free(&writer->path);
    free(writer);
}

status whole_place_settle(struct whole_place *place)
{
    TRY(files_sync_directory(place->files, folder_path(place, WHOLE_FILES)));
    return files_sync_directory(place->files, folder_path(place, WHOLE_BACKUPS));
}

status whole_place_remove(struct whole_place *place, enum whole_folder folder, const char *name)
{
    struct buffer path = {0};
    status s = path_of(place, folder, name, "", &path);
    if (status_is_ok(s))
        s = files_remove(place->files, (const char *)path.data);
    buffer_free(&path);
    return s;
}
