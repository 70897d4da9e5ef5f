/* See loop_round.h. */
#include "os/loop_round.h"

#include "os/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

struct loop_part {
    struct task task;
    struct loop_round *round;
    size_t number;
    atomic_bool is_done;
};

static void let_go(struct loop_round *round)
{
    if (atomic_fetch_sub(&round->references, 1) > 1)
        return;
    pthread_cond_destroy(&round->has_answered);
    pthread_mutex_destroy(&round->lock);
    free(round->parts);
    round->destroy(round);
}

static void run_part(struct task *task)
{
    struct loop_part *part = LIST_ENTRY(task, struct loop_part, task);
    struct loop_round *round = part->round;
    round->run(round, part->number);
    pthread_mutex_lock(&round->lock);
    atomic_store(&part->is_done, true);
    round->answered++;
    pthread_cond_signal(&round->has_answered);
    pthread_mutex_unlock(&round->lock);
    let_go(round);
}

static void set_up(struct loop_round *round, size_t count)
{
    thread_init_steady_wake(&round->has_answered);
    pthread_mutex_init(&round->lock, NULL);
    round->answered = 0;
    round->count = count;
    atomic_store(&round->references, count + 1);
}

status loop_round_begin(struct loop_round *round, struct loop *const *loops, size_t count)
{
    round->parts = calloc(count + 1, sizeof *round->parts);
    if (round->parts == NULL)
        return status_out_of_memory();
    set_up(round, count);
    for (size_t i = 0; i < count; i++) {
        struct loop_part *part = &round->parts[i];
        part->task.run = run_part;
        part->round = round;
        part->number = i;
    }
    for (size_t i = 0; i < count; i++)
        loop_post(loops[i], &round->parts[i].task);
    return status_ok();
}

size_t loop_round_wait(struct loop_round *round, int64_t most_us)
{
    struct timespec until = thread_time_in(most_us);
    int error = 0;
    pthread_mutex_lock(&round->lock);
    while (round->answered < round->count && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&round->has_answered, &round->lock, &until);
    size_t answered = round->answered;
    pthread_mutex_unlock(&round->lock);
    return answered;
}

bool loop_round_is_done(struct loop_round *round, size_t part)
{
    return atomic_load(&round->parts[part].is_done);
}

void loop_round_release(struct loop_round *round)
{
    let_go(round);
}
