/* See whole_schedules.h. */
#include "backup/whole_schedules.h"

#include "backup/whole_order.h"
#include "backup/whole_private.h"
#include "backup/whole_scope.h"
#include "base/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t SECOND_US = 1000000, DAY_US = INT64_C(86400) * 1000000;
enum { MOST_DAYS = 365, MOST_KEEP = 100000 };

/* --- the list --- */

static status add(struct whole_schedules *schedules, const char *scope, int64_t period_us,
                  uint64_t keep)
{
    for (size_t i = 0; i < schedules->count; i++)
        if (strcmp(schedules->all[i].scope, scope) == 0)
            return status_make(STATUS_INVALID_ARGUMENT, "%s is there twice", scope);
    if (schedules->count == WHOLE_SCHEDULES_MOST)
        return status_make(STATUS_INVALID_ARGUMENT, "there are more than %d schedules",
                           WHOLE_SCHEDULES_MOST);
    schedules->all[schedules->count++] = (struct whole_scheduled){
        .scope = scope, .schedule = {.period_us = period_us, .keep = keep}};
    return status_ok();
}

static status read_keep(const char *scope, const char *text, uint64_t *keep)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    bool is_number = text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
    if (!is_number || value > MOST_KEEP)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "%s: \"%s\" is not a number of backups to keep, from 0 to %d", scope,
                           text, MOST_KEEP);
    *keep = value;
    return status_ok();
}

static status read_period(const char *scope, const char *text, int64_t *period_us)
{
    bool is_one = options_parse_duration(text, period_us);
    if (is_one && *period_us >= SECOND_US && *period_us <= MOST_DAYS * DAY_US)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "%s: \"%s\" is not a period from 1s to %dd", scope,
                       text, MOST_DAYS);
}

/* NAME=PERIOD[/KEEP], which is cut where these end: a name may have any of these characters, so
 * they are looked for from the end. */
static status read_part(struct whole_schedules *schedules, char *text, uint64_t keep)
{
    int64_t period_us;
    char *period = strrchr(text, '=');
    if (period == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "\"%s\" is not NAME=PERIOD or NAME=PERIOD/KEEP",
                           text);
    *period++ = '\0';
    char *number = strchr(period, '/');
    if (number != NULL)
        *number++ = '\0';
    TRY(whole_scope_check(text));
    TRY(read_period(text, period, &period_us));
    if (number != NULL)
        TRY(read_keep(text, number, &keep));
    return add(schedules, text, period_us, keep);
}

static status read_parts(struct whole_schedules *schedules, uint64_t keep)
{
    for (char *at = schedules->names, *next; at != NULL; at = next) {
        next = strchr(at, ',');
        if (next != NULL)
            *next++ = '\0';
        TRY(read_part(schedules, at, keep));
    }
    return status_ok();
}

status whole_schedules_create(const struct whole_schedule_wish *wish, struct whole_schedules *out)
{
    *out = (struct whole_schedules){.all = calloc(WHOLE_SCHEDULES_MOST, sizeof *out->all)};
    if (out->all != NULL && wish->parts != NULL)
        out->names = strdup(wish->parts);
    status s = out->all == NULL || (wish->parts != NULL && out->names == NULL)
                   ? status_out_of_memory()
                   : status_ok();
    if (status_is_ok(s) && wish->period_us > 0)
        s = add(out, "", wish->period_us, wish->keep);
    if (status_is_ok(s))
        s = read_parts(out, wish->keep);
    if (!status_is_ok(s))
        whole_schedules_free(out);
    return s;
}

void whole_schedules_free(struct whole_schedules *schedules)
{
    free(schedules->all);
    free(schedules->names);
    *schedules = (struct whole_schedules){0};
}

/* --- whose turn it is --- */

int64_t whole_schedules_wait_us(const struct whole_schedules *schedules, int64_t wall_us,
                                int64_t steady_us, size_t *index)
{
    int64_t least_us = INT64_MAX;
    *index = 0;
    for (size_t i = 0; i < schedules->count; i++) {
        size_t at = (schedules->turn + i) % schedules->count;
        int64_t wait_us = whole_schedule_wait_us(&schedules->all[at].schedule, wall_us, steady_us);
        if (wait_us < least_us)
            *index = at;
        least_us = wait_us < least_us ? wait_us : least_us;
    }
    return least_us;
}

static void note_error(struct whole_scheduled *scheduled, status s)
{
    bool is_bad = !status_is_ok(s);
    snprintf(scheduled->error, sizeof scheduled->error, "%s", is_bad ? status_message(s) : "");
    scheduled->failures += is_bad && s.code != STATUS_CANCELLED;
}

void whole_schedules_note(struct whole_schedules *schedules, size_t index, status s,
                          const struct whole_backup *made, int64_t steady_us)
{
    struct whole_scheduled *scheduled = &schedules->all[index];
    whole_schedule_note(&scheduled->schedule, s.code, made->instant_us, steady_us);
    note_error(scheduled, s);
    if (status_is_ok(s))
        scheduled->end_us = made->end_us;
    schedules->turn = index + 1;
}

/* --- learning --- */

struct learning {
    const struct whole_schedules *schedules;
    const char *server;
    struct newest {
        struct whole_age age; /* the name is NULL: there is none */
        int64_t instant_us;
        int64_t end_us;
    } newest[WHOLE_SCHEDULES_MOST];
};

static bool is_wanted(const struct learning *learning, size_t i, const struct whole_backup *backup)
{
    const struct whole_scheduled *scheduled = &learning->schedules->all[i];
    const char *scope = whole_is_part(backup) ? backup->scope : "";
    return !scheduled->schedule.is_known && strcmp(scheduled->scope, scope) == 0;
}

static void note_newest(struct newest *newest, const char *name, const struct whole_backup *backup)
{
    const struct whole_age age = {.version = backup->version, .name = name};
    if (newest->age.name == NULL || whole_compare(&newest->age, &age) < 0)
        *newest =
            (struct newest){.age = age, .instant_us = backup->instant_us, .end_us = backup->end_us};
}

static void look_at(struct learning *learning, const char *name, const struct whole_backup *backup)
{
    if (!backup->is_scheduled || strcmp(backup->server, learning->server) != 0)
        return;
    for (size_t i = 0; i < learning->schedules->count; i++)
        if (is_wanted(learning, i, backup))
            note_newest(&learning->newest[i], name, backup);
}

static status read_one(struct learning *learning, struct place *place, const char *name,
                       struct arena *arena)
{
    struct whole_backup backup;
    arena_reset(arena);
    status s = whole_read(place, name, arena, &backup);
    if (status_is_ok(s))
        look_at(learning, name, &backup);
    if (s.code != STATUS_DATA_LOSS && s.code != STATUS_FAILED_PRECONDITION)
        return s;
    status_free(s);
    return status_ok();
}

/* By age, which names do not tell: all are read. A place that has had none yet has none. */
static status find_newest(struct learning *learning, struct place *place, struct arena *of_names,
                          struct arena *of_manifests)
{
    const char *const *names;
    size_t count;
    status s = whole_names(place, of_names, &names, &count);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    for (size_t i = 0; i < count; i++)
        TRY(read_one(learning, place, names[i], of_manifests));
    return status_ok();
}

static void note_learnt(struct whole_schedules *schedules, const struct learning *learning)
{
    for (size_t i = 0; i < schedules->count; i++) {
        struct whole_scheduled *scheduled = &schedules->all[i];
        if (scheduled->schedule.is_known)
            continue;
        scheduled->schedule.is_known = true;
        scheduled->schedule.newest_us = learning->newest[i].instant_us;
        scheduled->schedule.last_try = STATUS_OK;
        scheduled->end_us = learning->newest[i].end_us;
        scheduled->error[0] = '\0';
    }
}

status whole_schedules_learn(struct whole_schedules *schedules, struct place *place,
                             const char *server)
{
    struct learning learning = {.schedules = schedules, .server = server};
    struct arena *of_names = arena_create(WHOLE_MEMORY);
    struct arena *of_manifests = arena_create(WHOLE_MEMORY);
    status s = of_names == NULL || of_manifests == NULL
                   ? status_out_of_memory()
                   : find_newest(&learning, place, of_names, of_manifests);
    if (status_is_ok(s))
        note_learnt(schedules, &learning);
    arena_destroy(of_names);
    arena_destroy(of_manifests);
    return s;
}

void whole_schedules_give_up(struct whole_schedules *schedules, status s, int64_t steady_us)
{
    for (size_t i = 0; i < schedules->count; i++) {
        struct whole_scheduled *scheduled = &schedules->all[i];
        if (scheduled->schedule.is_known)
            continue;
        whole_schedule_note(&scheduled->schedule, s.code, 0, steady_us);
        note_error(scheduled, s);
    }
}

/* --- what is overdue --- */

static void append_one(const struct whole_scheduled *scheduled, struct buffer *out)
{
    char newest[CLOCK_DATE_SIZE] = "none";
    if (scheduled->schedule.newest_us > 0)
        clock_date(scheduled->schedule.newest_us, newest);
    buffer_append_format(out, "%s%s: %s", scheduled->scope[0] != '\0' ? " of " : "",
                         scheduled->scope, newest);
    if (scheduled->error[0] != '\0')
        buffer_append_format(out, "; %s", scheduled->error);
}

struct telling {
    struct buffer *out;
    size_t most;
    size_t told;
    size_t left_out;
};

static void tell_one(struct telling *telling, const struct whole_scheduled *scheduled)
{
    enum { ROOM_FOR_OTHERS = sizeof "; and 64 others" };
    struct buffer words = {0};
    append_one(scheduled, &words);
    bool fits = telling->out->size + words.size + ROOM_FOR_OTHERS <= telling->most;
    if (telling->told == 0 || (fits && telling->left_out == 0)) {
        buffer_append_format(telling->out, "%s", telling->told > 0 ? ";" : "");
        buffer_append_bytes(telling->out, buffer_bytes(&words));
        telling->told++;
    } else {
        telling->left_out++;
    }
    buffer_free(&words);
}

bool whole_schedules_tell_overdue(const struct whole_schedules *schedules, const char *place,
                                  int64_t wall_us, size_t most, struct buffer *out)
{
    struct telling telling = {.out = out, .most = most};
    buffer_append_format(out, "the newest scheduled backup in %s", place);
    for (size_t i = 0; i < schedules->count; i++)
        if (whole_schedule_is_overdue(&schedules->all[i].schedule, wall_us))
            tell_one(&telling, &schedules->all[i]);
    if (telling.left_out > 0)
        buffer_append_format(out, "; and %zu others", telling.left_out);
    return telling.told > 0;
}
