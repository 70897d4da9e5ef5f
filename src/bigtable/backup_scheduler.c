/* See backup_scheduler.h. */
#include "bigtable/backup_scheduler.h"

#include "base/limits.h"
#include "bigtable/backup_facts.h"
#include "os/thread.h"

#include <stdlib.h>

/* --- one look --- */

/* The most backups that one look deletes, so that it is over soon. */
enum { MOST_REMOVED = 100, LOOK_MEMORY = 1 << 30 };

struct look {
    struct bigtable *bigtable;
    struct arena *arena;
    struct backup_facts *backups;
    size_t count;
    size_t removed;
    int64_t now_us; /* clock_wall_us */
};

static void log_failure(const struct look *look, const char *what, const char *name, status s)
{
    if (!status_is_ok(s))
        log_warn(control_log(look->bigtable->control), what, LOG_STR("backup", name),
                 LOG_STR("cause", status_message(s)));
    status_free(s);
}

/* --- expiry --- */

static void expire(struct look *look, const BtAdmin__Backup *backup)
{
    if (look->removed == MOST_REMOVED)
        return;
    status s = remove_backup(look->bigtable, backup->name, look->arena);
    if (status_is_ok(s)) {
        look->removed++;
        log_info(control_log(look->bigtable->control), "backup expired",
                 LOG_STR("backup", backup->name));
    }
    if (s.code == STATUS_FAILED_PRECONDITION) { /* it is being restored or copied: later */
        status_free(s);
        return;
    }
    log_failure(look, "an expired backup could not be deleted", backup->name, s);
}

/* --- hot backups --- */

struct cooling {
    struct look *look;
    const char *name;
};

static bool is_to_cool(const struct look *look, const BtAdmin__Backup *backup)
{
    return backup->state == BT_ADMIN__BACKUP__STATE__READY &&
           backup->hot_to_standard_time != NULL &&
           timestamp_us(backup->hot_to_standard_time) <= look->now_us;
}

/* Reads the backup's facts again: within an edit no other thread changes them. */
static status cool(void *context, struct edit *edit)
{
    const struct cooling *cooling = context;
    struct look *look = cooling->look;
    struct backup_facts facts;
    (void)edit;
    TRY(find_backup(look->bigtable->backups, cooling->name, look->arena, &facts));
    if (!is_to_cool(look, facts.backup))
        return status_ok();
    facts.backup->backup_type = BT_ADMIN__BACKUP__BACKUP_TYPE__STANDARD;
    facts.backup->hot_to_standard_time = NULL;
    return put_backup_facts(look->bigtable, &facts);
}

static void tend(struct look *look, const struct backup_facts *facts)
{
    const BtAdmin__Backup *backup = facts->backup;
    struct cooling cooling = {look, backup->name};
    bool is_ready = backup->state == BT_ADMIN__BACKUP__STATE__READY;
    bool has_expired =
        backup->expire_time != NULL && timestamp_us(backup->expire_time) <= look->now_us;
    if (is_ready && has_expired && look->bigtable->backups_expire)
        expire(look, backup);
    else if (is_to_cool(look, backup))
        log_failure(look, "a hot backup could not be made standard", backup->name,
                    control_edit(look->bigtable->control, cool, &cooling));
}

/* --- all of them --- */

static status list_all(struct look *look)
{
    struct backup_info *infos;
    TRY(backups_list(look->bigtable->backups, "", look->arena, &infos, &look->count));
    look->backups = arena_alloc(look->arena, look->count * sizeof *look->backups);
    if (look->backups == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < look->count; i++)
        TRY(backup_facts_of(&infos[i], look->arena, &look->backups[i]));
    return status_ok();
}

static status look_at_all(struct look *look, struct backup_attempts *attempts, bool *has_more)
{
    TRY(list_all(look));
    for (size_t i = 0; i < look->count; i++)
        tend(look, &look->backups[i]);
    *has_more = look->removed == MOST_REMOVED;
    return begin_automated_backups(look->bigtable, attempts, look->backups, look->count,
                                   look->arena, has_more);
}

void backup_scheduler_run_once(struct bigtable *bigtable, struct backup_attempts *attempts,
                               bool *has_more)
{
    struct look look = {.bigtable = bigtable,
                        .arena = arena_create(LOOK_MEMORY),
                        .now_us = clock_wall_us(cluster_clock(bigtable->cluster))};
    *has_more = false;
    status s = look.arena == NULL ? status_out_of_memory() : look_at_all(&look, attempts, has_more);
    log_failure(&look, "backups cannot be looked after for now", "", s);
    arena_destroy(look.arena);
}

/* --- the thread --- */

enum { SECOND_US = 1000 * 1000, REST_US = 60 * SECOND_US, SHORT_REST_US = SECOND_US };

struct backup_scheduler {
    struct bigtable *bigtable;
    struct backup_attempts attempts; /* only the thread looks at them */
    pthread_t thread;
    struct thread_stop stop;
};

static void *run(void *argument)
{
    struct backup_scheduler *scheduler = argument;
    bool has_more;
    do {
        backup_scheduler_run_once(scheduler->bigtable, &scheduler->attempts, &has_more);
    } while (thread_rest(&scheduler->stop, has_more ? SHORT_REST_US : REST_US));
    return NULL;
}

status backup_scheduler_start(struct bigtable *bigtable, struct backup_scheduler **out)
{
    *out = NULL;
    struct backup_scheduler *scheduler = calloc(1, sizeof *scheduler);
    if (scheduler == NULL)
        return status_out_of_memory();
    scheduler->bigtable = bigtable;
    thread_stop_init(&scheduler->stop);
    status s = thread_start(&scheduler->thread, "backups", run, scheduler);
    if (status_is_ok(s)) {
        *out = scheduler;
        return s;
    }
    thread_stop_destroy(&scheduler->stop);
    free(scheduler);
    return s;
}

void backup_scheduler_stop(struct backup_scheduler *scheduler)
{
    if (scheduler == NULL)
        return;
    thread_stop_now(&scheduler->stop);
    pthread_join(scheduler->thread, NULL);
    backup_attempts_free(&scheduler->attempts);
    thread_stop_destroy(&scheduler->stop);
    free(scheduler);
}
