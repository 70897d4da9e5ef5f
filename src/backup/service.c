/* See service.h. */
#include "backup/service.h"

#include "backup/run_audit.h"
#include "bigtable/admin_call.h"
#include "trestle/backup/v1/whole_backups.pb-c.h"
#include "wire/timestamps.h"

static struct whole_runner *runner_of(const struct admin_request *request)
{
    return ((const struct backup_service *)request->more)->runner;
}

static status check_server(const char *name)
{
    if (strcmp(name, "servers/self") == 0)
        return status_ok();
    return status_make(STATUS_NOT_FOUND, "there is no server \"%s\" here: servers/self is the one",
                       name);
}

/* --- runs as messages --- */

static status tell_error(const struct whole_run *run, struct arena *arena, Rpc__Status **out)
{
    PROTO_NEW(arena, *out, RPC__STATUS__INIT);
    (*out)->code = (int32_t)run->code;
    (*out)->message = arena_string(arena, bytes_of(run->error));
    return (*out)->message == NULL ? status_out_of_memory() : status_ok();
}

static status tell_run(const struct whole_run *run, struct arena *arena, Wb__WholeBackupRun **out)
{
    Wb__WholeBackupRun *message;
    PROTO_NEW(arena, message, WB__WHOLE_BACKUP_RUN__INIT);
    message->run = (int64_t)run->id;
    message->place = arena_string(arena, bytes_of(run->place));
    message->name = arena_string(arena, bytes_of(run->name));
    message->scheduled = run->is_scheduled;
    message->total_bytes = (int64_t)run->bytes_total;
    message->done_bytes = (int64_t)run->bytes_done;
    message->copied_files = (int64_t)run->files_copied;
    message->mended_files = (int64_t)run->files_mended;
    message->copied_bytes = (int64_t)run->bytes_copied;
    message->source = arena_string(arena, bytes_of(run->from));
    message->target = arena_string(arena, bytes_of(run->to));
    message->tables = (int64_t)run->tables;
    message->closed_ranges = (int64_t)run->closed_ranges;
    message->scope = arena_string(arena, bytes_of(run->scope));
    if (message->place == NULL || message->name == NULL || message->source == NULL ||
        message->target == NULL || message->scope == NULL)
        return status_out_of_memory();
    TRY(timestamp_message(run->start_us, arena, &message->start_time));
    if (run->end_us != 0)
        TRY(timestamp_message(run->end_us, arena, &message->end_time));
    if (run->code != STATUS_OK)
        TRY(tell_error(run, arena, &message->error));
    *out = message;
    return status_ok();
}

/* --- methods --- */

static struct audit *audit_of(const struct admin_request *request)
{
    return ((const struct backup_service *)request->more)->audit;
}

static bytes principal_of(const struct admin_request *request)
{
    return request->caller == NULL ? bytes_make(NULL, 0) : request->caller->principal;
}

static status create_whole_backup(const struct admin_request *request,
                                  const ProtobufCMessage **response)
{
    const Wb__CreateWholeBackupRequest *message = (const void *)request->message;
    const struct whole_wish wish = {.place = message->place,
                                    .name = "",
                                    .from = "",
                                    .to = "",
                                    .scope = message->scope,
                                    .audit = audit_of(request),
                                    .principal = principal_of(request)};
    struct whole_run run;
    Wb__WholeBackupRun *told;
    TRY(check_server(message->parent));
    TRY(run_audit_ask(&wish, request->arena, request->caller));
    TRY(whole_runner_begin(runner_of(request), &wish, &run));
    TRY(tell_run(&run, request->arena, &told));
    *response = &told->base;
    return status_ok();
}

static status restore_tables(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Wb__RestoreTablesRequest *message = (const void *)request->message;
    const struct whole_wish wish = {.place = message->place,
                                    .name = message->backup,
                                    .from = message->source,
                                    .to = message->target,
                                    .with_policies = message->with_policies,
                                    .salvage = message->salvage,
                                    .scope = "",
                                    .audit = audit_of(request),
                                    .principal = principal_of(request)};
    struct whole_run run;
    Wb__WholeBackupRun *told;
    TRY(check_server(message->parent));
    if (strstr(message->source, "/instances/") != NULL) /* databases are not shared */
        TRY(check_leads(request->bigtable));
    TRY(check_has_no_peers(request->bigtable, "a restored table"));
    TRY(run_audit_ask(&wish, request->arena, request->caller));
    TRY(whole_runner_restore(runner_of(request), &wish, &run));
    TRY(tell_run(&run, request->arena, &told));
    *response = &told->base;
    return status_ok();
}

static status tell_failure(const struct whole_scheduled *of, struct arena *arena, Rpc__Status **out)
{
    PROTO_NEW(arena, *out, RPC__STATUS__INIT);
    (*out)->code = (int32_t)of->schedule.last_try;
    (*out)->message = arena_string(arena, bytes_of(of->error));
    return (*out)->message == NULL ? status_out_of_memory() : status_ok();
}

static status tell_schedule(const struct whole_schedule_view *view, const char *place,
                            struct arena *arena, Wb__WholeBackupSchedule **out)
{
    Wb__WholeBackupSchedule *message;
    const struct whole_scheduled *of = &view->of;
    PROTO_NEW(arena, message, WB__WHOLE_BACKUP_SCHEDULE__INIT);
    message->scope = arena_string(arena, bytes_of(of->scope));
    message->place = arena_string(arena, bytes_of(place));
    if (message->scope == NULL || message->place == NULL)
        return status_out_of_memory();
    message->keep = (int64_t)of->schedule.keep;
    message->overdue = view->is_overdue;
    TRY(duration_message(of->schedule.period_us, arena, &message->period));
    TRY(timestamp_message(view->next_us, arena, &message->next_time));
    if (of->schedule.newest_us != 0)
        TRY(timestamp_message(of->schedule.newest_us, arena, &message->newest_time));
    if (of->schedule.last_try != STATUS_OK)
        TRY(tell_failure(of, arena, &message->error));
    *out = message;
    return status_ok();
}

static status tell_schedules(struct whole_runner *runner, struct arena *arena,
                             Wb__ListWholeBackupRunsResponse *list)
{
    const char *place = whole_runner_scheduled_place(runner);
    struct whole_schedule_view *views = arena_alloc(arena, WHOLE_SCHEDULES_MOST * sizeof *views);
    list->schedules = arena_alloc(arena, WHOLE_SCHEDULES_MOST * sizeof(*list->schedules));
    if (views == NULL || list->schedules == NULL)
        return status_out_of_memory();
    size_t count = whole_runner_schedules(runner, views);
    while (list->n_schedules < count) {
        size_t i = list->n_schedules;
        TRY(tell_schedule(&views[i], place, arena, &list->schedules[i]));
        list->n_schedules++;
    }
    return status_ok();
}

static status list_whole_backup_runs(const struct admin_request *request,
                                     const ProtobufCMessage **response)
{
    const Wb__ListWholeBackupRunsRequest *message = (const void *)request->message;
    struct arena *arena = request->arena;
    Wb__ListWholeBackupRunsResponse *list;
    TRY(check_server(message->parent));
    struct whole_run *runs = arena_alloc(arena, WHOLE_RUNS * sizeof *runs);
    PROTO_NEW(arena, list, WB__LIST_WHOLE_BACKUP_RUNS_RESPONSE__INIT);
    list->runs = arena_alloc(arena, WHOLE_RUNS * sizeof *list->runs);
    if (runs == NULL || list->runs == NULL)
        return status_out_of_memory();
    size_t count = whole_runner_list(runner_of(request), runs);
    while (list->n_runs < count) {
        TRY(tell_run(&runs[list->n_runs], arena, &list->runs[list->n_runs]));
        list->n_runs++;
    }
    TRY(tell_schedules(runner_of(request), arena, list));
    *response = &list->base;
    return status_ok();
}

static status cancel_whole_backup(const struct admin_request *request,
                                  const ProtobufCMessage **response)
{
    static const Wb__CancelWholeBackupResponse done = WB__CANCEL_WHOLE_BACKUP_RESPONSE__INIT;
    const Wb__CancelWholeBackupRequest *message = (const void *)request->message;
    TRY(check_server(message->parent));
    TRY(whole_runner_cancel(runner_of(request), (uint64_t)message->run));
    *response = &done.base;
    return status_ok();
}

/* --- the table of methods --- */

#define BACKUP_HANDLER(method, prefix)                                                             \
    static void handle_##method(void *context, struct grpc_call *call, bytes request)              \
    {                                                                                              \
        struct backup_service *service = context;                                                  \
        admin_call_run(service->bigtable, service, call, request, &prefix##__descriptor, method);  \
    }

BACKUP_HANDLER(create_whole_backup, wb__create_whole_backup_request)
BACKUP_HANDLER(restore_tables, wb__restore_tables_request)
BACKUP_HANDLER(list_whole_backup_runs, wb__list_whole_backup_runs_request)
BACKUP_HANDLER(cancel_whole_backup, wb__cancel_whole_backup_request)

struct grpc_service backup_grpc_service(struct backup_service *service)
{
    static const struct grpc_method methods[] = {
        {"CreateWholeBackup", GRPC_UNARY, handle_create_whole_backup},
        {"RestoreTables", GRPC_UNARY, handle_restore_tables},
        {"ListWholeBackupRuns", GRPC_UNARY, handle_list_whole_backup_runs},
        {"CancelWholeBackup", GRPC_UNARY, handle_cancel_whole_backup},
    };
    return (struct grpc_service){.name = "trestle.backup.v1.WholeBackups",
                                 .methods = methods,
                                 .method_count = sizeof methods / sizeof *methods,
                                 .context = service,
                                 .rest = &wb__whole_backups__descriptor};
}
