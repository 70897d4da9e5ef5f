/* What is the same of all places: names, the way to the methods, and what can be made of readers
 * and writers. See place.h. */
#include "place/place.h"

#include "base/limits.h"

#include <stdlib.h>

enum { PIECE = 256 << 10 };

/* --- names --- */

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr("._-:,%", c) != NULL);
}

static bool part_is_sound(const char *part, size_t size)
{
    static const char unfinished[] = ".new";
    const size_t suffix = sizeof unfinished - 1;
    if (size == 0 || size > LIMIT_PLACE_PART || part[0] == '.')
        return false;
    for (size_t i = 0; i < size; i++)
        if (!is_plain(part[i]))
            return false;
    return size < suffix || memcmp(part + size - suffix, unfinished, suffix) != 0;
}

bool place_name_is_sound(const char *name)
{
    if (strlen(name) > LIMIT_PLACE_NAME)
        return false;
    for (;;) {
        size_t size = strcspn(name, "/");
        if (!part_is_sound(name, size))
            return false;
        if (name[size] == 0)
            return true;
        name += size + 1;
    }
}

static status check_name(const char *name)
{
    return place_name_is_sound(name)
               ? status_ok()
               : status_make(STATUS_INVALID_ARGUMENT, "no name for an object: %s", name);
}

static status check_folder(const char *folder)
{
    return folder[0] == 0 ? status_ok() : check_name(folder);
}

/* --- the methods --- */

void place_close(struct place *place)
{
    if (place == NULL)
        return;
    free(place->title);
    place->methods->close(place);
}

const char *place_title(const struct place *place)
{
    return place->title;
}

status place_make(struct place *place)
{
    return place->methods->make(place);
}

status place_make_folder(struct place *place, const char *folder)
{
    TRY(check_name(folder));
    return place->methods->make_folder(place, folder);
}

status place_list(struct place *place, const char *folder,
                  status (*visit)(void *context, const struct place_entry *entry), void *context)
{
    TRY(check_folder(folder));
    return place->methods->list(place, folder, visit, context);
}

status place_remove(struct place *place, const char *name)
{
    TRY(check_name(name));
    return place->methods->remove(place, name);
}

status place_remove_folder(struct place *place, const char *folder)
{
    TRY(check_name(folder));
    return place->methods->remove_folder(place, folder);
}

status place_sync_folder(struct place *place, const char *folder)
{
    TRY(check_folder(folder));
    return place->methods->sync_folder(place, folder);
}

status place_sweep(struct place *place, const char *folder)
{
    TRY(check_folder(folder));
    return place->methods->sweep(place, folder);
}

status place_lock(struct place *place, struct place_lock **out)
{
    return place->methods->lock(place, out);
}

void place_unlock(struct place *place, struct place_lock *lock)
{
    if (lock != NULL)
        place->methods->unlock(place, lock);
}

status place_hide(struct place *place, const uint8_t digest[PLACE_DIGEST_BYTES],
                  uint8_t out[PLACE_DIGEST_BYTES])
{
    if (place->methods->hide != NULL)
        return place->methods->hide(place, digest, out);
    memcpy(out, digest, PLACE_DIGEST_BYTES);
    return status_ok();
}

/* --- readers and writers --- */

status place_open(struct place *place, const char *name, struct place_reader **out)
{
    *out = NULL;
    TRY(check_name(name));
    return place->methods->open(place, name, out);
}

status place_reader_next(struct place_reader *reader, uint8_t *to, size_t size, size_t *got)
{
    return reader->next(reader, to, size, got);
}

void place_reader_close(struct place_reader *reader)
{
    if (reader != NULL)
        reader->close(reader);
}

status place_create(struct place *place, const char *name, struct place_writer **out)
{
    *out = NULL;
    TRY(check_name(name));
    return place->methods->create(place, name, out);
}

status place_writer_append(struct place_writer *writer, bytes piece)
{
    return writer->append(writer, piece);
}

status place_writer_finish(struct place_writer *writer)
{
    return writer->finish(writer);
}

void place_writer_close(struct place_writer *writer)
{
    if (writer != NULL)
        writer->close(writer);
}

/* --- objects in memory --- */

status place_put(struct place *place, const char *name, bytes content)
{
    struct place_writer *writer;
    TRY(place_create(place, name, &writer));
    status s = place_writer_append(writer, content);
    if (status_is_ok(s))
        s = place_writer_finish(writer);
    place_writer_close(writer);
    return s;
}

static status read_all(struct place_reader *reader, uint8_t *piece, size_t most, struct buffer *out)
{
    size_t got, sum = 0;
    for (;;) {
        TRY(place_reader_next(reader, piece, PIECE, &got));
        if (got == 0)
            return out->failed ? status_out_of_memory() : status_ok();
        if (got > most - sum)
            return status_make(STATUS_DATA_LOSS, "it has more than %zu bytes", most);
        sum += got;
        buffer_append(out, piece, got);
    }
}

status place_get(struct place *place, const char *name, size_t most, struct buffer *out)
{
    struct place_reader *reader;
    uint8_t *piece = malloc(PIECE);
    status s = piece == NULL ? status_out_of_memory() : place_open(place, name, &reader);
    if (status_is_ok(s)) {
        s = read_all(reader, piece, most, out);
        place_reader_close(reader);
    }
    free(piece);
    return s;
}

/* --- objects and files --- */

static status pace(const struct store_pacer *pacer, size_t bytes)
{
    return pacer == NULL || pacer->go_on(pacer->context, bytes)
               ? status_ok()
               : status_make(STATUS_CANCELLED, "cancelled");
}

static status append_file(struct place_writer *writer, struct file_reader *file, uint8_t *piece,
                          const struct store_pacer *pacer)
{
    size_t got;
    for (;;) {
        TRY(file_reader_next(file, piece, PIECE, &got));
        if (got == 0)
            return place_writer_finish(writer);
        TRY(place_writer_append(writer, bytes_make(piece, got)));
        TRY(pace(pacer, got));
    }
}

static status put_opened(struct place *place, const char *name, struct file_reader *file,
                         const struct store_pacer *pacer)
{
    struct place_writer *writer;
    uint8_t *piece = malloc(PIECE);
    status s = piece == NULL ? status_out_of_memory() : place_create(place, name, &writer);
    if (status_is_ok(s)) {
        s = append_file(writer, file, piece, pacer);
        place_writer_close(writer);
    }
    free(piece);
    return s;
}

status place_put_file(struct place *place, const char *name, const char *path,
                      const struct store_pacer *pacer)
{
    struct file_reader *file;
    TRY(check_name(name));
    TRY(files_open(place->files, path, &file));
    status s = put_opened(place, name, file, pacer);
    file_reader_close(file);
    return s;
}

static status fill_file(struct file_writer *file, struct place_reader *reader, uint8_t *piece,
                        const struct store_pacer *pacer)
{
    size_t got;
    for (;;) {
        TRY(place_reader_next(reader, piece, PIECE, &got));
        if (got == 0)
            return file_writer_finish(file);
        TRY(file_writer_append(file, bytes_make(piece, got)));
        TRY(pace(pacer, got));
    }
}

static status get_opened(struct place *place, struct place_reader *reader, const char *path,
                         const struct store_pacer *pacer)
{
    struct file_writer *file;
    uint8_t *piece = malloc(PIECE);
    status s = piece == NULL ? status_out_of_memory() : files_create(place->files, path, &file);
    if (status_is_ok(s)) {
        s = fill_file(file, reader, piece, pacer);
        file_writer_close(file);
    }
    free(piece);
    return s;
}

status place_get_file(struct place *place, const char *name, const char *path,
                      const struct store_pacer *pacer)
{
    struct place_reader *reader;
    TRY(place_open(place, name, &reader));
    status s = get_opened(place, reader, path, pacer);
    place_reader_close(reader);
    return s;
}
