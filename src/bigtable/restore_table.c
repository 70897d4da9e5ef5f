/* RestoreTable, also into another instance or project: see backup_jobs.h.
 *
 * The table and the end of the operation are one write: a crash finds both or neither. */
#include "bigtable/backup_jobs.h"
#include "bigtable/backup_methods.h"
#include "bigtable/default_instance.h"
#include "bigtable/names.h"
#include "bigtable/schema_message.h"
#include "bigtable/table_extra.h"
#include "bigtable/view_guard.h"
#include "google/longrunning/operations.pb-c.h"

static status metadata_of(const char *table, const BtAdmin__Backup *backup, struct arena *arena,
                          BtAdmin__RestoreTableMetadata **out)
{
    PROTO_NEW(arena, *out, BT_ADMIN__RESTORE_TABLE_METADATA__INIT);
    (*out)->name = table;
    (*out)->source_type = BT_ADMIN__RESTORE_SOURCE_TYPE__BACKUP;
    (*out)->source_info_case = BT_ADMIN__RESTORE_TABLE_METADATA__SOURCE_INFO_BACKUP_INFO;
    return backup_info_message(backup, arena, &(*out)->backup_info);
}

/* --- the order --- */

struct restoring {
    const struct admin_request *request;
    const char *table;
    const char *backup;
    const ProtobufCMessage *operation;
    bool is_held;
};

static status check_table_is_new(const struct bigtable *bigtable, const char *name)
{
    struct table *table;
    status s = cluster_table(bigtable->cluster, bytes_of(name), &table);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    table_release(table);
    return status_make(STATUS_ALREADY_EXISTS, "Table already exists: %s", name);
}

/* The metadata as it is at first is what the work needs to know. */
static status begin(struct restoring *restoring, struct edit *edit,
                    const BtAdmin__RestoreTableMetadata *metadata)
{
    struct buffer argument = {0};
    proto_encode(&metadata->base, &argument);
    struct operation_spec spec = {.metadata = &metadata->base,
                                  .kind = restore_table_kind.name,
                                  .argument = buffer_bytes(&argument)};
    status s = argument.failed ? status_out_of_memory()
                               : begin_operation(edit, restoring->request->arena, restoring->table,
                                                 &spec, &restoring->operation);
    buffer_free(&argument);
    return s;
}

/* The instance comes with the order, as it does with a table that is created. */
static status stage_order(void *context, struct edit *edit)
{
    struct restoring *restoring = context;
    const struct admin_request *request = restoring->request;
    const BtAdmin__RestoreTableRequest *message = (const void *)request->message;
    struct bigtable *bigtable = request->bigtable;
    struct backup_facts facts;
    BtAdmin__RestoreTableMetadata *metadata;
    TRY(backup_hold(bigtable->backups, restoring->backup));
    restoring->is_held = true;
    TRY(find_backup(bigtable->backups, restoring->backup, request->arena, &facts));
    TRY(check_backup_is_of_use(bigtable, facts.backup));
    TRY(require_instance(bigtable, edit, request->arena, message->parent));
    TRY(check_table_is_new(bigtable, restoring->table));
    TRY(check_id_is_free(bigtable, request->arena, edit, (enum resource_kind)0, message->parent,
                         message->table_id));
    TRY(metadata_of(restoring->table, facts.backup, request->arena, &metadata));
    return begin(restoring, edit, metadata);
}

/* --- the work --- */

struct finishing {
    struct backup_job *job;
    BtAdmin__RestoreTableMetadata *metadata;
    struct staged_backup *staged;
    struct table_info table;
    struct table *made;
};

static status check_instance_stands(struct finishing *finishing, struct edit *edit)
{
    char *instance = name_parent(finishing->job->arena, finishing->table.name);
    if (instance == NULL)
        return status_out_of_memory();
    if (edit_find(edit, RESOURCE_INSTANCE, instance) == NULL)
        return status_make(STATUS_NOT_FOUND, "Not found: %s", instance);
    return status_ok();
}

/* A view may have taken it since the order. */
static status check_name_is_free(struct finishing *finishing, struct edit *edit)
{
    struct arena *arena = finishing->job->arena;
    char *instance = name_parent(arena, finishing->table.name);
    if (instance == NULL)
        return status_out_of_memory();
    return check_id_is_free(finishing->job->bigtable, arena, edit, (enum resource_kind)0, instance,
                            name_id(finishing->table.name));
}

/* --- from HDD to SSD --- */

struct storage_look {
    struct arena *arena;
    BtAdmin__StorageType wanted;
    bool is_found;
    status failure;
};

static status look_at_cluster(struct storage_look *look, const struct resource *resource)
{
    ProtobufCMessage *message;
    TRY(resource_decode(resource, look->arena, &message));
    look->is_found |=
        ((const BtAdmin__Cluster *)(const void *)message)->default_storage_type == look->wanted;
    return status_ok();
}

static bool visit_cluster(void *context, struct resource *resource)
{
    struct storage_look *look = context;
    look->failure = look_at_cluster(look, resource);
    return status_is_ok(look->failure) && !look->is_found;
}

/* Whether the backup is in a cluster of hard disks. That of a backup which came from another
 * machine may be unknown: then it is false. */
static status is_on_disks(const struct edit *edit, struct arena *arena, const char *backup,
                          bool *out)
{
    struct storage_look look = {.arena = arena, .wanted = BT_ADMIN__STORAGE_TYPE__HDD};
    char *cluster = name_parent(arena, backup);
    if (cluster == NULL)
        return status_out_of_memory();
    const struct resource *resource = edit_find(edit, RESOURCE_CLUSTER, cluster);
    if (resource != NULL)
        TRY(look_at_cluster(&look, resource));
    *out = look.is_found;
    return status_ok();
}

static status has_solid_state(struct edit *edit, struct arena *arena, const char *table, bool *out)
{
    struct storage_look look = {
        .arena = arena, .wanted = BT_ADMIN__STORAGE_TYPE__SSD, .failure = status_ok()};
    char *instance = name_parent(arena, table);
    if (instance == NULL)
        return status_out_of_memory();
    TRY(control_list(edit_control(edit), RESOURCE_CLUSTER, instance, "", visit_cluster, &look));
    *out = look.is_found;
    return look.failure;
}

/* Production then moves the table's data in an operation of its own, for which clients wait. Here
 * it is done before it begins: the data lies where all data does. */
static status stage_optimization(struct edit *edit, struct arena *arena,
                                 BtAdmin__RestoreTableMetadata *metadata)
{
    BtAdmin__OptimizeRestoredTableMetadata optimizing =
        BT_ADMIN__OPTIMIZE_RESTORED_TABLE_METADATA__INIT;
    BtAdmin__OperationProgress progress = BT_ADMIN__OPERATION_PROGRESS__INIT;
    const ProtobufCMessage *operation;
    bool from_disks, to_solid_state = false;
    TRY(is_on_disks(edit, arena, metadata->backup_info->backup, &from_disks));
    if (from_disks)
        TRY(has_solid_state(edit, arena, metadata->name, &to_solid_state));
    if (!to_solid_state)
        return status_ok();
    progress.progress_percent = 100;
    TRY(edit_time(edit, arena, &progress.start_time));
    progress.end_time = progress.start_time;
    optimizing.name = metadata->name;
    optimizing.progress = &progress;
    TRY(stage_finished_operation(edit, arena, metadata->name, &optimizing.base,
                                 admin_empty_response(), &operation));
    metadata->optimize_table_operation_name =
        ((const Lro__Operation *)(const void *)operation)->name;
    return status_ok();
}

/* --- the end --- */

static status stage_finish(void *context, struct edit *edit)
{
    struct finishing *finishing = context;
    const struct table_place nowhere = {.count = 0}; /* which the schema view does not show */
    BtAdmin__Table *message;
    struct restore_spec spec = {.table = finishing->table.name, .extra = finishing->table.extra};
    TRY(check_instance_stands(finishing, edit));
    TRY(check_name_is_free(finishing, edit));
    TRY(table_to_message(&finishing->table, &nowhere, BT_ADMIN__TABLE__VIEW__SCHEMA_VIEW,
                         finishing->job->arena, &message));
    TRY(stage_optimization(edit, finishing->job->arena, finishing->metadata));
    TRY(operation_finish(finishing->job->operation, edit, &finishing->metadata->base,
                         &message->base));
    TRY(edit_txn(edit, &spec.txn));
    return staged_backup_restore(finishing->staged, &spec, &finishing->made);
}

/* Describes the table: where it comes from, and how its keys are read. It starts without the
 * protection and the policies of its source. */
static status describe_table_of(const struct finishing *finishing, bytes source_extra, bytes *extra)
{
    struct arena *arena = finishing->job->arena;
    BtAdmin__Table table = BT_ADMIN__TABLE__INIT, *source;
    BtAdmin__RestoreInfo info = BT_ADMIN__RESTORE_INFO__INIT;
    TRY(table_extra_decode(source_extra, arena, &source));
    table.row_key_schema = source->row_key_schema;
    info.source_type = finishing->metadata->source_type;
    info.source_info_case = BT_ADMIN__RESTORE_INFO__SOURCE_INFO_BACKUP_INFO;
    info.backup_info = finishing->metadata->backup_info;
    table.restore_info = &info;
    return table_extra_encode(&table, arena, extra);
}

static status make_table(struct finishing *finishing)
{
    finishing->table = staged_backup_source(finishing->staged);
    finishing->table.name = finishing->metadata->name;
    finishing->table.deletion_protection = false;
    TRY(describe_table_of(finishing, finishing->table.extra, &finishing->table.extra));
    status s = control_edit(finishing->job->bigtable->control, stage_finish, finishing);
    if (finishing->made != NULL)
        table_release(finishing->made);
    return s;
}

/* The backup is let go as soon as its files are here: a client that sees the operation done may
 * delete it. */
static status stage(struct backup_job *job, BtAdmin__RestoreTableMetadata *metadata,
                    struct staged_backup **staged)
{
    struct backups *backups = job->bigtable->backups;
    const char *backup = metadata->backup_info->backup;
    status s = backup_job_show(job, &metadata->base, &metadata->progress);
    if (status_is_ok(s))
        s = backup_stage(backups, backup, &job->work, staged);
    backup_let_go(backups, backup);
    return s;
}

static status restore(struct backup_job *job, BtAdmin__RestoreTableMetadata *metadata)
{
    struct finishing finishing = {.job = job, .metadata = metadata};
    TRY(stage(job, metadata, &finishing.staged));
    status s = backup_job_complete(job);
    if (status_is_ok(s))
        s = make_table(&finishing);
    staged_backup_destroy(finishing.staged);
    return s;
}

static status decode_argument(bytes argument, struct arena *arena,
                              BtAdmin__RestoreTableMetadata **out)
{
    ProtobufCMessage *message;
    TRY(proto_decode(&bt_admin__restore_table_metadata__descriptor, argument, arena, &message));
    *out = (void *)message;
    return status_ok();
}

static status work(struct backup_job *job)
{
    BtAdmin__RestoreTableMetadata *metadata;
    TRY(decode_argument(operation_argument(job->operation), job->arena, &metadata));
    job->table = metadata->name;
    operation_set_subject(job->operation, metadata->name);
    return restore(job, metadata);
}

static status run(void *context, struct operation *operation)
{
    return backup_job_run(context, operation, work);
}

static status take_up(const struct bigtable *bigtable, const char *operation, bytes argument,
                      struct arena *arena)
{
    BtAdmin__RestoreTableMetadata *metadata;
    (void)operation;
    TRY(decode_argument(argument, arena, &metadata));
    return backup_hold(bigtable->backups, metadata->backup_info->backup);
}

static status recover(void *context, const char *name, bytes argument)
{
    return backup_job_recover(context, name, argument, take_up);
}

const struct operation_kind restore_table_kind = {
    .name = "restore-table", .run = run, .recover = recover};

/* --- the call --- */

status restore_table(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__RestoreTableRequest *message = (const void *)request->message;
    struct restoring restoring = {.request = request};
    TRY(name_check_instance(message->parent));
    TRY(name_check_table_id(message->table_id));
    if (message->source_case != BT_ADMIN__RESTORE_TABLE_REQUEST__SOURCE_BACKUP)
        return status_make(STATUS_INVALID_ARGUMENT, "backup must be set");
    TRY(check_backup_name(message->backup));
    TRY(check_has_no_peers(request->bigtable, "a restored table"));
    restoring.backup = message->backup;
    restoring.table = name_of_table(request->arena, message->parent, message->table_id);
    if (restoring.table == NULL)
        return status_out_of_memory();
    status s = control_edit(request->bigtable->control, stage_order, &restoring);
    if (!status_is_ok(s) && restoring.is_held)
        backup_let_go(request->bigtable->backups, restoring.backup);
    *response = restoring.operation;
    return s;
}
