/* `trestle archive replay`: the copy of a data directory, taken on to a later moment. */
#include "aws/bucket.h"
#include "backup/replay.h"
#include "base/options.h"
#include "cmd/backup/archive.h"
#include "cmd/command.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct replay {
    const char *directory;
    const char *from;
    const char *until;
    const char *table;
    const char *backup_key;
};

#define ROW(member_, unit_, sentence_)                                                             \
    {                                                                                              \
        .member = #member_, .kind = OPTION_STRING, .offset = offsetof(struct replay, member_),     \
        .unit = unit_, .sentence = sentence_                                                       \
    }

static const struct option rows[] = {
    ROW(from, "PLACE", "Where the archive is."),
    ROW(until, "MOMENT", ARCHIVE_UNTIL_SENTENCE),
    ROW(table, "NAME", ARCHIVE_TABLE_SENTENCE),
    ROW(backup_key, "FILE", ARCHIVE_KEY_SENTENCE),
};

enum { ROW_COUNT = sizeof rows / sizeof *rows };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle archive replay DIR"};

static void write_help(struct buffer *out)
{
    options_write_help(&table, out);
    buffer_append_format(
        out,
        "\nTakes DIR on to a later moment: the copy of a data directory, as it was when its\n"
        "server was stopped, or killed. It becomes the data of another server, with an archive\n"
        "of its own. A moment that cannot be had is refused with the nearest that can. DIR is\n"
        "as it was until the replay is done, whatever it meets: what is taken on is made in\n"
        "DIR.replaying, of links to DIR's tables, on the same file system. What a replay that was\n"
        "killed has left there the next one removes.\n");
}

/* --- the work --- */

struct work {
    struct archive_taking taking;
    struct archive_restored restored;
};

static status take_on(void *context, struct store *store, const char *directory)
{
    struct work *work = context;
    return archive_take_on(&work->taking, store, directory, &work->restored);
}

static void tell_left(const char *path)
{
    fprintf(stderr, "%s was left by a replay that was killed, and is removed\n", path);
}

static status replay_into(const char *directory, struct work *work)
{
    const struct log log = {.fd = STDERR_FILENO, .level = LOG_WARN, .clock = clock_system()};
    const struct directory_replay order = {.files = files_of_system(),
                                           .directory = directory,
                                           .log = &log,
                                           .take_on = take_on,
                                           .context = work,
                                           .tell = tell_left};
    work->taking.log = &log;
    return directory_replay(&order);
}

/* DIR may be missing: one that was killed at its end has it under another name. */
static status open_and_replay(const struct replay *replay, struct work *work)
{
    char directory[PATH_MAX];
    TRY(path_of_new_directory(replay->directory, "the copy is to be", directory));
    TRY(place_of_name_with_key(files_of_system(), replay->from, replay->backup_key,
                               &work->taking.place));
    status s = replay_into(directory, work);
    place_close(work->taking.place);
    return s;
}

/* --- options --- */

static status read_arguments(const char *const *arguments, struct replay *replay, uint64_t *until)
{
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = replay, .origins = origins};
    const char *const no_environment[] = {NULL};
    *until = ARCHIVE_END;
    TRY(command_need_words(arguments, 1, "needs a data directory"));
    TRY(options_read(&table, arguments + 1, no_environment, &values));
    replay->directory = arguments[0];
    if (replay->from == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "needs --from, the archive's place");
    return replay->until == NULL ? status_ok() : archive_parse_moment(replay->until, until);
}

int archive_replay_kind(const char *const *arguments)
{
    struct replay replay = {0};
    struct work work = {.taking = {.what = "the copy", .until = ARCHIVE_END}};
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    status s = read_arguments(arguments, &replay, &work.taking.until);
    if (!status_is_ok(s))
        return command_refuse("archive replay", s);
    work.taking.table = replay.table;
    s = open_and_replay(&replay, &work);
    if (!status_is_ok(s))
        return command_fail("archive replay", s);
    archive_tell_restored(replay.directory, &work.restored);
    return EXIT_SUCCESS;
}
