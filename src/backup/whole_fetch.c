/* Reading whole backups back: verified, and written into a directory. See whole.h. */
#include "backup/whole_harm.h"
#include "backup/whole_private.h"

#include <stdlib.h>

struct fetching {
    struct place *place;
    struct whole_work *work;
    struct files *files;   /* of the directory */
    const char *directory; /* NULL: nothing is written */
    struct buffer path;
    uint8_t *piece;
    struct whole_harm *harm; /* whole_target */
};

/* --- one content --- */

static status read_content(struct fetching *f, struct place_reader *reader, struct digest *digest,
                           struct file_writer *writer)
{
    size_t got;
    do {
        TRY(place_reader_next(reader, f->piece, WHOLE_PIECE, &got));
        TRY(digest_add(digest, bytes_make(f->piece, got)));
        if (writer != NULL && got > 0)
            TRY(file_writer_append(writer, bytes_make(f->piece, got)));
        TRY(whole_pace(f->work, got));
        f->work->bytes_done += got;
    } while (got > 0);
    return status_ok();
}

static status check_digest(const struct whole_file *file, struct digest *digest)
{
    uint8_t sha256[DIGEST_MOST_BYTES];
    size_t size;
    TRY(digest_finish(digest, sha256, &size));
    if (memcmp(sha256, file->sha256, WHOLE_DIGEST_SIZE) == 0)
        return status_ok();
    return status_make(STATUS_DATA_LOSS, "it is damaged: its content is not what was written");
}

/* DATA_LOSS if it is missing, or not what it was. */
static status take_content(struct fetching *f, const struct whole_file *file,
                           struct file_writer *writer)
{
    char name[CONTENT_NAME_SIZE], object[OBJECT_NAME_SIZE];
    struct place_reader *reader;
    struct digest *digest = NULL;
    TRY(content_name(f->place, file->sha256, name));
    content_object(name, object);
    status s = place_open(f->place, object, &reader);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_make(STATUS_DATA_LOSS, "it is missing");
    }
    TRY(s);
    s = digest_create(DIGEST_SHA256, &digest);
    if (status_is_ok(s))
        s = read_content(f, reader, digest, writer);
    if (status_is_ok(s))
        s = check_digest(file, digest);
    digest_destroy(digest);
    place_reader_close(reader);
    return s;
}

status whole_check_content(struct place *place, const uint8_t sha256[WHOLE_DIGEST_SIZE],
                           struct whole_work *work, uint8_t *piece)
{
    struct fetching f = {.place = place, .work = work, .piece = piece};
    struct whole_file file = {.name = ""};
    memcpy(file.sha256, sha256, WHOLE_DIGEST_SIZE);
    return take_content(&f, &file, NULL);
}

/* --- verifying --- */

static int compare_contents(const void *a, const void *b)
{
    return memcmp((*(const struct whole_file *const *)a)->sha256,
                  (*(const struct whole_file *const *)b)->sha256, WHOLE_DIGEST_SIZE);
}

struct verifying {
    struct fetching fetching;
    void (*report)(void *context, const char *file, const char *wrong);
    void *context;
};

static status verify_file(struct verifying *v, const struct whole_file *file)
{
    char name[CONTENT_NAME_SIZE];
    status s = take_content(&v->fetching, file, NULL);
    if (s.code != STATUS_DATA_LOSS)
        return s;
    status named = content_name(v->fetching.place, file->sha256, name);
    if (status_is_ok(named))
        v->report(v->context, name, status_message(s));
    status_free(s);
    return named;
}

/* Each content once, whatever number of files have it. */
static status verify_files(struct verifying *v, const struct whole_file **files, size_t count)
{
    qsort(files, count, sizeof *files, compare_contents);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare_contents(&files[i - 1], &files[i]) != 0)
            TRY(verify_file(v, files[i]));
    return status_ok();
}

status whole_verify(struct place *place, const struct whole_backup *backup, struct whole_work *work,
                    void (*report)(void *context, const char *file, const char *wrong),
                    void *context)
{
    struct verifying v = {.fetching = {.place = place, .work = work, .piece = malloc(WHOLE_PIECE)},
                          .report = report,
                          .context = context};
    const struct whole_file **files = malloc((backup->file_count + 1) * sizeof(*files));
    status s = status_out_of_memory();
    if (files != NULL && v.fetching.piece != NULL) {
        for (size_t i = 0; i < backup->file_count; i++)
            files[i] = &backup->files[i];
        whole_begin(work, whole_size(backup));
        s = verify_files(&v, files, backup->file_count);
    }
    free(files);
    free(v.fetching.piece);
    return s;
}

/* --- writing into a directory --- */

static status fetch_into(struct fetching *f, const struct whole_file *file)
{
    struct file_writer *writer;
    TRY(files_create(f->files, (const char *)f->path.data, &writer));
    status s = take_content(f, file, writer);
    bool is_kept = status_is_ok(s) || (s.code == STATUS_DATA_LOSS && f->harm != NULL);
    status finished = is_kept ? file_writer_finish(writer) : status_ok();
    file_writer_close(writer);
    if (status_is_ok(finished))
        return s;
    status_free(s);
    return finished;
}

static status fetch_file(struct fetching *f, const struct whole_file *file)
{
    buffer_clear(&f->path);
    buffer_append_format(&f->path, "%s/%s%c", f->directory, file->name, 0);
    if (f->path.failed)
        return status_out_of_memory();
    status s = fetch_into(f, file);
    if (s.code != STATUS_DATA_LOSS)
        return s;
    char name[CONTENT_NAME_SIZE];
    status told = content_name(f->place, file->sha256, name);
    if (status_is_ok(told) && f->harm != NULL)
        return whole_harm_note(f->harm, file, name, s);
    if (status_is_ok(told))
        told = status_make(STATUS_DATA_LOSS, "files/%s, which is to be %s: %s", name, file->name,
                           status_message(s));
    status_free(s);
    return told;
}

static bool wants(const struct whole_choice *choice, const struct whole_file *file)
{
    return choice == NULL || choice->wants(choice->context, file);
}

static uint64_t chosen_size(const struct whole_backup *backup, const struct whole_choice *choice)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < backup->file_count; i++)
        if (wants(choice, &backup->files[i]))
            sum += backup->files[i].size;
    return sum;
}

static status fetch_files(struct fetching *f, const struct whole_backup *backup,
                          const struct whole_choice *choice)
{
    const struct whole_file *format = NULL;
    for (size_t i = 0; i < backup->file_count; i++) {
        const struct whole_file *file = &backup->files[i];
        if (strcmp(file->name, "FORMAT") == 0)
            format = file;
        else if (wants(choice, file))
            TRY(fetch_file(f, file));
    }
    if (format == NULL)
        return status_make(STATUS_DATA_LOSS, "the manifest is damaged: it has no file FORMAT");
    TRY(files_sync_directory(f->files, f->directory));
    if (wants(choice, format))
        TRY(fetch_file(f, format));
    return files_sync_directory(f->files, f->directory);
}

/* --- removed meanwhile --- */

/* By what it says: names are not at hand. */
static bool is_same(const struct whole_backup *a, const struct whole_backup *b)
{
    return a->instant_us == b->instant_us && a->version == b->version &&
           strcmp(a->server, b->server) == 0;
}

static status look_for(const struct whole_target *target, struct arena *arena, bool *is_there)
{
    const char *const *names;
    size_t count;
    *is_there = false;
    TRY(whole_names(target->place, arena, &names, &count));
    for (size_t i = 0; i < count && !*is_there; i++) {
        struct whole_backup found;
        TRY(whole_read(target->place, names[i], arena, &found));
        *is_there = is_same(&found, target->backup);
    }
    return status_ok();
}

/* False also if it cannot be found out. */
static bool was_removed(const struct whole_target *target)
{
    bool is_there = true;
    struct arena *arena = arena_create(WHOLE_MEMORY);
    status s = arena == NULL ? status_out_of_memory() : look_for(target, arena, &is_there);
    bool is_known = status_is_ok(s);
    status_free(s);
    arena_destroy(arena);
    return is_known && !is_there;
}

/* Not everywhere is it held (whole_hold.h): what is missing after an expiry is no damage. */
static status tell_removed(const struct whole_target *target, status s)
{
    bool has_harm = target->harm != NULL && target->harm->count > 0;
    bool is_damaged = s.code == STATUS_DATA_LOSS || (status_is_ok(s) && has_harm);
    if (!is_damaged || !was_removed(target))
        return s;
    status_free(s);
    return status_make(STATUS_ABORTED,
                       "the backup was removed meanwhile, by an expiry: restore one "
                       "that stays");
}

status whole_fetch_chosen(const struct whole_target *target, const struct whole_choice *choice)
{
    struct fetching f = {.place = target->place,
                         .work = target->work,
                         .files = target->files,
                         .directory = target->directory,
                         .harm = target->harm,
                         .piece = malloc(WHOLE_PIECE)};
    whole_begin(target->work, chosen_size(target->backup, choice));
    status s = f.piece == NULL ? status_out_of_memory() : fetch_files(&f, target->backup, choice);
    free(f.piece);
    buffer_free(&f.path);
    return tell_removed(target, s);
}

status whole_fetch(struct place *place, const struct whole_backup *backup, struct files *files,
                   const char *directory, struct whole_work *work)
{
    const struct whole_target target = {
        .place = place, .backup = backup, .files = files, .directory = directory, .work = work};
    return whole_fetch_chosen(&target, NULL);
}
