/* Making a whole backup: see whole.h.
 *
 *     list ──► for each file: known? ──► else read, name by content ──► there, and good? ──► else
 *     copy ──► manifest
 *
 * A table's file never changes, and its number is never given twice in one store. So a file that
 * the server's last backup had under the same name, of the same size and with the same end, where a
 * table says which run of the server made it, has the same content and is not read at all. */
#include "backup/whole_contents.h"
#include "backup/whole_scope.h"
#include "base/crc32c.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const int64_t SECOND_US = 1000000;

enum {
    TAIL_SIZE = 16 << 10,
    MOST_LOOKED_AT = 32, /* manifests, the newest, in search of the server's last one */
    MOST_OF_A_SECOND = 99,
    SECOND_SIZE = 32, /* of a name, at most */
};

struct making {
    struct place *place;
    const struct whole_source *source;
    struct whole_work *work;
    struct arena *arena;
    struct arena *previous_arena;
    struct whole_backup previous;   /* the server's last backup; no files: there is none */
    struct whole_contents contents; /* of the place */
    struct whole_backup backup;
    size_t capacity;
    struct buffer path;
    uint8_t *piece;
};

/* --- what there is to back up --- */

static status add_file(void *context, const char *name)
{
    struct making *m = context;
    struct whole_backup *backup = &m->backup;
    if (!whole_is_wanted(name))
        return status_ok();
    if (backup->file_count == m->capacity) {
        size_t capacity = m->capacity == 0 ? 64 : 2 * m->capacity;
        struct whole_file *larger = realloc(backup->files, capacity * sizeof *larger);
        if (larger == NULL)
            return status_out_of_memory();
        backup->files = larger;
        m->capacity = capacity;
    }
    const char *copy = arena_string(m->arena, bytes_of(name));
    if (copy == NULL)
        return status_out_of_memory();
    backup->files[backup->file_count++] = (struct whole_file){.name = copy};
    return status_ok();
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct whole_file *)a)->name, ((const struct whole_file *)b)->name);
}

static status source_path(struct making *m, const struct whole_file *file, const char **out)
{
    buffer_clear(&m->path);
    buffer_append_format(&m->path, "%s/%s%c", m->source->directory, file->name, 0);
    *out = (const char *)m->path.data;
    return m->path.failed ? status_out_of_memory() : status_ok();
}

/* Size and end of each: that much is read of every file. */
static status look_at_file(struct making *m, struct whole_file *file)
{
    struct buffer tail = {0};
    const char *path;
    TRY(source_path(m, file, &path));
    status s = files_read_tail(m->source->files, path, TAIL_SIZE, &tail, &file->size);
    if (status_is_ok(s))
        file->tail_crc32c = crc32c_of(buffer_bytes(&tail));
    buffer_free(&tail);
    return s;
}

static status list_source(struct making *m)
{
    struct whole_backup *backup = &m->backup;
    TRY(files_list(m->source->files, m->source->directory, add_file, m));
    if (backup->file_count == 0)
        return status_make(STATUS_NOT_FOUND, "%s is not a data directory", m->source->directory);
    qsort(backup->files, backup->file_count, sizeof *backup->files, compare_files);
    for (size_t i = 0; i < backup->file_count; i++)
        TRY(look_at_file(m, &backup->files[i]));
    return status_ok();
}

/* --- what is known already --- */

/* Whether a backup is of the same server, and of all that there is now. */
static bool is_of_it(const struct making *m)
{
    return strcmp(m->previous.server, m->backup.server) == 0 &&
           (!whole_is_part(&m->previous) || whole_is_same_part(&m->previous, &m->backup));
}

/* How many names are not of a time to come, by this backup's: those that follow were made while a
 * clock was ahead. */
static size_t count_past(const struct making *m, const char *const *names, size_t count)
{
    char now[WHOLE_NAME_SIZE];
    if (!whole_name_of(m->backup.instant_us + SECOND_US, now))
        return count;
    while (count > 0 && strcmp(names[count - 1], now) >= 0)
        count--;
    return count;
}

/* From the newest on, and then those of a time to come: which it is saves work, and is no more than
 * that. One that cannot be read is no help, and no hindrance; unless it is for want of the key: a
 * place has one, or none. */
static status find_previous(struct making *m, const char *const *names, size_t count)
{
    size_t past = count_past(m, names, count);
    for (size_t i = 0; i < count && i < MOST_LOOKED_AT; i++) {
        size_t at = (past + count - 1 - i) % count;
        arena_reset(m->previous_arena);
        status s = whole_read(m->place, names[at], m->previous_arena, &m->previous);
        if (s.code == STATUS_PERMISSION_DENIED)
            return s;
        bool is_it = status_is_ok(s) && is_of_it(m);
        status_free(s);
        if (is_it)
            return status_ok();
        m->previous = (struct whole_backup){0};
    }
    return status_ok();
}

static status learn_what_is_there(struct making *m)
{
    const char *const *names;
    size_t count;
    TRY(whole_names(m->place, m->arena, &names, &count));
    TRY(find_previous(m, names, count));
    m->contents = (struct whole_contents){.place = m->place,
                                          .work = m->work,
                                          .piece = m->piece,
                                          .period_us = m->source->check_period_us,
                                          .after_us = m->previous.instant_us,
                                          .to_us = m->backup.instant_us,
                                          .tell = m->source->tell_damaged,
                                          .context = m->source->context};
    return whole_contents_list(&m->contents);
}

/* The last backup's file of that name, if by all that can be told it is the same; else NULL. */
static const struct whole_file *same_before(const struct making *m, const struct whole_file *file)
{
    const struct whole_file *before =
        m->previous.file_count == 0
            ? NULL
            : bsearch(file, m->previous.files, m->previous.file_count, sizeof *file, compare_files);
    if (before == NULL || !whole_is_table_file(file->name) || before->size != file->size ||
        before->tail_crc32c != file->tail_crc32c)
        return NULL;
    return before;
}

static status is_as_before(struct making *m, struct whole_file *file, bool *out)
{
    const struct whole_file *before = same_before(m, file);
    *out = false;
    if (before == NULL)
        return status_ok();
    TRY(whole_contents_find(&m->contents, before, true, out));
    if (*out)
        memcpy(file->sha256, before->sha256, WHOLE_DIGEST_SIZE);
    return status_ok();
}

/* --- reading and copying a file --- */

/* Reads it to its end into the digest and, if there is one, the writer. */
static status read_file(struct making *m, struct file_reader *reader, struct digest *digest,
                        struct place_writer *writer)
{
    size_t got;
    do {
        TRY(file_reader_next(reader, m->piece, WHOLE_PIECE, &got));
        TRY(digest_add(digest, bytes_make(m->piece, got)));
        if (writer != NULL && got > 0)
            TRY(place_writer_append(writer, bytes_make(m->piece, got)));
        TRY(whole_pace(m->work, got));
    } while (got > 0);
    return status_ok();
}

static status read_source(struct making *m, const struct whole_file *file,
                          struct place_writer *writer, uint8_t sha256[DIGEST_MOST_BYTES])
{
    struct file_reader *reader;
    struct digest *digest = NULL;
    const char *path;
    size_t size;
    TRY(source_path(m, file, &path));
    TRY(files_open(m->source->files, path, &reader));
    status s = digest_create(DIGEST_SHA256, &digest);
    if (status_is_ok(s))
        s = read_file(m, reader, digest, writer);
    if (status_is_ok(s))
        s = digest_finish(digest, sha256, &size);
    digest_destroy(digest);
    file_reader_close(reader);
    return s;
}

static status copy_into(struct making *m, const struct whole_file *file, const char *name,
                        struct place_writer *writer)
{
    uint8_t again[DIGEST_MOST_BYTES];
    TRY(read_source(m, file, writer, again));
    if (memcmp(again, file->sha256, WHOLE_DIGEST_SIZE) != 0)
        return status_make(STATUS_DATA_LOSS, "%s/%s: read twice, it was not the same",
                           m->source->directory, file->name);
    TRY(place_writer_finish(writer));
    m->work->files_copied++;
    m->work->files_mended += content_set_has(&m->contents.marked, name);
    m->work->bytes_copied += file->size;
    return status_ok();
}

static status copy_file(struct making *m, const struct whole_file *file, const char *name)
{
    char object[OBJECT_NAME_SIZE];
    struct place_writer *writer;
    content_object(name, object);
    TRY(place_create(m->place, object, &writer));
    status s = copy_into(m, file, name, writer);
    place_writer_close(writer);
    return status_is_ok(s) ? whole_contents_note(&m->contents, name) : s;
}

static status add_content(struct making *m, struct whole_file *file)
{
    uint8_t sha256[DIGEST_MOST_BYTES];
    char name[CONTENT_NAME_SIZE];
    bool is_there;
    TRY(read_source(m, file, NULL, sha256));
    memcpy(file->sha256, sha256, WHOLE_DIGEST_SIZE);
    TRY(content_name(m->place, file->sha256, name));
    TRY(whole_contents_find(&m->contents, file, false, &is_there));
    return is_there ? status_ok() : copy_file(m, file, name);
}

/* Reads of the place meanwhile count as no progress. */
static status add_one(struct making *m, struct whole_file *file)
{
    uint64_t done = m->work->bytes_done;
    bool is_known;
    TRY(whole_pace(m->work, 0));
    TRY(is_as_before(m, file, &is_known));
    if (!is_known)
        TRY(add_content(m, file));
    m->work->bytes_done = done + file->size;
    return status_ok();
}

static status add_contents(struct making *m)
{
    struct whole_backup *backup = &m->backup;
    whole_begin(m->work, whole_size(backup));
    for (size_t i = 0; i < backup->file_count; i++)
        TRY(add_one(m, &backup->files[i]));
    return status_ok();
}

/* --- the manifest --- */

static bool is_taken(struct making *m, const char *object)
{
    struct place_reader *reader;
    status s = place_open(m->place, object, &reader);
    bool is_there = s.code != STATUS_NOT_FOUND;
    place_reader_close(reader);
    status_free(s);
    return is_there;
}

bool whole_name_of(int64_t instant_us, char out[WHOLE_NAME_SIZE])
{
    struct tm utc;
    time_t seconds = (time_t)(instant_us / 1000000);
    return gmtime_r(&seconds, &utc) != NULL &&
           strftime(out, WHOLE_NAME_SIZE, "%Y%m%dT%H%M%SZ", &utc) != 0;
}

static status find_name(struct making *m, char name[WHOLE_NAME_SIZE], char object[OBJECT_NAME_SIZE])
{
    char second[WHOLE_NAME_SIZE];
    if (!whole_name_of(m->backup.instant_us, second))
        return status_make(STATUS_FAILED_PRECONDITION, "the clock shows no time that has a name");
    snprintf(name, WHOLE_NAME_SIZE, "%s", second);
    TRY(manifest_object(name, object));
    for (unsigned i = 2; is_taken(m, object); i++) {
        if (i > MOST_OF_A_SECOND)
            return status_make(STATUS_ALREADY_EXISTS, "there is a backup %s already", name);
        snprintf(name, WHOLE_NAME_SIZE, "%.*s-%02u", SECOND_SIZE, second, i);
        TRY(manifest_object(name, object));
    }
    return status_ok();
}

static status put_manifest(struct making *m, const char *object)
{
    struct buffer content = {0};
    m->backup.end_us = clock_wall_us(m->work->clock);
    status s = whole_encode(&m->backup, m->arena, &content);
    if (status_is_ok(s))
        s = place_put(m->place, object, buffer_bytes(&content));
    buffer_free(&content);
    return s;
}

static status make(struct making *m, char name[WHOLE_NAME_SIZE])
{
    char object[OBJECT_NAME_SIZE];
    m->arena = arena_create(WHOLE_MEMORY);
    m->previous_arena = arena_create(WHOLE_MEMORY);
    m->piece = malloc(WHOLE_PIECE);
    if (m->arena == NULL || m->previous_arena == NULL || m->piece == NULL)
        return status_out_of_memory();
    m->backup.program = TRESTLE_VERSION;
    m->backup.start_us = clock_wall_us(m->work->clock);
    TRY(list_source(m));
    TRY(learn_what_is_there(m));
    TRY(add_contents(m));
    TRY(find_name(m, name, object));
    return put_manifest(m, object);
}

status whole_create(struct place *place, const struct whole_source *source, struct whole_work *work,
                    char name[WHOLE_NAME_SIZE])
{
    struct making m = {.place = place, .source = source, .work = work, .backup = *source->facts};
    m.backup.files = NULL;
    m.backup.file_count = 0;
    work->files_copied = 0;
    work->bytes_copied = 0;
    work->files_mended = 0;
    name[0] = '\0';
    status s = make(&m, name);
    whole_contents_free(&m.contents);
    free(m.backup.files);
    free(m.piece);
    buffer_free(&m.path);
    arena_destroy(m.previous_arena);
    arena_destroy(m.arena);
    return s;
}
