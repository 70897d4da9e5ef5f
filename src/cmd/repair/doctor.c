/* See doctor.h.
 *
 * What is checked
 *  1. The directory opens, read-only: nothing in it is changed. A running server's is refused.
 *     The write-ahead logs have all that was synced; what a power cut may have torn off their end
 *     is told, and has an exit status of its own. Losses of the logs are damage, and the rest is
 *     looked at all the same.
 *  2. The catalog parses; each table's tablets cover all keys, the end of each being the start of
 *     the next; each tablet's keyspace is there. No other keyspace has rows, unless a crash has
 *     left it: doctor_keyspaces.h.
 *  3. What is stored of rows: doctor_rows.c.
 *  4. The indexes of Datastore's databases say what the entities say:
 *     datastore/index/index_check.h.
 *  5. The records of idempotency tokens have their form.
 *  6. The control plane's records parse, and what each belongs to is there. (What a deleted table
 *     had belongs to it; the table itself is checked like one that stands.)
 *  7. Backups, if they are in the directory, are whole: see doctor_backups.c.
 *  8. No version, and no moment of Datastore, is above the version ceiling. Times ahead of the
 *     clock are told, though they are no damage: doctor_clock.h. The past of index rows, as former
 *     releases wrote it, is told, too: it is not read.
 *  9. All table files are looked at first, block by block, as a repair and the scrub do: a scan
 *     passes over blocks of which all was deleted since, and a compaction would not. Files out of
 *     service are told by their rows. The others are read.
 *
 * Damage is reported and counted, and the reading goes on, so that one run shows all of it. */
#include "cmd/repair/doctor.h"

#include "cluster/catalog.h"
#include "cluster/cluster.h"
#include "cluster/heat/heat_store.h"
#include "cluster/shard_directories.h"
#include "cmd/command.h"
#include "cmd/repair/doctor_backups.h"
#include "cmd/repair/doctor_keyspaces.h"
#include "cmd/repair/doctor_private.h"
#include "cmd/repair/identity_check.h"
#include "cmd/repair/repair_catalog.h"
#include "control/control.h"
#include "datastore/database.h"
#include "datastore/index/index_check.h"
#include "row/fold.h"
#include "store/files.h"
#include "tablet/tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    CATALOG_MEMORY = 1 << 30,
    MOST_REPORTS = 100, /* of damage, in words; the rest is counted */
    CACHE_BYTES = 64 << 20,
    OPEN_FILES = 256,
    EXIT_TORN = 3, /* nothing is damaged, but the log's end may be a torn write */
};

/* --- reporting --- */

void doctor_report(struct doctor *doctor, const struct found_table *table, const char *what)
{
    doctor->damages++;
    if (doctor->damages <= MOST_REPORTS)
        fprintf(stderr, "damage: table %s: %s\n", table->name, what);
}

static const struct found_tablet *tablet_of(const struct found_table *table, bytes row_key)
{
    const struct found_tablet *tablet = table->first;
    while (tablet->next != NULL && bytes_compare(tablet->next->record.start, row_key) <= 0)
        tablet = tablet->next;
    return tablet;
}

void doctor_report_key(struct doctor *doctor, const struct found_table *table, bytes row_key,
                       const char *what)
{
    doctor->damages++;
    if (doctor->damages > MOST_REPORTS)
        return;
    fprintf(stderr, "damage: table %s, tablet %" PRIu64 ", key ", table->name,
            tablet_of(table, row_key)->record.id);
    command_print_key(stderr, row_key);
    fprintf(stderr, ": %s\n", what);
}

/* --- table files --- */

static status report_lost(void *context, const struct lost_rows *lost)
{
    struct doctor *doctor = context;
    doctor->damages++;
    if (doctor->damages <= MOST_REPORTS)
        fprintf(stderr, "damage: %s\n", lost->words);
    return status_ok();
}

/* --- the catalog --- */

static status find_table(void *context, const struct table_record *record)
{
    struct doctor *doctor = context;
    struct found_table *table = arena_zalloc(doctor->arena, sizeof *table);
    if (table == NULL)
        return status_out_of_memory();
    table->id = record->id;
    table->is_deleted = record->deleted_us > 0;
    table->name = arena_string(doctor->arena, bytes_of(record->name));
    if (table->name == NULL)
        return status_out_of_memory();
    table->is_database = ds_is_database_table(table->name);
    if (record->view.source_id != 0 &&
        store_keyspace_find(doctor->store, record->view.records_id) == NULL)
        doctor_report(doctor, table, "the keyspace of its records is missing");
    TRY(schema_create(record->schema->granularity, record->schema->families,
                      record->schema->family_count, record->schema->next_family_id,
                      &table->schema));
    *doctor->last_table = table;
    doctor->last_table = &table->next;
    return status_ok();
}

static struct found_table *table_with_id(struct doctor *doctor, uint64_t id)
{
    struct found_table *table = doctor->tables;
    while (table != NULL && table->id != id)
        table = table->next;
    return table;
}

static status find_tablet(void *context, const struct tablet_record *record)
{
    struct doctor *doctor = context;
    struct found_table *table = table_with_id(doctor, record->table_id);
    if (table == NULL) {
        doctor->damages++;
        fprintf(stderr, "damage: tablet %" PRIu64 " belongs to no table\n", record->id);
        return status_ok();
    }
    struct found_tablet *tablet = arena_zalloc(doctor->arena, sizeof *tablet);
    if (tablet == NULL)
        return status_out_of_memory();
    tablet->record = *record;
    tablet->record.start = arena_copy(doctor->arena, record->start);
    tablet->record.end = arena_copy(doctor->arena, record->end);
    if (tablet->record.start.data == NULL || tablet->record.end.data == NULL)
        return status_out_of_memory();
    if (table->first == NULL)
        table->first = tablet;
    else
        table->last->next = tablet;
    table->last = tablet;
    table->tablet_count++;
    return status_ok();
}

static void check_borders(struct doctor *doctor, const struct found_table *table)
{
    if (table->first == NULL) {
        doctor_report(doctor, table, "it has no tablets");
        return;
    }
    if (table->first->record.start.size > 0)
        doctor_report(doctor, table, "no tablet has its first rows");
    if (table->last->record.end.size > 0)
        doctor_report(doctor, table, "no tablet has its last rows");
    for (const struct found_tablet *at = table->first; at->next != NULL; at = at->next) {
        if (bytes_equal(at->record.end, at->next->record.start))
            continue;
        bool is_hole =
            at->record.end.size > 0 && bytes_compare(at->record.end, at->next->record.start) < 0;
        doctor_report_key(doctor, table, at->record.end,
                          is_hole ? "a hole up to the next tablet" : "it overlaps the next tablet");
    }
}

/* --- Datastore --- */

struct damaged_index {
    struct doctor *doctor;
    const struct found_table *table;
};

static status report_index(void *context, const struct ds_index_damage *damage)
{
    const struct damaged_index *damaged = context;
    doctor_report_key(damaged->doctor, damaged->table, damage->row_key, damage->what);
    damaged->doctor->index_damages += damage->kind != DS_DAMAGE_OTHER;
    return status_ok();
}

static status check_indexes(struct doctor *doctor, const struct found_table *table,
                            struct keyspace *keyspace)
{
    struct damaged_index damaged = {doctor, table};
    struct ds_index_check check = {.store = doctor->store,
                                   .keyspace = keyspace,
                                   .schema = table->schema,
                                   .now_us = clock_wall_us(clock_system()),
                                   .context = &damaged,
                                   .report = report_index};
    TRY(ds_index_check_run(&check));
    printf("%s: %" PRIu64 " entities, %" PRIu64 " index rows\n", table->name, check.entities,
           check.index_rows);
    return status_ok();
}

/* --- tables --- */

static status check_keyspace(struct doctor *doctor, struct found_table *table, uint64_t id)
{
    struct keyspace *keyspace = store_keyspace_find(doctor->store, id);
    if (keyspace == NULL) {
        doctor_report(doctor, table, "the keyspace of a tablet is missing");
        return status_ok();
    }
    TRY(doctor_read_rows(doctor, table, keyspace));
    if (!table->is_database)
        return status_ok();
    if (damage_look_behind(doctor->look, id, bytes_make(NULL, 0)) == NULL)
        return check_indexes(doctor, table, keyspace);
    printf("%s: indexes are not looked at while rows are out of service\n", table->name);
    return status_ok();
}

/* No damage: what these cells hold is not read. */
static void print_later_types(const struct found_table *table)
{
    if (table->later_types > 0)
        printf("harmless: table %s: %" PRIu64 " cells of what index rows were hold what they "
               "became; 70 minutes after they were written they are gone\n",
               table->name, table->later_types);
}

/* A table of the server's own is named if it is damaged, and else not: no client made it, and it is
 * there or not by how long the server has run. */
static void print_summary(const struct found_table *table)
{
    if (bytes_start_with(bytes_of(table->name), bytes_of(CLUSTER_OWN_TABLES)))
        return;
    printf("%s%s: %zu tablets, %" PRIu64 " rows, %" PRIu64 " cells, %" PRIu64
           " overflow cells, %" PRIu64 " bytes\n",
           table->name, table->is_deleted ? " (deleted)" : "", table->tablet_count, table->rows,
           table->cells, table->overflow_cells, table->bytes);
}

static void check_times(struct doctor *doctor, const struct found_table *table)
{
    doctor_clock_print(&doctor->clock, &table->ahead, table->name, stdout);
    if (table->ahead.entries_above > 0)
        doctor_report(doctor, table,
                      "versions above the ceiling: later writes would count for less");
    if (table->ahead.moments_above > 0)
        doctor_report(
            doctor, table,
            "moments of Datastore above the ceiling: later commits may be hidden by earlier "
            "ones, until the entities are written again");
}

/* A row that cannot be read, but is in no damaged file, is damage, too; the rest of that keyspace
 * stays unread. */
static void check_table(struct doctor *doctor, struct found_table *table)
{
    check_borders(doctor, table);
    uint64_t checked = 0;
    for (const struct found_tablet *at = table->first; at != NULL; at = at->next) {
        if (at->record.keyspace_id == checked)
            continue;
        checked = at->record.keyspace_id;
        status s = check_keyspace(doctor, table, checked);
        if (!status_is_ok(s))
            doctor_report(doctor, table, status_message(s));
        status_free(s);
    }
    check_times(doctor, table);
    print_later_types(table);
    print_summary(table);
}

/* --- the command --- */

static status check_tokens(struct doctor *doctor, struct keyspace *catalog)
{
    uint64_t records;
    uint64_t damaged;
    TRY(tokens_count_records(catalog, &records, &damaged));
    doctor->damages += damaged;
    if (damaged > 0)
        fprintf(stderr, "damage: %" PRIu64 " records of idempotency tokens\n", damaged);
    if (records > 0)
        printf("%" PRIu64 " idempotency tokens\n", records);
    return status_ok();
}

static bool has_table(void *context, const char *name)
{
    const struct doctor *doctor = context;
    const struct found_table *table = doctor->tables;
    while (table != NULL && (table->is_deleted || strcmp(table->name, name) != 0))
        table = table->next;
    return table != NULL;
}

static bool has_deleted_table(void *context, uint64_t id)
{
    const struct found_table *table = table_with_id(context, id);
    return table != NULL && table->is_deleted;
}

static void report_resource(void *context, const char *name, const char *what)
{
    struct doctor *doctor = context;
    doctor->damages++;
    if (doctor->damages <= MOST_REPORTS)
        fprintf(stderr, "damage: resource %s: %s\n", name, what);
}

static status check_resources(struct doctor *doctor, struct keyspace *catalog)
{
    const struct control_check check = {doctor, has_table, has_deleted_table, report_resource};
    size_t count;
    TRY(control_verify(catalog, &check, &count));
    if (count > 0)
        printf("%zu resources\n", count);
    return status_ok();
}

static void report_records(void *context, const char *words)
{
    struct doctor *doctor = context;
    doctor->damages++;
    fprintf(stderr, "damage: %s\n", words);
}

/* Reads the catalog. A damaged one is told, with its ranges; without it there is nothing to hold
 * the rest against. */
static status read_catalog(struct doctor *doctor, struct keyspace *catalog,
                           const struct catalog_visitor *visitor)
{
    status s = catalog_read(catalog, visitor);
    if (!status_is_ok(s) && s.code != STATUS_DATA_LOSS)
        return s;
    status looked = repair_catalog_look(doctor->store, report_records, doctor);
    if (!status_is_ok(s)) {
        status_ignore(looked);
        return s;
    }
    return looked;
}

static status examine(struct doctor *doctor)
{
    struct keyspace *catalog = store_keyspace_find(doctor->store, CATALOG_KEYSPACE_ID);
    if (catalog == NULL)
        return status_make(STATUS_DATA_LOSS, "there is no catalog");
    struct catalog_visitor visitor = {
        .context = doctor, .table = find_table, .tablet = find_tablet};
    TRY(read_catalog(doctor, catalog, &visitor));
    TRY(damage_look_read_catalog(doctor->look, doctor->store));
    TRY(damage_look_run(doctor->look, report_lost, doctor));
    TRY(doctor_clock_init(catalog, clock_wall_us(clock_system()), &doctor->clock));
    doctor_clock_print_ceiling(&doctor->clock, stdout);
    for (struct found_table *table = doctor->tables; table != NULL; table = table->next)
        check_table(doctor, table);
    TRY(doctor_check_keyspaces(doctor->store, catalog, &doctor->damages));
    TRY(check_tokens(doctor, catalog));
    return check_resources(doctor, catalog);
}

/* Whether the log's end is torn; what it has lost is damage. */
static bool check_log_end(struct doctor *doctor)
{
    struct store_log_end end = store_log_end(doctor->store);
    if (end.verdict == STORE_LOG_LOST) {
        doctor->damages++;
        fprintf(stderr, "damage: %s\n", end.words);
    }
    if (end.verdict == STORE_LOG_TORN)
        printf("%s\n", end.words);
    return end.verdict == STORE_LOG_TORN;
}

static status check_identity(struct doctor *doctor, const char *directory)
{
    struct buffer words = {0};
    status s = identity_check(doctor->store, directory, &words);
    if (words.size > 0) {
        doctor->damages++;
        fprintf(stderr, "damage: the file IDENTITY %.*s\n", (int)words.size,
                (const char *)words.data);
    }
    buffer_free(&words);
    return s;
}

static status open_and_examine(struct doctor *doctor, const char *directory, const struct log *log)
{
    struct store_options options = {.directory = directory,
                                    .fold = &row_fold,
                                    .log = log,
                                    .cache_bytes = CACHE_BYTES,
                                    .open_files = OPEN_FILES,
                                    .background_threads = 1,
                                    .read_only = true,
                                    .salvage = true};
    doctor->arena = arena_create(CATALOG_MEMORY);
    if (doctor->arena == NULL)
        return status_out_of_memory();
    TRY(shard_directories_check(directory, 1));
    TRY(damage_look_create(&doctor->look));
    damage_look_watch(doctor->look, &options);
    TRY(store_open(&options, &doctor->store));
    TRY(check_identity(doctor, directory));
    doctor->log_is_torn = check_log_end(doctor);
    return examine(doctor);
}

static void clean_up(struct doctor *doctor)
{
    for (struct found_table *table = doctor->tables; table != NULL; table = table->next)
        schema_destroy(table->schema);
    if (doctor->store != NULL)
        store_close(doctor->store);
    damage_look_destroy(doctor->look);
    arena_destroy(doctor->arena);
}

static int examine_directory(const char *directory)
{
    struct doctor doctor = {0};
    struct log log = {.fd = STDERR_FILENO, .level = LOG_WARN, .clock = clock_system()};
    doctor.last_table = &doctor.tables;
    status s = open_and_examine(&doctor, directory, &log);
    bool is_read = status_is_ok(s);
    if (is_read)
        doctor.damages += doctor_count_damaged_backups(directory);
    if (!is_read)
        fprintf(stderr, "trestle doctor: %s: %s\n", directory, status_message(s));
    else if (doctor.damages > 0)
        fprintf(stderr, "%" PRIu64 " damages found\n", doctor.damages);
    else
        printf("%s: no damage found%s\n", directory,
               doctor.log_is_torn ? ", but the log's end may be a torn write" : "");
    if (doctor.index_damages > 0)
        fprintf(stderr, "%" PRIu64 " of them are of index rows: trestle repair repairs those\n",
                doctor.index_damages);
    status_free(s);
    clean_up(&doctor);
    if (!is_read || doctor.damages > 0)
        return EXIT_FAILURE;
    return doctor.log_is_torn ? EXIT_TORN : EXIT_SUCCESS;
}

static void write_help(struct buffer *out)
{
    buffer_append_format(
        out,
        "usage: trestle doctor DIR\n"
        "       trestle doctor --backup-dir DIR\n\n"
        "Reads the data directory of a stopped server from end to end, with the backups in it,\n"
        "or the backups of a directory that the server may be using, changes nothing, and\n"
        "exits with 0 if all is whole, with 1 if it is damaged or cannot be read, and with 3\n"
        "if it is whole but the write-ahead log may end in a write that a power cut has torn.\n"
        "A directory without any backup is not whole; whole backups, of `trestle backup`, are\n"
        "read by `trestle backup verify`.\n");
}

static int examine_backups(const char *const *arguments)
{
    if (arguments[0] == NULL || arguments[1] != NULL)
        return command_usage_error("doctor", "--backup-dir takes one argument, the directory");
    return doctor_examine_backups(arguments[0]);
}

int doctor_command(const char *const *arguments)
{
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    if (arguments[0] != NULL && strcmp(arguments[0], "--backup-dir") == 0)
        return examine_backups(arguments + 1);
    if (arguments[0] == NULL || arguments[1] != NULL || arguments[0][0] == '-')
        return command_usage_error("doctor", "takes one argument, the data directory");
    return examine_directory(arguments[0]);
}
