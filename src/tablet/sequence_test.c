/* Sequences and versions: what each is made of, and that both rise whatever the clock does, over
 * restarts, and from stores in which they were one number. */
#include "tablet/testing/testing.h"

#include <endian.h>

static int setup(void **state)
{
    *state = tablet_fixture_create();
    return 0;
}

static int teardown(void **state)
{
    tablet_fixture_destroy(*state);
    return 0;
}

static void reopen(struct tablet_fixture *f)
{
    close_queue(f);
    open_queue(f);
}

/* A commit that changes something, and what it was given. */
static struct commit commit_one(struct tablet_fixture *f)
{
    struct packed_change change = set_cell(f, FAMILY_F, "q", 1, "v");
    struct commit commit = commit_of(f, "row", &change);
    assert_ok(commit_and_wait(f->queue, &commit));
    buffer_free(&change.fragment);
    return commit;
}

static struct commit_ceilings read_ceilings(struct tablet_fixture *f)
{
    struct commit_ceilings ceilings;
    assert_ok(commit_read_ceilings(f->options.catalog, &ceilings));
    return ceilings;
}

static uint64_t read_clusters_from(struct tablet_fixture *f)
{
    uint64_t from;
    assert_ok(commit_read_clusters_from(f->options.catalog, &from));
    return from;
}

static void low_bits_of_a_version_name_its_cluster(void **state)
{
    (void)state;
    const uint64_t at = version_at(1000);
    unsigned cluster;
    assert_int_equal(version_time_us(at + 4095), 1000);
    assert_int_equal(version_after(at, 0), at + 32);
    assert_int_equal(version_after(at, 7), at + 7);
    assert_int_equal(version_after(at + 7, 7), at + 39);
    assert_int_equal(version_after(at + 8, 7), at + 39);
    assert_int_equal(version_after(at + 31, 0), at + 32);
    assert_true(version_cluster(at + 39, at, &cluster));
    assert_int_equal(cluster, 7);
    assert_false(version_cluster(at + 39, at + 40, &cluster)); /* its low bits were a counter */
}

static void counter_runs_into_the_next_microsecond(void **state)
{
    struct tablet_fixture *f = *state;
    struct hands_clock hands = {.clock = HANDS_CLOCK};
    const int64_t now_us = f->clock.wall_us;
    uint64_t last = 0;
    close_queue(f);
    atomic_store(&hands.wall_us, now_us);
    f->options.clock = &hands.clock;
    f->options.cluster = 5;
    open_queue(f);
    for (unsigned i = 0; i < 300; i++) {
        struct commit commit = commit_one(f);
        assert_int_equal(commit.version % VERSION_STEP, 5);
        assert_true(commit.version > last);
        last = commit.version;
        if (i < 128) /* the clock stands */
            assert_int_equal(version_time_us(commit.version), now_us);
        assert_int_equal(commit.sequence, version_at(now_us) + i);
    }
    assert_int_equal(version_time_us(last), now_us + 2);
    close_queue(f);
    f->options.clock = &f->clock.clock;
    open_queue(f);
}

static void versions_name_the_cluster_that_was_set_last(void **state)
{
    struct tablet_fixture *f = *state;
    struct commit before = commit_one(f);
    assert_int_equal(before.version % VERSION_STEP, 0);
    commit_set_cluster(f->queue, 31);
    struct commit first = commit_one(f);
    commit_set_cluster(f->queue, 3);
    struct commit second = commit_one(f);
    assert_int_equal(first.version % VERSION_STEP, 31);
    assert_int_equal(second.version % VERSION_STEP, 3);
    assert_true(before.version < first.version && first.version < second.version);
}

static void sequences_rise_over_restarts_with_the_clock_set_back(void **state)
{
    struct tablet_fixture *f = *state;
    uint64_t sequence = 0, version = 0;
    int64_t now_us = f->clock.wall_us;
    for (int i = 0; i < 5; i++) {
        atomic_store(&f->clock.wall_us, now_us - i * INT64_C(3600) * 1000000);
        reopen(f);
        for (int k = 0; k < 3; k++) {
            struct commit commit = commit_one(f);
            assert_true(commit.sequence > sequence && commit.version > version);
            sequence = commit.sequence;
            version = commit.version;
            assert_true(commit_applied(f->queue) == sequence);
            assert_true(read_ceilings(f).sequence > sequence);
            assert_true(read_ceilings(f).version > version);
        }
    }
}

static void versions_and_sequences_are_raised_apart(void **state)
{
    struct tablet_fixture *f = *state;
    struct commit before = commit_one(f);
    const uint64_t later = version_at(f->clock.wall_us + 60000000);
    assert_ok(commit_raise_sequence(f->queue, later + 77));
    assert_true(commit_one(f).sequence > later + 77);
    reopen(f);
    assert_true(commit_one(f).sequence > later + 77);
    assert_ok(commit_raise_version(f->queue, before.version)); /* lowers nothing */
    struct commit after = commit_one(f);
    assert_true(after.sequence > later + 77 && after.version > before.version);
}

static void remove_record(struct tablet_fixture *f, const char *key)
{
    struct store_batch *batch = store_batch_create();
    assert_non_null(batch);
    store_batch_delete(batch, f->options.catalog, bytes_of(key));
    assert_ok(store_write(f->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
}

/* As a store of format 2 is: one ceiling for both, and nothing said of clusters. */
static void store_of_a_former_format_goes_on_above_its_ceiling(void **state)
{
    struct tablet_fixture *f = *state;
    assert_int_equal(read_clusters_from(f), UINT64_MAX);
    struct commit before = commit_one(f);
    assert_int_equal(read_clusters_from(f), 0); /* a new one has none of the old */
    assert_true(commit_is_own_record(bytes_of("sequence-ceiling")));
    assert_true(commit_is_own_record(bytes_of("clusters-from")));
    remove_record(f, "sequence-ceiling");
    remove_record(f, "clusters-from");
    const uint64_t ceiling = read_ceilings(f).version;
    assert_int_equal(read_ceilings(f).sequence, ceiling);
    reopen(f);
    assert_int_equal(read_clusters_from(f), UINT64_MAX); /* opening writes nothing */
    struct commit after = commit_one(f);
    assert_true(after.sequence > ceiling && after.version > ceiling);
    assert_int_equal(read_clusters_from(f), ceiling);
    unsigned cluster;
    assert_false(version_cluster(before.version, ceiling, &cluster));
    assert_true(version_cluster(after.version, ceiling, &cluster));
    reopen(f);
    commit_one(f);
    assert_int_equal(read_clusters_from(f), ceiling); /* once for all */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(low_bits_of_a_version_name_its_cluster),
        cmocka_unit_test_setup_teardown(counter_runs_into_the_next_microsecond, setup, teardown),
        cmocka_unit_test_setup_teardown(versions_name_the_cluster_that_was_set_last, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(sequences_rise_over_restarts_with_the_clock_set_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(versions_and_sequences_are_raised_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(store_of_a_former_format_goes_on_above_its_ceiling, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
