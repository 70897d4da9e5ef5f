/* See export.h.
 *
 * Files are made in memory. So there are many of them, all small, and what is there of them is
 * whole: readers do not mind. All sets together keep no more than MOST_BUFFERED. */
#include "datastore/admin/export.h"

#include "base/limits.h"
#include "base/vector.h"
#include "cluster/cluster.h"
#include "datastore/admin/export_metadata.h"
#include "datastore/admin/export_sets.h"
#include "datastore/admin/legacy_entity.h"
#include "datastore/admin/log_file.h"
#include "datastore/database.h"
#include "row/row_key.h"
#include "store/files.h"
#include "trestle/datastore.pb-c.h"
#include "wire/proto.h"

#include <stdio.h>

enum {
    FILE_BYTES = 16 << 20,
    MOST_BUFFERED = 64 << 20,
    ENTITY_MEMORY = 64 << 20,
};

/* How long before the past is forgotten an export gives up. */
#define MARGIN_US (INT64_C(60) * 1000000)

#define UNFINISHED_SUFFIX ".unfinished"

/* A set, as it is being written. */
struct set {
    struct ds_set_names names;
    Export__EntitySet *description;
    const char *metadata_file;
    const char *directory; /* from the export's */
    struct buffer out;     /* the next file */
    struct log_writer log; /* of it */
    struct vector files;   /* of const char *: names of those that are written */
    int64_t entities;
    int64_t bytes; /* of files */
};

struct exporting {
    struct ds_export *export;
    struct arena *arena;   /* as long as the export */
    struct arena *scratch; /* of an entity */
    struct buffer encoded;
    struct set *sets;
    size_t set_count;
    size_t buffered;
    int64_t entities;
    int64_t bytes;
};

/* --- places --- */

/* From the export's directory; what stands before the last slash. */
static status directory_of(const char *file, struct arena *arena, const char **out)
{
    *out = arena_string(arena, bytes_make(file, (size_t)(strrchr(file, '/') - file)));
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status join(struct arena *arena, const char *a, const char *b, const char *c,
                   const char **out)
{
    size_t size = strlen(a) + strlen(b) + strlen(c) + 1;
    char *joined = arena_alloc(arena, size);
    if (joined == NULL)
        return status_out_of_memory();
    snprintf(joined, size, "%s%s%s", a, b, c);
    *out = joined;
    return status_ok();
}

static status unfinished_path(const struct ds_export_place *place, struct arena *arena,
                              const char **out)
{
    const char *path;
    TRY(join(arena, place->path, "/", place->name, &path));
    return join(arena, path, UNFINISHED_SUFFIX, "", out);
}

/* Makes each directory on the way from the server's own to `path`, which lies in it. */
static status make_directories(const char *directory, const char *path, struct arena *arena)
{
    TRY(files_make_directory(files_of_system(), directory));
    const char *at = path + strlen(directory);
    while (at != NULL && *at == '/') {
        at = strchr(at + 1, '/');
        size_t size = at == NULL ? strlen(path) : (size_t)(at - path);
        const char *part = arena_string(arena, bytes_make(path, size));
        if (part == NULL)
            return status_out_of_memory();
        TRY(files_make_directory(files_of_system(), part));
    }
    return status_ok();
}

static status refuse_name(void *context, const char *name)
{
    const struct ds_export_place *place = context;
    (void)name;
    return status_make(STATUS_INVALID_ARGUMENT, "The output_url_prefix: %s already exists",
                       place->url);
}

static status claim(const struct ds_export_place *place, struct arena *arena)
{
    struct ds_export_place wanted = *place;
    const char *unfinished;
    TRY(make_directories(place->directory, place->path, arena));
    TRY(files_list(files_of_system(), place->path, refuse_name, &wanted));
    TRY(unfinished_path(place, arena, &unfinished));
    return files_replace(files_of_system(), unfinished, bytes_of("An export is being made.\n"));
}

status ds_export_claim(const struct ds_export_place *place)
{
    struct arena *arena = arena_create(LIMIT_ARENA_BASE_BYTES);
    if (arena == NULL)
        return status_out_of_memory();
    status s = claim(place, arena);
    arena_destroy(arena);
    return s;
}

/* --- what is there of an export goes --- */

struct removing {
    const char *directory;
    struct arena *arena;
};

static bool has_end(const char *name, const char *end)
{
    size_t size = strlen(name), wanted = strlen(end);
    return size >= wanted && strcmp(name + size - wanted, end) == 0;
}

static status remove_own(void *context, const char *name)
{
    const struct removing *removing = context;
    const char *path;
    if (strncmp(name, "output-", 7) != 0 && !has_end(name, ".export_metadata") &&
        !has_end(name, ".export_metadata.new"))
        return status_ok();
    TRY(join(removing->arena, removing->directory, "/", name, &path));
    return files_remove(files_of_system(), path);
}

/* The set's files and its directory, and the one around that once it is empty. */
static status remove_set(const struct ds_export_place *place, struct ds_set_names names,
                         struct arena *arena)
{
    Export__EntitySet *set;
    const char *file, *inner, *outer;
    TRY(ds_set_describe(names.name_space, names.kind, arena, &set, &file));
    TRY(directory_of(file, arena, &inner));
    TRY(directory_of(inner, arena, &outer));
    TRY(ds_export_file(place, inner, arena, &inner));
    TRY(ds_export_file(place, outer, arena, &outer));
    struct removing removing = {inner, arena};
    status s = files_list(files_of_system(), inner, remove_own, &removing);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    TRY(files_remove_directory(files_of_system(), inner));
    status_ignore(files_remove_directory(files_of_system(), outer)); /* others may be in it */
    return status_ok();
}

/* The overall metadata first: without them it is no export. */
static status remove_files(const struct ds_export_place *place, const DsAdmin__EntityFilter *filter,
                           struct arena *arena)
{
    const char *overall, *fresh;
    TRY(ds_overall_file(place, arena, &overall));
    TRY(ds_export_file(place, overall, arena, &overall));
    TRY(join(arena, overall, ".new", "", &fresh));
    TRY(files_remove(files_of_system(), overall));
    TRY(files_remove(files_of_system(), fresh));
    for (size_t i = 0; i < ds_set_count(filter); i++)
        TRY(remove_set(place, ds_set_names(filter, i), arena));
    return status_ok();
}

status ds_export_remove(const struct ds_export_place *place, const DsAdmin__EntityFilter *filter,
                        struct arena *arena)
{
    const char *unfinished;
    TRY(remove_files(place, filter, arena));
    TRY(unfinished_path(place, arena, &unfinished));
    TRY(files_remove(files_of_system(), unfinished));
    return files_remove_directory(files_of_system(), place->path);
}

/* --- files of a set --- */

static status begin_set(struct exporting *e, struct set *set)
{
    const char *file = set->metadata_file, *path;
    TRY(directory_of(file, e->arena, &set->directory));
    TRY(ds_export_file(&e->export->place, set->directory, e->arena, &path));
    return make_directories(e->export->place.path, path, e->arena);
}

static status name_next(struct exporting *e, const struct set *set, const char **name,
                        const char **path)
{
    char number[24];
    snprintf(number, sizeof number, "%zu", set->files.count);
    TRY(join(e->arena, "output-", number, "", name));
    TRY(join(e->arena, set->directory, "/", *name, path));
    return ds_export_file(&e->export->place, *path, e->arena, path);
}

static status end_file(struct exporting *e, struct set *set)
{
    const char *name, *path;
    if (set->out.size == 0)
        return status_ok();
    if (set->files.count == 0)
        TRY(begin_set(e, set));
    TRY(name_next(e, set, &name, &path));
    TRY(files_replace(files_of_system(), path, buffer_bytes(&set->out)));
    TRY(vector_add(&set->files, e->arena, &name, sizeof name));
    set->bytes += (int64_t)set->out.size;
    e->buffered -= set->out.size;
    buffer_free(&set->out);
    set->out = (struct buffer){0};
    set->log = (struct log_writer){0};
    return status_ok();
}

static struct set *largest_set(const struct exporting *e)
{
    struct set *largest = &e->sets[0];
    for (size_t i = 1; i < e->set_count; i++)
        if (e->sets[i].out.size > largest->out.size)
            largest = &e->sets[i];
    return largest;
}

static status keep_bounds(struct exporting *e, struct set *set)
{
    if (set->out.size >= FILE_BYTES)
        TRY(end_file(e, set));
    return e->buffered < MOST_BUFFERED ? status_ok() : end_file(e, largest_set(e));
}

/* --- entities --- */

static status add_entity(struct exporting *e, struct set *set, const Ds__Entity *entity)
{
    size_t before = set->out.size;
    buffer_clear(&e->encoded);
    ds_legacy_encode(entity, &e->encoded);
    if (e->encoded.failed)
        return status_out_of_memory();
    TRY(log_append(&set->log, buffer_bytes(&e->encoded), &set->out));
    if (set->out.failed)
        return status_out_of_memory();
    set->entities++;
    e->entities++;
    e->bytes += (int64_t)(set->out.size - before);
    e->buffered += set->out.size - before;
    return keep_bounds(e, set);
}

static status take_row(struct exporting *e, bytes value)
{
    ProtobufCMessage *message;
    size_t set;
    arena_reset(e->scratch);
    TRY(proto_decode(&datastore__record__descriptor, value, e->scratch, &message));
    const Datastore__Record *record = (const void *)message;
    TRY(proto_decode(&ds__entity__descriptor, proto_bytes(record->entity), e->scratch, &message));
    const Ds__Entity *entity = (const void *)message;
    ds_key_move(entity->key, &e->export->snapshot.database);
    if (!ds_set_find(e->export->filter, ds_key_namespace(entity->key), ds_key_kind(entity->key),
                     &set))
        return status_ok();
    return add_entity(e, &e->sets[set], entity);
}

static status look_up(const struct exporting *e)
{
    const struct ds_transfer_progress *progress = &e->export->progress;
    if (!progress->go_on(progress->context, e->entities, e->bytes))
        return status_make(STATUS_CANCELLED, "The export was cancelled");
    if (clock_wall_us(e->export->clock) - e->export->snapshot.at_us > DS_HISTORY_US - MARGIN_US)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "The export took longer than the past can be read: export fewer kinds "
                           "or namespaces at a time");
    return status_ok();
}

static status read_rows(struct exporting *e, struct ds_rows_reader *reader)
{
    struct ds_row_found row;
    bool found;
    for (;;) {
        TRY(look_up(e));
        TRY(ds_rows_next(reader, &row, &found));
        if (!found)
            return status_ok();
        TRY(take_row(e, row.value));
    }
}

/* All rows of entities, or those of the only namespace that is wanted. */
static status range_of(const struct exporting *e, bytes *from, bytes *to)
{
    const DsAdmin__EntityFilter *filter = e->export->filter;
    const char after[] = {DS_ENTITY_ROW + 1, '\0'}, first[] = {DS_ENTITY_ROW, '\0'};
    struct buffer prefix = {0};
    if (filter != NULL && filter->n_namespace_ids == 1)
        ds_entity_prefix(&prefix, bytes_of(filter->namespace_ids[0]));
    else
        buffer_append_bytes(&prefix, bytes_of(first));
    *from = arena_copy(e->arena, buffer_bytes(&prefix));
    buffer_clear(&prefix);
    if (!key_after_prefix(&prefix, *from))
        buffer_append_bytes(&prefix, bytes_of(after));
    *to = arena_copy(e->arena, buffer_bytes(&prefix));
    bool failed = prefix.failed || from->data == NULL || to->data == NULL;
    buffer_free(&prefix);
    return failed ? status_out_of_memory() : status_ok();
}

static status read_entities(struct exporting *e)
{
    struct ds_rows_reader *reader;
    bytes from, to;
    TRY(range_of(e, &from, &to));
    TRY(ds_rows_open(&e->export->snapshot, DS_FORWARDS, from, to, e->arena, &reader));
    status s = read_rows(e, reader);
    ds_rows_close(reader);
    return s;
}

/* --- metadata --- */

static status put_file(struct exporting *e, const char *file, status encoded,
                       const struct buffer *content)
{
    const char *path;
    TRY(encoded);
    TRY(ds_export_file(&e->export->place, file, e->arena, &path));
    return files_replace(files_of_system(), path, buffer_bytes(content));
}

static status put_set_metadata(struct exporting *e, struct set *set)
{
    Export__ExportInfo info = EXPORT__EXPORT_INFO__INIT;
    Export__ExportedKind kind = EXPORT__EXPORTED_KIND__INIT, *kinds = &kind;
    Export__ExportMetadata metadata = EXPORT__EXPORT_METADATA__INIT;
    struct buffer content = {0};
    info.name = e->export->place.name;
    info.start_us = e->export->start_us;
    info.end_us = clock_wall_us(e->export->clock);
    kind.name_case = EXPORT__EXPORTED_KIND__NAME_KIND;
    kind.kind = set->names.kind == NULL ? "" : set->names.kind;
    kind.files = set->files.items;
    kind.n_files = set->files.count;
    metadata.info = &info;
    metadata.kinds = &kinds;
    metadata.n_kinds = 1;
    status s = put_file(e, set->metadata_file, ds_metadata_encode(&metadata, &content), &content);
    buffer_free(&content);
    return s;
}

static status add_pointer(struct exporting *e, const struct set *set, struct vector *pointers)
{
    Export__ExportPointer *pointer;
    PROTO_NEW(e->arena, pointer, EXPORT__EXPORT_POINTER__INIT);
    pointer->set = set->description;
    pointer->file = set->metadata_file;
    pointer->entities = set->entities;
    pointer->bytes = set->bytes;
    return vector_add(pointers, e->arena, &pointer, sizeof pointer);
}

static status put_overall_metadata(struct exporting *e, const struct vector *pointers)
{
    Export__OverallExportMetadata metadata = EXPORT__OVERALL_EXPORT_METADATA__INIT;
    struct buffer content = {0};
    const char *file;
    metadata.pointers = pointers->items;
    metadata.n_pointers = pointers->count;
    TRY(ds_overall_file(&e->export->place, e->arena, &file));
    status s = put_file(e, file, ds_overall_encode(&metadata, &content), &content);
    buffer_free(&content);
    return s;
}

/* A set without entities is not there. */
static status finish(struct exporting *e)
{
    struct vector pointers = {0};
    const char *unfinished;
    for (size_t i = 0; i < e->set_count; i++) {
        struct set *set = &e->sets[i];
        TRY(end_file(e, set));
        if (set->entities == 0)
            continue;
        TRY(put_set_metadata(e, set));
        TRY(add_pointer(e, set, &pointers));
    }
    TRY(put_overall_metadata(e, &pointers));
    TRY(unfinished_path(&e->export->place, e->arena, &unfinished));
    TRY(files_remove(files_of_system(), unfinished));
    return files_sync_directory(files_of_system(), e->export->place.path);
}

/* --- all of it --- */

static status begin(struct exporting *e)
{
    const DsAdmin__EntityFilter *filter = e->export->filter;
    e->set_count = ds_set_count(filter);
    e->sets = arena_zalloc(e->arena, e->set_count * sizeof *e->sets);
    if (e->sets == NULL || e->scratch == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < e->set_count; i++) {
        struct set *set = &e->sets[i];
        set->names = ds_set_names(filter, i);
        TRY(ds_set_describe(set->names.name_space, set->names.kind, e->arena, &set->description,
                            &set->metadata_file));
    }
    return remove_files(&e->export->place, filter, e->arena); /* what a crash left */
}

status ds_export_run(struct ds_export *export)
{
    struct exporting e = {
        .export = export, .arena = export->arena, .scratch = arena_create(ENTITY_MEMORY)};
    status s = begin(&e);
    if (status_is_ok(s))
        s = read_entities(&e);
    if (status_is_ok(s))
        s = finish(&e);
    if (status_is_ok(s) && !export->progress.go_on(export->progress.context, e.entities, e.bytes))
        s = status_make(STATUS_CANCELLED, "The export was cancelled");
    for (size_t i = 0; e.sets != NULL && i < e.set_count; i++)
        buffer_free(&e.sets[i].out);
    buffer_free(&e.encoded);
    arena_destroy(e.scratch);
    return s;
}
