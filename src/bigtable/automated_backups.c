/* See automated_backups.h. */
#include "bigtable/automated_backups.h"

#include "base/condition.h"
#include "base/limits.h"
#include "bigtable/backup_failures.h"
#include "bigtable/backup_jobs.h"
#include "bigtable/names.h"
#include "bigtable/table_extra.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* --- which tables have been tried --- */

enum {
    RETRY_AFTER_SECONDS = 3600,
    KEPT_SECONDS = 2 * RETRY_AFTER_SECONDS, /* so that the next attempt finds the last one */
    GRACE_SECONDS = 3600,                   /* a backup that is later than that is overdue */
};

struct backup_attempt {
    struct backup_attempt *next;
    int64_t begun_us; /* clock_steady_us */
    bool has_failed;  /* and no backup has been made since */
    char table[];
};

static void forget_before(struct backup_attempts *attempts, int64_t us)
{
    for (struct backup_attempt **at = &attempts->first; *at != NULL;) {
        struct backup_attempt *attempt = *at;
        if (attempt->begun_us >= us) {
            at = &attempt->next;
            continue;
        }
        *at = attempt->next;
        free(attempt);
    }
}

void backup_attempts_free(struct backup_attempts *attempts)
{
    forget_before(attempts, INT64_MAX);
}

/* NULL: there was none lately. */
static struct backup_attempt *find_attempt(const struct backup_attempts *attempts,
                                           const char *table)
{
    struct backup_attempt *at = attempts->first;
    while (at != NULL && strcmp(at->table, table) != 0)
        at = at->next;
    return at;
}

static status note_attempt(struct backup_attempts *attempts, const char *table, int64_t now_us,
                           struct backup_attempt **out)
{
    size_t size = strlen(table) + 1;
    struct backup_attempt *attempt = *out = find_attempt(attempts, table);
    if (attempt == NULL) {
        attempt = *out = calloc(1, sizeof *attempt + size);
        if (attempt == NULL)
            return status_out_of_memory();
        attempt->next = attempts->first;
        memcpy(attempt->table, table, size);
        attempts->first = attempt;
    }
    attempt->begun_us = now_us;
    return status_ok();
}

/* --- what there is --- */

struct automated {
    const char *table;
    int64_t begun_us;
    bool is_ready;
};

struct look {
    struct bigtable *bigtable;
    struct backup_attempts *attempts;
    struct arena *arena;
    struct automated *automated; /* by table, then by time */
    size_t count;
    int64_t now_us;            /* clock_wall_us */
    int64_t steady_us;         /* clock_steady_us */
    size_t overdue;            /* tables whose policy is not kept to */
    const char *overdue_table; /* one of them */
    int64_t overdue_us;        /* when its newest backup was begun; 0: it has none */
    bool is_making;
    bool has_more;
    status failure;
};

static int compare(const void *a, const void *b)
{
    const struct automated *one = a, *other = b;
    int order = strcmp(one->table, other->table);
    if (order != 0)
        return order;
    return one->begun_us < other->begun_us ? -1 : one->begun_us > other->begun_us;
}

/* A backup begun while a clock was ahead: its age is unknown, and until that time comes the table
 * would get none. A clock that is corrected by a little is no such. */
static bool is_of_the_future(const struct look *look, int64_t begun_us)
{
    return begun_us - look->now_us > GRACE_SECONDS * INT64_C(1000000);
}

static status gather(struct look *look, const struct backup_facts *backups, size_t count)
{
    look->automated = arena_alloc(look->arena, count * sizeof *look->automated);
    if (look->automated == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        const BtAdmin__Backup *backup = backups[i].backup;
        int64_t begun_us = timestamp_us(backup->start_time);
        bool is_ready = backup->state == BT_ADMIN__BACKUP__STATE__READY;
        if (!backups[i].is_automated)
            continue;
        look->is_making |= !is_ready;
        if (!is_of_the_future(look, begun_us))
            look->automated[look->count++] =
                (struct automated){backup->source_table, begun_us, is_ready};
    }
    if (look->count > 0)
        qsort(look->automated, look->count, sizeof *look->automated, compare);
    return status_ok();
}

/* When a table's newest backups were begun: of all, and of those that are ready. 0: none is there.
 */
struct newest {
    int64_t begun_us;
    int64_t ready_us;
};

static struct newest newest_of(const struct look *look, const char *table)
{
    const struct automated last = {.table = table, .begun_us = INT64_MAX};
    struct newest newest = {0, 0};
    size_t low = 0, high = look->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&look->automated[middle], &last) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low > 0 && strcmp(look->automated[low - 1].table, table) == 0; low--) {
        const struct automated *at = &look->automated[low - 1];
        if (newest.begun_us == 0)
            newest.begun_us = at->begun_us;
        if (at->is_ready) {
            newest.ready_us = at->begun_us;
            break;
        }
    }
    return newest;
}

/* --- one backup --- */

struct choice {
    struct look *look;
    const BtAdmin__Table__AutomatedBackupPolicy *policy;
    const char *cluster; /* the first by name; NULL: none is where the policy wants it */
    status failure;
};

static bool is_allowed(const BtAdmin__Table__AutomatedBackupPolicy *policy, const char *location)
{
    bool is_allowed = policy->n_locations == 0;
    for (size_t i = 0; i < policy->n_locations; i++)
        is_allowed |= strcmp(policy->locations[i], location) == 0;
    return is_allowed;
}

static bool visit_cluster(void *context, struct resource *resource)
{
    struct choice *choice = context;
    struct arena *arena = choice->look->arena;
    ProtobufCMessage *message;
    choice->failure = resource_decode(resource, arena, &message);
    if (!status_is_ok(choice->failure))
        return false;
    const BtAdmin__Cluster *cluster = (const void *)message;
    if (!is_allowed(choice->policy, cluster->location))
        return true;
    choice->cluster = cluster->name;
    return false;
}

static status choose_cluster(struct choice *choice, const char *table)
{
    char *instance = name_parent(choice->look->arena, table);
    if (instance == NULL)
        return status_out_of_memory();
    TRY(control_list(choice->look->bigtable->control, RESOURCE_CLUSTER, instance, "", visit_cluster,
                     choice));
    TRY(choice->failure);
    if (choice->cluster == NULL)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "no cluster is in a location of the table's automated_backup_policy");
    return status_ok();
}

/* auto-<date>-<time>-<as much of the table's id as there is room for> */
static char *name_backup(const struct look *look, const char *cluster, const char *table)
{
    char id[LIMIT_RESOURCE_ID_BYTES + 1], stamp[32];
    time_t now = look->now_us / 1000000;
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &utc);
    snprintf(id, sizeof id, "auto-%s-%s", stamp, name_id(table));
    return name_join(look->arena, cluster, "backups", id);
}

static status after(const struct look *look, const Pb__Duration *span, Pb__Timestamp **out)
{
    if (span == NULL)
        return status_ok();
    int64_t span_us = span->seconds * 1000000 + span->nanos / 1000;
    return timestamp_message(look->now_us + span_us, look->arena, out);
}

static status begin_automated(struct look *look, const char *table,
                              const BtAdmin__Table__AutomatedBackupPolicy *policy)
{
    struct choice choice = {.look = look, .policy = policy, .failure = status_ok()};
    BtAdmin__Backup backup = BT_ADMIN__BACKUP__INIT;
    struct backup_order order = {
        .bigtable = look->bigtable, .arena = look->arena, .backup = &backup, .is_automated = true};
    const ProtobufCMessage *operation;
    TRY(choose_cluster(&choice, table));
    backup.name = name_backup(look, choice.cluster, table);
    if (backup.name == NULL)
        return status_out_of_memory();
    backup.source_table = table;
    TRY(after(look, policy->retention_period, &backup.expire_time));
    TRY(after(look, policy->keep_hot_duration, &backup.hot_to_standard_time));
    if (policy->keep_hot_duration != NULL)
        backup.backup_type = BT_ADMIN__BACKUP__BACKUP_TYPE__HOT;
    return backup_order_create(&order, &operation);
}

static void log_failure(const struct look *look, const char *table, status s)
{
    if (status_is_ok(s))
        return;
    backup_failures_note(look->bigtable->backup_failures, table, true);
    log_warn(control_log(look->bigtable->control), "an automated backup could not begin",
             LOG_STR("table", table), LOG_STR("cause", status_message(s)));
    status_free(s);
}

/* --- all tables --- */

/* A table with a policy that is in force. */
struct scheduled {
    const char *table;
    const BtAdmin__Table__AutomatedBackupPolicy *policy;
    struct newest newest;
    struct backup_attempt *attempt; /* NULL: there was none lately */
};

static int64_t due_us(const struct scheduled *scheduled, int64_t newest_us)
{
    return newest_us + scheduled->policy->frequency->seconds * 1000000;
}

static bool is_due(const struct look *look, const struct scheduled *scheduled)
{
    const struct backup_attempt *attempt = scheduled->attempt;
    bool was_tried = attempt != NULL &&
                     look->steady_us - attempt->begun_us <= RETRY_AFTER_SECONDS * INT64_C(1000000);
    return !was_tried && due_us(scheduled, scheduled->newest.begun_us) <= look->now_us;
}

static status begin(struct look *look, struct scheduled *scheduled)
{
    look->has_more |= look->is_making;
    if (look->is_making)
        return status_ok();
    look->is_making = true;
    TRY(note_attempt(look->attempts, scheduled->table, look->steady_us, &scheduled->attempt));
    status s = begin_automated(look, scheduled->table, scheduled->policy);
    if (status_is_ok(s))
        scheduled->newest.begun_us = look->now_us;
    log_failure(look, scheduled->table, s);
    return status_ok();
}

/* Whether the policy is not kept to, as far as an operator should know: an attempt has come to
 * nothing, or it is late. */
static bool is_overdue(const struct look *look, const struct scheduled *scheduled)
{
    int64_t ready_us = scheduled->newest.ready_us;
    int64_t late_us = look->now_us - due_us(scheduled, ready_us);
    bool is_under_way = scheduled->newest.begun_us != ready_us;
    bool is_late = late_us >= 0;
    if (scheduled->attempt != NULL && (!is_late || !is_under_way))
        scheduled->attempt->has_failed = is_late;
    bool has_failed = scheduled->attempt != NULL && scheduled->attempt->has_failed;
    return is_late && (has_failed || (ready_us > 0 && late_us >= GRACE_SECONDS * INT64_C(1000000)));
}

static void note_overdue(struct look *look, const struct scheduled *scheduled)
{
    if (!is_overdue(look, scheduled))
        return;
    look->overdue++;
    look->overdue_table = scheduled->table;
    look->overdue_us = scheduled->newest.ready_us;
}

static void tell_overdue(const struct look *look)
{
    const int64_t hour_us = INT64_C(3600) * 1000000;
    struct condition *condition = cluster_condition(look->bigtable->cluster);
    char newest[64] = "has none";
    if (look->overdue_us > 0)
        snprintf(newest, sizeof newest, "has one of %lld hours ago",
                 (long long)((look->now_us - look->overdue_us) / hour_us));
    if (look->overdue == 0)
        condition_leave(condition, REASON_backup_overdue);
    else
        condition_enter(condition, REASON_backup_overdue,
                        "of %zu tables the newest backup is older than their policy wants: %s %s",
                        look->overdue, look->overdue_table, newest);
}

static status back_up_table_if_due(struct look *look, struct table *table)
{
    struct table_info info;
    BtAdmin__Table *kept;
    TRY(table_describe(table, look->arena, &info));
    TRY(table_extra_decode(info.extra, look->arena, &kept));
    const BtAdmin__Table__AutomatedBackupPolicy *policy = table_backup_policy(kept);
    if (policy == NULL || policy->disabled)
        return status_ok();
    struct scheduled scheduled = {.table = info.name,
                                  .policy = policy,
                                  .newest = newest_of(look, info.name),
                                  .attempt = find_attempt(look->attempts, info.name)};
    if (is_due(look, &scheduled))
        TRY(begin(look, &scheduled));
    note_overdue(look, &scheduled);
    return status_ok();
}

static bool visit_table(void *context, struct table *table)
{
    struct look *look = context;
    look->failure = back_up_table_if_due(look, table);
    return status_is_ok(look->failure);
}

status begin_automated_backups(struct bigtable *bigtable, struct backup_attempts *attempts,
                               const struct backup_facts *backups, size_t count,
                               struct arena *arena, bool *has_more)
{
    struct clock *clock = cluster_clock(bigtable->cluster);
    struct look look = {.bigtable = bigtable,
                        .attempts = attempts,
                        .arena = arena,
                        .now_us = clock_wall_us(clock),
                        .steady_us = clock_steady_us(clock),
                        .failure = status_ok()};
    const bytes none = bytes_of("");
    forget_before(attempts, look.steady_us - KEPT_SECONDS * INT64_C(1000000));
    TRY(gather(&look, backups, count));
    TRY(cluster_list_tables(bigtable->cluster, none, none, visit_table, &look));
    *has_more |= look.has_more;
    if (status_is_ok(look.failure))
        tell_overdue(&look);
    return look.failure;
}
