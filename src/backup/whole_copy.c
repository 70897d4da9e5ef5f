/* See whole_copy.h.
 *
 *     fetch all but tables' files ──► open: which files has the catalog? ──► fetch them
 *         ──► open: which keyspaces have the tables, and which files have those? ──► fetch them
 *         ──► open
 *
 * The store opens without files that are missing, and keeps everybody out of what they had. */
#include "backup/whole_copy.h"

#include "backup/stores.h"
#include "backup/unfinished.h"
#include "backup/whole_harm.h"
#include "backup/whole_hold.h"
#include "backup/whole_private.h"
#include "backup/whole_scope.h"
#include "store/copied.h"
#include "store/table_names.h"
#include "tablet/commit.h"
#include "tablet/drop_records.h"

#include <stdlib.h>

struct known_table {
    struct table_record record;
    struct schema *schema;
    uint64_t keyspace_id;
    struct row_drops *drops; /* of that */
    bytes *split_keys;
    size_t split_count;
    size_t split_capacity;
};

struct whole_copy {
    struct whole_copy_options options;
    struct unfinished unfinished; /* the directory, which never gets another name */
    bool is_begun;                /* it is there, and ours */
    struct arena *arena;
    struct whole_harm harm;
    struct log log; /* says nothing: that files are missing is no news */
    struct store *store;
    struct keyspace *catalog;
    int64_t newest_us;         /* see foreign_table */
    struct known_table *known; /* by malloc */
    size_t count;
    struct foreign_table *tables; /* in the arena */
};

/* --- the store --- */

static status open_store(struct whole_copy *copy)
{
    struct store_options options =
        backup_store_options(BACKUP_STORE_BESIDE, copy->options.directory, &copy->log);
    options.read_only = true;
    TRY(store_open(&options, &copy->store));
    copy->catalog = store_keyspace_find(copy->store, CATALOG_KEYSPACE_ID);
    return copy->catalog != NULL ? status_ok()
                                 : status_make(STATUS_DATA_LOSS, "the backup has no catalog");
}

static void close_store(struct whole_copy *copy)
{
    if (copy->store != NULL)
        store_close(copy->store);
    copy->store = NULL;
    copy->catalog = NULL;
}

/* --- which files --- */

static bool is_no_table_file(const void *context, const struct whole_file *file)
{
    (void)context;
    return !whole_is_table_file(file->name);
}

struct file_names {
    struct arena *arena;
    struct buffer names; /* as const char * */
};

static status add_name(void *context, const char *name)
{
    struct file_names *list = context;
    const char *copy = arena_string(list->arena, bytes_of(name));
    if (copy != NULL)
        buffer_append(&list->names, &copy, sizeof copy);
    return copy == NULL || list->names.failed ? status_out_of_memory() : status_ok();
}

static bool is_listed(const void *context, const struct whole_file *file)
{
    const struct file_names *list = context;
    const char *const *names = (const char *const *)(const void *)list->names.data;
    for (size_t i = 0; i < list->names.size / sizeof *names; i++)
        if (strcmp(names[i], file->name) == 0)
            return true;
    return false;
}

static status fetch(struct whole_copy *copy, const struct whole_choice *choice)
{
    const struct whole_target target = {.place = copy->options.place,
                                        .backup = copy->options.backup,
                                        .files = copy->options.files,
                                        .directory = copy->options.directory,
                                        .work = copy->options.work,
                                        .harm = &copy->harm};
    return whole_fetch_chosen(&target, choice);
}

/* Ways out where a part cannot be had: a start with --salvage does without such files, and what
 * they had is told then; but it wants all that there was. */
#define WAY_OUT_OF_ALL                                                                             \
    "Without it nobody knows what the tables had, and which files: --salvage of a part does not "  \
    "do without. Restore all of the backup with --salvage --to a directory of its own, and copy "  \
    "the tables from a server that is started there (trestle copy); or name another backup"
#define WAY_OUT_OF_PART                                                                            \
    "Without it nobody knows what the tables had, and which files: --salvage does not do "         \
    "without, and this is a backup of a part, which has nothing more. Name another backup"

static const char *way_out(const struct whole_copy_options *options, bool is_of_rows)
{
    if (is_of_rows)
        return options->way_out;
    return whole_is_part(options->backup) ? WAY_OUT_OF_PART : WAY_OUT_OF_ALL;
}

/* Files that say which tables there are, and which files they have, cannot be done without:
 * `is_of_rows` is for the others. The store is closed. */
static status resolve_harm(struct whole_copy *copy, bool is_of_rows)
{
    const struct whole_copy_options *options = &copy->options;
    if (copy->harm.count == 0)
        return status_ok();
    if (!is_of_rows || !options->salvage)
        return whole_harm_refuse(&copy->harm, options->directory, way_out(options, is_of_rows));
    return whole_harm_remove(&copy->harm, options->files, options->directory);
}

static status list_known(struct whole_copy *copy, struct file_names *list)
{
    for (size_t i = 0; i < copy->count; i++) {
        struct keyspace *keyspace = store_keyspace_find(copy->store, copy->known[i].keyspace_id);
        if (keyspace == NULL)
            return status_make(STATUS_DATA_LOSS, "the backup lacks the rows of %s",
                               copy->known[i].record.name);
        TRY(keyspace_list_files(keyspace, add_name, list));
    }
    return status_ok();
}

/* Fetches the files of the catalog, or of the tables, and opens the store again. */
static status add_files(struct whole_copy *copy, bool of_catalog)
{
    struct file_names list = {.arena = copy->arena};
    const struct whole_choice choice = {.wants = is_listed, .context = &list};
    status s =
        of_catalog ? keyspace_list_files(copy->catalog, add_name, &list) : list_known(copy, &list);
    close_store(copy);
    if (status_is_ok(s))
        s = fetch(copy, &choice);
    buffer_free(&list.names);
    TRY(s);
    TRY(resolve_harm(copy, !of_catalog));
    return open_store(copy);
}

/* --- the catalog --- */

static bool is_wanted(const struct whole_copy *copy, const struct table_record *record)
{
    bool is_view = record->view.source_id != 0; /* what it has is made of tables */
    return record->deleted_us == 0 && !is_view && whole_scope_has(copy->options.name, record->name);
}

static status copy_record(struct whole_copy *copy, const struct table_record *record,
                          struct known_table *out)
{
    struct buffer encoded = {0};
    bytes kept = {0};
    status s = catalog_encode_table(record, &encoded);
    if (status_is_ok(s)) {
        kept = arena_copy(copy->arena, buffer_bytes(&encoded));
        s = kept.data == NULL ? status_out_of_memory() : status_ok();
    }
    buffer_free(&encoded);
    TRY(s);
    TRY(catalog_decode_table(kept, copy->arena, &out->record, &out->schema));
    out->record.id = record->id;
    return status_ok();
}

static status note_table(void *context, const struct table_record *record)
{
    struct whole_copy *copy = context;
    if (!is_wanted(copy, record))
        return status_ok();
    struct known_table *larger = realloc(copy->known, (copy->count + 1) * sizeof *larger);
    if (larger == NULL)
        return status_out_of_memory();
    copy->known = larger;
    larger[copy->count] = (struct known_table){.keyspace_id = 0};
    return copy_record(copy, record, &larger[copy->count++]);
}

static struct known_table *find_known(struct whole_copy *copy, uint64_t table_id)
{
    for (size_t i = 0; i < copy->count; i++)
        if (copy->known[i].record.id == table_id)
            return &copy->known[i];
    return NULL;
}

static status add_split_key(struct whole_copy *copy, struct known_table *known, bytes key)
{
    if (known->split_count == known->split_capacity) {
        size_t capacity = known->split_capacity == 0 ? 16 : 2 * known->split_capacity;
        bytes *larger = arena_alloc(copy->arena, capacity * sizeof *larger);
        if (larger == NULL)
            return status_out_of_memory();
        if (known->split_count > 0)
            memcpy(larger, known->split_keys, known->split_count * sizeof *larger);
        known->split_keys = larger;
        known->split_capacity = capacity;
    }
    bytes kept = arena_copy(copy->arena, key);
    known->split_keys[known->split_count++] = kept;
    return kept.data == NULL ? status_out_of_memory() : status_ok();
}

static status note_tablet(void *context, const struct tablet_record *record)
{
    struct whole_copy *copy = context;
    struct known_table *known = find_known(copy, record->table_id);
    if (known == NULL)
        return status_ok();
    known->keyspace_id = record->keyspace_id;
    return record->start.size == 0 ? status_ok() : add_split_key(copy, known, record->start);
}

static status read_catalog(struct whole_copy *copy)
{
    const struct catalog_visitor visitor = {
        .context = copy, .table = note_table, .tablet = note_tablet};
    TRY(catalog_read(copy->catalog, &visitor));
    bool is_there = copy->count > 0;
    if (!is_there)
        TRY(whole_scope_has_instance(copy->catalog, copy->options.name, &is_there));
    return is_there ? status_ok()
                    : status_make(STATUS_NOT_FOUND, "the backup has no table %s, nor any in it",
                                  copy->options.name);
}

static status load_drops(const struct whole_copy *copy, struct known_table *known)
{
    TRY(row_drops_create(&known->drops));
    return drop_records_load(copy->catalog, known->keyspace_id, known->drops);
}

static status publish(struct whole_copy *copy)
{
    copy->tables = arena_alloc(copy->arena, copy->count * sizeof *copy->tables);
    if (copy->tables == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < copy->count; i++) {
        struct known_table *known = &copy->known[i];
        TRY(load_drops(copy, known));
        copy->tables[i] =
            (struct foreign_table){.keyspace = store_keyspace_find(copy->store, known->keyspace_id),
                                   .drops = known->drops,
                                   .record = &known->record,
                                   .split_keys = known->split_keys,
                                   .split_count = known->split_count,
                                   .newest_us = copy->newest_us};
    }
    return status_ok();
}

/* Ranges that were out of service then are so here: their rows may be in no file of the backup, and
 * what they had replaced may be. */
static status close_damaged(void *context, const struct damage_record *record)
{
    const struct whole_copy *copy = context;
    struct keyspace *keyspace = store_keyspace_find(copy->store, record->keyspace_id);
    const struct store_damage damage = {
        .keyspace_id = record->keyspace_id,
        .file = record->file,
        .offset = record->block == 0 ? 0 : record->block - 1,
        .is_whole = record->block == 0,
        .from = record->from,
        .to = record->to,
        .what = "rows of the table were out of service when the backup was made: an older one "
                "may have them",
        .is_remembered = true};
    return keyspace != NULL ? keyspace_close_range(keyspace, &damage) : status_ok();
}

/* --- life --- */

static status read_damages(struct whole_copy *copy)
{
    const struct catalog_visitor visitor = {.context = copy, .damage = close_damaged};
    return catalog_read(copy->catalog, &visitor);
}

static status fetch_all(struct whole_copy *copy)
{
    const struct whole_choice no_tables = {.wants = is_no_table_file};
    TRY(fetch(copy, &no_tables));
    TRY(resolve_harm(copy, false));
    TRY(store_correct_copy(copy->options.directory));
    TRY(open_store(copy));
    TRY(add_files(copy, true));
    TRY(read_catalog(copy));
    if (copy->options.only_records)
        return status_ok();
    TRY(add_files(copy, false));
    return read_damages(copy);
}

/* Against expiry, as long as it is read. */
static status fetch_held(struct whole_copy *copy)
{
    const struct whole_copy_options *options = &copy->options;
    whole_hold_begin(options->work, options->place, options->backup);
    status s = fetch_all(copy);
    whole_hold_end(options->work);
    return s;
}

/* A ceiling is a second ahead of the versions that it was made for. */
static status read_directory(struct whole_copy *copy)
{
    struct commit_ceilings ceilings;
    TRY(open_store(copy));
    TRY(read_catalog(copy));
    TRY(read_damages(copy));
    TRY(commit_read_ceilings(copy->catalog, &ceilings));
    copy->newest_us = version_time_us(ceilings.version) - COMMIT_CEILING_SLACK_US;
    return publish(copy);
}

static status fill_from_backup(struct whole_copy *copy)
{
    const struct whole_copy_options *options = &copy->options;
    if (!whole_may_have(copy->options.backup, copy->options.name))
        return status_make(STATUS_NOT_FOUND, "the backup is of %s alone, and does not have %s",
                           copy->options.backup->scope, copy->options.name);
    copy->newest_us = version_time_us(copy->options.backup->version);
    copy->unfinished = (struct unfinished){.files = options->files,
                                           .directory = options->directory,
                                           .path = options->directory,
                                           .maker = "a part of a whole backup"};
    TRY(unfinished_begin(&copy->unfinished));
    copy->is_begun = true;
    TRY(fetch_held(copy));
    return publish(copy);
}

static status fill(struct whole_copy *copy)
{
    copy->arena = arena_create(WHOLE_MEMORY);
    if (copy->arena == NULL)
        return status_out_of_memory();
    copy->harm.arena = copy->arena;
    return copy->options.place == NULL ? read_directory(copy) : fill_from_backup(copy);
}

status whole_copy_open(const struct whole_copy_options *options, struct whole_copy **out)
{
    *out = NULL;
    struct whole_copy *copy = calloc(1, sizeof *copy);
    if (copy == NULL)
        return status_out_of_memory();
    copy->options = *options;
    copy->log = (struct log){.fd = -1, .level = LOG_ERROR, .clock = options->work->clock};
    status s = fill(copy);
    if (status_is_ok(s))
        *out = copy;
    else
        whole_copy_close(copy);
    return s;
}

void whole_copy_close(struct whole_copy *copy)
{
    if (copy == NULL)
        return;
    close_store(copy);
    if (copy->is_begun)
        status_ignore(unfinished_abandon(&copy->unfinished));
    for (size_t i = 0; i < copy->count; i++) {
        schema_destroy(copy->known[i].schema);
        row_drops_destroy(copy->known[i].drops);
    }
    free(copy->known);
    arena_destroy(copy->arena);
    free(copy);
}

const struct foreign_table *whole_copy_tables(const struct whole_copy *copy, size_t *count)
{
    *count = copy->count;
    return copy->tables;
}

struct keyspace *whole_copy_catalog(const struct whole_copy *copy)
{
    return copy->catalog;
}
