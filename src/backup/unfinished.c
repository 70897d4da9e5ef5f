/* See unfinished.h. */
#include "backup/unfinished.h"

#include "os/file.h"

static const char MARK[] = "UNFINISHED";
static const char LOCK[] = "UNFINISHED.lock";

static status join(const char *directory, const char *name, struct buffer *out)
{
    buffer_append_format(out, "%s/%s%c", directory, name, 0);
    return out->failed ? status_out_of_memory() : status_ok();
}

/* Does something with a name in a directory. */
static status with_path(struct files *files, const char *directory, const char *name,
                        status (*act)(struct files *files, const char *path))
{
    struct buffer path = {0};
    status s = join(directory, name, &path);
    if (status_is_ok(s))
        s = act(files, (const char *)path.data);
    buffer_free(&path);
    return s;
}

static status fine_without(status s)
{
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_ok();
}

/* --- marks --- */

/* files_replace begins with the second. */
bool unfinished_is_mark(const char *name)
{
    return strcmp(name, MARK) == 0 || strcmp(name, "UNFINISHED.new") == 0 ||
           strcmp(name, LOCK) == 0;
}

static status write_mark(struct files *files, const char *path, const char *maker)
{
    struct buffer words = {0};
    buffer_append_format(&words, "%s: not whole. What has this file is removed by the next one.\n",
                         maker);
    status s =
        words.failed ? status_out_of_memory() : files_replace(files, path, buffer_bytes(&words));
    buffer_free(&words);
    return s;
}

status unfinished_mark(struct files *files, const char *path, const char *maker)
{
    struct buffer mark = {0};
    status s = join(path, MARK, &mark);
    if (status_is_ok(s))
        s = write_mark(files, (const char *)mark.data, maker);
    buffer_free(&mark);
    return s;
}

/* Without the lock others may come in: it goes last. */
status unfinished_unmark(struct files *files, const char *path)
{
    TRY(with_path(files, path, "UNFINISHED.new", files_remove));
    TRY(with_path(files, path, MARK, files_remove));
    return with_path(files, path, LOCK, files_remove);
}

/* --- what is there --- */

struct looking {
    bool has_mark;
    bool has_others;
};

static status look_at(void *context, const char *name)
{
    struct looking *looking = context;
    looking->has_mark |= strcmp(name, MARK) == 0;
    looking->has_others |= !unfinished_is_mark(name);
    return status_ok();
}

status unfinished_look(struct files *files, const char *path, enum unfinished_state *out)
{
    struct looking looking = {false};
    status s = files_list(files, path, look_at, &looking);
    *out = looking.has_mark     ? UNFINISHED_OURS
           : looking.has_others ? UNFINISHED_FOREIGN
                                : UNFINISHED_ABSENT;
    return fine_without(s);
}

/* --- removing --- */

struct removal {
    struct files *files;
    const char *directory;
    bool keeps_mark;
};

static status remove_tree(struct files *files, const char *path);

/* A link to a directory is a file here, and goes as one. */
static status remove_path(struct files *files, const char *path)
{
    struct file_look look;
    status s = files_remove(files, path);
    if (status_is_ok(s))
        return s;
    status looked = files_look(files, path, &look);
    bool is_directory = status_is_ok(looked) && look.is_directory;
    status_free(looked);
    if (!is_directory)
        return s;
    status_free(s);
    return remove_tree(files, path);
}

static status remove_name(void *context, const char *name)
{
    const struct removal *removal = context;
    if (removal->keeps_mark && unfinished_is_mark(name))
        return status_ok();
    return with_path(removal->files, removal->directory, name, remove_path);
}

static status remove_names(struct files *files, const char *path, bool keeps_mark)
{
    struct removal removal = {.files = files, .directory = path, .keeps_mark = keeps_mark};
    return fine_without(files_list(files, path, remove_name, &removal));
}

static status remove_tree(struct files *files, const char *path)
{
    TRY(remove_names(files, path, false));
    return files_remove_directory(files, path);
}

status unfinished_remove(struct files *files, const char *path)
{
    TRY(remove_names(files, path, true));
    TRY(fine_without(files_sync_directory(files, path)));
    TRY(unfinished_unmark(files, path));
    return files_remove_directory(files, path);
}

/* --- from its beginning to its end --- */

static status is_not_empty(void *context, const char *name)
{
    (void)name;
    return status_make(STATUS_FAILED_PRECONDITION, "%s is not empty", (const char *)context);
}

status unfinished_require_free(struct files *files, const char *directory)
{
    struct buffer name = {0};
    buffer_append_format(&name, "%s%c", directory, 0);
    status s = name.failed ? status_out_of_memory()
                           : files_list(files, (const char *)name.data, is_not_empty, name.data);
    buffer_free(&name);
    return fine_without(s);
}

static status make_directory(const struct unfinished *unfinished)
{
    status s = files_make_directory(unfinished->files, unfinished->path);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_make(STATUS_NOT_FOUND,
                       "%s cannot be made: the directory that it is to lie in is missing",
                       unfinished->directory);
}

static status lock(struct unfinished *unfinished)
{
    struct buffer path = {0};
    status s = join(unfinished->path, LOCK, &path);
    if (status_is_ok(s))
        s = file_lock_take((const char *)path.data, &unfinished->lock);
    buffer_free(&path);
    if (s.code != STATUS_FAILED_PRECONDITION)
        return s;
    status_free(s);
    return status_make(STATUS_FAILED_PRECONDITION, "%s is being made by another at present",
                       unfinished->path);
}

static void release(struct unfinished *unfinished)
{
    file_lock_release(unfinished->lock);
    unfinished->lock = NULL;
}

static status require_not_foreign(const struct unfinished *unfinished)
{
    enum unfinished_state state;
    TRY(unfinished_look(unfinished->files, unfinished->path, &state));
    if (state != UNFINISHED_FOREIGN)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "%s is in the way, and without the mark of something that was left "
                       "unfinished: move it away",
                       unfinished->path);
}

/* A program may have opened a store in it without a lock of ours. */
static status require_unused(const struct unfinished *unfinished)
{
    struct files_lock *held;
    TRY(files_lock_directory(unfinished->files, unfinished->path, &held));
    files_unlock_directory(unfinished->files, held);
    return status_ok();
}

/* Removes what a killed process has left. With the lock, which stays, as the mark does. */
static status clear(const struct unfinished *unfinished)
{
    enum unfinished_state state;
    TRY(unfinished_look(unfinished->files, unfinished->path, &state));
    if (state != UNFINISHED_OURS)
        return status_ok();
    TRY(require_unused(unfinished));
    if (unfinished->tell != NULL)
        unfinished->tell(unfinished->path);
    return remove_names(unfinished->files, unfinished->path, true);
}

/* With the lock. A directory that another process took in the moment before that is left to it. */
static status take(const struct unfinished *unfinished)
{
    status s = require_not_foreign(unfinished);
    if (status_is_ok(s))
        s = clear(unfinished);
    if (!status_is_ok(s))
        status_ignore(with_path(unfinished->files, unfinished->path, LOCK, files_remove));
    return s;
}

status unfinished_begin(struct unfinished *unfinished)
{
    unfinished->lock = NULL;
    TRY(require_not_foreign(unfinished));
    TRY(make_directory(unfinished));
    TRY(lock(unfinished));
    status s = take(unfinished);
    if (!status_is_ok(s)) {
        release(unfinished);
        return s;
    }
    s = unfinished_mark(unfinished->files, unfinished->path, unfinished->maker);
    if (!status_is_ok(s))
        status_ignore(unfinished_abandon(unfinished));
    return s;
}

/* A mark that stays does no harm. */
status unfinished_end(struct unfinished *unfinished)
{
    struct files *files = unfinished->files;
    TRY(file_take_mode(unfinished->path, unfinished->directory));
    TRY(files_rename(files, unfinished->path, unfinished->directory));
    TRY(files_sync_parent(files, unfinished->directory));
    status_ignore(unfinished_unmark(files, unfinished->directory));
    release(unfinished);
    return status_ok();
}

status unfinished_abandon(struct unfinished *unfinished)
{
    status s = unfinished_remove(unfinished->files, unfinished->path);
    release(unfinished);
    return s;
}
