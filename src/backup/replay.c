/* See replay.h. */
#include "backup/replay.h"

#include "backup/stores.h"
#include "backup/unfinished.h"
#include "backup/whole_private.h"
#include "cluster/identity_record.h"
#include "os/file.h"

enum { MOST_DEPTH = 8 };

static const char MAKER[] = "trestle archive replay";

struct replaying {
    const struct directory_replay *order;
    struct files *files;
    struct buffer path;   /* DIR.replaying; this and the next with a NUL */
    struct buffer former; /* DIR.former */
    struct unfinished unfinished;
};

static const char *former_of(const struct replaying *r)
{
    return (const char *)r->former.data;
}

/* --- what is taken over --- */

struct taking_over {
    struct files *files;
    const char *from;
    const char *to;
    unsigned depth; /* 0: the directory itself */
};

static status take_over_all(const struct taking_over *all);

static bool always_goes_on(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
    return true;
}

static status link_table(struct files *files, const char *from, const char *to)
{
    status s = files_link(files, from, to);
    if (status_is_ok(s))
        return s;
    status told = status_make(s.code,
                              "%s cannot be linked to %s, which is to be on the same file system: "
                              "%s",
                              from, to, status_message(s));
    status_free(s);
    return told;
}

/* A symbolic link is taken over as one. */
static status take_over_directory(const struct taking_over *one)
{
    status s = files_link(one->files, one->from, one->to);
    if (status_is_ok(s))
        return s;
    status_free(s);
    if (one->depth > MOST_DEPTH)
        return status_make(STATUS_FAILED_PRECONDITION, "%s: too many directories in directories",
                           one->from);
    return take_over_all(one);
}

/* Files in a directory of the data's are backups of tables, or what is kept: they do not change any
 * more. */
static status take_over(const struct taking_over *one)
{
    static const struct store_pacer unhindered = {.go_on = always_goes_on};
    struct file_look look;
    struct file_sum sum;
    TRY(files_look(one->files, one->from, &look));
    if (look.is_directory)
        return take_over_directory(one);
    if (one->depth > 1 || whole_is_table_file(one->from))
        return link_table(one->files, one->from, one->to);
    return files_copy(one->files, one->from, one->to, &unhindered, &sum);
}

/* Left out: the lock, the identity, and what the next start would remove; in `archive` files would
 * be written to that DIR has, too. */
static bool is_left_out(const char *name)
{
    static const char *const names[] = {"LOCK",       "IDENTITY",  "archive",
                                        "checkpoint", "restoring", "restore"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return unfinished_is_mark(name);
}

static status take_over_name(void *context, const char *name)
{
    const struct taking_over *all = context;
    struct buffer from = {0}, to = {0};
    if (all->depth == 0 && is_left_out(name))
        return status_ok();
    buffer_append_format(&from, "%s/%s%c", all->from, name, 0);
    buffer_append_format(&to, "%s/%s%c", all->to, name, 0);
    const struct taking_over one = {.files = all->files,
                                    .from = (const char *)from.data,
                                    .to = (const char *)to.data,
                                    .depth = all->depth + 1};
    status s = from.failed || to.failed ? status_out_of_memory() : take_over(&one);
    buffer_free(&from);
    buffer_free(&to);
    return s;
}

static status take_over_all(const struct taking_over *all)
{
    struct taking_over names = *all;
    TRY(files_make_directory(all->files, all->to));
    TRY(files_list(all->files, all->from, take_over_name, &names));
    return files_sync_directory(all->files, all->to);
}

/* --- what is made of it --- */

/* Forgets the identity: the copy is another server from now on. */
static status forget_identity(struct store *store)
{
    struct keyspace *catalog = store_keyspace_find(store, CATALOG_KEYSPACE_ID);
    return catalog == NULL ? status_ok() : identity_record_forget(store, catalog);
}

static status open_and_take_on(struct replaying *r)
{
    const struct directory_replay *order = r->order;
    const struct store_options options =
        backup_store_options(BACKUP_STORE_ALONE, r->unfinished.path, order->log);
    struct store *store;
    TRY(store_open(&options, &store));
    status s = order->take_on(order->context, store, r->unfinished.path);
    if (status_is_ok(s))
        s = forget_identity(store);
    store_close(store);
    return s;
}

static status put_back(const struct replaying *r, status why)
{
    status s = files_rename(r->files, former_of(r), r->order->directory);
    if (status_is_ok(s))
        s = unfinished_unmark(r->files, r->order->directory);
    status_ignore(s); /* the next one puts it back */
    return why;
}

/* Removes the former directory. The new one is whole, whatever becomes of it. */
static void remove_former(const struct replaying *r)
{
    status s = unfinished_remove(r->files, former_of(r));
    if (!status_is_ok(s))
        log_warn(r->order->log, "what was there before the replay stays",
                 LOG_STR("directory", former_of(r)), LOG_STR("cause", status_message(s)));
    status_free(s);
}

static status change_places(struct replaying *r)
{
    TRY(file_take_mode(r->unfinished.path, r->order->directory));
    TRY(unfinished_mark(r->files, r->order->directory, MAKER));
    TRY(files_rename(r->files, r->order->directory, former_of(r)));
    status s = unfinished_end(&r->unfinished);
    if (!status_is_ok(s))
        return put_back(r, s);
    remove_former(r);
    return status_ok();
}

static status make(struct replaying *r)
{
    const struct taking_over all = {
        .files = r->files, .from = r->order->directory, .to = r->unfinished.path};
    TRY(take_over_all(&all));
    TRY(open_and_take_on(r));
    return change_places(r);
}

static status make_or_abandon(struct replaying *r)
{
    TRY(unfinished_begin(&r->unfinished));
    status s = make(r);
    if (!status_is_ok(s))
        status_ignore(unfinished_abandon(&r->unfinished));
    return s;
}

/* --- what there is before --- */

static status call_back_former(const struct replaying *r)
{
    const char *directory = r->order->directory;
    TRY(files_rename(r->files, former_of(r), directory));
    TRY(files_sync_parent(r->files, directory));
    return unfinished_unmark(r->files, directory);
}

/* Finishes with a DIR.former that a replay killed at its end has left: without DIR it is that, else
 * it was being removed. */
static status finish_former(const struct replaying *r)
{
    enum unfinished_state former, directory;
    TRY(unfinished_look(r->files, former_of(r), &former));
    TRY(unfinished_look(r->files, r->order->directory, &directory));
    if (former == UNFINISHED_ABSENT)
        return status_ok();
    if (former == UNFINISHED_FOREIGN)
        return status_make(STATUS_FAILED_PRECONDITION, "%s is in the way: move it away",
                           former_of(r));
    if (directory == UNFINISHED_ABSENT)
        return call_back_former(r);
    if (r->order->tell != NULL)
        r->order->tell(former_of(r));
    return unfinished_remove(r->files, former_of(r));
}

static status require_directory(const struct replaying *r)
{
    struct file_look look;
    TRY(files_look(r->files, r->order->directory, &look));
    return look.is_directory
               ? status_ok()
               : status_make(STATUS_FAILED_PRECONDITION, "%s is no directory", r->order->directory);
}

static status lock_and_make(struct replaying *r)
{
    struct files_lock *lock;
    TRY(finish_former(r));
    TRY(require_directory(r));
    TRY(files_lock_directory(r->files, r->order->directory, &lock));
    status s = make_or_abandon(r);
    files_unlock_directory(r->files, lock);
    return s;
}

status directory_replay(const struct directory_replay *replay)
{
    struct replaying r = {.order = replay, .files = replay->files};
    buffer_append_format(&r.path, "%s.replaying%c", replay->directory, 0);
    buffer_append_format(&r.former, "%s.former%c", replay->directory, 0);
    r.unfinished = (struct unfinished){.files = replay->files,
                                       .directory = replay->directory,
                                       .path = (const char *)r.path.data,
                                       .maker = MAKER,
                                       .tell = replay->tell};
    status s = r.path.failed || r.former.failed ? status_out_of_memory() : lock_and_make(&r);
    buffer_free(&r.path);
    buffer_free(&r.former);
    return s;
}
