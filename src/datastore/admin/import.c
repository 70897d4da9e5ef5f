/* See import.h. */
#include "datastore/admin/import.h"

#include "base/limits.h"
#include "base/vector.h"
#include "datastore/admin/export_metadata.h"
#include "datastore/admin/export_sets.h"
#include "datastore/admin/legacy_entity.h"
#include "datastore/admin/log_file.h"
#include "datastore/commit/commit.h"
#include "datastore/model/validate.h"
#include "store/files.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    BATCH_ENTITIES = 300,
    BATCH_BYTES = 1 << 20,
    MOST_RECORD = 8 << 20,
    MOST_HELD = 16 << 20, /* bytes of records, wanted or not, before memory is given back */
    MOST_TRIES = 20       /* of a commit that waits for others' locks in vain */
};

struct importing {
    struct ds_import *import;
    struct arena *arena; /* of the batch: its commit, too */
    struct vector batch; /* of Ds__Mutation * */
    size_t batch_bytes;
    size_t held_bytes;
    int64_t read; /* records of the set, whether they are wanted or not */
    int64_t entities;
    int64_t bytes;
};

/* --- batches --- */

static status look_up(const struct importing *i)
{
    const struct ds_transfer_progress *progress = &i->import->progress;
    return progress->go_on(progress->context, i->entities, i->bytes)
               ? status_ok()
               : status_make(STATUS_CANCELLED, "The import was cancelled");
}

/* Commits a batch, and tries again: others that hold its entities for long must not end the import.
 */
static status commit_batch(struct importing *i, const Ds__CommitRequest *request)
{
    struct datastore *datastore = i->import->datastore;
    const struct ds_database *database = &i->import->database;
    status s = ds_commit_own(datastore, database, request, i->arena);
    for (int tries = 1; s.code == STATUS_ABORTED && tries < MOST_TRIES; tries++) {
        status_free(s);
        TRY(look_up(i));
        s = ds_commit_own(datastore, database, request, i->arena);
    }
    return s;
}

static status put_batch(struct importing *i)
{
    Ds__CommitRequest request = DS__COMMIT_REQUEST__INIT;
    request.project_id = i->import->database.project;
    request.database_id = i->import->database.id;
    request.mode = DS__COMMIT_REQUEST__MODE__NON_TRANSACTIONAL;
    request.mutations = i->batch.items;
    request.n_mutations = i->batch.count;
    if (request.n_mutations > 0)
        TRY(commit_batch(i, &request));
    i->entities += (int64_t)i->batch.count;
    i->bytes += (int64_t)i->batch_bytes;
    i->batch = (struct vector){0};
    i->batch_bytes = i->held_bytes = 0;
    arena_reset(i->arena);
    return look_up(i);
}

/* Checked as a client's are. */
static status add_entity(struct importing *i, Ds__Entity *entity, size_t size)
{
    Ds__Mutation *mutation;
    TRY(ds_entity_normalise(entity, &i->import->database, i->arena));
    TRY(ds_entity_check(entity, &i->import->database, DS_KEY_WRITE));
    PROTO_NEW(i->arena, mutation, DS__MUTATION__INIT);
    mutation->operation_case = DS__MUTATION__OPERATION_UPSERT;
    mutation->upsert = entity;
    TRY(vector_add(&i->batch, i->arena, &mutation, sizeof mutation));
    i->batch_bytes += size;
    return status_ok();
}

/* Blobs point into the record, which is copied. */
static status take_record(struct importing *i, bytes record)
{
    Ds__Entity *entity;
    size_t set;
    bytes copy = arena_copy(i->arena, record);
    i->read++;
    i->held_bytes += record.size;
    if (copy.data == NULL && record.size > 0)
        return status_out_of_memory();
    TRY(ds_legacy_decode(copy, &i->import->database, i->arena, &entity));
    if (ds_set_find(i->import->filter, ds_key_namespace(entity->key), ds_key_kind(entity->key),
                    &set))
        TRY(add_entity(i, entity, record.size));
    bool is_full = i->batch.count == BATCH_ENTITIES || i->batch_bytes >= BATCH_BYTES ||
                   i->held_bytes >= MOST_HELD;
    return is_full ? put_batch(i) : status_ok();
}

/* --- files --- */

static status read_source(void *context, uint8_t *to, size_t size, size_t *got)
{
    return file_reader_next(context, to, size, got);
}

static status read_records(struct importing *i, struct log_reader *reader)
{
    bytes record;
    bool found;
    for (;;) {
        TRY(log_read(reader, &record, &found));
        if (!found)
            return put_batch(i);
        TRY(take_record(i, record));
    }
}

/* The error, with the name of its file. */
static status in_file(status s, const char *file)
{
    if (status_is_ok(s) || s.code == STATUS_CANCELLED)
        return s;
    status named = status_make(s.code, "%s: %s", file, status_message(s));
    status_free(s);
    return named;
}

/* A file that the metadata name is part of the export. */
static status missing_is_loss(status s)
{
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_make(STATUS_DATA_LOSS, "the file is missing");
}

static status read_output(struct importing *i, const char *path)
{
    struct file_reader *file;
    TRY(missing_is_loss(files_open(files_of_system(), path, &file)));
    struct log_reader *reader = calloc(1, sizeof *reader);
    status s = reader == NULL ? status_out_of_memory() : status_ok();
    if (status_is_ok(s)) {
        reader->source = read_source;
        reader->context = file;
        reader->most = MOST_RECORD;
        s = read_records(i, reader);
        log_reader_free(reader);
    }
    free(reader);
    file_reader_close(file);
    return s;
}

/* The path of a file beside `beside`, both from the export's directory. */
static status file_beside(const char *beside, const char *name, struct arena *arena,
                          const char **out)
{
    const char *slash = strrchr(beside, '/');
    size_t before = slash == NULL ? 0 : (size_t)(slash - beside) + 1;
    size_t size = before + strlen(name) + 1;
    char *path = arena_alloc(arena, size);
    if (path == NULL)
        return status_out_of_memory();
    snprintf(path, size, "%.*s%s", (int)before, beside, name);
    *out = path;
    return status_ok();
}

/* Appends all of a file of metadata. */
static status read_metadata(struct ds_import *import, const char *file, struct buffer *out)
{
    const char *path;
    TRY(ds_export_file(&import->place, file, import->arena, &path));
    return files_read(files_of_system(), path, DS_MOST_METADATA, out);
}

/* --- sets --- */

static status read_kind(struct importing *i, const char *metadata_file,
                        const Export__ExportedKind *kind)
{
    struct arena *arena = i->import->arena;
    for (size_t at = 0; at < kind->n_files; at++) {
        const char *file, *path, *url;
        TRY(file_beside(metadata_file, kind->files[at], arena, &file));
        TRY(ds_export_file(&i->import->place, file, arena, &path));
        TRY(ds_export_file_url(&i->import->place, file, arena, &url));
        TRY(in_file(read_output(i, path), url));
    }
    return status_ok();
}

static status decode_set(struct ds_import *import, const char *file, Export__ExportMetadata **out)
{
    struct buffer content = {0};
    status s = missing_is_loss(read_metadata(import, file, &content));
    if (status_is_ok(s))
        s = ds_metadata_decode(buffer_bytes(&content), import->arena, out);
    buffer_free(&content);
    return in_file(s, file);
}

static status read_set(struct importing *i, const Export__ExportPointer *pointer)
{
    Export__ExportMetadata *metadata;
    i->read = 0;
    TRY(decode_set(i->import, pointer->file, &metadata));
    for (size_t kind = 0; kind < metadata->n_kinds; kind++)
        TRY(read_kind(i, pointer->file, metadata->kinds[kind]));
    if (i->read < pointer->entities)
        return status_make(STATUS_DATA_LOSS, "%s: there are %lld entities, and should be %lld",
                           pointer->file, (long long)i->read, (long long)pointer->entities);
    return status_ok();
}

static status decode_overall(struct ds_import *import, Export__OverallExportMetadata **out)
{
    struct buffer content = {0};
    const char *file;
    TRY(ds_overall_file(&import->place, import->arena, &file));
    status s = read_metadata(import, file, &content);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        s = status_make(STATUS_NOT_FOUND, "There is no export %s/%s", import->place.url, file);
    }
    if (status_is_ok(s))
        s = ds_overall_decode(buffer_bytes(&content), import->arena, out);
    buffer_free(&content);
    return s;
}

static status read_sets(struct importing *i)
{
    Export__OverallExportMetadata *overall;
    TRY(decode_overall(i->import, &overall));
    for (size_t at = 0; at < overall->n_pointers; at++)
        TRY(read_set(i, overall->pointers[at]));
    return look_up(i);
}

status ds_import_run(struct ds_import *import)
{
    struct importing i = {.import = import, .arena = arena_create(LIMIT_ARENA_DATASTORE_BYTES)};
    if (i.arena == NULL)
        return status_out_of_memory();
    status s = read_sets(&i);
    arena_destroy(i.arena);
    return s;
}
