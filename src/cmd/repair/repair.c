/* See repair.h.
 *
 * What is repaired
 *  0. A list of tables that is lost: repair_old_data.h. Then a catalog that is damaged:
 *     repair_catalog.h. The rest is looked at after that.
 *  1. Table files that are damaged or missing: repair_tables.h. Their rows are lost.
 *  2. Large cells that their rows do not name: stray_cells.h. Nobody sees them.
 *  3. The indexes of Datastore's databases, which follow from their entities:
 *     datastore/index/index_repair.h.
 * Other faults that the doctor finds are not looked at.
 *
 * The directory is first read as the doctor reads it, and only if there is something to repair, and
 * --in-place allows it, opened for writing: a sound one is not touched. All that has been repaired
 * is read once more, and what is still wrong is left, by name. A repair that ends in the middle has
 * done a part, and may be run again. */
#include "cmd/repair/repair.h"

#include "base/limits.h"
#include "cluster/catalog.h"
#include "cluster/shard_directories.h"
#include "cmd/command.h"
#include "cmd/plural.h"
#include "cmd/repair/identity_check.h"
#include "cmd/repair/repair_catalog.h"
#include "cmd/repair/repair_keyspaces.h"
#include "cmd/repair/repair_old_data.h"
#include "cmd/repair/repair_server.h"
#include "cmd/repair/repair_strays.h"
#include "cmd/repair/repair_tables.h"
#include "datastore/index/index_repair.h"
#include "server/offline_cluster.h"
#include "store/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    CATALOG_MEMORY = 1 << 30,
    MOST_NAMED = 5,  /* of each kind and database; the rest is counted */
    MOST_LEFT = 100, /* of what is left in all; the rest is counted */
};

struct database {
    struct database *next;
    uint64_t id;
    const char *name;
    struct schema *schema;
    uint64_t keyspace_id;
    uint64_t seen[DS_DAMAGE_KINDS]; /* at the last look */
};

/* The steps of a repair. Damage that is found is named as what would be repaired or as what is
 * left, only counted, or named as repaired. */
enum step { TELL, COUNT, REPAIR, TELL_LEFT };

struct repair {
    const char *directory;
    bool in_place;
    bool accepts_old_data;
    bool would_accept;     /* and that would be all of the list of tables */
    bool would_give_up;    /* of the catalog what is damaged */
    const char *lost_path; /* where lost rows are named */
    struct repair_backup backup;
    uint64_t lost;         /* ranges of rows, or what would be */
    uint64_t lost_records; /* the same of the catalog's */
    uint64_t named;        /* tables that were claimed, and get names and rules from a backup */
    uint64_t strays;       /* rows with large cells that they do not name */
    struct log log;
    struct store *store;
    struct commit_queue *commits; /* NULL: the store is open for reading alone */
    struct arena *arena;          /* what was found in the catalog */
    struct database *databases;
    struct database **last_database;
    enum step step;
    struct database *at; /* the one that is looked at */
    uint64_t to_repair;
    uint64_t repaired;
    uint64_t left;
};

/* --- telling --- */

struct kind_words {
    const char *would;
    const char *done;
    const char *rows; /* in the totals */
};

static const struct kind_words kinds[DS_DAMAGE_KINDS] = {
    [DS_DAMAGE_TOO_MANY] = {"would remove", "removed", "index rows that no entity has"},
    [DS_DAMAGE_MISSING] = {"would write", "wrote", "index rows that were missing"},
    [DS_DAMAGE_TYPES] = {"would correct", "corrected", "index rows with wrong types"},
};

static void name_row(FILE *to, const struct repair *repair, const char *word,
                     const struct ds_index_damage *damage)
{
    fprintf(to, "%s: table %s, key ", word, repair->at->name);
    command_print_key(to, damage->row_key);
    fprintf(to, ": %s\n", damage->what);
}

static void name_left(struct repair *repair, const struct ds_index_damage *damage)
{
    repair->left++;
    if (repair->left <= MOST_LEFT)
        name_row(stderr, repair, "left", damage);
}

static void name_repaired(const struct repair *repair, const struct ds_index_damage *damage)
{
    const struct kind_words *words = &kinds[damage->kind];
    if (repair->at->seen[damage->kind] <= MOST_NAMED)
        name_row(stdout, repair, repair->step == REPAIR ? words->done : words->would, damage);
}

/* A row that is repaired is named when it is found: it is written soon after. */
static status note(void *context, const struct ds_index_damage *damage)
{
    struct repair *repair = context;
    bool is_repairable = damage->kind != DS_DAMAGE_OTHER;
    repair->at->seen[damage->kind]++;
    if (repair->step == TELL_LEFT || (repair->step == TELL && !is_repairable))
        name_left(repair, damage);
    else if (is_repairable && repair->step != COUNT)
        name_repaired(repair, damage);
    return status_ok();
}

static void print_totals(const struct repair *repair, const uint64_t counts[DS_DAMAGE_KINDS])
{
    for (size_t i = DS_DAMAGE_OTHER + 1; i < DS_DAMAGE_KINDS; i++)
        if (counts[i] > 0)
            printf("%s: %s %" PRIu64 " %s\n", repair->at->name,
                   repair->step == REPAIR ? kinds[i].done : kinds[i].would, counts[i],
                   kinds[i].rows);
}

/* --- the catalog --- */

static status find_table(void *context, const struct table_record *record)
{
    struct repair *repair = context;
    if (!ds_is_database_table(record->name))
        return status_ok();
    struct database *database = arena_zalloc(repair->arena, sizeof *database);
    if (database == NULL)
        return status_out_of_memory();
    database->id = record->id;
    database->name = arena_string(repair->arena, bytes_of(record->name));
    if (database->name == NULL)
        return status_out_of_memory();
    TRY(schema_create(record->schema->granularity, record->schema->families,
                      record->schema->family_count, record->schema->next_family_id,
                      &database->schema));
    *repair->last_database = database;
    repair->last_database = &database->next;
    return status_ok();
}

/* All tablets of a table are in one keyspace. */
static status find_tablet(void *context, const struct tablet_record *record)
{
    const struct repair *repair = context;
    for (struct database *each = repair->databases; each != NULL; each = each->next)
        if (each->id == record->table_id)
            each->keyspace_id = record->keyspace_id;
    return status_ok();
}

static void forget_databases(struct repair *repair)
{
    for (struct database *each = repair->databases; each != NULL; each = each->next)
        schema_destroy(each->schema);
    repair->databases = NULL;
    repair->last_database = &repair->databases;
    if (repair->arena != NULL)
        arena_reset(repair->arena);
}

/* --- a database --- */

static uint64_t repairable(const struct database *database)
{
    uint64_t count = 0;
    for (size_t i = DS_DAMAGE_OTHER + 1; i < DS_DAMAGE_KINDS; i++)
        count += database->seen[i];
    return count;
}

static status check_of(struct repair *repair, struct database *database, struct ds_index_check *out)
{
    struct keyspace *keyspace = store_keyspace_find(repair->store, database->keyspace_id);
    if (keyspace == NULL)
        return status_make(STATUS_DATA_LOSS, "the keyspace of a tablet is missing");
    repair->at = database;
    memset(database->seen, 0, sizeof database->seen);
    *out = (struct ds_index_check){.store = repair->store,
                                   .keyspace = keyspace,
                                   .schema = database->schema,
                                   .now_us = clock_wall_us(clock_system()),
                                   .context = repair,
                                   .report = note};
    return status_ok();
}

static status look_at(struct repair *repair, struct database *database)
{
    struct ds_index_check check;
    TRY(check_of(repair, database, &check));
    status s = ds_index_check_run(&check);
    if (repair->step == TELL)
        print_totals(repair, database->seen);
    repair->to_repair += repair->step == TELL_LEFT ? 0 : repairable(database);
    return s;
}

/* A database that cannot be read is left, and the others are looked at all the same. */
static void look(struct repair *repair, enum step step)
{
    repair->step = step;
    for (struct database *each = repair->databases; each != NULL; each = each->next) {
        status s = look_at(repair, each);
        if (!status_is_ok(s) && step != COUNT) {
            repair->left++;
            fprintf(stderr, "left: table %s: %s\n", each->name, status_message(s));
        }
        status_free(s);
    }
}

static status repair_database(struct repair *repair, struct database *database)
{
    struct ds_index_repair run = {.commits = repair->commits};
    TRY(check_of(repair, database, &run.check));
    status s = ds_index_repair_run(&run);
    print_totals(repair, run.repaired);
    for (size_t i = 0; i < DS_DAMAGE_KINDS; i++)
        repair->repaired += run.repaired[i];
    return s;
}

/* Repairs the databases. One that cannot be read to its end, or written to, is repaired up to
 * there; the look afterwards finds the rest. */
static void heal(struct repair *repair)
{
    repair->step = REPAIR;
    for (struct database *each = repair->databases; each != NULL; each = each->next) {
        status s = repair_database(repair, each);
        if (!status_is_ok(s))
            fprintf(stderr, "trestle repair: table %s: %s\n", each->name, status_message(s));
        status_free(s);
    }
}

/* --- the directory --- */

static status start_commits(struct repair *repair, struct keyspace *catalog)
{
    const struct commit_options options = {.store = repair->store,
                                           .catalog = catalog,
                                           .clock = clock_system(),
                                           .durability = STORE_SYNCED,
                                           .queue_limit_bytes = LIMIT_COMMIT_QUEUE_BYTES,
                                           .stall_limit_us =
                                               (int64_t)LIMIT_COMMIT_STALL_SECONDS * 1000000};
    return commit_queue_create(&options, &repair->commits);
}

static status open_directory(struct repair *repair, bool read_only)
{
    struct store_options options = offline_store_options(repair->directory, &repair->log);
    options.read_only = read_only;
    TRY(store_open(&options, &repair->store));
    struct keyspace *catalog = store_keyspace_find(repair->store, CATALOG_KEYSPACE_ID);
    if (catalog == NULL)
        return status_make(STATUS_DATA_LOSS, "there is no catalog");
    const struct catalog_visitor visitor = {
        .context = repair, .table = find_table, .tablet = find_tablet};
    TRY(catalog_read(catalog, &visitor));
    return read_only ? status_ok() : start_commits(repair, catalog);
}

static void close_directory(struct repair *repair)
{
    if (repair->commits != NULL)
        commit_queue_destroy(repair->commits);
    if (repair->store != NULL)
        store_close(repair->store);
    repair->commits = NULL;
    repair->store = NULL;
    forget_databases(repair);
}

static status open_and_repair(struct repair *repair)
{
    close_directory(repair);
    TRY(open_directory(repair, false));
    heal(repair);
    return status_ok();
}

/* Before all else: what cannot be read cannot be held against its index. */
static status repair_files(struct repair *repair)
{
    struct lost_rows_report report = {.path = repair->lost_path};
    const struct repair_tables_options options = {.directory = repair->directory,
                                                  .log = &repair->log,
                                                  .in_place = repair->in_place,
                                                  .accepts_old_data = repair->accepts_old_data,
                                                  .backup = repair->backup,
                                                  .report = &report};
    struct repair_tables_outcome outcome;
    status s = repair_tables(&options, &outcome);
    lost_rows_close(&report);
    repair->lost = report.count;
    repair->named = outcome.named;
    repair->left += outcome.left;
    return s;
}

static status repair_list(struct repair *repair)
{
    const struct repair_old_data_options options = {.directory = repair->directory,
                                                    .log = &repair->log,
                                                    .in_place = repair->in_place,
                                                    .is_accepted = repair->accepts_old_data};
    return repair_old_data(&options, &repair->would_accept);
}

/* The identity is left to the owner, who alone knows whether it is to be that server still. */
static status look_at_identity(void *context, struct store *store)
{
    struct repair *repair = context;
    struct buffer words = {0};
    status s = identity_check(store, repair->directory, &words);
    if (words.size > 0) {
        repair->left++;
        fprintf(stderr, "left: the file IDENTITY %.*s\n", (int)words.size,
                (const char *)words.data);
    }
    buffer_free(&words);
    return s;
}

static status repair_records(struct repair *repair)
{
    struct lost_rows_report report = {.path = repair->lost_path};
    const struct repair_catalog_options options = {.directory = repair->directory,
                                                   .log = &repair->log,
                                                   .in_place = repair->in_place,
                                                   .report = &report,
                                                   .look = look_at_identity,
                                                   .context = repair};
    status s = repair_catalog(&options, &repair->would_give_up);
    lost_rows_close(&report);
    repair->lost_records = report.count;
    return s;
}

static status repair_directory(struct repair *repair)
{
    TRY(shard_directories_check(repair->directory, 1));
    TRY(repair_list(repair));
    if (!repair->would_accept)
        TRY(repair_records(repair));
    if (repair->would_accept || repair->would_give_up)
        return status_ok();
    TRY(repair_files(repair));
    TRY(repair_strays(repair->directory, &repair->log, repair->in_place, &repair->strays));
    repair->arena = arena_create(CATALOG_MEMORY);
    if (repair->arena == NULL)
        return status_out_of_memory();
    TRY(open_directory(repair, true));
    look(repair, repair->in_place ? COUNT : TELL);
    if (!repair->in_place)
        return status_ok();
    if (repair->to_repair > 0)
        TRY(open_and_repair(repair));
    look(repair, TELL_LEFT);
    return status_ok();
}

/* --- the command --- */

static bool has_work(const struct repair *repair)
{
    return repair->lost + repair->named + repair->strays + repair->to_repair > 0;
}

/* Sums up what comes first, also of a directory in which nothing is wrong. */
static void sum_up_catalog(const struct repair *repair)
{
    if (repair->lost_records > 0 && repair->in_place)
        printf("%s: %" PRIu64 " range%s of the catalog's records %s lost, named in %s\n",
               repair->directory, repair->lost_records, plural(repair->lost_records),
               plural_is(repair->lost_records), repair->lost_path);
    else if (repair->would_accept || repair->would_give_up)
        printf("%s: nothing was changed (--in-place does it), and nothing else looked at\n",
               repair->directory);
    else if (!has_work(repair) && repair->left == 0)
        printf("%s: nothing to repair\n", repair->directory);
}

static void sum_up_rows(const struct repair *repair)
{
    if (repair->lost > 0 && repair->in_place)
        printf("%s: %" PRIu64 " range%s of rows %s lost, named in %s\n", repair->directory,
               repair->lost, plural(repair->lost), plural_is(repair->lost), repair->lost_path);
    else if (repair->lost > 0)
        printf("%s: %" PRIu64 " range%s of rows to give up; nothing was changed (--in-place does "
               "it)\n",
               repair->directory, repair->lost, plural(repair->lost));
}

static void sum_up_names(const struct repair *repair)
{
    if (repair->named > 0 && !repair->in_place)
        printf("%s: %" PRIu64 " table%s to name; nothing was changed (--in-place does it)\n",
               repair->directory, repair->named, plural(repair->named));
}

static void sum_up_strays(const struct repair *repair)
{
    if (repair->strays > 0 && !repair->in_place)
        printf("%s: large cells of %" PRIu64 " row%s to remove; nothing was changed (--in-place "
               "does it)\n",
               repair->directory, repair->strays, plural(repair->strays));
}

static void sum_up_indexes(const struct repair *repair)
{
    if (repair->to_repair > 0 && repair->in_place)
        printf("%s: %" PRIu64 " index row%s repaired\n", repair->directory, repair->repaired,
               plural(repair->repaired));
    else if (repair->to_repair > 0)
        printf("%s: %" PRIu64 " index row%s to repair; nothing was changed (--in-place does it)\n",
               repair->directory, repair->to_repair, plural(repair->to_repair));
}

static int sum_up(const struct repair *repair)
{
    bool is_repaired = repair->in_place || !has_work(repair);
    sum_up_catalog(repair);
    if (repair->would_accept || repair->would_give_up)
        return EXIT_FAILURE;
    sum_up_rows(repair);
    sum_up_names(repair);
    sum_up_strays(repair);
    sum_up_indexes(repair);
    if (repair->left > 0)
        fprintf(stderr, "%" PRIu64 " thing%s %s left, named above\n", repair->left,
                plural(repair->left), plural_is(repair->left));
    return is_repaired && repair->left == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static char *path_of(const char *directory, const char *rest)
{
    char *path;
    int size = (int)strlen(directory);
    while (size > 1 && directory[size - 1] == '/')
        size--;
    return asprintf(&path, "%.*s%s", size, directory, rest) > 0 ? path : NULL;
}

static int run_named(struct repair *repair)
{
    repair->log = (struct log){.fd = STDERR_FILENO, .level = LOG_WARN, .clock = clock_system()};
    repair->last_database = &repair->databases;
    setvbuf(stdout, NULL, _IOLBF, 0); /* what is told was found, whatever happens next */
    status s = repair_directory(repair);
    int exit_status = status_is_ok(s) ? sum_up(repair) : command_fail("repair", s);
    close_directory(repair);
    arena_destroy(repair->arena);
    return exit_status;
}

/* The operator's directory for files of a backup is made, unless it is there, and what was made is
 * removed again. */
static int run_in(struct repair *repair, const char *parent)
{
    bool is_new = parent != NULL && access(parent, F_OK) != 0;
    status s = is_new ? files_make_directory(files_of_system(), parent) : status_ok();
    int exit_status = status_is_ok(s) ? run_named(repair) : command_fail("repair", s);
    if (is_new)
        (void)rmdir(parent);
    return exit_status;
}

/* Lost rows are named in a file in the directory, unless another place is given. */
static int run(struct repair repair)
{
    const char *parent = repair.backup.scratch;
    char *lost_path = path_of(repair.directory, "/lost.tsv");
    char *scratch = parent != NULL ? path_of(parent, "/trestle-repairing")
                                   : path_of(repair.directory, ".repairing");
    if (repair.lost_path == NULL)
        repair.lost_path = lost_path;
    repair.backup.scratch = scratch;
    bool has_memory = lost_path != NULL && scratch != NULL;
    int exit_status =
        has_memory ? run_in(&repair, parent) : command_fail("repair", status_out_of_memory());
    free(lost_path);
    free(scratch);
    return exit_status;
}

static void write_help(struct buffer *out)
{
    buffer_append_format(
        out,
        "usage: trestle repair DIR [--in-place] [--accept-old-data] [--lost FILE]\n"
        "       trestle repair DIR --from PLACE [--backup NAME] [--backup-key FILE]\n"
        "                          [--scratch DIR] [--in-place] [--lost FILE]\n"
        "       trestle repair DIR --claim ID=TABLE [--in-place]\n"
        "       trestle repair DIR --drop ID [--in-place]\n"
        "       trestle repair --endpoint ADDR:PORT [OPTION...]\n\n"
        "Looks for damaged and missing table files in a stopped server's data directory, and says\n"
        "which rows were in them, and which of the catalog's records. Makes every index of the\n"
        "Datastore databases there anew, and says which index rows are too many, missing or of\n"
        "wrong types. Nothing is changed without\n\n"
        "  --in-place         write what is to be repaired into the directory itself: copy it "
        "first.\n"
        "                     Rows that were in damaged files are deleted: they are lost\n"
        "  --accept-old-data  keep what other files have of these rows, though what is damaged "
        "may\n"
        "                     have deleted or overwritten it. If the list of tables and its copy\n"
        "                     are lost, take for true what all table files and logs have, which\n"
        "                     may show deleted data; what was there stays in DIR/replaced\n"
        "  --from PLACE       what is out of service becomes what it was in a whole backup: a\n"
        "                     directory, or s3://BUCKET/PREFIX; or in a data directory that was\n"
        "                     restored from one. What was written there since is lost, and what\n"
        "                     was deleted since is there again; all other rows stay as they are\n"
        "  --backup NAME      this backup; by default the newest of this server from which those\n"
        "                     rows can be read\n"
        "  --backup-key FILE  the key that what is in the place is encrypted with: the server's\n"
        "                     --backup-key\n"
        "  --scratch DIR      where the tables' files of the backup are put meanwhile: into a\n"
        "                     directory trestle-repairing in it, which is made and removed again,\n"
        "                     and nothing else of it; by default DIR.repairing, beside the data\n"
        "                     directory\n"
        "  --lost FILE        where to name what is lost; by default lost.tsv in the directory\n"
        "  --claim ID=TABLE   make a table of that name, projects/P/instances/I/tables/T, of the\n"
        "                     rows of a keyspace that has none: a salvage has kept it. Families\n"
        "                     are named by their numbers, f1, f2 and so on, since their names are\n"
        "                     lost\n"
        "  --drop ID          keep it no longer: the next start drops it\n\n"
        "May be run again at any time, also after one that was killed. Exits with 0 if all is\n"
        "right, or has been put right, with 1 if something is wrong, or left, which is named, and\n"
        "with 2 for wrong usage. What else may be damaged trestle doctor says.\n\n"
        "With --endpoint, the same of damaged files of a running server, which goes on "
        "serving:\n\n");
    repair_server_write_help(out);
}

static bool names_a_server(const char *const *arguments)
{
    for (; *arguments != NULL; arguments++)
        if (strncmp(*arguments, "--endpoint", strlen("--endpoint")) == 0)
            return true;
    return false;
}

/* --- options --- */

struct flag {
    const char *name;
    bool *is_set;
};

struct text {
    const char *name;
    const char **value;
};

static bool take_flag(const struct flag *flags, size_t count, const char *argument)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(flags[i].name, argument) == 0)
            return *flags[i].is_set = true;
    return false;
}

static bool take_text(const struct text *texts, size_t count, const char *const *arguments)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(texts[i].name, arguments[0]) == 0 && arguments[1] != NULL) {
            *texts[i].value = arguments[1];
            return true;
        }
    return false;
}

/* False if there is something that it does not take. */
static bool read_arguments(const char *const *arguments, struct repair *out)
{
    const struct flag flags[] = {{"--in-place", &out->in_place},
                                 {"--accept-old-data", &out->accepts_old_data}};
    const struct text texts[] = {{"--lost", &out->lost_path},
                                 {"--from", &out->backup.place},
                                 {"--backup", &out->backup.name},
                                 {"--backup-key", &out->backup.key},
                                 {"--scratch", &out->backup.scratch}};
    for (; *arguments != NULL; arguments++)
        if (take_text(texts, sizeof texts / sizeof *texts, arguments))
            arguments++;
        else if (out->directory == NULL && (*arguments)[0] != '-')
            out->directory = *arguments;
        else if (!take_flag(flags, sizeof flags / sizeof *flags, *arguments))
            return false;
    return true;
}

static const char *what_is_wrong(const struct repair *repair)
{
    const struct repair_backup *backup = &repair->backup;
    bool names_more = backup->name != NULL || backup->key != NULL || backup->scratch != NULL;
    if (repair->directory == NULL)
        return "takes one argument, the data directory";
    if (backup->place == NULL && names_more)
        return "--backup, --backup-key and --scratch go with --from";
    if (backup->place != NULL && repair->accepts_old_data)
        return "--from and --accept-old-data exclude each other";
    return NULL;
}

int repair_command(const char *const *arguments)
{
    struct repair repair = {0};
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    if (names_a_server(arguments))
        return repair_server_command(arguments);
    if (repair_is_of_keyspaces(arguments))
        return repair_keyspaces(arguments);
    if (!read_arguments(arguments, &repair))
        return command_usage_error("repair", "takes the data directory, and --in-place");
    const char *wrong = what_is_wrong(&repair);
    return wrong == NULL ? run(repair) : command_usage_error("repair", wrong);
}
