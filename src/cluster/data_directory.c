/* See data_directory.h. */
#include "cluster/data_directory.h"

#include <stdio.h>

enum { ASK_EVERY_US = 100 * 1000, SURE_AFTER = 2, WORDS_SIZE = 400 };

static struct file_stamp stamp_of_format(const struct data_directory *directory)
{
    struct file_stamp stamp = {0};
    struct buffer path = {0};
    buffer_append_format(&path, "%s/FORMAT%c", directory->path, 0);
    if (!path.failed)
        stamp = file_stamp((const char *)path.data);
    else
        stamp = directory->format; /* memory is short, nothing else */
    buffer_free(&path);
    return stamp;
}

void data_directory_note(struct data_directory *directory)
{
    directory->directory = file_stamp(directory->path);
    directory->format = stamp_of_format(directory);
}

static bool is_same(struct file_stamp a, struct file_stamp b)
{
    return a.device == b.device && a.inode == b.inode;
}

/* What has become of it; NULL: it is there. */
static const char *what_is_wrong(const struct data_directory *directory)
{
    struct file_stamp now = file_stamp(directory->path);
    if (directory->directory.inode == 0)
        return NULL; /* it could not be looked at when it was there */
    if (now.inode == 0)
        return "is gone";
    if (!is_same(now, directory->directory))
        return "is another one than at the start";
    if (!is_same(stamp_of_format(directory), directory->format))
        return "has lost its file FORMAT, or has another one";
    return NULL;
}

static void note_gone(struct data_directory *directory, const char *what)
{
    char words[WORDS_SIZE];
    if (atomic_exchange(&directory->is_gone, true))
        return;
    snprintf(words, sizeof words,
             "%.200s, the data directory, %s: what was written last may be lost", directory->path,
             what);
    condition_enter(directory->condition, REASON_data_gone, "%s", words);
    store_fence(directory->store, words);
}

/* One looks at a time, as good as always. */
void data_directory_look(struct data_directory *directory)
{
    long long now = clock_steady_us(directory->clock);
    long long asked = atomic_load(&directory->asked_us);
    if ((asked != 0 && now - asked < ASK_EVERY_US) ||
        !atomic_compare_exchange_strong(&directory->asked_us, &asked, now))
        return;
    const char *what = what_is_wrong(directory);
    if (what == NULL)
        atomic_store(&directory->wrong_looks, 0);
    else if (atomic_fetch_add(&directory->wrong_looks, 1) + 1 >= SURE_AFTER)
        note_gone(directory, what);
}

status data_directory_admit(struct data_directory *directory)
{
    data_directory_look(directory);
    if (atomic_load(&directory->wrong_looks) > 0 || atomic_load(&directory->is_gone))
        return status_make(STATUS_UNAVAILABLE, "The data directory is not where it was");
    return status_ok();
}
