/* What tests share that let the disk fail at each step of a story.
 *
 * The first time the first operation of a kind fails, with all that follow; then the second, until
 * nothing fails any more. When a step of the story has failed the process ends, in good order or by
 * a power cut, and the next start must find a state that the story knows.
 *
 * The linker's --wrap sends cluster_open's store_open here, and from here to the faulty files. One
 * file of a test program includes this. */
#ifndef TRESTLE_CLUSTER_TESTING_STEPS_TESTING_H
#define TRESTLE_CLUSTER_TESTING_STEPS_TESTING_H

#include "cluster/testing/testing.h"
#include "store/testing/wrapped_open_testing.h"

/* Where no sync waits for a disk, if there is such a place: what a power cut leaves is for fault_fs
 * to say. */
static inline void make_steps_directory(char *name, size_t size)
{
    const char *memory = "/dev/shm";
    snprintf(name, size, "%s/trestle-steps-XXXXXX", access(memory, W_OK) == 0 ? memory : "/tmp");
    assert_non_null(mkdtemp(name));
}

/* All but the cluster itself. */
static inline void make_steps_fixture(struct cluster_fixture *f)
{
    *f = (struct cluster_fixture){.log = {.fd = -1, .level = LOG_ERROR, .clock = clock_system()}};
    make_steps_directory(f->directory, sizeof f->directory);
    f->arena = arena_create(4 << 20);
    assert_non_null(f->arena);
    assert_ok(pool_create(1, 16, "test", &f->pool));
    f->options = test_cluster_options(f->directory);
    f->options.log = &f->log;
    f->options.pool = f->pool;
    f->options.durability = STORE_SYNCED;
}

static inline void free_steps_fixture(struct cluster_fixture *f)
{
    pool_destroy(f->pool);
    arena_destroy(f->arena);
    remove_test_directory(f->directory);
}

/* How the process ends when a step has failed. The disk is well again then, or else RocksDB would
 * try each flush again and again. */
enum ending {
    STOP,            /* in good order */
    POWER_CUT,       /* what was not synced is gone */
    POWER_CUT_LATER, /* all bytes were written, but names that were not synced are gone */
    ENDINGS
};

/* The next start is from the copy. */
static inline void cut_power(struct cluster_fixture *f, const char *copy, enum ending ending)
{
    size_t surviving = ending == POWER_CUT_LATER ? SIZE_MAX / 2 : 0;
    fault_fs_cut_power(faults, f->directory, copy, surviving);
    f->options.data_directory = copy;
}

/* `tell` tells the story with a fault after `pass` operations that work; false if it did not come
 * to that. */
static inline void tell_with_each_fault(enum fault_operation operation,
                                        bool (*tell)(enum fault_operation operation, unsigned pass,
                                                     enum ending ending))
{
    enum { MOST = 500 };
    unsigned pass = 0;
    for (bool came = true; came; pass++) {
        assert_true(pass < MOST);
        for (unsigned ending = 0; came && ending < ENDINGS; ending++)
            came = tell(operation, pass, (enum ending)ending);
    }
    assert_true(pass > 1);
    print_message("# each of %u operations failed\n", pass - 1);
}

/* The life of the story: of a new cluster with a table, on a disk that is told later to fail.
 * `copy`, of that size, becomes where the one after a power cut is. */
static inline void begin_faulty_life(struct cluster_fixture *f, char *copy, size_t size)
{
    make_steps_directory(copy, size);
    faults = fault_fs_create();
    open_test_cluster(f);
    f->table = create_test_table(f->cluster, NULL);
}

/* When the story is told as far as it went; then the cluster is closed. After a whole one the power
 * stays: the store may not be at rest. */
static inline void meet_ending(struct cluster_fixture *f, const char *copy, enum ending ending,
                               bool is_whole)
{
    if (ending != STOP && !is_whole)
        cut_power(f, copy, ending);
    fault_fs_heal(faults);
}

/* A life of the process, in which the table is there. */
static inline void begin_steps_life(struct cluster_fixture *f)
{
    open_test_cluster(f);
    assert_ok(cluster_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
}

static inline void end_steps_life(struct cluster_fixture *f)
{
    table_release(f->table);
    close_test_cluster(f);
}

#endif
