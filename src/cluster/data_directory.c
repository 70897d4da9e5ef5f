/* See data_directory.h.
 *
 * The thread sleeps until a look finds a file missing. Then it looks ten times a second: a file
 * that is missing at the second look, too, is gone for good, and is made again. */
#include "cluster/data_directory.h"

#include "base/check.h"
#include "os/thread.h"

#include <stdio.h>
#include <time.h>

enum {
    ASK_EVERY_US = 100 * 1000,
    FILES_WAIT_US = 5 * 1000 * 1000,
    SURE_AFTER = 2,
    WORDS_SIZE = 400,
};

/* The inode of FORMAT; 0 if it cannot be looked at. */
static uint64_t format_of(struct data_directory *directory)
{
    uint64_t inode;
    struct buffer path = {0};
    buffer_append_format(&path, "%s/FORMAT%c", directory->path, 0);
    if (!path.failed)
        inode = file_stamp((const char *)path.data).inode;
    else
        inode = atomic_load(&directory->format_inode); /* memory is short, nothing else */
    buffer_free(&path);
    return inode;
}

void data_directory_note(struct data_directory *directory)
{
    directory->directory = file_stamp(directory->path);
    atomic_store(&directory->format_inode, format_of(directory));
}

static bool is_same(struct file_stamp a, struct file_stamp b)
{
    return a.device == b.device && a.inode == b.inode;
}

/* One that is made anew at the moment is the same. */
static bool has_other_format(struct data_directory *directory)
{
    uint64_t now = format_of(directory), known = atomic_load(&directory->format_inode);
    return known != 0 && now != known;
}

/* What has become of it; NULL: it is there. Of a new directory the inode may be the former one's:
 * so FORMAT tells, too, as long as it is not the only file that is missing. */
static const char *what_is_wrong(struct data_directory *directory,
                                 const struct store_missing_files *found)
{
    struct file_stamp now = file_stamp(directory->path);
    if (directory->directory.inode == 0)
        return NULL; /* it could not be looked at when it was there */
    if (now.inode == 0)
        return "is gone";
    if (!is_same(now, directory->directory))
        return "is another one than at the start";
    if (found->is_taken)
        return "is in use by another process, since its file LOCK was removed";
    if (!found->only_format && has_other_format(directory))
        return "has lost its file FORMAT and others, or has other ones";
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

/* --- files of the store's own --- */

static void wake_thread(struct data_directory *directory)
{
    if (!directory->has_thread)
        return;
    pthread_mutex_lock(&directory->lock);
    directory->is_due = true;
    pthread_cond_signal(&directory->wake);
    pthread_mutex_unlock(&directory->lock);
}

static void note_all_there(struct data_directory *directory)
{
    atomic_store(&directory->lacks_log, false);
    if (atomic_exchange(&directory->lacking_looks, 0) < SURE_AFTER)
        return;
    condition_leave(directory->condition, REASON_log_gone);
    condition_leave(directory->condition, REASON_files_gone);
}

static void note_missing(struct data_directory *directory, const struct store_missing_files *found)
{
    atomic_store(&directory->lacks_log, found->logs);
    bool is_sure = atomic_fetch_add(&directory->lacking_looks, 1) + 1 >= SURE_AFTER;
    if (is_sure)
        condition_leave(directory->condition, found->logs ? REASON_files_gone : REASON_log_gone);
    if (is_sure && found->logs)
        condition_enter(directory->condition, REASON_log_gone,
                        "removed, or replaced, in %.200s: %s; writes are refused until all that "
                        "the log had is in tables",
                        directory->path, found->names);
    else if (is_sure)
        condition_enter(directory->condition, REASON_files_gone,
                        "removed, or replaced, in %.200s: %s; they are being made anew",
                        directory->path, found->names);
    wake_thread(directory);
}

static void note_files(struct data_directory *directory, const struct store_missing_files *found)
{
    if (found->any)
        note_missing(directory, found);
    else
        note_all_there(directory);
}

/* Files are made in no directory but the one that was opened. */
static void look(struct data_directory *directory)
{
    struct store_missing_files found;
    store_look_for_files(directory->store, &found);
    const char *what = what_is_wrong(directory, &found);
    if (what == NULL) {
        atomic_store(&directory->wrong_looks, 0);
        note_files(directory, &found);
    } else if (atomic_fetch_add(&directory->wrong_looks, 1) + 1 >= SURE_AFTER) {
        note_gone(directory, what);
    }
}

/* One thread looks at a time, as good as always. */
void data_directory_look(struct data_directory *directory)
{
    long long now = clock_steady_us(directory->clock);
    long long asked = atomic_load(&directory->asked_us);
    if ((asked != 0 && now - asked < ASK_EVERY_US) ||
        !atomic_compare_exchange_strong(&directory->asked_us, &asked, now))
        return;
    look(directory);
}

status data_directory_admit(struct data_directory *directory)
{
    data_directory_look(directory);
    if (atomic_load(&directory->wrong_looks) > 0 || atomic_load(&directory->is_gone))
        return status_make(STATUS_UNAVAILABLE, "The data directory is not where it was");
    if (atomic_load(&directory->lacks_log))
        return status_make(STATUS_UNAVAILABLE,
                           "The write-ahead log was removed, and is not made anew yet");
    return status_ok();
}

/* --- making files again --- */

/* Tells of a failure once; it is tried again. Under `restoring`. */
static void tell(struct data_directory *directory, const char *names, status s)
{
    DCHECK(check_is_held(&directory->restoring));
    bool has_failed = directory->has_failed;
    directory->has_failed = !status_is_ok(s);
    if (status_is_ok(s))
        log_warn(directory->log, "files that were removed below the server are made anew",
                 LOG_STR("files", names));
    else if (!has_failed)
        log_warn(directory->log, "files that were removed below the server cannot be made anew",
                 LOG_STR("files", names), LOG_STR("cause", status_message(s)));
}

/* Under `restoring`. While FORMAT comes anew, none is another one. */
static status restore_files(struct data_directory *directory,
                            const struct store_missing_files *found)
{
    if (!found->only_format)
        return store_restore_files(directory->store);
    uint64_t former = atomic_exchange(&directory->format_inode, 0);
    status s = store_restore_files(directory->store);
    atomic_store(&directory->format_inode, status_is_ok(s) ? format_of(directory) : former);
    return s;
}

/* What is missing now, if the directory is there. */
static status restore(struct data_directory *directory)
{
    struct store_missing_files found;
    store_look_for_files(directory->store, &found);
    if (!found.any || what_is_wrong(directory, &found) != NULL)
        return status_ok();
    pthread_mutex_lock(&directory->restoring);
    status s = restore_files(directory, &found);
    tell(directory, found.names, s);
    pthread_mutex_unlock(&directory->restoring);
    return s;
}

/* Until a look has found something, and then a tenth of a second, or until it is to stop. Whether
 * to go on. */
static bool wait_for_look(struct data_directory *directory)
{
    pthread_mutex_lock(&directory->lock);
    while (!directory->is_due && !directory->is_stopping)
        pthread_cond_wait(&directory->wake, &directory->lock);
    const struct timespec at = thread_time_in(ASK_EVERY_US);
    int waited = 0;
    while (!directory->is_stopping && waited == 0)
        waited = pthread_cond_timedwait(&directory->wake, &directory->lock, &at);
    bool goes_on = !directory->is_stopping;
    directory->is_due = false;
    pthread_mutex_unlock(&directory->lock);
    return goes_on;
}

static bool is_sure(const struct data_directory *directory)
{
    return atomic_load(&directory->lacking_looks) >= SURE_AFTER;
}

static void *run(void *argument)
{
    struct data_directory *directory = argument;
    while (wait_for_look(directory)) {
        data_directory_look(directory);
        if (!is_sure(directory))
            continue;
        status_ignore(restore(directory)); /* told */
        wake_thread(directory);            /* for the next look, which says whether all is there */
    }
    return NULL;
}

status data_directory_start(struct data_directory *directory)
{
    pthread_mutex_init(&directory->restoring, NULL);
    pthread_mutex_init(&directory->lock, NULL);
    thread_init_steady_wake(&directory->wake);
    status s = thread_start(&directory->thread, "files", run, directory);
    directory->has_thread = status_is_ok(s);
    return s;
}

void data_directory_stop(struct data_directory *directory)
{
    if (!directory->has_thread)
        return;
    pthread_mutex_lock(&directory->lock);
    directory->is_stopping = true;
    pthread_cond_signal(&directory->wake);
    pthread_mutex_unlock(&directory->lock);
    pthread_join(directory->thread, NULL);
    pthread_cond_destroy(&directory->wake);
    pthread_mutex_destroy(&directory->lock);
    pthread_mutex_destroy(&directory->restoring);
    directory->has_thread = false;
}

static bool are_files_there(void *context)
{
    const struct data_directory *directory = context;
    struct store_missing_files found;
    store_look_for_files(directory->store, &found);
    return !found.any;
}

/* Takes no second look, since there is no time for one: a file that is made although it was there
 * is as good as the former one. Afterwards a log that is not needed any more is known for a
 * moment. */
status data_directory_await_files(struct data_directory *directory)
{
    struct store_missing_files found;
    TRY(restore(directory));
    (void)thread_wait_for(are_files_there, directory, FILES_WAIT_US);
    store_look_for_files(directory->store, &found);
    return found.any ? status_make(STATUS_DATA_LOSS, "removed in %s, and not made anew: %s",
                                   directory->path, found.names)
                     : status_ok();
}
