/* `trestle backup restore --to DIR --table`: a data directory that has tables of a whole backup,
 * and nothing else. It is made as a server would make it, with nobody listening, under another
 * name, DIR.restoring, and gets its own when it is complete. */
#include "backup/whole_tables.h"
#include "cmd/backup_private.h"
#include "cmd/offline_cluster.h"

struct making {
    const struct backup_tables *tables;
    struct files *files;
    struct buffer directory; /* while it is made; all of these with a NUL */
    struct buffer backups;   /* in it: where a server keeps those of tables */
    struct buffer staging;   /* in it: of rows on their way */
    struct buffer scratch;   /* beside it: of the backup */
    size_t made;
};

static const char *path(const struct buffer *buffer)
{
    return (const char *)buffer->data;
}

/* --- what there is before and after --- */

static status is_not_empty(void *context, const char *name)
{
    (void)name;
    return status_make(STATUS_FAILED_PRECONDITION, "%s is not empty", (const char *)context);
}

static status fine_without(status s)
{
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_ok();
}

static status check_target(struct making *m)
{
    struct buffer name = {0};
    buffer_append_format(&name, "%s%c", m->tables->directory, 0);
    status s = name.failed ? status_out_of_memory()
                           : files_list(m->files, path(&name), is_not_empty, name.data);
    buffer_free(&name);
    return fine_without(s);
}

static status remove_staged(void *context, const char *name)
{
    struct making *m = context;
    struct buffer directory = {0};
    buffer_append_format(&directory, "%s/%s%c", path(&m->staging), name, 0);
    status s = directory.failed ? status_out_of_memory()
                                : files_remove_flat_directory(m->files, path(&directory));
    buffer_free(&directory);
    return s;
}

/* What one that was killed, or has failed, has left. */
static status remove_unfinished(struct making *m)
{
    TRY(fine_without(files_list(m->files, path(&m->staging), remove_staged, m)));
    TRY(files_remove_flat_directory(m->files, path(&m->staging)));
    TRY(files_remove_flat_directory(m->files, path(&m->backups)));
    TRY(files_remove_flat_directory(m->files, path(&m->directory)));
    return files_remove_flat_directory(m->files, path(&m->scratch));
}

/* --- a server's parts, for as long as it takes --- */

static status restore(struct making *m, struct cluster *cluster, struct backups *backups)
{
    struct whole_tables order = {.place = m->tables->place,
                                 .backup = m->tables->backup,
                                 .from = m->tables->from,
                                 .to = m->tables->to,
                                 .with_policies = m->tables->with_policies,
                                 .files = m->files,
                                 .scratch = path(&m->scratch),
                                 .work = m->tables->work,
                                 .backups = backups};
    TRY(control_open(cluster, m->tables->log, &order.control));
    status s = whole_restore_tables(&order, &m->made);
    control_close(order.control);
    return s;
}

static status open_backups(struct making *m, struct cluster *cluster)
{
    const struct backups_options options = {.cluster = cluster,
                                            .directory = path(&m->backups),
                                            .bytes_per_second = m->tables->work->bytes_per_second,
                                            .log = m->tables->log};
    struct backups *backups;
    TRY(backups_open(&options, &backups));
    status s = restore(m, cluster, backups);
    backups_close(backups);
    return s;
}

static status make(struct making *m)
{
    struct offline_cluster offline;
    TRY(remove_unfinished(m));
    TRY(offline_cluster_open(path(&m->directory), "restore", m->tables->work->clock, m->tables->log,
                             false, &offline));
    status s = open_backups(m, offline.cluster);
    offline_cluster_close(&offline);
    TRY(s);
    TRY(files_rename(m->files, path(&m->directory), m->tables->directory));
    return files_sync_parent(m->files, m->tables->directory);
}

static status name_all(struct making *m)
{
    const char *directory = m->tables->directory;
    buffer_append_format(&m->directory, "%s.restoring%c", directory, 0);
    buffer_append_format(&m->backups, "%s.restoring/backups%c", directory, 0);
    buffer_append_format(&m->staging, "%s.restoring/restore%c", directory, 0);
    buffer_append_format(&m->scratch, "%s.restoring-from%c", directory, 0);
    bool failed =
        m->directory.failed || m->backups.failed || m->staging.failed || m->scratch.failed;
    return failed ? status_out_of_memory() : status_ok();
}

status backup_make_tables(const struct backup_tables *tables, size_t *made)
{
    struct making m = {.tables = tables, .files = files_of_system()};
    *made = 0;
    status s = name_all(&m);
    if (status_is_ok(s))
        s = check_target(&m);
    if (status_is_ok(s)) {
        s = make(&m);
        if (!status_is_ok(s))
            status_ignore(remove_unfinished(&m));
    }
    *made = m.made;
    buffer_free(&m.directory);
    buffer_free(&m.backups);
    buffer_free(&m.staging);
    buffer_free(&m.scratch);
    return s;
}
