/* A cluster whose windows of heat end when a test says so: for tests of heat and of usage. */
#ifndef TRESTLE_CLUSTER_TESTING_HEAT_TESTING_H
#define TRESTLE_CLUSTER_TESTING_HEAT_TESTING_H

#include "base/testing/testing_clock.h"
#include "cluster/testing/testing.h"

static struct turned_clock hands = {.clock = TURNED_CLOCK};

#define MINUTE_US (INT64_C(60) * 1000000)
#define HOUR_US   (60 * MINUTE_US)
#define DAY_US    (24 * HOUR_US)
#define BEGIN_US  (50 * 365 * DAY_US) /* at a full hour */

static inline int setup_windows_at(void **state, int64_t now_us)
{
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    hands.now_us = now_us;
    f->options.clock = &hands.clock;
    f->options.heat_window_us = MINUTE_US;
    f->options.maintenance_by_hand = true;
    f->options.balance = false;
    reopen_test_cluster(f);
    maintenance_run_once(f->cluster->maintenance);
    *state = f;
    return 0;
}

static inline int setup_windows(void **state)
{
    return setup_windows_at(state, BEGIN_US);
}

static inline int teardown_windows(void **state)
{
    cluster_fixture_destroy(*state);
    return 0;
}

static inline void pass(struct cluster_fixture *f, int64_t us)
{
    hands.now_us += us;
    maintenance_run_once(f->cluster->maintenance);
}

/* Until the next time. Between two batches: the commit thread looks at it, also for a batch that
 * nobody here waits for. */
static inline void refuse_writes(struct cluster_fixture *f, bool refuses)
{
    uint64_t applied;
    commit_hold(f->cluster->home->commits, &applied);
    f->cluster->home->reserve.reserve_bytes = refuses ? UINT64_MAX / 4 : 0;
    hands.now_us += 1000000; /* so that the disk is asked again */
    commit_release(f->cluster->home->commits);
}

#endif
