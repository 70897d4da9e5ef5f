/* `trestle backup restore --to DIR --table`: a data directory that has tables of a whole backup,
 * and nothing else. It is made as a server would make it, without a port, under another name,
 * DIR.restoring, and gets its own when it is complete. */
#include "backup/unfinished.h"
#include "backup/whole_tables.h"
#include "cmd/backup/backup_private.h"
#include "server/offline_cluster.h"

struct making {
    const struct backup_tables *tables;
    struct files *files;
    struct unfinished unfinished;
    struct buffer directory; /* while it is made; all of these with a NUL */
    struct buffer backups;   /* in it: where a server keeps those of tables */
    struct buffer scratch;   /* in it: of the backup, as a server has it */
    struct whole_tables_made made;
};

static const char *path(const struct buffer *buffer)
{
    return (const char *)buffer->data;
}

/* --- a server's parts, for as long as it takes --- */

static status restore(struct making *m, struct cluster *cluster, struct backups *backups)
{
    struct whole_tables order = {.place = m->tables->place,
                                 .backup = m->tables->backup,
                                 .from = m->tables->from,
                                 .to = m->tables->to,
                                 .with_policies = m->tables->with_policies,
                                 .salvage = m->tables->salvage,
                                 .files = m->files,
                                 .scratch = path(&m->scratch),
                                 .work = m->tables->work,
                                 .backups = backups};
    TRY(control_open(cluster, m->tables->log, &order.control));
    status s = whole_restore_tables(&order, &m->made);
    if (status_is_ok(s))
        s = cluster_list_damage(cluster, m->tables->closed, m->tables->context);
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

static status open_and_restore(struct making *m)
{
    struct offline_cluster offline;
    TRY(offline_cluster_open(path(&m->directory), "restore", m->tables->work->clock, m->tables->log,
                             false, &offline));
    status s = open_backups(m, offline.cluster);
    offline_cluster_close(&offline);
    return s;
}

static status make(struct making *m)
{
    TRY(unfinished_require_free(m->files, m->tables->directory));
    TRY(unfinished_begin(&m->unfinished));
    status s = open_and_restore(m);
    if (status_is_ok(s))
        s = unfinished_end(&m->unfinished);
    if (!status_is_ok(s))
        status_ignore(unfinished_abandon(&m->unfinished));
    return s;
}

static status name_all(struct making *m)
{
    const char *directory = m->tables->directory;
    buffer_append_format(&m->directory, "%s.restoring%c", directory, 0);
    buffer_append_format(&m->backups, "%s.restoring/backups%c", directory, 0);
    buffer_append_format(&m->scratch, "%s.restoring/restoring%c", directory, 0);
    m->unfinished = (struct unfinished){.files = m->files,
                                        .directory = directory,
                                        .path = path(&m->directory),
                                        .maker = "trestle backup restore",
                                        .tell = m->tables->tell};
    bool failed = m->directory.failed || m->backups.failed || m->scratch.failed;
    return failed ? status_out_of_memory() : status_ok();
}

status backup_make_tables(const struct backup_tables *tables, size_t *made)
{
    struct making m = {.tables = tables, .files = files_of_system()};
    status s = name_all(&m);
    if (status_is_ok(s))
        s = make(&m);
    *made = m.made.tables;
    buffer_free(&m.directory);
    buffer_free(&m.backups);
    buffer_free(&m.scratch);
    return s;
}
