/* See whole_scope.h.
 *
 *     open ──► which tables, which keyspaces? ──► records and keyspaces of others go
 *         ──► flush, compact the catalog ──► open once more
 *
 * What was deleted is in no file then: records go out of the catalog's tables as these are written
 * again, rows of others with their keyspaces, both out of the log by the flush, after which it is
 * empty; and the second opening begins a manifest, and a file SYNCED, that know of no other
 * keyspace, nor of its table's name. */
#include "backup/whole_scope.h"

#include "backup/stores.h"
#include "backup/whole_order.h"
#include "backup/whole_private.h"
#include "bigtable/names.h"
#include "cluster/catalog.h"
#include "control/resource.h"
#include "tablet/commit.h"

#include <stdlib.h>

enum {
    NARROW_MEMORY = 64 << 20,
    BATCH_BYTES = 1 << 20,
};

/* --- what is in a scope --- */

bool whole_is_part(const struct whole_backup *backup)
{
    return backup->scope != NULL && backup->scope[0] != '\0';
}

bool whole_is_same_part(const struct whole_backup *a, const struct whole_backup *b)
{
    if (!whole_is_part(a) || !whole_is_part(b))
        return whole_is_part(a) == whole_is_part(b);
    return strcmp(a->scope, b->scope) == 0;
}

enum whole_kind whole_kind_of(const char *name)
{
    if (strstr(name, "/databases/") != NULL)
        return WHOLE_DATABASE;
    return strstr(name, "/tables/") != NULL ? WHOLE_TABLE : WHOLE_INSTANCE;
}

/* As datastore/model/key.c has it: no request could name a database otherwise. */
static status check_database(const char *name)
{
    enum { MOST = 128 };
    size_t size = 0;
    TRY(name_check_form("Database", name, "projects/{project}/databases/{database}"));
    for (const char *at = name; *at != '\0'; at++) {
        size = *at == '/' ? 0 : size + 1;
        if (size > MOST || (unsigned char)*at < ' ')
            return status_make(STATUS_INVALID_ARGUMENT,
                               "a project and a database have up to %d bytes, without control "
                               "characters",
                               MOST);
    }
    return status_ok();
}

status whole_scope_check(const char *scope)
{
    switch (whole_kind_of(scope)) {
    case WHOLE_DATABASE:
        return check_database(scope);
    case WHOLE_TABLE:
        return name_check_table(scope);
    default:
        return name_check_instance(scope);
    }
}

bool whole_scope_has(const char *scope, const char *name)
{
    size_t size = strlen(scope);
    return strncmp(name, scope, size) == 0 && (name[size] == '\0' || name[size] == '/');
}

bool whole_may_have(const struct whole_backup *backup, const char *name)
{
    return !whole_is_part(backup) || whole_scope_has(backup->scope, name);
}

status whole_check_is_all(const struct whole_backup *backup)
{
    static const char *const options[] = {
        [WHOLE_TABLE] = "table", [WHOLE_INSTANCE] = "instance", [WHOLE_DATABASE] = "database"};
    if (!whole_is_part(backup))
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "the backup is of %s alone, and makes no server: --%s says that this is to "
                       "be restored",
                       backup->scope, options[whole_kind_of(backup->scope)]);
}

status whole_scope_missing(const char *scope)
{
    static const char *const words[] = {[WHOLE_TABLE] = "there is no table",
                                        [WHOLE_INSTANCE] = "there is no instance",
                                        [WHOLE_DATABASE] = "there is no database"};
    return status_make(STATUS_NOT_FOUND, "%s %s", words[whole_kind_of(scope)], scope);
}

/* --- the newest --- */

/* Manifests that could not be read: the newest of them. */
struct unread {
    const char *name; /* NULL: none */
    status why;
};

/* It may have been one of those. */
static status refuse_unread(const struct unread *unread)
{
    status s = status_make(unread->why.code, "the whole backup %s cannot be read: %s", unread->name,
                           status_message(unread->why));
    status_free(unread->why);
    return s;
}

static status none_found(struct place *place, const char *from, const struct unread *unread)
{
    if (unread->name != NULL)
        return refuse_unread(unread);
    if (from == NULL)
        return status_make(STATUS_NOT_FOUND, "there is no whole backup of a server in %s",
                           place_title(place));
    return status_make(STATUS_NOT_FOUND, "there is no whole backup in %s that may have %s",
                       place_title(place), from);
}

static bool is_fit(const struct whole_backup *backup, const char *from)
{
    return from == NULL ? !whole_is_part(backup) : whole_may_have(backup, from);
}

status whole_refuse_older(const char *unread, status why, const char *chosen)
{
    status s = status_make(STATUS_FAILED_PRECONDITION,
                           "the whole backup %s cannot be read: %s. The newest before it that can "
                           "be is %s: name that, if it is to be taken",
                           unread, status_message(why), chosen);
    status_free(why);
    return s;
}

/* A backup that was removed after it was listed is passed over. */
static void note_unread(struct unread *unread, const char *name, status why)
{
    if (status_is_ok(why) || why.code == STATUS_NOT_FOUND || unread->name != NULL) {
        status_free(why);
        return;
    }
    *unread = (struct unread){name, why};
}

static status find_fit(struct place *place, const char *from, struct arena *arena,
                       const char **name, struct whole_backup *out, struct unread *unread)
{
    const char *const *names;
    size_t count;
    *name = NULL;
    TRY(whole_names_by_age(place, arena, &names, &count));
    if (count == 0)
        return status_make(STATUS_NOT_FOUND, "there is no whole backup in %s", place_title(place));
    for (size_t i = count; i-- > 0;) {
        status s = whole_read(place, names[i], arena, out);
        if (s.code == STATUS_PERMISSION_DENIED)
            return s;
        if (status_is_ok(s) && is_fit(out, from)) {
            *name = names[i];
            return s;
        }
        note_unread(unread, names[i], s);
    }
    return status_ok();
}

status whole_find_newest(struct place *place, const char *from, struct arena *arena,
                         const char **name, struct whole_backup *out)
{
    struct unread unread = {NULL, status_ok()};
    status s = find_fit(place, from, arena, name, out, &unread);
    if (!status_is_ok(s)) {
        status_free(unread.why);
        return s;
    }
    if (*name == NULL)
        return none_found(place, from, &unread);
    return unread.name == NULL ? s : whole_refuse_older(unread.name, unread.why, *name);
}

/* --- taking out what is not of it --- */

struct ids {
    uint64_t *ids; /* in the arena */
    size_t count;
    size_t capacity;
};

struct narrowing {
    const char *directory;
    const char *scope;
    const struct log *log;
    struct arena *arena;
    struct store *store;
    struct keyspace *catalog;
    struct ids tables; /* of the scope, as are their keyspaces */
    struct ids keyspaces;
    struct store_batch *batch;
};

static status add_id(struct narrowing *n, struct ids *ids, uint64_t id)
{
    if (ids->count == ids->capacity) {
        size_t capacity = ids->capacity == 0 ? 64 : 2 * ids->capacity;
        uint64_t *larger = arena_alloc(n->arena, capacity * sizeof *larger);
        if (larger == NULL)
            return status_out_of_memory();
        if (ids->count > 0)
            memcpy(larger, ids->ids, ids->count * sizeof *larger);
        ids->ids = larger;
        ids->capacity = capacity;
    }
    ids->ids[ids->count++] = id;
    return status_ok();
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return (first > second) - (first < second);
}

/* They are sorted, as those of tables are by the catalog. */
static bool has_id(const struct ids *ids, uint64_t id)
{
    return ids->count > 0 &&
           bsearch(&id, ids->ids, ids->count, sizeof *ids->ids, compare_ids) != NULL;
}

static status note_table(void *context, const struct table_record *record)
{
    struct narrowing *n = context;
    bool is_view = record->view.source_id != 0; /* it is made anew where it is defined */
    if (record->deleted_us != 0 || is_view || !whole_scope_has(n->scope, record->name))
        return status_ok();
    return add_id(n, &n->tables, record->id);
}

static status note_tablet(void *context, const struct tablet_record *record)
{
    struct narrowing *n = context;
    return has_id(&n->tables, record->table_id) ? add_id(n, &n->keyspaces, record->keyspace_id)
                                                : status_ok();
}

status whole_scope_has_instance(struct keyspace *catalog, const char *scope, bool *out)
{
    struct store_value value;
    enum store_presence presence;
    struct buffer key = {0};
    *out = false;
    if (whole_kind_of(scope) != WHOLE_INSTANCE)
        return status_ok();
    resource_append_key(&key, RESOURCE_INSTANCE, scope);
    status s = key.failed ? status_out_of_memory()
                          : store_get(catalog, NULL, buffer_bytes(&key), STORE_READ_ANY, &value,
                                      &presence);
    buffer_free(&key);
    TRY(s);
    *out = presence == STORE_FOUND;
    if (*out)
        store_value_release(&value);
    return status_ok();
}

static status find_tables(struct narrowing *n)
{
    const struct catalog_visitor visitor = {
        .context = n, .table = note_table, .tablet = note_tablet};
    bool is_there;
    TRY(catalog_read(n->catalog, &visitor));
    if (n->keyspaces.count > 0) {
        qsort(n->keyspaces.ids, n->keyspaces.count, sizeof *n->keyspaces.ids, compare_ids);
        return status_ok();
    }
    TRY(whole_scope_has_instance(n->catalog, n->scope, &is_there));
    return is_there ? status_ok() : whole_scope_missing(n->scope);
}

/* --- records --- */

static bool has_part(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

/* Whether a restore of tables may ask for the resource: see whole_tables.c. */
static bool keeps_resource(const struct narrowing *n, enum resource_kind kind, const char *name)
{
    const char *end = strstr(n->scope, "/tables/");
    size_t size = end != NULL ? (size_t)(end - n->scope) : strlen(n->scope);
    bool is_of_instance =
        strncmp(name, n->scope, size) == 0 && (name[size] == '\0' || name[size] == '/');
    if (whole_kind_of(n->scope) == WHOLE_DATABASE)
        return kind != RESOURCE_OPERATION && whole_scope_has(n->scope, name);
    if (!is_of_instance || kind == RESOURCE_OPERATION || has_part(name, "/backups/"))
        return false;
    if (has_part(name, "/tables/"))
        return whole_scope_has(n->scope, name);
    bool is_view = has_part(name, "/logicalViews/") || has_part(name, "/materializedViews/");
    return end == NULL || !is_view;
}

static status look_at_resource(const struct narrowing *n, bytes key, bool *is_kept)
{
    enum { HEAD = 2 }; /* see control/resource.h */
    if (key.size <= HEAD)
        return status_make(STATUS_DATA_LOSS, "a resource in the catalog has no name");
    const char *name = arena_string(n->arena, bytes_from(key, HEAD));
    if (name == NULL)
        return status_out_of_memory();
    *is_kept = keeps_resource(n, (enum resource_kind)key.data[1], name);
    return status_ok();
}

/* See cluster/catalog.h. */
static status look_at_record(const struct narrowing *n, bytes key, bool *is_kept)
{
    uint64_t id = catalog_id_of_key(key);
    *is_kept = false;
    switch (key.data[0]) {
    case 'T':
    case 't':
        *is_kept = has_id(&n->tables, id);
        return status_ok();
    case 'D':
    case 'd':
        *is_kept = has_id(&n->keyspaces, id);
        return status_ok();
    case RESOURCE_KEY:
        return look_at_resource(n, key, is_kept);
    default:
        *is_kept = (key.size == 1 && (key.data[0] == 'C' || key.data[0] == 'V')) ||
                   commit_is_own_record(key);
        return status_ok();
    }
}

static status write_batch(struct narrowing *n)
{
    status s = store_write(n->store, n->batch, STORE_ASYNC);
    store_batch_clear(n->batch);
    return s;
}

static status delete_of_others(struct narrowing *n, struct store_cursor *cursor)
{
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor)) {
        bool is_kept = true;
        bytes key = store_cursor_key(cursor);
        TRY(look_at_record(n, key, &is_kept));
        if (!is_kept)
            store_batch_delete(n->batch, n->catalog, key);
        if (store_batch_size(n->batch) > BATCH_BYTES)
            TRY(write_batch(n));
    }
    TRY(store_cursor_status(cursor));
    return write_batch(n);
}

static status delete_records(struct narrowing *n)
{
    static const struct store_cursor_options all = {.read_tier = STORE_READ_ANY,
                                                    .bypasses_cache = true};
    struct store_cursor *cursor;
    n->batch = store_batch_create();
    if (n->batch == NULL)
        return status_out_of_memory();
    status s = store_cursor_create(n->catalog, &all, &cursor);
    if (status_is_ok(s)) {
        s = delete_of_others(n, cursor);
        store_cursor_destroy(cursor);
    }
    store_batch_destroy(n->batch);
    return s;
}

/* --- rows --- */

/* When one is dropped another one has its index. */
static status drop_keyspaces(struct narrowing *n)
{
    struct keyspace *each;
    for (size_t i = 0; (each = store_keyspace_at(n->store, i)) != NULL;) {
        if (each == n->catalog || has_id(&n->keyspaces, keyspace_id(each)))
            i++;
        else
            TRY(store_keyspace_drop(n->store, each));
    }
    return status_ok();
}

/* The catalog last: with it the log holds nothing any more. */
static status flush_all(struct narrowing *n)
{
    for (size_t i = 0; i < n->keyspaces.count; i++) {
        struct keyspace *keyspace = store_keyspace_find(n->store, n->keyspaces.ids[i]);
        if (keyspace == NULL)
            return status_make(STATUS_DATA_LOSS, "the rows of a tablet of %s are missing",
                               n->scope);
        TRY(keyspace_flush(keyspace));
    }
    TRY(keyspace_flush(n->catalog));
    return keyspace_compact(n->catalog, bytes_of(""), bytes_of(""));
}

/* --- all of it --- */

/* Damage that the checkpoint has stays as it is, and is not recorded here. */
static bool leave_damage(void *context, const struct store_damage *damage)
{
    (void)context, (void)damage;
    return false;
}

static status open_store(struct narrowing *n)
{
    struct store_options options = backup_store_options(BACKUP_STORE_BESIDE, n->directory, n->log);
    options.no_compactions = true;
    options.on_damage = leave_damage;
    TRY(store_open(&options, &n->store));
    n->catalog = store_keyspace_find(n->store, CATALOG_KEYSPACE_ID);
    return n->catalog != NULL ? status_ok() : status_make(STATUS_DATA_LOSS, "there is no catalog");
}

static void close_store(struct narrowing *n)
{
    if (n->store != NULL)
        store_close(n->store);
    n->store = NULL;
}

static status take_out(struct narrowing *n)
{
    TRY(open_store(n));
    TRY(find_tables(n));
    TRY(delete_records(n));
    TRY(drop_keyspaces(n));
    TRY(flush_all(n));
    close_store(n);
    TRY(open_store(n));
    return store_forget_record(n->store);
}

status whole_scope_narrow(const char *directory, const char *scope, const struct log *log)
{
    struct narrowing n = {.directory = directory, .scope = scope, .log = log};
    TRY(whole_scope_check(scope));
    n.arena = arena_create(NARROW_MEMORY);
    status s = n.arena == NULL ? status_out_of_memory() : take_out(&n);
    close_store(&n);
    arena_destroy(n.arena);
    return s;
}

/* --- a copy of a directory that no server has open --- */

struct copying {
    struct files *files;
    const char *from;
    const char *to;
};

static bool always_goes_on(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
    return true;
}

static status copy_or_link(const struct copying *copying, const char *name, const char *from,
                           const char *to)
{
    static const struct store_pacer unhindered = {.go_on = always_goes_on};
    struct file_sum sum;
    return whole_is_table_file(name) ? files_link(copying->files, from, to)
                                     : files_copy(copying->files, from, to, &unhindered, &sum);
}

static status copy_one(void *context, const char *name)
{
    const struct copying *copying = context;
    struct buffer from = {0}, to = {0};
    if (!whole_is_wanted(name))
        return status_ok();
    buffer_append_format(&from, "%s/%s%c", copying->from, name, 0);
    buffer_append_format(&to, "%s/%s%c", copying->to, name, 0);
    status s = from.failed || to.failed
                   ? status_out_of_memory()
                   : copy_or_link(copying, name, (const char *)from.data, (const char *)to.data);
    buffer_free(&from);
    buffer_free(&to);
    return s;
}

status whole_scope_copy(struct files *files, const char *from, const char *to)
{
    struct copying copying = {.files = files, .from = from, .to = to};
    TRY(files_remove_flat_directory(files, to));
    TRY(files_make_directory(files, to));
    return files_list(files, from, copy_one, &copying);
}
