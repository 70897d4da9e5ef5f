/* `trestle backup schedule`: which whole backups a server makes by itself, and whether it does. */
#include "client/client_session.h"
#include "cmd/backup/backup_private.h"
#include "cmd/command.h"

#include <inttypes.h>
#include <stdio.h>

enum { ANSWER_MEMORY = 16 << 20 };

struct schedule_options {
    struct target_options target;
};

static const struct option rows[] = {TARGET_SERVER_ROWS(struct schedule_options, target)};

enum { ROW_COUNT = sizeof rows / sizeof *rows };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle backup schedule"};

static void write_help(struct buffer *out)
{
    options_write_help(&table, out);
    buffer_append_format(
        out,
        "\nShows what the server makes whole backups of by itself: of all that it has, and of\n"
        "tables, instances and databases alone; how often, how many it keeps, of when the\n"
        "newest is, and when the next is due. Exits with 1 if one is overdue, which says\n"
        "why, or there is no schedule.\n");
}

/* --- words --- */

static int64_t us_of(const Pb__Timestamp *time)
{
    return time == NULL ? 0 : time->seconds * 1000000 + time->nanos / 1000;
}

/* In the largest unit of which it is a whole number. */
static void append_period(struct buffer *out, int64_t seconds)
{
    static const struct {
        int64_t seconds;
        char name;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    size_t i = 0;
    while (seconds % units[i].seconds != 0)
        i++;
    buffer_append_format(out, "%" PRId64 "%c", seconds / units[i].seconds, units[i].name);
}

static void append_keep(struct buffer *out, int64_t keep)
{
    if (keep == 0)
        buffer_append_format(out, "keeps all");
    else
        buffer_append_format(out, "keeps %" PRId64, keep);
}

static void append_schedule(struct buffer *out, const Wb__WholeBackupSchedule *schedule)
{
    char newest[CLOCK_DATE_SIZE] = "none", next[CLOCK_DATE_SIZE];
    if (schedule->newest_time != NULL)
        clock_date(us_of(schedule->newest_time), newest);
    clock_date(us_of(schedule->next_time), next);
    buffer_append_format(out, "%s: each ", schedule->scope[0] == '\0' ? "all" : schedule->scope);
    append_period(out, schedule->period == NULL ? 0 : schedule->period->seconds);
    buffer_append_format(out, " into %s, ", schedule->place);
    append_keep(out, schedule->keep);
    buffer_append_format(out, ", newest %s, next %s", newest, next);
    if (schedule->overdue)
        buffer_append_format(out, ", overdue");
    if (schedule->error != NULL)
        buffer_append_format(out, ": %s", schedule->error->message);
    buffer_append_byte(out, '\n');
}

/* --- asking --- */

static status print(const Wb__ListWholeBackupRunsResponse *list, bool *is_perfect)
{
    struct buffer out = {0};
    if (list->n_schedules == 0)
        return status_make(STATUS_NOT_FOUND, "the server makes no whole backups by itself");
    for (size_t i = 0; i < list->n_schedules; i++) {
        append_schedule(&out, list->schedules[i]);
        *is_perfect = *is_perfect && !list->schedules[i]->overdue;
    }
    bool is_written = !out.failed && fwrite(out.data, 1, out.size, stdout) == out.size;
    buffer_free(&out);
    return is_written ? status_ok() : status_make(STATUS_UNAVAILABLE, "cannot write the answer");
}

static status ask(struct client_session *session, struct arena *arena, bool *is_perfect)
{
    Wb__ListWholeBackupRunsRequest request = WB__LIST_WHOLE_BACKUP_RUNS_REQUEST__INIT;
    const ProtobufCMessage *answer;
    request.parent = "servers/self";
    TRY(client_session_call(session, BACKUP_SERVICE "ListWholeBackupRuns", NULL, &request.base,
                            &wb__list_whole_backup_runs_response__descriptor, arena, &answer));
    return print((const void *)answer, is_perfect);
}

static status show(const struct target_options *target, bool *is_perfect)
{
    const struct client_session_options server = {.target = *target};
    struct client_session *session;
    struct arena *arena = arena_create(ANSWER_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    status s = client_session_create(&server, &session);
    if (status_is_ok(s)) {
        s = ask(session, arena, is_perfect);
        client_session_destroy(session);
    }
    arena_destroy(arena);
    return s;
}

static status read_options(const char *const *arguments, struct schedule_options *out)
{
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = out, .origins = origins};
    const char *const no_environment[] = {NULL};
    *out = (struct schedule_options){.target = {.project = "p", .instance = "i"}};
    TRY(options_read(&table, arguments, no_environment, &values));
    return target_options_resolve(&table, origins, &out->target);
}

int backup_schedule_kind(const char *const *arguments)
{
    struct schedule_options options;
    bool is_perfect = true;
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    status s = read_options(arguments, &options);
    if (!status_is_ok(s))
        return command_refuse("backup", s);
    s = show(&options.target, &is_perfect);
    return command_end("backup", s, is_perfect);
}
