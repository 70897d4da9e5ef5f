/* See dynamo_check.h. */
#include "formats/dynamo_check.h"

#include "formats/file_md5.h"
#include "os/thread.h"

status dynamo_file_check(const struct dynamo_file *file)
{
    return file->has_manifest ? file_md5_check(file->path, bytes_of(file->md5), "the manifest")
                              : status_ok();
}

/* --- all of them --- */

enum { THREADS_MOST = 4 };

/* Files are taken in their order. So when one fails, each before it has been taken by a thread,
 * which goes on to its end: the first failure of all is known when all have come back. */
struct checking {
    const struct dynamo_file *files;
    size_t count;

    pthread_mutex_t mutex; /* guards the rest */
    size_t next;
    size_t failed;  /* which one `failure` is of */
    status failure; /* owned */
};

/* False when there is none, or no need for more. */
static bool take_file(struct checking *checking, size_t *out)
{
    pthread_mutex_lock(&checking->mutex);
    bool has_more = checking->next < checking->count && status_is_ok(checking->failure);
    if (has_more)
        *out = checking->next++;
    pthread_mutex_unlock(&checking->mutex);
    return has_more;
}

/* Takes the status. */
static void note_failure(struct checking *checking, size_t file, status s)
{
    pthread_mutex_lock(&checking->mutex);
    bool is_first = status_is_ok(checking->failure) || file < checking->failed;
    status other = is_first ? checking->failure : s;
    if (is_first) {
        checking->failure = s;
        checking->failed = file;
    }
    pthread_mutex_unlock(&checking->mutex);
    status_free(other);
}

static void *check_files(void *argument)
{
    struct checking *checking = argument;
    size_t file;
    while (take_file(checking, &file)) {
        status s = dynamo_file_check(&checking->files[file]);
        if (!status_is_ok(s))
            note_failure(checking, file, s);
    }
    return NULL;
}

static size_t threads_wanted(size_t files)
{
    size_t processors = thread_processors();
    size_t most = processors < THREADS_MOST ? processors : THREADS_MOST;
    return files < most ? files : most;
}

/* The caller's thread is one of them; it does alone what no other can be started for. */
status dynamo_files_check(const struct dynamo_file *files, size_t count)
{
    struct checking checking = {.files = files, .count = count};
    pthread_t threads[THREADS_MOST];
    size_t started = 0, wanted = threads_wanted(count);
    status s = status_ok();
    pthread_mutex_init(&checking.mutex, NULL);
    while (status_is_ok(s) && started + 1 < wanted) {
        s = thread_start(&threads[started], "check", check_files, &checking);
        started += status_is_ok(s);
    }
    status_ignore(s);
    check_files(&checking);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&checking.mutex);
    return checking.failure;
}
