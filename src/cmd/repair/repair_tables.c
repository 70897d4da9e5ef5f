/* See repair_tables.h.
 *
 * The directory is first looked at as the doctor does, and opened for writing, as a server opens
 * it, only if there is damage: a sound one is not touched. */
#include "cmd/repair/repair_tables.h"

#include "aws/bucket.h"
#include "backup/whole_repair.h"
#include "cluster/catalog.h"
#include "cluster/cluster.h"
#include "cluster/damage.h"
#include "cluster/lost_records.h"
#include "cluster/refill.h"
#include "datastore/index/index_check.h"
#include "datastore/index/index_heal.h"
#include "server/offline_cluster.h"
#include "tablet/change_log.h"
#include "tablet/drop_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MEMORY = 1 << 30 };

/* --- the look --- */

struct known_table {
    struct known_table *next;
    uint64_t id;
    uint64_t keyspace_id;
    uint64_t records_id; /* of a view: the keyspace of its records; else 0 */
    const char *name;
    struct schema *schema; /* its own */
};

struct known_damage {
    struct known_damage *next;
    struct damage_record record;
};

/* The findings of a look; all in the arena. */
struct look {
    struct arena *arena;
    struct store *store;
    char server[STORE_IDENTITY_SIZE];
    uint64_t *segments; /* ids of keyspaces of the log of change streams; in the arena */
    size_t segment_count;
    uint64_t log_keyspace; /* of the change log, whose changes wait for the archive; 0: none */
    struct known_table *tables;
    struct known_damage *first;
    struct known_damage **last;
    bool is_out_of_memory;
};

static status know_table(void *context, const struct table_record *record)
{
    struct look *look = context;
    struct known_table *table = arena_zalloc(look->arena, sizeof *table);
    if (table == NULL)
        return status_out_of_memory();
    *table = (struct known_table){
        .next = look->tables, .id = record->id, .records_id = record->view.records_id};
    table->name = arena_string(look->arena, bytes_of(record->name));
    look->tables = table;
    const struct schema *schema = record->schema;
    return table->name == NULL
               ? status_out_of_memory()
               : schema_create(schema->granularity, schema->families, schema->family_count,
                               schema->next_family_id, &table->schema);
}

static void forget_tables(const struct look *look)
{
    for (const struct known_table *table = look->tables; table != NULL; table = table->next)
        schema_destroy(table->schema);
}

static status know_tablet(void *context, const struct tablet_record *record)
{
    struct look *look = context;
    for (struct known_table *table = look->tables; table != NULL; table = table->next)
        if (table->id == record->table_id)
            table->keyspace_id = record->keyspace_id;
    return status_ok();
}

static status know_segments(struct look *look)
{
    struct keyspace *keyspace;
    size_t count = 0;
    while (store_keyspace_at(look->store, count) != NULL)
        count++;
    look->segments = arena_alloc(look->arena, (count + 1) * sizeof *look->segments);
    if (look->segments == NULL)
        return status_out_of_memory();
    for (size_t i = 0; (keyspace = store_keyspace_at(look->store, i)) != NULL; i++)
        if (keyspace_kind(keyspace) == KEYSPACE_LOG)
            look->segments[look->segment_count++] = keyspace_id(keyspace);
    return status_ok();
}

static bool is_known(const struct look *look, const struct damage_record *record)
{
    for (const struct known_damage *at = look->first; at != NULL; at = at->next)
        if (at->record.keyspace_id == record->keyspace_id && at->record.file == record->file &&
            at->record.block == record->block)
            return true;
    return false;
}

static status know_damage(void *context, const struct damage_record *record)
{
    struct look *look = context;
    if (is_known(look, record))
        return status_ok();
    struct known_damage *damage = arena_zalloc(look->arena, sizeof *damage);
    if (damage == NULL)
        return status_out_of_memory();
    damage->record = *record;
    damage->record.from = arena_copy(look->arena, record->from);
    damage->record.to = arena_copy(look->arena, record->to);
    damage->record.what = arena_string(look->arena, bytes_of(record->what));
    *look->last = damage;
    look->last = &damage->next;
    bool is_copied = damage->record.from.data != NULL && damage->record.to.data != NULL &&
                     damage->record.what != NULL;
    return is_copied ? status_ok() : status_out_of_memory();
}

/* For store_options.on_damage: on the thread that looks, since the store is only read. */
static bool see(void *context, const struct store_damage *seen)
{
    struct look *look = context;
    const struct damage_record record = {.keyspace_id = seen->keyspace_id,
                                         .file = seen->file,
                                         .block = seen->is_whole ? 0 : seen->offset + 1,
                                         .from = seen->from,
                                         .to = seen->to,
                                         .what = seen->what};
    status s = know_damage(look, &record);
    look->is_out_of_memory = look->is_out_of_memory || !status_is_ok(s);
    status_free(s);
    return true; /* nothing is compacted here */
}

/* Of what is damaged, but had been dropped before, it is told that nothing is lost. */
static status note_dropped(struct look *look, struct damage_record *record, struct row_drops *drops)
{
    struct keyspace *catalog = store_keyspace_find(look->store, CATALOG_KEYSPACE_ID);
    struct buffer words = {0};
    status s = drop_records_load(catalog, record->keyspace_id, drops);
    if (s.code == STATUS_DATA_LOSS) { /* nobody knows; the doctor tells of it */
        status_free(s);
        return status_ok();
    }
    if (!status_is_ok(s) || !damage_is_dropped(record, drops))
        return s;
    damage_say_dropped(record->what, &words);
    const char *what = arena_string(look->arena, bytes_of((const char *)words.data));
    bool failed = words.failed || what == NULL;
    buffer_free(&words);
    record->what = failed ? record->what : what;
    return failed ? status_out_of_memory() : status_ok();
}

static status note_all_dropped(struct look *look)
{
    for (struct known_damage *at = look->first; at != NULL; at = at->next) {
        struct row_drops *drops;
        TRY(row_drops_create(&drops));
        status s = note_dropped(look, &at->record, drops);
        row_drops_destroy(drops);
        TRY(s);
    }
    return status_ok();
}

static bool go_on(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
    return true;
}

/* At all files, and then at what was dropped. */
static status look_at_tables(struct look *look)
{
    const struct store_pacer pacer = {.go_on = go_on};
    TRY(store_look_for_damage(look->store, &pacer));
    return look->is_out_of_memory ? status_out_of_memory() : note_all_dropped(look);
}

static status read_catalog(struct look *look)
{
    struct keyspace *catalog = store_keyspace_find(look->store, CATALOG_KEYSPACE_ID);
    if (catalog == NULL)
        return status_make(STATUS_DATA_LOSS, "there is no catalog");
    const struct catalog_visitor visitor = {
        .context = look, .table = know_table, .tablet = know_tablet, .damage = know_damage};
    struct change_log_state log;
    bool has_log;
    TRY(know_segments(look));
    TRY(change_log_read(catalog, &log, &has_log));
    look->log_keyspace = has_log ? log.keyspace : 0;
    return catalog_read(catalog, &visitor);
}

static status open_and_look(const struct repair_tables_options *options, struct look *look)
{
    struct store_options how = offline_store_options(options->directory, options->log);
    how.read_only = true;
    how.on_damage = see;
    how.damage_context = look;
    TRY(store_open(&how, &look->store));
    TRY(store_identity(look->store, look->server));
    TRY(read_catalog(look));
    return look_at_tables(look);
}

/* --- what is lost, or would be --- */

/* NULL: no table has it. */
static const char *table_of(const struct look *look, const struct damage_record *record)
{
    for (const struct known_table *table = look->tables; table != NULL; table = table->next)
        if (table->keyspace_id == record->keyspace_id)
            return table->name;
    return NULL;
}

/* The view that has the records; NULL: none. */
static const char *view_of(const struct look *look, const struct damage_record *record)
{
    for (const struct known_table *table = look->tables; table != NULL; table = table->next)
        if (table->records_id == record->keyspace_id)
            return table->name;
    return NULL;
}

static bool is_of_log(const struct look *look, const struct damage_record *record)
{
    return look->log_keyspace != 0 && record->keyspace_id == look->log_keyspace;
}

static bool is_of_streams(const struct look *look, const struct damage_record *record)
{
    for (size_t i = 0; i < look->segment_count; i++)
        if (look->segments[i] == record->keyspace_id)
            return true;
    return false;
}

struct counted_telling {
    status (*tell)(void *context, const struct lost_rows *lost);
    void *context;
    size_t count;
};

static status tell_and_count(void *context, const struct lost_rows *lost)
{
    struct counted_telling *telling = context;
    telling->count++;
    return telling->tell(telling->context, lost);
}

/* Keys that are no rows. */
static status tell_keys(const struct damage_record *record, const char *owner, const char *what,
                        struct counted_telling *telling)
{
    struct buffer words = {0};
    buffer_append_format(&words, "%s: %s%c", what, record->what, 0);
    const struct lost_rows lost = {.table = owner,
                                   .from = record->from,
                                   .to = record->to,
                                   .first_key = record->from,
                                   .end_key = record->to,
                                   .file = damage_file(record),
                                   .words = (const char *)words.data};
    status s = words.failed ? status_out_of_memory() : tell_and_count(telling, &lost);
    buffer_free(&words);
    return s;
}

/* Tells of a range out of service, whatever it belongs to: something is told in any case. */
static status tell_damage(const struct look *look, const struct damage_record *record,
                          status (*tell)(void *context, const struct lost_rows *lost),
                          void *context)
{
    struct counted_telling telling = {tell, context, 0};
    char text[LOST_KEYSPACE_NAME_SIZE];
    const char *owner = table_of(look, record);
    if (is_of_log(look, record))
        return tell_keys(record, "the change log", "changes that wait for the archive", &telling);
    if (is_of_streams(look, record))
        return tell_keys(record, "the log of change streams", "changes that readers may want",
                         &telling);
    if (view_of(look, record) != NULL)
        return tell_keys(record, view_of(look, record), "what a view keeps to be kept up to date",
                         &telling);
    if (owner == NULL)
        owner = lost_keyspace_name(record->keyspace_id, text);
    TRY(damage_tell(record, owner, tell_and_count, &telling));
    return telling.count > 0 ? status_ok() : tell_keys(record, owner, owner, &telling);
}

/* The telling of one table at a time. */
struct telling {
    struct lost_rows_report *report;
    const struct whole_repair *backup; /* NULL: its rows come from nowhere */
};

static status tell_range(const struct telling *telling, const struct lost_rows *lost,
                         const char *words)
{
    const struct lost_range range = {lost->table, lost->from, lost->to, words};
    TRY(lost_rows_name(telling->report, &range));
    lost_rows_print(telling->report, &range);
    return status_ok();
}

static status describe(const struct telling *telling, const struct lost_rows *lost,
                       struct buffer *out)
{
    uint64_t count;
    if (telling->backup != NULL)
        return whole_repair_describe(telling->backup, lost, out, &count);
    buffer_append_format(out, "%s", lost->words);
    if (ds_is_database_table(lost->table))
        ds_heal_describe(lost, out);
    buffer_append_byte(out, 0);
    return out->failed ? status_out_of_memory() : status_ok();
}

static status tell_lost(void *context, const struct lost_rows *lost)
{
    const struct telling *telling = context;
    struct buffer words = {0};
    status s = describe(telling, lost, &words);
    if (status_is_ok(s))
        s = tell_range(telling, lost, (const char *)words.data);
    buffer_free(&words);
    return s;
}

/* --- tables that are in a backup --- */

/* The backup that rows come from; `repair` NULL: none. */
struct backup {
    struct place *place;
    struct whole_work work;
    struct whole_repair *repair;
};

static bool is_data_directory(const char *name)
{
    char *path = NULL;
    bool is = asprintf(&path, "%s/CURRENT", name) > 0 && access(path, F_OK) == 0;
    free(path);
    return is;
}

static status open_place(const struct repair_backup *options, struct backup *out)
{
    if (!is_data_directory(options->place))
        return place_of_name_with_key(files_of_system(), options->place, options->key, &out->place);
    return options->name == NULL && options->key == NULL
               ? status_ok()
               : status_make(STATUS_INVALID_ARGUMENT,
                             "%s is a data directory: it has neither backups nor a key",
                             options->place);
}

static status backup_open(const struct repair_backup *options, const char *server,
                          struct backup *out)
{
    *out = (struct backup){.work = {.clock = clock_system()}};
    if (options->place == NULL)
        return status_ok();
    TRY(open_place(options, out));
    const struct whole_repair_options repair = {.directory =
                                                    out->place == NULL ? options->place : NULL,
                                                .place = out->place,
                                                .name = options->name,
                                                .server = server,
                                                .files = files_of_system(),
                                                .scratch = options->scratch,
                                                .work = &out->work};
    return whole_repair_create(&repair, &out->repair);
}

static void backup_close(struct backup *backup)
{
    whole_repair_destroy(backup->repair);
    place_close(backup->place);
}

/* `*is_left`: there is no backup of the table that will do, which is told: it stays as it is. */
static status leave_if_refused(status s, const char *table, bool *is_left)
{
    *is_left = !status_is_ok(s) && whole_repair_is_refusal(s);
    if (!*is_left)
        return s;
    fprintf(stderr, "left: %s: nothing can be taken from a backup: %s\n", table, status_message(s));
    status_free(s);
    return status_ok();
}

/* Of a table that was claimed, and has names and rules from there, or is to have them. */
static status tell_named(const char *done, const char *table, const struct backup *backup,
                         struct repair_tables_outcome *outcome)
{
    struct buffer former = {0};
    whole_repair_append_former(backup->repair, &former);
    if (!former.failed)
        printf("%s: the families of %s, with their rules, as %.*s has them\n", done, table,
               (int)former.size, (const char *)former.data);
    bool has_failed = former.failed;
    buffer_free(&former);
    outcome->named++;
    return has_failed ? status_out_of_memory() : status_ok();
}

/* --- telling alone --- */

struct each_of_look {
    const struct look *look;
    const struct known_table *table;
};

static status each_of_look(void *context, status (*visit)(void *visitor, const struct lost_rows *),
                           void *visitor)
{
    const struct each_of_look *each = context;
    for (const struct known_damage *at = each->look->first; at != NULL; at = at->next)
        if (at->record.keyspace_id == each->table->keyspace_id)
            TRY(damage_tell(&at->record, each->table->name, visit, visitor));
    return status_ok();
}

static status count(void *context, const struct lost_rows *lost)
{
    uint64_t *left = context;
    (void)lost;
    *left += 1;
    return status_ok();
}

static status tell_table(const struct look *look, const struct known_table *table,
                         const struct backup *backup, struct lost_rows_report *report,
                         struct repair_tables_outcome *outcome)
{
    struct each_of_look each = {look, table};
    const struct whole_repair_table wanted = {.name = table->name,
                                              .id = table->id,
                                              .keyspace_id = table->keyspace_id,
                                              .schema = table->schema,
                                              .each = each_of_look,
                                              .context = &each};
    const struct foreign_table *source = NULL;
    bool is_left = false;
    if (backup->repair != NULL)
        TRY(leave_if_refused(whole_repair_begin(backup->repair, &wanted, &source), table->name,
                             &is_left));
    struct telling telling = {report, source != NULL ? backup->repair : NULL};
    const struct refill_target target = {table->id, table->keyspace_id, table->schema};
    if (source != NULL && refill_names(source, &target))
        TRY(tell_named("would name", table->name, backup, outcome));
    return is_left ? each_of_look(&each, count, &outcome->left)
                   : each_of_look(&each, tell_lost, &telling);
}

/* A repair ends the change log, and with it what is damaged there. */
static status tell_log(const struct look *look, struct lost_rows_report *report)
{
    struct telling telling = {.report = report};
    for (const struct known_damage *at = look->first; at != NULL; at = at->next)
        if (is_of_log(look, &at->record))
            TRY(tell_damage(look, &at->record, tell_lost, &telling));
    return status_ok();
}

static status tell_left(void *context, const struct lost_rows *lost)
{
    uint64_t *left = context;
    fprintf(stderr, "left: %s\n", lost->words);
    *left += 1;
    return status_ok();
}

static status tell_with(const struct look *look, const struct backup *backup,
                        struct lost_rows_report *report, struct repair_tables_outcome *outcome)
{
    for (const struct known_table *table = look->tables; table != NULL; table = table->next)
        TRY(tell_table(look, table, backup, report, outcome));
    TRY(tell_log(look, report));
    for (const struct known_damage *at = look->first; at != NULL; at = at->next)
        if (table_of(look, &at->record) == NULL && !is_of_log(look, &at->record))
            TRY(tell_damage(look, &at->record, tell_left, &outcome->left));
    return status_ok();
}

static status tell(const struct repair_tables_options *options, const struct look *look,
                   struct repair_tables_outcome *outcome)
{
    struct backup backup;
    status s = backup_open(&options->backup, look->server, &backup);
    if (status_is_ok(s))
        s = tell_with(look, &backup, options->report, outcome);
    backup_close(&backup);
    return s;
}

/* --- repair --- */

/* NULL: it is deleted, and kept. */
static status find_table(struct cluster *cluster, const char *name, struct table **out)
{
    *out = NULL;
    status s = cluster_table(cluster, bytes_of(name), out);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_ok();
}

struct repairing {
    const struct repair_tables_options *options;
    struct cluster *cluster;
    struct arena *arena;
    struct backup backup;
    struct repair_tables_outcome *outcome;
};

/* Old data, which cannot be read before it is in service, gets its indexes afterwards (repair.c).
 */
static status give_up(const struct repairing *repairing, struct table *table,
                      struct table_repair_options *how)
{
    struct ds_heal heal;
    if (!ds_is_database_table(table_name(table)) || how->accepts_old_data)
        return table_repair(table, how);
    TRY(ds_heal_open(NULL, table, repairing->arena, &heal));
    heal.is_filled = how->source != NULL;
    how->heal = ds_heal_run;
    how->heal_context = &heal;
    return table_repair(table, how);
}

static status repair_one_table(const struct repairing *repairing, struct table *table)
{
    struct whole_repair *repair = repairing->backup.repair;
    const struct foreign_table *source = NULL;
    bool is_left = false;
    uint64_t lost = 0;
    TRY(table_list_damage(table, count, &lost));
    if (repair != NULL)
        TRY(leave_if_refused(whole_repair_begin_table(repair, table, true, &source),
                             table_name(table), &is_left));
    if (is_left || (repair != NULL && source == NULL))
        return status_ok();
    struct telling telling = {repairing->options->report, repair};
    struct table_repair_options how = {.accepts_old_data = repairing->options->accepts_old_data,
                                       .source = source,
                                       .lost = tell_lost,
                                       .context = &telling};
    const struct refill_target target = {table_id(table), table_keyspace_id(table),
                                         table_schema(table)};
    bool names = source != NULL && refill_names(source, &target);
    bool has_rows = source == NULL || lost > 0; /* else it has names alone */
    TRY(has_rows ? give_up(repairing, table, &how) : table_repair(table, &how));
    return names ? tell_named("named", table_name(table), &repairing->backup, repairing->outcome)
                 : status_ok();
}

static status repair_known(const struct repairing *repairing, const struct known_table *known)
{
    struct table *table;
    TRY(find_table(repairing->cluster, known->name, &table));
    if (table == NULL)
        return status_ok();
    status s = repair_one_table(repairing, table);
    table_release(table);
    return s;
}

static status repair_all(struct repairing *repairing, const struct look *look)
{
    TRY(cluster_look_for_damage(repairing->cluster));
    TRY(backup_open(&repairing->options->backup, look->server, &repairing->backup));
    for (const struct known_table *table = look->tables; table != NULL; table = table->next)
        TRY(repair_known(repairing, table));
    return status_ok();
}

static status heal(const struct repair_tables_options *options, const struct look *look,
                   struct repair_tables_outcome *outcome)
{
    struct offline_cluster offline;
    TRY(offline_cluster_open(options->directory, "repair", clock_system(), options->log, false,
                             &offline));
    struct repairing repairing = {
        .options = options, .cluster = offline.cluster, .arena = look->arena, .outcome = outcome};
    status s = repair_all(&repairing, look);
    backup_close(&repairing.backup);
    if (status_is_ok(s))
        s = cluster_list_damage(offline.cluster, tell_left, &outcome->left);
    offline_cluster_close(&offline);
    return s;
}

/* Something is damaged, or may be named. */
static bool is_needed(const struct repair_tables_options *options, const struct look *look)
{
    bool may_lack_names = false;
    for (const struct known_table *table = look->tables; table != NULL; table = table->next)
        may_lack_names |= refill_may_lack_names(table->schema);
    return look->first != NULL || (may_lack_names && options->backup.place != NULL);
}

static status look_and_repair(const struct repair_tables_options *options, struct look *look,
                              struct repair_tables_outcome *outcome)
{
    status s = open_and_look(options, look);
    if (look->store != NULL)
        store_close(look->store);
    TRY(s);
    if (!is_needed(options, look))
        return status_ok();
    if (!options->in_place)
        return tell(options, look, outcome);
    TRY(tell_log(look, options->report));
    return heal(options, look, outcome);
}

status repair_tables(const struct repair_tables_options *options, struct repair_tables_outcome *out)
{
    struct look look = {.arena = arena_create(MEMORY)};
    look.last = &look.first;
    *out = (struct repair_tables_outcome){.left = 0};
    if (look.arena == NULL)
        return status_out_of_memory();
    options->report->is_trial = !options->in_place;
    status s = look_and_repair(options, &look, out);
    forget_tables(&look);
    arena_destroy(look.arena);
    return s;
}

/* --- for commands that only tell --- */

struct damage_look {
    struct look look;
};

status damage_look_create(struct damage_look **out)
{
    struct damage_look *damage = *out = calloc(1, sizeof *damage);
    if (damage == NULL)
        return status_out_of_memory();
    damage->look.last = &damage->look.first;
    damage->look.arena = arena_create(MEMORY);
    return damage->look.arena == NULL ? status_out_of_memory() : status_ok();
}

void damage_look_destroy(struct damage_look *damage)
{
    if (damage == NULL)
        return;
    forget_tables(&damage->look);
    arena_destroy(damage->look.arena);
    free(damage);
}

void damage_look_watch(struct damage_look *damage, struct store_options *options)
{
    options->on_damage = see;
    options->damage_context = &damage->look;
}

status damage_look_read_catalog(struct damage_look *damage, struct store *store)
{
    damage->look.store = store;
    return read_catalog(&damage->look);
}

status damage_look_run(struct damage_look *damage,
                       status (*tell)(void *context, const struct lost_rows *lost), void *context)
{
    const struct look *look = &damage->look;
    TRY(look_at_tables(&damage->look));
    for (const struct known_damage *at = look->first; at != NULL; at = at->next)
        TRY(tell_damage(look, &at->record, tell, context));
    return status_ok();
}

const struct damage_record *damage_look_behind(const struct damage_look *damage,
                                               uint64_t keyspace_id, bytes key)
{
    const struct damage_record *first = NULL;
    for (const struct known_damage *at = damage->look.first; at != NULL; at = at->next) {
        const struct damage_record *record = &at->record;
        bool is_behind = record->to.size == 0 || bytes_compare(record->to, key) > 0;
        if (record->keyspace_id == keyspace_id && is_behind &&
            (first == NULL || bytes_compare(record->from, first->from) < 0))
            first = record;
    }
    return first;
}
