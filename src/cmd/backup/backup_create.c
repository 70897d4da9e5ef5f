/* `trestle backup create`: a server makes one of itself; or, of a data directory that no server has
 * open, the command does. */
#include "cmd/backup/backup_private.h"

#include "aws/bucket.h"
#include "backup/whole_scope.h"
#include "cluster/catalog.h"
#include "cluster/shard_directories.h"
#include "cmd/command.h"
#include "cmd/plural.h"
#include "row/fold.h"
#include "server/place_apart.h"
#include "tablet/change_log.h"
#include "tablet/commit.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum {
    CACHE_BYTES = 16 << 20,
    OPEN_FILES = 256,
};

#define MOST_PERIOD_US (INT64_C(10) * 366 * 86400 * 1000000)

struct create_options {
    struct target_options target;
    const char *data_dir;
    struct backup_part part;
    uint64_t rate;
    int64_t check_period; /* microseconds */
    const char *backup_key;
};

#define ROW(kind_, member_, preset_, most_, unit_, sentence_)                                      \
    {                                                                                              \
        .member = #member_, .kind = OPTION_##kind_,                                                \
        .offset = offsetof(struct create_options, member_), .preset = preset_, .most = most_,      \
        .unit = unit_, .sentence = sentence_                                                       \
    }

#define PART_ROW(member_, unit_, sentence_)                                                        \
    {                                                                                              \
        .member = #member_, .kind = OPTION_STRING,                                                 \
        .offset = offsetof(struct create_options, part.member_), .unit = unit_,                    \
        .sentence = sentence_                                                                      \
    }

static const struct option rows[] = {
    TARGET_SERVER_ROWS(struct create_options, target),
    PART_ROW(table, "NAME",
             "Only this table: projects/P/instances/I/tables/T, with its policies, views and "
             "schema bundles."),
    PART_ROW(instance, "NAME",
             "Only this instance: projects/P/instances/I, with its tables, policies and views."),
    PART_ROW(database, "PROJECT/DB", BACKUP_DATABASE_SENTENCE),
    ROW(STRING, data_dir, NULL, 0, "DIR",
        "The data directory of a server that is stopped, in place of one that serves."),
    ROW(SIZE, rate, "0", INT64_MAX, "",
        "With --data-dir, bytes that are read each second; 0: no bound. A server keeps to its "
        "--backup-rate."),
    ROW(DURATION, check_period, "30d", MOST_PERIOD_US, "",
        "With --data-dir, how often what the place keeps of the server is read again by a backup "
        "that refers to it; 0: never. A server keeps to its --backup-check-period."),
    ROW(STRING, backup_key, NULL, 0, "FILE",
        "With --data-dir, a key that what is put is encrypted with: 64 hexadecimal digits. A "
        "server "
        "uses its own --backup-key."),
};

enum { ROW_COUNT = sizeof rows / sizeof *rows };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle backup create PLACE"};

static void write_help(struct buffer *out)
{
    options_write_help(&table, out);
    buffer_append_format(
        out,
        "\nAdds a backup of everything that the server has to PLACE, a directory on its machine,\n"
        "which is made if its parent is there, or s3://BUCKET/PREFIX. A server makes backups in\n"
        "its --backup-places alone, one at a time, and goes on when this command is killed. What\n"
        "the place has already is not copied again. A backup that is cut short is none, and the\n"
        "next goes on from what has been copied.\n"
        "\nWith --table, --instance or --database nothing else of the server is in the backup, "
        "and\n"
        "it is restored as one of these is out of a backup of all: by `trestle backup restore`\n"
        "with the same option.\n");
}

/* --- a directory that no server has open --- */

struct creation {
    struct create_options options;
    const char *where;
    struct arena *arena;
    const char *scope;      /* see backup/whole_scope.h; empty: all */
    struct buffer narrowed; /* a directory of that alone, with a NUL */
    struct log log;
    struct store *store;
    struct place *place;
    struct place_lock *lock;
    uint64_t closed_ranges; /* of rows that are out of service in the backup */
};

/* Nothing in the directory has a sequence at or above the ceiling. The archived pieces say where it
 * really ends. */
static status find_end(struct store *store, struct whole_backup *out)
{
    struct commit_ceilings ceilings;
    struct change_log_state state;
    bool is_archived;
    struct keyspace *catalog = store_keyspace_find(store, CATALOG_KEYSPACE_ID);
    if (catalog == NULL)
        return status_make(STATUS_DATA_LOSS, "there is no catalog");
    TRY(commit_read_ceilings(catalog, &ceilings));
    TRY(change_log_read(catalog, &state, &is_archived));
    out->version = ceilings.sequence == 0 ? 0 : ceilings.sequence - 1;
    out->archive_stream = is_archived ? state.stream : 0;
    struct keyspace *log = is_archived ? store_keyspace_find(store, state.keyspace) : NULL;
    if (log == NULL || !state.is_on)
        return status_ok();
    return change_log_find_newest(log, state.taken, &out->version);
}

/* One range that is out of service, by the file that was damaged and the block, plus 1; 0: of all
 * of the file. A store has closed those that show at its opening, and the catalog has those that
 * were found before. */
struct closed_range {
    uint64_t file;
    uint64_t block;
};

static void note_range(struct buffer *ranges, uint64_t file, uint64_t block)
{
    const struct closed_range *all = (const void *)ranges->data;
    const struct closed_range range = {file, block};
    for (size_t i = 0; i < ranges->size / sizeof range; i++)
        if (all[i].file == file && all[i].block == block)
            return;
    buffer_append(ranges, &range, sizeof range);
}

static status note_damage(void *context, const struct store_damage *damage)
{
    note_range(context, damage->file, damage->is_whole ? 0 : damage->offset + 1);
    return status_ok();
}

static status note_record(void *context, const struct damage_record *record)
{
    note_range(context, record->file, record->block);
    return status_ok();
}

static status list_closed(struct store *store, struct buffer *ranges)
{
    const struct catalog_visitor visitor = {.context = ranges, .damage = note_record};
    struct keyspace *keyspace;
    for (size_t i = 0; (keyspace = store_keyspace_at(store, i)) != NULL; i++)
        TRY(keyspace_list_closed(keyspace, note_damage, ranges));
    status s = catalog_read(store_keyspace_find(store, CATALOG_KEYSPACE_ID), &visitor);
    if (s.code != STATUS_DATA_LOSS) /* of a damaged catalog a backup is better than none */
        TRY(s);
    else
        status_free(s);
    return ranges->failed ? status_out_of_memory() : status_ok();
}

/* The store has a catalog. */
static status count_closed(struct store *store, uint64_t *out)
{
    struct buffer ranges = {0};
    status s = list_closed(store, &ranges);
    *out = ranges.size / sizeof(struct closed_range);
    buffer_free(&ranges);
    return s;
}

static status open_to_read(const struct creation *creation, const char *directory,
                           struct store **out)
{
    const struct store_options options = {.directory = directory,
                                          .fold = &row_fold,
                                          .log = &creation->log,
                                          .cache_bytes = CACHE_BYTES,
                                          .open_files = OPEN_FILES,
                                          .read_only = true};
    return store_open(&options, out);
}

/* Open for reading, the store keeps everybody else out, and nothing in the directory changes. */
static status open_directory(struct creation *creation)
{
    TRY(place_check_apart(creation->where, creation->options.data_dir));
    TRY(shard_directories_check(creation->options.data_dir, 1));
    TRY(open_to_read(creation, creation->options.data_dir, &creation->store));
    TRY(place_of_name_with_key(files_of_system(), creation->where, creation->options.backup_key,
                               &creation->place));
    TRY(place_make(creation->place));
    TRY(whole_prepare(creation->place));
    return whole_lock(creation->place, &creation->lock);
}

struct done {
    const char *name;
    uint64_t bytes;
    uint64_t copied_files;
    uint64_t copied_bytes;
    uint64_t mended_files;
    uint64_t closed_ranges;
};

static void tell_closed(const struct creation *creation)
{
    uint64_t count = creation->closed_ranges;
    const struct create_options *options = &creation->options;
    bool is_offline = options->data_dir != NULL;
    fprintf(stderr,
            "%" PRIu64 " range%s of rows %s out of service in it, as in what it was made of: "
            "`trestle %s%s` says which\n",
            count, plural(count), plural_is(count), is_offline ? "doctor " : "repair --endpoint ",
            is_offline ? options->data_dir : options->target.server.address);
}

static void tell(struct creation *creation, const struct done *done)
{
    struct buffer copied = {0};
    backup_append_size(&copied, done->copied_files, done->copied_bytes);
    printf("%s: %.1f MB, of which %.*s were not there yet%s\n", done->name,
           (double)done->bytes / (1 << 20), (int)copied.size, (const char *)copied.data,
           done->mended_files > 0 ? ", or were damaged there" : "");
    buffer_free(&copied);
    creation->closed_ranges = done->closed_ranges;
    if (done->closed_ranges > 0)
        tell_closed(creation);
}

static void tell_damaged(void *context, const char *content, const char *wrong)
{
    const struct creation *creation = context;
    fprintf(stderr, "damage: %s/files/%s: %s: it is written anew\n", creation->where, content,
            wrong);
}

/* Beside what a server's own backups are made of, and removed by its next start if it is left. */
static status narrow(struct creation *creation)
{
    struct files *files = files_of_system();
    buffer_append_format(&creation->narrowed, "%s/checkpoint%c", creation->options.data_dir, 0);
    if (creation->narrowed.failed)
        return status_out_of_memory();
    const char *narrowed = (const char *)creation->narrowed.data;
    TRY(whole_scope_copy(files, creation->options.data_dir, narrowed));
    return whole_scope_narrow(narrowed, creation->scope, &creation->log);
}

static status count_closed_of_part(const struct creation *creation, uint64_t *out)
{
    struct store *store;
    TRY(open_to_read(creation, (const char *)creation->narrowed.data, &store));
    status s = count_closed(store, out);
    store_close(store);
    return s;
}

static status create(struct creation *creation)
{
    char identity[STORE_IDENTITY_SIZE], name[WHOLE_NAME_SIZE];
    struct whole_backup facts = {.server = identity,
                                 .instant_us = clock_wall_us(clock_system()),
                                 .settings = "",
                                 .scope = creation->scope};
    struct whole_source source = {.files = files_of_system(),
                                  .directory = creation->options.data_dir,
                                  .facts = &facts,
                                  .check_period_us = creation->options.check_period,
                                  .tell_damaged = tell_damaged,
                                  .context = creation};
    struct whole_work work = backup_work_at(creation->options.rate);
    TRY(open_directory(creation));
    TRY(store_identity(creation->store, identity));
    TRY(find_end(creation->store, &facts));
    if (creation->scope[0] != '\0') {
        facts.archive_stream = 0;
        TRY(narrow(creation));
        source.directory = (const char *)creation->narrowed.data;
        TRY(count_closed_of_part(creation, &facts.closed_ranges));
    } else {
        TRY(count_closed(creation->store, &facts.closed_ranges));
    }
    TRY(whole_create(creation->place, &source, &work, name));
    const struct done done = {name,
                              work.bytes_total,
                              work.files_copied,
                              work.bytes_copied,
                              work.files_mended,
                              facts.closed_ranges};
    tell(creation, &done);
    return status_ok();
}

static status create_offline(struct creation *creation)
{
    creation->log = (struct log){.fd = STDERR_FILENO, .level = LOG_ERROR, .clock = clock_system()};
    status s = create(creation);
    if (creation->narrowed.data != NULL && !creation->narrowed.failed)
        status_ignore(
            files_remove_flat_directory(files_of_system(), (const char *)creation->narrowed.data));
    buffer_free(&creation->narrowed);
    place_unlock(creation->place, creation->lock);
    place_close(creation->place);
    if (creation->store != NULL)
        store_close(creation->store);
    return s;
}

/* --- a server --- */

static void tell_run(void *context, const Wb__WholeBackupRun *run)
{
    const struct done done = {run->name,
                              (uint64_t)run->total_bytes,
                              (uint64_t)run->copied_files,
                              (uint64_t)run->copied_bytes,
                              (uint64_t)run->mended_files,
                              (uint64_t)run->closed_ranges};
    tell(context, &done);
}

static status create_by_server(struct creation *creation)
{
    Wb__CreateWholeBackupRequest request = WB__CREATE_WHOLE_BACKUP_REQUEST__INIT;
    request.parent = "servers/self";
    request.place = creation->where;
    request.scope = creation->scope;
    const struct backup_listener listener = {.tell = tell_run, .context = creation};
    return backup_run(&creation->options.target, BACKUP_SERVICE "CreateWholeBackup", &request.base,
                      &listener);
}

/* --- which of them --- */

static status read_options(const char *const *arguments, struct creation *out)
{
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = &out->options, .origins = origins};
    const char *const no_environment[] = {NULL};
    out->options = (struct create_options){.target = {.project = "p", .instance = "i"}};
    TRY(command_need_words(arguments, 1, "the place comes first"));
    out->where = arguments[0];
    TRY(options_read(&table, arguments + 1, no_environment, &values));
    TRY(backup_choose_part(&out->options.part, out->arena, &out->scope));
    out->scope = out->scope != NULL ? out->scope : "";
    return out->options.data_dir != NULL
               ? status_ok()
               : target_options_resolve(&table, origins, &out->options.target);
}

static int read_and_create(struct creation *creation, const char *const *arguments)
{
    status s = read_options(arguments, creation);
    if (!status_is_ok(s))
        return command_refuse("backup", s);
    s = creation->options.data_dir != NULL ? create_offline(creation) : create_by_server(creation);
    return command_end("backup", s, creation->closed_ranges == 0);
}

int backup_create_kind(const char *const *arguments)
{
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    struct creation creation = {.where = NULL, .arena = arena_create(BACKUP_COMMAND_MEMORY)};
    if (creation.arena == NULL)
        return command_refuse("backup", status_out_of_memory());
    int code = read_and_create(&creation, arguments);
    arena_destroy(creation.arena);
    return code;
}
