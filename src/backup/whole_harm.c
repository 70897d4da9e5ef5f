/* See whole_harm.h. */
#include "backup/whole_harm.h"

#include "backup/stores.h"
#include "backup/whole_private.h"
#include "cluster/catalog.h"
#include "store/table_names.h"
#include "tablet/change_log.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_NAMED = 20 };

/* --- what it is --- */

status whole_harm_note(struct whole_harm *harm, const struct whole_file *file, const char *content,
                       status wrong)
{
    struct whole_harmed *one = arena_zalloc(harm->arena, sizeof *one);
    if (one != NULL)
        *one = (struct whole_harmed){.name = arena_string(harm->arena, bytes_of(file->name)),
                                     .content = arena_string(harm->arena, bytes_of(content)),
                                     .wrong =
                                         arena_string(harm->arena, bytes_of(status_message(wrong))),
                                     .is_table = whole_is_table_file(file->name)};
    status_free(wrong);
    if (one == NULL || one->name == NULL || one->content == NULL || one->wrong == NULL)
        return status_out_of_memory();
    if (harm->last == NULL)
        harm->last = &harm->first;
    *harm->last = one;
    harm->last = &one->next;
    harm->count++;
    return status_ok();
}

bool whole_harm_is_of_tables(const struct whole_harm *harm)
{
    for (const struct whole_harmed *one = harm->first; one != NULL; one = one->next)
        if (!one->is_table)
            return false;
    return true;
}

/* For store_options.on_damage: numbers of files, as uint64_t. */
static bool see(void *context, const struct store_damage *damage)
{
    struct buffer *damages = context;
    buffer_append(damages, &damage->file, sizeof damage->file);
    return true;
}

/* `damages`, which hears of damage, may be NULL. */
static status open_to_look(const char *directory, const struct log *log, struct buffer *damages,
                           struct store **store)
{
    struct store_options options = backup_store_options(BACKUP_STORE_BESIDE, directory, log);
    options.read_only = true;
    options.on_damage = damages == NULL ? NULL : see;
    options.damage_context = damages;
    return store_open(&options, store);
}

/* --- whose it is --- */

struct owner {
    uint64_t table_id;
    uint64_t keyspace_id;
    const char *name;
};

struct owners {
    struct arena *arena;
    struct buffer all; /* of struct owner */
};

static status add_owner(struct owners *owners, uint64_t table_id, uint64_t keyspace_id,
                        const char *name)
{
    const struct owner owner = {table_id, keyspace_id, arena_string(owners->arena, bytes_of(name))};
    buffer_append(&owners->all, &owner, sizeof owner);
    return owner.name == NULL || owners->all.failed ? status_out_of_memory() : status_ok();
}

static struct owner *owners_of(const struct owners *owners, size_t *count)
{
    *count = owners->all.size / sizeof(struct owner);
    return (struct owner *)(void *)owners->all.data;
}

static status note_table(void *context, const struct table_record *record)
{
    return add_owner(context, record->id, 0, record->name);
}

static status note_tablet(void *context, const struct tablet_record *record)
{
    size_t count;
    struct owner *all = owners_of(context, &count);
    for (size_t i = 0; i < count; i++)
        if (all[i].table_id == record->table_id)
            all[i].keyspace_id = record->keyspace_id;
    return status_ok();
}

/* Records of the catalog that cannot be read name no table. */
static void read_owners(struct store *store, struct owners *owners)
{
    const struct catalog_visitor visitor = {
        .context = owners, .table = note_table, .tablet = note_tablet};
    struct keyspace *catalog = store_keyspace_find(store, CATALOG_KEYSPACE_ID);
    struct change_log_state log;
    bool has_log = false;
    status_ignore(add_owner(owners, 0, CATALOG_KEYSPACE_ID, "the catalog"));
    if (catalog == NULL)
        return;
    status_ignore(catalog_read(catalog, &visitor));
    status_ignore(change_log_read(catalog, &log, &has_log));
    if (has_log)
        status_ignore(add_owner(owners, 0, log.keyspace, "the change log"));
}

static const char *name_of(const struct owners *owners, uint64_t keyspace_id)
{
    size_t count;
    const struct owner *all = owners_of(owners, &count);
    for (size_t i = 0; i < count; i++)
        if (all[i].keyspace_id == keyspace_id)
            return all[i].name;
    return "no table";
}

struct search {
    const char *file;
    bool is_found;
};

static status compare_name(void *context, const char *name)
{
    struct search *search = context;
    search->is_found = search->is_found || strcmp(name, search->file) == 0;
    return status_ok();
}

/* NULL: no table's. */
static const char *owner_of_file(struct store *store, const struct owners *owners, const char *file)
{
    struct keyspace *keyspace;
    for (size_t i = 0; (keyspace = store_keyspace_at(store, i)) != NULL; i++) {
        struct search search = {.file = file};
        status_ignore(keyspace_list_files(keyspace, compare_name, &search));
        if (search.is_found)
            return keyspace_kind(keyspace) == KEYSPACE_LOG ? "the log of change streams"
                                                           : name_of(owners, keyspace_id(keyspace));
    }
    return NULL;
}

/* --- refusing it --- */

static void describe(const struct whole_harmed *one, const char *owner, struct buffer *out)
{
    buffer_append_format(out, "%s" WHOLE_FILES "/%s, which is to be %s: %s",
                         out->size == 0 ? "" : "; ", one->content, one->name, one->wrong);
    if (owner != NULL)
        buffer_append_format(out, " (it is of %s)", owner);
}

/* `store` NULL: it cannot be opened. */
static void describe_all(const struct whole_harm *harm, struct store *store,
                         const struct owners *owners, struct buffer *out)
{
    size_t named = 0;
    for (const struct whole_harmed *one = harm->first; one != NULL && named < MOST_NAMED; named++) {
        bool is_known = store != NULL && one->is_table;
        describe(one, is_known ? owner_of_file(store, owners, one->name) : NULL, out);
        one = one->next;
    }
    if (harm->count > named)
        buffer_append_format(out, "; and %zu more", harm->count - named);
}

static void look_and_describe(const struct whole_harm *harm, const char *directory,
                              struct buffer *out)
{
    const struct log silent = {.fd = -1, .level = LOG_ERROR, .clock = clock_system()};
    struct owners owners = {.arena = harm->arena};
    struct store *store = NULL;
    status s = open_to_look(directory, &silent, NULL, &store);
    if (status_is_ok(s))
        read_owners(store, &owners);
    describe_all(harm, store, &owners, out);
    if (store != NULL)
        store_close(store);
    status_free(s);
    buffer_free(&owners.all);
}

status whole_harm_refuse(const struct whole_harm *harm, const char *directory, const char *way_out)
{
    struct buffer words = {0};
    look_and_describe(harm, directory, &words);
    if (way_out != NULL)
        buffer_append_format(&words, ". %s", way_out);
    buffer_append_byte(&words, 0);
    status s = words.failed ? status_out_of_memory()
                            : status_make(STATUS_DATA_LOSS, "%s", (const char *)words.data);
    buffer_free(&words);
    return s;
}

/* --- taking it as it is --- */

static bool is_shown(const struct buffer *damages, const char *name)
{
    const uint64_t *files = (const uint64_t *)(const void *)damages->data;
    uint64_t number = strtoull(name, NULL, 10);
    for (size_t i = 0; i < damages->size / sizeof *files; i++)
        if (files[i] == number)
            return true;
    return false;
}

static bool goes_on(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
    return true;
}

/* A directory that does not open shows nothing. */
static status look(const char *directory, struct buffer *damages)
{
    static const struct store_pacer unpaced = {.go_on = goes_on};
    const struct log silent = {.fd = -1, .level = LOG_ERROR, .clock = clock_system()};
    struct store *store;
    status s = open_to_look(directory, &silent, damages, &store);
    if (s.code == STATUS_DATA_LOSS) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    s = store_look_for_damage(store, &unpaced);
    store_close(store);
    return s;
}

static status remove_file(struct files *files, const char *directory, const char *name)
{
    struct buffer path = {0};
    buffer_append_format(&path, "%s/%s%c", directory, name, 0);
    status s = path.failed ? status_out_of_memory() : files_remove(files, (const char *)path.data);
    buffer_free(&path);
    return s;
}

static status remove_unshown(const struct whole_harm *harm, const struct buffer *damages,
                             struct files *files, const char *directory)
{
    for (const struct whole_harmed *one = harm->first; one != NULL; one = one->next)
        if (one->is_table && !is_shown(damages, one->name))
            TRY(remove_file(files, directory, one->name));
    return status_ok();
}

status whole_harm_remove(const struct whole_harm *harm, struct files *files, const char *directory)
{
    struct buffer damages = {0};
    status s = look(directory, &damages);
    if (status_is_ok(s))
        s = damages.failed ? status_out_of_memory()
                           : remove_unshown(harm, &damages, files, directory);
    buffer_free(&damages);
    return s;
}
