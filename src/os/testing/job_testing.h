/* What tests of jobs share: a job whose piece stands until it is let go. */
#ifndef TRESTLE_OS_TESTING_JOB_TESTING_H
#define TRESTLE_OS_TESTING_JOB_TESTING_H

#include "base/list.h"
#include "os/job_pool.h"

#include <pthread.h>

struct door {
    struct pool_job job;
    pthread_barrier_t entered;
    pthread_barrier_t leave;
    unsigned ends;
    void *context; /* the test's */
};

static inline bool door_stand(struct pool_job *job)
{
    struct door *door = LIST_ENTRY(job, struct door, job);
    pthread_barrier_wait(&door->entered);
    pthread_barrier_wait(&door->leave);
    return false;
}

/* Before it is submitted. `ended` finds the door by LIST_ENTRY. */
static inline void door_init(struct door *door, unsigned kind, const void *owner,
                             void (*ended)(struct pool_job *job))
{
    *door = (struct door){.job = {.kind = kind, .owner = owner, .run = door_stand, .ended = ended}};
    pthread_barrier_init(&door->entered, NULL, 2);
    pthread_barrier_init(&door->leave, NULL, 2);
}

/* Returns when its piece has begun, and stands. */
static inline void door_await(struct door *door)
{
    pthread_barrier_wait(&door->entered);
}

static inline void let_go(struct door *door)
{
    pthread_barrier_wait(&door->leave);
}

/* When the job has ended. */
static inline void close_door(struct door *door)
{
    pthread_barrier_destroy(&door->entered);
    pthread_barrier_destroy(&door->leave);
}

#endif
