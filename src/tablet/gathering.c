/* See gathering.h. */
#include "tablet/gathering.h"

#include "base/check.h"
#include "os/thread.h"

enum {
    FEW = 8,          /* commits: of less, chance makes what looks like a group */
    ENOUGH = 256,     /* commits: what each has of a sync is little beside what else it takes */
    LEAST_US = 60,    /* of a wait: what a thread's sleep takes by itself */
    MOST_US = 2000,   /* of a wait */
    FALL = 4,         /* parts of the way to a shorter sync */
    RISE = 16,        /* and to a longer one */
    MOST_PAUSE = 255, /* batches */
};

/* Falls faster than it rises, and rises by a sixteenth at most: a disk that stops for a moment says
 * nothing of what others wait for. */
static int64_t usual(int64_t sync_us, int64_t newest_us)
{
    if (sync_us == 0)
        return newest_us;
    if (newest_us < sync_us)
        return sync_us - (sync_us - newest_us) / FALL;
    int64_t more_us = newest_us - sync_us;
    return sync_us + (more_us < sync_us ? more_us : sync_us) / RISE;
}

void gathering_note_batch(struct gathering *gathering, int64_t sync_us, size_t answered,
                          size_t waiting)
{
    if (sync_us > 0)
        gathering->sync_us = usual(gathering->sync_us, sync_us);
    gathering->expected = answered + waiting;
}

int64_t gathering_patience_us(struct gathering *gathering, size_t waiting)
{
    if (gathering->expected < FEW || waiting >= gathering->expected || waiting >= ENOUGH)
        return 0;
    if (gathering->left > 0) {
        gathering->left--;
        return 0;
    }
    int64_t most_us = gathering->sync_us / 2;
    if (most_us > MOST_US)
        most_us = MOST_US;
    return most_us < LEAST_US ? 0 : most_us;
}

void gathering_note_wait(struct gathering *gathering, size_t waiting)
{
    bool is_in_vain = 4 * waiting < 3 * gathering->expected;
    gathering->pause = is_in_vain ? 2 * gathering->pause + 1 : 0;
    if (gathering->pause > MOST_PAUSE)
        gathering->pause = MOST_PAUSE;
    gathering->left = gathering->pause;
}

void gathering_wait(struct gathering *gathering, const size_t *waiting, pthread_cond_t *wake,
                    pthread_mutex_t *lock)
{
    DCHECK(check_is_held(lock));
    int64_t patience_us = gathering_patience_us(gathering, *waiting);
    if (patience_us == 0)
        return;
    struct timespec until = thread_time_in(patience_us);
    int error = 0;
    gathering->wanted = gathering->expected;
    while (gathering->wanted != 0 && error == 0)
        error = pthread_cond_timedwait(wake, lock, &until);
    gathering->wanted = 0;
    gathering_note_wait(gathering, *waiting);
}
