/* See runner.h. */
#include "backup/runner.h"

#include "archive/bases.h"
#include "aws/bucket.h"
#include "backup/run_audit.h"
#include "backup/runner_private.h"
#include "backup/whole_scope.h"
#include "backup/whole_tables.h"
#include "base/condition.h"
#include "cluster/checkpoint.h"
#include "os/thread.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char CHECKPOINT_DIRECTORY[] = "checkpoint";
static const char SCRATCH_DIRECTORY[] = "restoring";
enum {
    MANIFEST_MEMORY = 256 << 20,
    MOST_CLOSED_LOGGED = 20, /* ranges of one backup that the log names */
};

/* --- where --- */

static bool has_dots(const char *place)
{
    const char *at = place;
    while ((at = strstr(at, "..")) != NULL) {
        bool begins = at == place || at[-1] == '/';
        if (begins && (at[2] == '/' || at[2] == '\0'))
            return true;
        at += 2;
    }
    return false;
}

static bool is_within(bytes outer, const char *place)
{
    bytes inner = bytes_of(place);
    while (outer.size > 1 && outer.data[outer.size - 1] == '/')
        outer.size--;
    return outer.size > 0 && bytes_start_with(inner, outer) &&
           (inner.size == outer.size || inner.data[outer.size] == '/' ||
            outer.data[outer.size - 1] == '/');
}

bool whole_place_is_allowed(const char *places, const char *place)
{
    if (places == NULL || has_dots(place))
        return false;
    while (*places != '\0') {
        size_t size = strcspn(places, ",");
        if (is_within(bytes_make(places, size), place))
            return true;
        places += size + (places[size] == ',');
    }
    return false;
}

status runner_open_place(const struct whole_runner *runner, const char *name, struct place **out)
{
    return place_of_name_with_key(files_of_system(), name, runner->options.key_file, out);
}

/* --- what fails --- */

static struct metric_series *find_cause(struct whole_runner *runner, const char *work,
                                        const char *code)
{
    for (size_t i = 0; i < runner->failure_count; i++) {
        struct metric_series *at = &runner->failures[i];
        if (strcmp(at->labels[0], work) == 0 && strcmp(at->labels[1], code) == 0)
            return at;
    }
    struct metric_series *added = &runner->failures[runner->failure_count++];
    *added = (struct metric_series){.labels = {work, code}};
    return added;
}

/* By what was being done: create, expire or restore. A failure that cannot be shown for want of
 * memory is shown with the next one. */
static void count_failure(struct whole_runner *runner, const char *work, enum status_code code)
{
    struct metrics *metrics = runner->options.metrics;
    metrics_add(metrics, METRIC_whole_backup_failures_total, 1);
    find_cause(runner, work, status_code_name(code))->value++;
    if (metrics != NULL)
        status_ignore(metrics_replace(metrics, METRIC_BY_whole_backup_failures_by_cause_total,
                                      runner->failures, runner->failure_count));
}

/* --- one backup --- */

static struct whole_run *last_run(struct whole_runner *runner)
{
    return &runner->runs[runner->count % WHOLE_RUNS];
}

static bool goes_on(void *context)
{
    struct whole_runner *runner = context;
    pthread_mutex_lock(&runner->lock);
    bool ends = runner->is_cancelled || runner->is_stopping;
    pthread_mutex_unlock(&runner->lock);
    return !ends;
}

static void tell_damaged(void *context, const char *content, const char *wrong)
{
    const struct whole_runner *runner = context;
    log_warn(runner->options.log,
             "a file in the place of whole backups is damaged, and is written anew",
             LOG_STR("file", content), LOG_STR("cause", wrong));
}

static status create_of_checkpoint(struct whole_runner *runner, struct place *place,
                                   const struct checkpoint_facts *checkpoint, struct whole_run *run)
{
    struct buffer settings = {0};
    if (runner->options.describe != NULL && run->scope[0] == '\0')
        runner->options.describe(runner->options.context, &settings);
    buffer_append_byte(&settings, 0);
    if (settings.failed) {
        buffer_free(&settings);
        return status_out_of_memory();
    }
    const struct whole_backup facts = {.server = checkpoint->identity,
                                       .version = checkpoint->sequence,
                                       .archive_stream = checkpoint->archive_stream,
                                       .instant_us = checkpoint->wall_us,
                                       .settings = (const char *)settings.data,
                                       .is_scheduled = run->is_scheduled,
                                       .scope = run->scope,
                                       .closed_ranges = run->closed_ranges};
    const struct whole_source source = {.files = files_of_system(),
                                        .directory = (const char *)runner->checkpoint.data,
                                        .facts = &facts,
                                        .check_period_us = runner->options.check_period_us,
                                        .tell_damaged = tell_damaged,
                                        .context = runner};
    status s = whole_create(place, &source, &runner->work, run->name);
    buffer_free(&settings);
    return s;
}

/* The backup is good whether this succeeds or not. */
static void note_for_archive(struct whole_runner *runner, const struct place *place,
                             const char *name, const struct checkpoint_facts *facts)
{
    const struct archive_base base = {.stream = facts->archive_stream,
                                      .version = facts->sequence,
                                      .place = place_title(place),
                                      .name = name};
    status s = facts->archive_stream == 0
                   ? status_ok()
                   : cluster_note_whole_backup(runner->options.cluster, &base);
    if (!status_is_ok(s))
        log_warn(runner->options.log, "the archive does not know of the whole backup",
                 LOG_STR("cause", status_message(s)));
    status_free(s);
}

struct finding {
    const char *scope;
    bool is_there;
};

static bool look_at_table(void *context, struct table *table)
{
    struct finding *finding = context;
    finding->is_there = whole_scope_has(finding->scope, table_name(table));
    return !finding->is_there;
}

/* Before there is a checkpoint, which would show it, too: a schedule asks again and again. */
static status check_is_there(struct whole_runner *runner, const char *scope)
{
    struct control *control = runner->options.control;
    bool is_instance = whole_kind_of(scope) == WHOLE_INSTANCE && control != NULL;
    struct finding finding = {.scope = scope};
    if (is_instance && control_has(control, RESOURCE_INSTANCE, scope))
        return status_ok();
    TRY(cluster_list_tables(runner->options.cluster, bytes_of(scope), bytes_of(""), look_at_table,
                            &finding));
    return finding.is_there ? status_ok() : whole_scope_missing(scope);
}

/* No archive goes on from a part, and nothing is told of the server's settings. */
static status narrow(struct whole_runner *runner, const struct whole_run *run,
                     struct checkpoint_facts *facts)
{
    facts->archive_stream = 0;
    return whole_scope_narrow((const char *)runner->checkpoint.data, run->scope,
                              runner->options.log);
}

struct closed_look {
    const struct whole_runner *runner;
    struct whole_run *run;
};

static status note_closed(void *context, const struct lost_rows *lost)
{
    const struct closed_look *look = context;
    struct whole_run *run = look->run;
    if (run->scope[0] != '\0' && !whole_scope_has(run->scope, lost->table))
        return status_ok();
    if (run->closed_ranges++ < MOST_CLOSED_LOGGED)
        log_warn(look->runner->options.log, "a whole backup has rows that are out of service",
                 LOG_STR("place", run->place), LOG_STR("cause", lost->words));
    return status_ok();
}

/* After the checkpoint, which finds files that are missing. What cannot be told for want of memory
 * is not counted; a restore finds it all the same. */
static void look_for_closed(const struct whole_runner *runner, struct whole_run *run)
{
    struct closed_look look = {runner, run};
    status_ignore(cluster_list_damage(runner->options.cluster, note_closed, &look));
}

static status create_in(struct whole_runner *runner, struct place *place, struct whole_run *run)
{
    struct checkpoint_facts facts;
    const char *directory = (const char *)runner->checkpoint.data;
    if (run->scope[0] != '\0')
        TRY(check_is_there(runner, run->scope));
    TRY(cluster_checkpoint(runner->options.cluster, directory, &facts));
    run->instant_us = facts.wall_us;
    look_for_closed(runner, run);
    status s = run->scope[0] != '\0' ? narrow(runner, run, &facts) : status_ok();
    if (status_is_ok(s))
        s = create_of_checkpoint(runner, place, &facts, run);
    if (status_is_ok(s))
        note_for_archive(runner, place, run->name, &facts);
    status removed = cluster_remove_checkpoint(runner->options.cluster, directory);
    if (!status_is_ok(removed))
        log_warn(runner->options.log, "a checkpoint stays until the next start",
                 LOG_STR("directory", directory), LOG_STR("cause", status_message(removed)));
    status_free(removed);
    return s;
}

/* Removes backups that the schedule of this run has made, and that are more than are to be kept. */
static status expire(struct whole_runner *runner, struct place *place, const char *made)
{
    char identity[STORE_IDENTITY_SIZE];
    const struct whole_scheduled *scheduled = &runner->schedules.all[runner->scheduled];
    const struct whole_expiry expiry = {.server = identity,
                                        .scope = scheduled->scope,
                                        .scheduled_only = true,
                                        .keep = scheduled->schedule.keep,
                                        .made = made};
    struct whole_work work = {
        .clock = runner->work.clock, .goes_on = goes_on, .context = runner->work.context};
    size_t backups, files;
    if (expiry.keep == 0)
        return status_ok();
    TRY(cluster_identity(runner->options.cluster, identity));
    TRY(whole_expire(place, &expiry, &work, &backups, &files));
    if (backups > 0)
        log_info(runner->options.log, "old whole backups removed",
                 LOG_STR("place", place_title(place)), LOG_INT("backups", (int64_t)backups),
                 LOG_INT("files", (int64_t)files));
    return status_ok();
}

/* The backup is there, and counts, whatever becomes of those before it. */
static void try_to_expire(struct whole_runner *runner, struct place *place, const char *made)
{
    status s = expire(runner, place, made);
    if (!status_is_ok(s) && s.code != STATUS_CANCELLED) {
        count_failure(runner, "expire", s.code);
        log_warn(runner->options.log, "old whole backups cannot be removed",
                 LOG_STR("place", place_title(place)), LOG_STR("cause", status_message(s)));
    }
    status_free(s);
}

/* A place is begun by a person alone: see place_make. */
static status create_locked(struct whole_runner *runner, struct place *place, struct whole_run *run)
{
    struct place_lock *lock;
    if (!run->is_scheduled)
        TRY(place_make(place));
    TRY(whole_prepare(place));
    TRY(whole_lock(place, &lock));
    status s = create_in(runner, place, run);
    if (status_is_ok(s) && run->is_scheduled)
        try_to_expire(runner, place, run->name);
    place_unlock(place, lock);
    return s;
}

/* --- tables out of one --- */

static status find_backup(struct place *place, struct whole_run *run, struct arena *arena,
                          struct whole_backup *out)
{
    const char *name;
    if (run->name[0] != '\0')
        return whole_read_named(place, run->name, arena, out);
    TRY(whole_find_newest(place, run->from, arena, &name, out));
    snprintf(run->name, sizeof run->name, "%s", name);
    return status_ok();
}

static status restore_from(struct whole_runner *runner, struct place *place, struct whole_run *run,
                           struct arena *arena)
{
    struct whole_backup backup;
    TRY(find_backup(place, run, arena, &backup));
    const struct whole_tables order = {.place = place,
                                       .backup = &backup,
                                       .from = run->from,
                                       .to = run->to[0] == '\0' ? NULL : run->to,
                                       .with_policies = run->with_policies,
                                       .salvage = run->salvage,
                                       .files = files_of_system(),
                                       .scratch = (const char *)runner->scratch.data,
                                       .work = &runner->work,
                                       .control = runner->options.control,
                                       .backups = runner->options.backups};
    struct whole_tables_made made;
    status s = whole_restore_tables(&order, &made);
    run->tables = made.tables;
    run->closed_ranges = made.closed;
    return s;
}

static status restore_tables(struct whole_runner *runner, struct place *place,
                             struct whole_run *run)
{
    struct arena *arena = arena_create(MANIFEST_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    status s = restore_from(runner, place, run, arena);
    arena_destroy(arena);
    return s;
}

/* --- either --- */

static bool makes_tables(const struct whole_run *run)
{
    return run->from[0] != '\0';
}

static status do_run(struct whole_runner *runner, struct whole_run *run)
{
    struct place *place;
    TRY(runner_open_place(runner, run->place, &place));
    status s =
        makes_tables(run) ? restore_tables(runner, place, run) : create_locked(runner, place, run);
    place_close(place);
    return s;
}

/* --- what came of it --- */

static void count_outcome(struct whole_runner *runner, status s, const struct whole_run *run)
{
    struct metrics *metrics = runner->options.metrics;
    if (status_is_ok(s) && !makes_tables(run)) {
        metrics_add(metrics, METRIC_whole_backups_made_total, 1);
        if (run->scope[0] == '\0')
            metrics_set(metrics, METRIC_whole_backup_newest_timestamp_seconds,
                        run->end_us / SECOND_US);
    } else if (!status_is_ok(s) && s.code != STATUS_CANCELLED) {
        count_failure(runner, makes_tables(run) ? "restore" : "create", s.code);
    }
}

static void log_tables(const struct log *log, const struct whole_run *run)
{
    if (run->code == STATUS_OK)
        log_info(log, "tables restored from a whole backup", LOG_STR("place", run->place),
                 LOG_STR("name", run->name), LOG_STR("source", run->from),
                 LOG_STR("target", run->to), LOG_INT("tables", (int64_t)run->tables),
                 LOG_INT("closed_ranges", (int64_t)run->closed_ranges),
                 LOG_INT("seconds", (run->end_us - run->start_us) / 1000000));
    else
        log_warn(log, "tables were not all restored from a whole backup",
                 LOG_STR("place", run->place), LOG_STR("source", run->from),
                 LOG_INT("tables", (int64_t)run->tables),
                 LOG_STR("code", status_code_name(run->code)), LOG_STR("cause", run->error));
}

static const char *scope_of(const struct whole_run *run)
{
    return run->scope[0] != '\0' ? run->scope : "all";
}

static void log_outcome(const struct whole_runner *runner, const struct whole_run *run)
{
    const struct log *log = runner->options.log;
    if (makes_tables(run))
        log_tables(log, run);
    else if (run->code == STATUS_OK)
        log_info(log, "whole backup made", LOG_STR("place", run->place), LOG_STR("name", run->name),
                 LOG_INT("seconds", (run->end_us - run->start_us) / 1000000),
                 LOG_INT("bytes", (int64_t)run->bytes_total),
                 LOG_INT("copied_bytes", (int64_t)run->bytes_copied),
                 LOG_INT("closed_ranges", (int64_t)run->closed_ranges),
                 LOG_STR("scope", scope_of(run)));
    else if (run->code == STATUS_CANCELLED)
        log_info(log, "whole backup cancelled", LOG_STR("place", run->place));
    else
        log_warn(log, "a whole backup has failed", LOG_STR("place", run->place),
                 LOG_STR("code", status_code_name(run->code)), LOG_STR("cause", run->error),
                 LOG_STR("scope", scope_of(run)));
}

/* With the lock held. */
static void note_progress(struct whole_runner *runner)
{
    struct whole_run *run = last_run(runner);
    run->bytes_total = runner->work.bytes_total;
    run->bytes_done = runner->work.bytes_done;
    run->files_copied = runner->work.files_copied;
    run->files_mended = runner->work.files_mended;
    run->bytes_copied = runner->work.bytes_copied;
}

static void note_scheduled(struct whole_runner *runner, status s, const struct whole_run *done)
{
    const struct whole_backup made = {.instant_us = done->instant_us, .end_us = done->end_us};
    whole_schedules_note(&runner->schedules, runner->scheduled, s, &made,
                         clock_steady_us(runner->work.clock));
}

/* Notes the end of the run, with what has been done. */
static struct whole_run finish(struct whole_runner *runner, status s, const struct whole_run *done)
{
    int64_t end_us = cluster_wall_us(runner->options.cluster);
    pthread_mutex_lock(&runner->lock);
    struct whole_run *run = last_run(runner);
    note_progress(runner);
    run->end_us = end_us > run->start_us ? end_us : run->start_us;
    run->instant_us = done->instant_us;
    run->code = s.code;
    run->tables = done->tables;
    run->closed_ranges = done->closed_ranges;
    if (status_is_ok(s) || makes_tables(run))
        snprintf(run->name, sizeof run->name, "%s", done->name);
    if (!status_is_ok(s))
        snprintf(run->error, sizeof run->error, "%s", status_message(s));
    const struct whole_run ended = *run;
    if (runner->audit != NULL)
        run_audit_end(runner->audit, &ended, buffer_bytes(&runner->principal));
    runner->is_busy = false;
    pthread_mutex_unlock(&runner->lock);
    return ended;
}

static void end_run(struct whole_runner *runner, status s, const struct whole_run *done)
{
    const struct whole_run ended = finish(runner, s, done);
    count_outcome(runner, s, &ended);
    log_outcome(runner, &ended);
    if (ended.is_scheduled)
        note_scheduled(runner, s, &ended);
}

static void run_last(struct whole_runner *runner)
{
    pthread_mutex_lock(&runner->lock);
    struct whole_run run = *last_run(runner);
    pthread_mutex_unlock(&runner->lock);
    status s = do_run(runner, &run);
    end_run(runner, s, &run);
    status_free(s);
}

/* With the lock held. */
void runner_add_run(struct whole_runner *runner, const char *place, bool is_scheduled,
                    const struct whole_wish *wish, struct whole_run *out)
{
    runner->count++;
    runner->is_busy = true;
    runner->is_cancelled = false;
    runner->work.bytes_total = runner->work.bytes_done = 0;
    runner->work.files_copied = runner->work.bytes_copied = runner->work.files_mended = 0;
    struct whole_run *run = last_run(runner);
    *run = (struct whole_run){.id = runner->count,
                              .is_scheduled = is_scheduled,
                              .start_us = cluster_wall_us(runner->options.cluster)};
    snprintf(run->place, sizeof run->place, "%s", place);
    if (wish != NULL) {
        snprintf(run->name, sizeof run->name, "%s", wish->name);
        snprintf(run->from, sizeof run->from, "%s", wish->from);
        snprintf(run->to, sizeof run->to, "%s", wish->to);
        snprintf(run->scope, sizeof run->scope, "%s", wish->scope);
        run->with_policies = wish->with_policies;
        run->salvage = wish->salvage;
    }
    runner->audit = wish != NULL ? wish->audit : NULL;
    buffer_clear(&runner->principal);
    if (wish != NULL)
        buffer_append_bytes(&runner->principal, wish->principal);
    *out = *run;
    pthread_cond_signal(&runner->wake);
}

/* With the lock held; also wakes for nothing. */
static void wait_for_work(struct whole_runner *runner, int64_t most_us)
{
    const struct timespec until = thread_time_in(most_us > 0 ? most_us : 0);
    if (!runner->is_busy && !runner->is_stopping && most_us > 0)
        pthread_cond_timedwait(&runner->wake, &runner->lock, &until);
}

/* --- the thread --- */

static void *run(void *argument)
{
    struct whole_runner *runner = argument;
    pthread_mutex_lock(&runner->lock);
    while (!runner->is_stopping) {
        bool is_busy = runner->is_busy;
        int64_t wait_us = 0;
        pthread_mutex_unlock(&runner->lock);
        if (is_busy)
            run_last(runner);
        else
            wait_us = runner_attend_schedules(runner);
        pthread_mutex_lock(&runner->lock);
        wait_for_work(runner, wait_us);
    }
    pthread_mutex_unlock(&runner->lock);
    return NULL;
}

/* --- asking --- */

static status begin(struct whole_runner *runner, const char *place, const struct whole_wish *wish,
                    struct whole_run *out)
{
    if (place[0] == '\0' || strlen(place) >= WHOLE_PLACE_SIZE)
        return status_make(STATUS_INVALID_ARGUMENT, "a place has up to %d bytes, and some",
                           WHOLE_PLACE_SIZE - 1);
    if (!whole_place_is_allowed(runner->options.places, place))
        return status_make(STATUS_PERMISSION_DENIED,
                           "%s is in none of the server's --backup-places", place);
    pthread_mutex_lock(&runner->lock);
    bool is_busy = runner->is_busy || runner->is_stopping;
    bool is_making = is_busy && !makes_tables(last_run(runner));
    if (!is_busy)
        runner_add_run(runner, place, false, wish, out);
    pthread_mutex_unlock(&runner->lock);
    return is_busy ? status_make(STATUS_FAILED_PRECONDITION,
                                 is_making ? "a whole backup is being made"
                                           : "tables are being restored from a whole backup")
                   : status_ok();
}

static status too_long(void)
{
    return status_make(STATUS_INVALID_ARGUMENT, "the name is too long");
}

status whole_runner_begin(struct whole_runner *runner, const struct whole_wish *wish,
                          struct whole_run *out)
{
    if (wish->scope[0] != '\0')
        TRY(whole_scope_check(wish->scope));
    if (strlen(wish->scope) >= WHOLE_SOURCE_SIZE)
        return too_long();
    return begin(runner, wish->place, wish, out);
}

status whole_runner_restore(struct whole_runner *runner, const struct whole_wish *wish,
                            struct whole_run *out)
{
    TRY(whole_tables_check(wish->from, wish->to[0] == '\0' ? NULL : wish->to));
    if (strlen(wish->name) >= WHOLE_NAME_SIZE || strlen(wish->from) >= WHOLE_SOURCE_SIZE ||
        strlen(wish->to) >= WHOLE_SOURCE_SIZE)
        return too_long();
    if (runner->options.control == NULL)
        return status_make(STATUS_UNIMPLEMENTED, "no tables are restored here");
    return begin(runner, wish->place, wish, out);
}

size_t whole_runner_list(struct whole_runner *runner, struct whole_run out[WHOLE_RUNS])
{
    pthread_mutex_lock(&runner->lock);
    if (runner->is_busy)
        note_progress(runner);
    size_t count = runner->count < WHOLE_RUNS ? (size_t)runner->count : WHOLE_RUNS;
    for (size_t i = 0; i < count; i++)
        out[i] = runner->runs[(runner->count - i) % WHOLE_RUNS];
    pthread_mutex_unlock(&runner->lock);
    return count;
}

bool whole_runner_is_busy(struct whole_runner *runner)
{
    pthread_mutex_lock(&runner->lock);
    bool is_busy = runner->is_busy;
    pthread_mutex_unlock(&runner->lock);
    return is_busy;
}

size_t whole_runner_schedules(struct whole_runner *runner,
                              struct whole_schedule_view out[WHOLE_SCHEDULES_MOST])
{
    pthread_mutex_lock(&runner->lock);
    memcpy(out, runner->views, sizeof runner->views);
    pthread_mutex_unlock(&runner->lock);
    return runner->schedules.count;
}

const char *whole_runner_scheduled_place(const struct whole_runner *runner)
{
    return runner->scheduled_place;
}

status whole_runner_cancel(struct whole_runner *runner, uint64_t id)
{
    pthread_mutex_lock(&runner->lock);
    bool is_known = id > 0 && id <= runner->count;
    if (is_known && id == runner->count && runner->is_busy)
        runner->is_cancelled = true;
    pthread_mutex_unlock(&runner->lock);
    return is_known ? status_ok() : status_make(STATUS_NOT_FOUND, "there is no run %" PRIu64, id);
}

/* --- life --- */

static status take_schedules(struct whole_runner *runner)
{
    const struct whole_runner_options *options = &runner->options;
    TRY(whole_schedules_create(&options->schedules, &runner->schedules));
    if (runner->schedules.count == 0)
        return status_ok();
    const char *places = options->places != NULL ? options->places : "";
    size_t size = strcspn(places, ",");
    if (size == 0 || size >= sizeof runner->scheduled_place)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "--backup-schedule: the first of --backup-places is no place");
    memcpy(runner->scheduled_place, places, size);
    runner_tell_views(runner, clock_wall_us(runner->work.clock),
                      clock_steady_us(runner->work.clock));
    return status_ok();
}

static status start(struct whole_runner *runner)
{
    TRY(take_schedules(runner));
    buffer_append_format(&runner->checkpoint, "%s/%s%c", runner->options.data_directory,
                         CHECKPOINT_DIRECTORY, 0);
    buffer_append_format(&runner->scratch, "%s/%s%c", runner->options.data_directory,
                         SCRATCH_DIRECTORY, 0);
    if (runner->checkpoint.failed || runner->scratch.failed)
        return status_out_of_memory();
    TRY(cluster_remove_checkpoint(runner->options.cluster, (const char *)runner->checkpoint.data));
    TRY(files_remove_flat_directory(files_of_system(), (const char *)runner->scratch.data));
    TRY(thread_start(&runner->thread, "whole-backups", run, runner));
    runner->has_thread = true;
    return status_ok();
}

status whole_runner_create(const struct whole_runner_options *options, struct whole_runner **out)
{
    *out = NULL;
    struct whole_runner *runner = calloc(1, sizeof *runner);
    if (runner == NULL)
        return status_out_of_memory();
    runner->options = *options;
    runner->work.clock = cluster_clock(options->cluster);
    runner->work.bytes_per_second = options->bytes_per_second;
    runner->work.goes_on = goes_on;
    runner->work.context = runner;
    pthread_mutex_init(&runner->lock, NULL);
    thread_init_steady_wake(&runner->wake);
    status s = start(runner);
    if (status_is_ok(s))
        *out = runner;
    else
        whole_runner_destroy(runner);
    return s;
}

void whole_runner_destroy(struct whole_runner *runner)
{
    if (runner == NULL)
        return;
    pthread_mutex_lock(&runner->lock);
    runner->is_stopping = true;
    pthread_cond_signal(&runner->wake);
    pthread_mutex_unlock(&runner->lock);
    if (runner->has_thread)
        pthread_join(runner->thread, NULL);
    buffer_free(&runner->checkpoint);
    buffer_free(&runner->scratch);
    buffer_free(&runner->principal);
    whole_schedules_free(&runner->schedules);
    pthread_cond_destroy(&runner->wake);
    pthread_mutex_destroy(&runner->lock);
    free(runner);
}
