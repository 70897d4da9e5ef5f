/* `trestle backup restore`: a data directory of a whole backup, or tables out of one, into a server
 * that serves or a directory of their own. */
#include "aws/bucket.h"
#include "cmd/backup/archive.h"
#include "cmd/backup/backup_private.h"
#include "cmd/backup/backup_salvage.h"
#include "cmd/command.h"
#include "cmd/plural.h"
#include "os/file.h"

#include <stdio.h>
#include <unistd.h>

struct restore_options {
    struct target_options target;
    const char *to;
    uint64_t rate;
    struct backup_moment moment;
    const char *instance;
    const char *database;
    const char *as;
    bool with_policies;
    bool salvage;
    bool accept_old_data;
};

#define ROW(kind_, member_, preset_, most_, unit_, sentence_)                                      \
    {                                                                                              \
        .member = #member_, .kind = OPTION_##kind_,                                                \
        .offset = offsetof(struct restore_options, member_), .preset = preset_, .most = most_,     \
        .unit = unit_, .sentence = sentence_                                                       \
    }

#define MOMENT_ROW(member_, unit_, sentence_)                                                      \
    {                                                                                              \
        .member = #member_, .kind = OPTION_STRING,                                                 \
        .offset = offsetof(struct restore_options, moment.member_), .unit = unit_,                 \
        .sentence = sentence_                                                                      \
    }

static const struct option rows[] = {
    ROW(STRING, to, NULL, 0, "DIR",
        "The data directory to be made: not there yet, or empty. Its parent is there."),
    ROW(SIZE, rate, "0", INT64_MAX, "", "Bytes that are read each second; 0: no bound."),
    {.member = "backup_key",
     .kind = OPTION_STRING,
     .offset = offsetof(struct restore_options, moment.key),
     .unit = "FILE",
     .sentence = BACKUP_KEY_SENTENCE},
    MOMENT_ROW(archive, "PLACE",
               "Where the server's archive is: what came after the backup is "
               "taken from there."),
    MOMENT_ROW(until, "MOMENT", ARCHIVE_UNTIL_SENTENCE),
    MOMENT_ROW(table, "NAME",
               "Only this table: projects/P/instances/I/tables/T. With --archive the directory has "
               "the others as they were in the backup; so it is with --database."),
    ROW(STRING, instance, NULL, 0, "NAME",
        "Only the tables of this instance: projects/P/instances/I."),
    ROW(STRING, database, NULL, 0, "PROJECT/DB", BACKUP_DATABASE_SENTENCE),
    ROW(STRING, as, NULL, 0, "NAME",
        "What the table, the instance or the database is to be called; by default as it was."),
    ROW(BOOLEAN, with_policies, "false", 0, "",
        "With the tables' policies, views, schema bundles, deletion protection and settings; and "
        "with those of an instance that is made."),
    ROW(BOOLEAN, salvage, "false", 0, "",
        "Though files of the backup are damaged in PLACE: restores all that is whole, and names "
        "what is not, which is out of service. Without it that is refused. With --archive if no "
        "other files than tables' are damaged."),
    ROW(BOOLEAN, accept_old_data, "false", 0, "",
        "With --salvage of all: though nobody knows which of the tables' files count, since "
        "MANIFEST and its copy are damaged in PLACE, what all of them have is taken for true. It "
        "may bring back what was deleted or overwritten."),
    TARGET_OPTION(struct restore_options, target, STRING, "endpoint", server.address, NULL,
                  "ADDR:PORT",
                  "In place of --to, a server, which makes the tables. PLACE is in its "
                  "--backup-places, and it keeps to its --backup-rate."),
    TARGET_TLS_ROW_AS(struct restore_options, target, ""),
    TARGET_CREDENTIAL_ROWS_AS(struct restore_options, target, ""),
};

enum { ROW_COUNT = sizeof rows / sizeof *rows };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle backup restore PLACE [NAME]"};

static void write_help(struct buffer *out)
{
    options_write_help(&table, out);
    buffer_append_format(
        out,
        "\nMakes a data directory of the backup NAME, or of the newest: of a server with an\n"
        "identity of its own. Operations that were under way end as ABORTED when it starts. A\n"
        "restore that is killed leaves no data directory: do it again.\n"
        "\nWith --archive it is as at any moment since: without NAME the newest backup from "
        "before\n"
        "--until is taken, and then what was archived up to that. A moment that cannot be had is\n"
        "refused with the nearest that can.\n"
        "\nWith --table, --instance or --database, and no --archive, tables, or a Datastore "
        "database\n"
        "with its indexes and what says when entities expire, come alone out of the backup, each\n"
        "as a whole or not at all: into a server that serves, which has none of them, or into a\n"
        "directory that has nothing else. Only their files are fetched. An instance that is not\n"
        "there is made, with clusters and app profiles, as it was. Without NAME the newest backup\n"
        "is taken that is of all, or of what is asked for. Rows that were out of service when it "
        "was\n"
        "made, or lie in what was damaged then, are out of service: exit status 1. So are, with\n"
        "--salvage, those that lie in what is damaged in PLACE.\n");
}

struct restoration {
    struct restore_options options;
    struct backup_salvage lacking; /* what is told of what it does not have */
    struct option_origin origins[ROW_COUNT];
    const char *words[2]; /* the place, the backup's name */
    const char *from;     /* of tables alone; NULL: all */
    struct place *place;
    struct arena *arena;
    struct log log;
    struct whole_work work;
};

#define WAY_OUT                                                                                    \
    "With --salvage all that is whole is restored, and the rest is out of service; a table that "  \
    "is not named here comes by --table as well"

#define WAY_OUT_OF_MOMENT                                                                          \
    "An older backup will do, if it is whole: name it. With --salvage rows in damaged files of "   \
    "tables are out of service, and all else is as at the moment"

static void tell_left(const char *path)
{
    fprintf(stderr, "%s was left by a restore that was killed, and is removed\n", path);
}

/* --- a directory of all --- */

static void tell_restored(const char *name, const char *directory,
                          const struct whole_backup *backup)
{
    struct buffer size = {0};
    backup_append_size(&size, backup->file_count, whole_size(backup));
    printf("%s: %.*s restored into %s\n", name, (int)size.size, (const char *)size.data, directory);
    if (backup->settings[0] != '\0')
        printf("the server's settings are told in %s/" WHOLE_SETTINGS_FILE "\n", directory);
    buffer_free(&size);
}

static status restore_all(struct restoration *r, const char *directory)
{
    struct whole_backup backup;
    struct whole_restore what = {.place = r->place,
                                 .backup = &backup,
                                 .files = files_of_system(),
                                 .directory = directory,
                                 .log = &r->log,
                                 .work = &r->work,
                                 .salvage = r->options.salvage ? backup_salvage : NULL,
                                 .salvage_context = &r->lacking,
                                 .way_out = r->options.moment.archive == NULL ? WAY_OUT
                                                                              : WAY_OUT_OF_MOMENT,
                                 .tell = tell_left};
    struct backup_moment_work *moment = NULL;
    const char *name = r->words[1];
    status s = backup_moment_begin(&r->options.moment, &what, r->arena, &name, &backup, &moment);
    if (status_is_ok(s))
        s = whole_restore(&what);
    if (status_is_ok(s)) {
        tell_restored(name, directory, &backup);
        backup_moment_tell(moment, directory);
    }
    backup_moment_end(moment);
    return s;
}

/* --- a directory of tables --- */

static void tell_tables(const char *name, size_t count, const char *where)
{
    printf("%s: %zu %s restored into %s\n", name, count, count == 1 ? "table" : "tables", where);
}

static status restore_tables(struct restoration *r, const char *directory)
{
    struct whole_backup backup;
    const char *name = r->words[1];
    size_t made;
    TRY(backup_find(r->place, r->from, r->arena, &name, &backup));
    const struct backup_tables tables = {.place = r->place,
                                         .backup = &backup,
                                         .from = r->from,
                                         .to = r->options.as,
                                         .with_policies = r->options.with_policies,
                                         .salvage = r->options.salvage,
                                         .directory = directory,
                                         .log = &r->log,
                                         .work = &r->work,
                                         .tell = tell_left,
                                         .closed = backup_salvage_tell_closed,
                                         .context = &r->lacking};
    TRY(backup_make_tables(&tables, &made));
    tell_tables(name, made, directory);
    return status_ok();
}

/* --- either --- */

static status open_and_restore(struct restoration *r)
{
    char directory[PATH_MAX];
    TRY(path_of_new_directory(r->options.to, "restore into", directory));
    TRY(place_of_name_with_key(files_of_system(), r->words[0], r->options.moment.key, &r->place));
    return r->from != NULL ? restore_tables(r, directory) : restore_all(r, directory);
}

static status restore_into_directory(struct restoration *r)
{
    r->log = (struct log){.fd = STDERR_FILENO, .level = LOG_ERROR, .clock = clock_system()};
    r->work = backup_work_at(r->options.rate);
    r->lacking =
        (struct backup_salvage){.log = &r->log, .accepts_old_data = r->options.accept_old_data};
    status s = open_and_restore(r);
    place_close(r->place);
    return s;
}

/* --- a server --- */

static void tell_run(void *context, const Wb__WholeBackupRun *run)
{
    struct restoration *r = context;
    tell_tables(run->name, (size_t)run->tables, run->target[0] != '\0' ? run->target : run->source);
    size_t closed = (size_t)run->closed_ranges;
    r->lacking.named = closed;
    if (closed > 0)
        printf("%zu range%s of rows %s out of service, since %s in the backup: `trestle "
               "repair --endpoint %s` says which\n",
               closed, plural(closed), plural_is(closed), closed == 1 ? "it is" : "they are",
               r->options.target.server.address);
}

static status restore_into_server(struct restoration *r)
{
    Wb__RestoreTablesRequest request = WB__RESTORE_TABLES_REQUEST__INIT;
    request.parent = "servers/self";
    request.place = r->words[0];
    request.backup = r->words[1] != NULL ? r->words[1] : "";
    request.source = r->from;
    request.target = r->options.as != NULL ? r->options.as : "";
    request.with_policies = r->options.with_policies;
    request.salvage = r->options.salvage;
    const struct backup_listener listener = {tell_run, r};
    return backup_run(&r->options.target, BACKUP_SERVICE "RestoreTables", &request.base, &listener);
}

/* --- options --- */

static status refuse(const char *words)
{
    return status_make(STATUS_INVALID_ARGUMENT, "%s", words);
}

/* With an archive all comes back, and one table of it as of the moment. */
static status choose_part(struct restoration *r)
{
    struct restore_options *options = &r->options;
    const struct backup_part part = {.table = options->moment.table,
                                     .instance = options->instance,
                                     .database = options->database};
    const char *chosen;
    TRY(backup_choose_part(&part, r->arena, &chosen));
    if (options->moment.archive == NULL)
        r->from = chosen;
    else if (options->instance != NULL)
        return refuse("--instance goes without --archive");
    else
        options->moment.table = chosen;
    if (r->from == NULL && (options->as != NULL || options->with_policies))
        return refuse("--as and --with-policies go with --table, --instance or --database, and "
                      "without --archive");
    return options->database != NULL && options->as != NULL
               ? backup_database_name(options->as, r->arena, &options->as)
               : status_ok();
}

static status check_options(struct restoration *r)
{
    const struct restore_options *options = &r->options;
    bool into_server = options->target.server.address != NULL;
    TRY(choose_part(r));
    if (into_server && options->to != NULL)
        return refuse("--to and --endpoint exclude each other");
    if (into_server && r->from == NULL)
        return refuse(
            "--endpoint goes with --table, --instance or --database, and without --archive");
    if (!into_server && options->to == NULL)
        return refuse("--to says which directory is to be made");
    if (options->accept_old_data && (!options->salvage || r->from != NULL))
        return refuse("--accept-old-data goes with --salvage, of all");
    return into_server ? target_options_resolve(&table, r->origins, &r->options.target)
                       : status_ok();
}

static status read_options(const char *const *arguments, struct restoration *r)
{
    static const struct backup_words words = {&table, 1, 2, "the place comes first"};
    r->options = (struct restore_options){.target = {.project = "p", .instance = "i"}};
    TRY(backup_read_words(&words, arguments, r->words, &r->options, r->origins));
    return check_options(r);
}

static int read_and_restore(struct restoration *r, const char *const *arguments)
{
    status s = read_options(arguments, r);
    if (!status_is_ok(s))
        return command_refuse("backup", s);
    s = r->options.to != NULL ? restore_into_directory(r) : restore_into_server(r);
    return status_is_ok(s) ? command_end("backup", s, r->lacking.named == 0)
                           : command_refuse("backup", s);
}

int backup_restore_kind(const char *const *arguments)
{
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    struct restoration r = {.place = NULL, .arena = arena_create(BACKUP_COMMAND_MEMORY)};
    if (r.arena == NULL)
        return command_refuse("backup", status_out_of_memory());
    int code = read_and_restore(&r, arguments);
    arena_destroy(r.arena);
    return code;
}
