/* See backup.h. backup_create.c makes backups, backup_restore.c restores them. */
#include "cmd/backup/backup.h"

#include "aws/bucket.h"
#include "backup/whole_order.h"
#include "backup/whole_scope.h"
#include "cmd/backup/backup_private.h"
#include "cmd/command.h"
#include "cmd/plural.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* --- what the kinds share --- */

status backup_read_words(const struct backup_words *words, const char *const *arguments,
                         const char *given[2], void *out, struct option_origin *origins)
{
    struct option_values values = {.object = out, .origins = origins};
    const char *const no_environment[] = {NULL};
    size_t count = 0;
    given[0] = given[1] = NULL;
    TRY(command_need_words(arguments, words->least, words->need));
    while (count < words->most && arguments[count] != NULL &&
           strncmp(arguments[count], "--", 2) != 0) {
        given[count] = arguments[count];
        count++;
    }
    return options_read(words->table, arguments + count, no_environment, &values);
}

status backup_find(struct place *place, const char *from, struct arena *arena, const char **name,
                   struct whole_backup *out)
{
    return *name == NULL ? whole_find_newest(place, from, arena, name, out)
                         : whole_read_named(place, *name, arena, out);
}

status backup_database_name(const char *given, struct arena *arena, const char **out)
{
    const char *slash = strchrnul(given, '/');
    const char *id = *slash == '\0' || slash[1] == '\0' ? "(default)" : slash + 1;
    struct buffer name = {0};
    if (strstr(given, "/databases/") != NULL)
        buffer_append_bytes(&name, bytes_of(given));
    else
        buffer_append_format(&name, "projects/%.*s/databases/%s", (int)(slash - given), given, id);
    *out = name.failed ? NULL : arena_string(arena, buffer_bytes(&name));
    buffer_free(&name);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status check_kind(const char *name, enum whole_kind kind)
{
    static const char *const kinds[] = {[WHOLE_TABLE] = "a table: --table",
                                        [WHOLE_INSTANCE] = "an instance: --instance",
                                        [WHOLE_DATABASE] = "a database: --database"};
    enum whole_kind its = whole_kind_of(name);
    TRY(whole_scope_check(name));
    return its == kind ? status_ok()
                       : status_make(STATUS_INVALID_ARGUMENT, "%s is %s", name, kinds[its]);
}

status backup_choose_part(const struct backup_part *part, struct arena *arena, const char **out)
{
    int count = (part->table != NULL) + (part->instance != NULL) + (part->database != NULL);
    *out = NULL;
    if (count > 1)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "--table, --instance and --database exclude each other");
    if (part->database != NULL) {
        TRY(backup_database_name(part->database, arena, out));
        return check_kind(*out, WHOLE_DATABASE);
    }
    *out = part->table != NULL ? part->table : part->instance;
    return count == 0 ? status_ok()
                      : check_kind(*out, part->table != NULL ? WHOLE_TABLE : WHOLE_INSTANCE);
}

struct whole_work backup_work_at(uint64_t rate)
{
    return (struct whole_work){.clock = clock_system(), .bytes_per_second = rate};
}

void backup_append_size(struct buffer *out, uint64_t files, uint64_t bytes)
{
    buffer_append_format(out, "%" PRIu64 " %s, %.1f MB", files, files == 1 ? "file" : "files",
                         (double)bytes / (1 << 20));
}

/* --- the kinds that look into a place --- */

#define MOST_REACH_US (INT64_C(10) * 366 * 86400 * 1000000)

struct options {
    uint64_t rate;
    uint64_t keep;
    int64_t reach; /* microseconds */
    const char *server;
    bool dry_run;
    bool mark_damaged;
    const char *backup_key;
};

#define ROW(kind_, member_, preset_, least_, most_, unit_, sentence_)                              \
    {                                                                                              \
        .member = #member_, .kind = OPTION_##kind_, .offset = offsetof(struct options, member_),   \
        .preset = preset_, .least = least_, .most = most_, .unit = unit_, .sentence = sentence_    \
    }

#define KEY_ROW ROW(STRING, backup_key, NULL, 0, 0, "FILE", BACKUP_KEY_SENTENCE)

#define RATE_ROW                                                                                   \
    ROW(SIZE, rate, "0", 0, INT64_MAX, "", "Bytes that are read each second; 0: no bound.")

/* The place and the options that a kind works with. */
struct visit {
    struct options options;
    const char *words[2]; /* the place, the backup's name */
    struct place *place;
    struct arena *arena;
    bool is_perfect;
};

static status open_and(struct visit *visit, status (*work)(struct visit *visit))
{
    visit->is_perfect = true;
    visit->arena = arena_create(BACKUP_COMMAND_MEMORY);
    status s = visit->arena == NULL
                   ? status_out_of_memory()
                   : place_of_name_with_key(files_of_system(), visit->words[0],
                                            visit->options.backup_key, &visit->place);
    if (status_is_ok(s))
        s = work(visit);
    place_close(visit->place);
    arena_destroy(visit->arena);
    return s;
}

static int run(const struct backup_words *words, const char *const *arguments,
               status (*work)(struct visit *visit))
{
    enum { MOST_ROWS = 6 };
    struct option_origin origins[MOST_ROWS] = {0};
    struct visit visit = {.place = NULL};
    status s = backup_read_words(words, arguments, visit.words, &visit.options, origins);
    if (!status_is_ok(s))
        return command_refuse("backup", s);
    setvbuf(stdout, NULL, _IOLBF, 0); /* what is told was found, whatever happens next */
    s = open_and(&visit, work);
    return status_is_ok(s) ? command_end("backup", s, visit.is_perfect)
                           : command_refuse("backup", s);
}

static status no_backup(const struct visit *visit)
{
    return status_make(STATUS_NOT_FOUND, "there is no whole backup in %s",
                       place_title(visit->place));
}

/* --- list --- */

static const struct option list_rows[] = {KEY_ROW};

static const struct option_table list_table = {
    .rows = list_rows, .count = 1, .command = "trestle backup list PLACE"};

static void write_list_help(struct buffer *out)
{
    options_write_help(&list_table, out);
    buffer_append_format(
        out,
        "\nNames the whole backups in PLACE, from the oldest to the newest: what each has, of\n"
        "which server, and what made it. Exits with 1 if a manifest cannot be read, or there is\n"
        "none.\n");
}

/* At the end of a line: rows that it does not have. */
static void end_line(const struct whole_backup *backup)
{
    if (backup->closed_ranges > 0)
        printf("  without %" PRIu64 " range%s of rows", backup->closed_ranges,
               plural(backup->closed_ranges));
    printf("\n");
}

static void print_backup(const char *name, const struct whole_backup *backup)
{
    struct buffer size = {0};
    backup_append_size(&size, backup->file_count, whole_size(backup));
    printf("%-20s  %.*s  server %s  %s%s%s%s", name, (int)size.size, (const char *)size.data,
           backup->server, backup->is_scheduled ? "scheduled, " : "", backup->program,
           whole_is_part(backup) ? "  only " : "", backup->scope);
    end_line(backup);
    buffer_free(&size);
}

/* A key that is missing is so for all of them, and no damage: `*refused` is that of the first. */
static void list_one(struct visit *visit, const char *name, struct arena *arena, status *refused)
{
    struct whole_backup backup;
    arena_reset(arena);
    status s = whole_read(visit->place, name, arena, &backup);
    visit->is_perfect = visit->is_perfect && status_is_ok(s);
    if (status_is_ok(s)) {
        print_backup(name, &backup);
    } else if (s.code != STATUS_PERMISSION_DENIED) {
        fprintf(stderr, "damage: %s: %s\n", name, status_message(s));
    } else if (status_is_ok(*refused)) {
        *refused = s;
        return;
    }
    status_free(s);
}

static status list(struct visit *visit)
{
    const char *const *names;
    status refused = status_ok();
    size_t count;
    TRY(whole_names_by_age(visit->place, visit->arena, &names, &count));
    if (count == 0)
        return no_backup(visit);
    struct arena *arena = arena_create(BACKUP_COMMAND_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        list_one(visit, names[i], arena, &refused);
    arena_destroy(arena);
    return refused;
}

static int list_kind(const char *const *arguments)
{
    static const struct backup_words words = {&list_table, 1, 1, "the place comes first"};
    if (command_asks_for(arguments, "--help"))
        return command_print(write_list_help);
    return run(&words, arguments, list);
}

/* --- verify --- */

static const struct option verify_rows[] = {
    RATE_ROW,
    ROW(BOOLEAN, mark_damaged, "false", 0, 0, NULL,
        "Marks in the place what is damaged there, so that the next backup of a server that still "
        "has it writes it anew."),
    KEY_ROW,
};

static const struct option_table verify_table = {.rows = verify_rows,
                                                 .count = sizeof verify_rows / sizeof *verify_rows,
                                                 .command = "trestle backup verify PLACE [NAME]"};

static void write_verify_help(struct buffer *out)
{
    options_write_help(&verify_table, out);
    buffer_append_format(
        out, "\nReads all that the backup NAME, or every backup, has, and holds it against the\n"
             "manifest. Exits with 1 if something is missing or damaged, which is named, or if\n"
             "there is no backup. What is marked is written anew by the next backup of a server\n"
             "that has it: all backups that refer to it are whole again.\n");
}

struct reporting {
    const struct visit *visit;
    const char *name;
    bool has_damage;
    status unmarked; /* why something could not be marked: the first of it */
};

static void mark(struct reporting *reporting, const char *file)
{
    status s = whole_mark_damaged(reporting->visit->place, file);
    bool is_first = status_is_ok(reporting->unmarked);
    status_free(is_first ? reporting->unmarked : s);
    reporting->unmarked = is_first ? s : reporting->unmarked;
}

static void note_damage(void *context, const char *file, const char *wrong)
{
    struct reporting *reporting = context;
    bool marks = reporting->visit->options.mark_damaged;
    reporting->has_damage = true;
    if (marks)
        mark(reporting, file);
    fprintf(stderr, "damage: %s: files/%s: %s%s\n", reporting->name, file, wrong,
            marks && status_is_ok(reporting->unmarked) ? ": marked" : "");
}

static status verify_contents(struct reporting *reporting, const struct whole_backup *backup)
{
    const struct visit *visit = reporting->visit;
    struct whole_work work = backup_work_at(visit->options.rate);
    status s = whole_verify(visit->place, backup, &work, note_damage, reporting);
    if (status_is_ok(s))
        return reporting->unmarked;
    status_free(reporting->unmarked);
    return s;
}

static status verify_one(struct visit *visit, const char *name, struct arena *arena)
{
    struct whole_backup backup;
    struct reporting reporting = {.visit = visit, .name = name, .unmarked = status_ok()};
    struct buffer size = {0};
    status s = whole_read(visit->place, name, arena, &backup);
    if (s.code == STATUS_DATA_LOSS || s.code == STATUS_FAILED_PRECONDITION) {
        fprintf(stderr, "damage: %s: %s\n", name, status_message(s));
        visit->is_perfect = false;
        status_free(s);
        return status_ok();
    }
    TRY(s);
    TRY(verify_contents(&reporting, &backup));
    backup_append_size(&size, backup.file_count, whole_size(&backup));
    if (!reporting.has_damage) {
        printf("%s: %.*s: whole", name, (int)size.size, (const char *)size.data);
        end_line(&backup);
    }
    visit->is_perfect = visit->is_perfect && !reporting.has_damage;
    buffer_free(&size);
    return status_ok();
}

static status verify(struct visit *visit)
{
    const char *const *names = &visit->words[1];
    size_t count = 1;
    if (visit->words[1] == NULL)
        TRY(whole_names(visit->place, visit->arena, &names, &count));
    if (count == 0)
        return no_backup(visit);
    struct arena *arena = arena_create(BACKUP_COMMAND_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    status s = status_ok();
    for (size_t i = 0; i < count && status_is_ok(s); i++) {
        arena_reset(arena);
        s = verify_one(visit, names[i], arena);
    }
    arena_destroy(arena);
    return s;
}

static int verify_kind(const char *const *arguments)
{
    static const struct backup_words words = {&verify_table, 1, 2, "the place comes first"};
    if (command_asks_for(arguments, "--help"))
        return command_print(write_verify_help);
    return run(&words, arguments, verify);
}

/* --- expire --- */

static const struct option expire_rows[] = {
    ROW(INTEGER, keep, "0", 0, INT32_MAX, "N",
        "How many of the newest of each server stay: 1 at least."),
    ROW(DURATION, reach, "0", 0, MOST_REACH_US, "",
        "What can be restored of so long with an archive stays so: later backups are not removed, "
        "nor the one that comes before them. As long as the server's --archive-retention."),
    ROW(STRING, server, NULL, 0, 0, "ID",
        "Only backups of this server are removed: as `trestle backup list` names it."),
    ROW(BOOLEAN, dry_run, "false", 0, 0, NULL, "Removes nothing, and says what it would."),
    KEY_ROW,
};

static const struct option_table expire_table = {.rows = expire_rows,
                                                 .count = sizeof expire_rows / sizeof *expire_rows,
                                                 .command = "trestle backup expire PLACE"};

static void write_expire_help(struct buffer *out)
{
    options_write_help(&expire_table, out);
    buffer_append_format(
        out, "\nRemoves all whole backups in PLACE but the newest of each server, and of each "
             "table and\n"
             "instance that has backups of its own, names them, and then removes the files that\n"
             "none of those that stay refers to.\n");
}

static void tell_removed(void *context, const char *name, const char *server)
{
    const struct visit *visit = context;
    printf("%s  server %s: %s\n", name, server,
           visit->options.dry_run ? "would be removed" : "removed");
}

static status expire_by(struct visit *visit, const struct whole_expiry *expiry)
{
    struct whole_work work = backup_work_at(0);
    size_t backups, files;
    TRY(whole_expire(visit->place, expiry, &work, &backups, &files));
    printf("%zu backups and %zu files %s\n", backups, files,
           expiry->is_trial ? "would be removed" : "removed");
    return status_ok();
}

static status expire(struct visit *visit)
{
    const struct options *options = &visit->options;
    const struct whole_expiry expiry = {
        .server = options->server,
        .keep = options->keep,
        .reach_us = options->reach == 0 ? 0 : clock_wall_us(clock_system()) - options->reach,
        .is_trial = options->dry_run,
        .tell = tell_removed,
        .context = visit};
    struct place_lock *lock;
    if (expiry.keep == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "--keep says how many stay");
    if (expiry.is_trial)
        return expire_by(visit, &expiry);
    TRY(whole_lock(visit->place, &lock));
    status s = expire_by(visit, &expiry);
    place_unlock(visit->place, lock);
    return s;
}

static int expire_kind(const char *const *arguments)
{
    static const struct backup_words words = {&expire_table, 1, 1, "the place comes first"};
    if (command_asks_for(arguments, "--help"))
        return command_print(write_expire_help);
    return run(&words, arguments, expire);
}

/* --- the command --- */

static const struct command_kind all[] = {
    {"create", backup_create_kind, "adds a whole backup of a server to a place"},
    {"list", list_kind, "names the whole backups in a place"},
    {"verify", verify_kind, "reads whole backups from end to end"},
    {"restore", backup_restore_kind, "makes a data directory of a whole backup"},
    {"expire", expire_kind, "removes old whole backups"},
    {"schedule", backup_schedule_kind, "shows what a server makes by itself"},
};

static const struct command_kinds kinds = {.command = "backup",
                                           .arguments = "[PLACE] [OPTION…]",
                                           .question = "what is to be done?",
                                           .all = all,
                                           .count = sizeof all / sizeof *all};

int backup_command(const char *const *arguments)
{
    return command_run_kind(&kinds, arguments);
}
