/* Clusters that follow each other, and copies: random histories of three clusters which write,
 * delete, add, drop, flush, compact and start anew, pull each other's feeds in pieces, record how
 * far they have come now and then, and forget the rest in a start; amid which a fourth is made as a
 * copy of one of them, and goes on by itself. In the end all have the same rows, each add once.
 *
 *     origin_copy_test [HISTORIES] [CHANGES] [SEED] */
#include "cluster/origin/origin_copy.h"

#include "cluster/testing/origin_testing.h"

enum { CLUSTERS = 4, FIRST = 3 /* that are there from the beginning */ };

static struct test_run run = {.rounds = 2, .changes = 300, .seed = 1};

struct mesh {
    struct cluster_fixture *of[CLUSTERS];          /* the last one NULL until it is a copy */
    struct stream_position at[CLUSTERS][CLUSTERS]; /* of [one] in the feed of [another] */
    uint64_t random;
    unsigned copied_from; /* while a copy is made */
    struct replica copy;
};

/* --- one follows another --- */

static struct cluster_fixture *create(unsigned number)
{
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    table_release(f->table);
    close_test_cluster(f);
    f->options.number = number;
    open_test_cluster(f);
    assert_ok(cluster_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
    begin_feed(f);
    return f;
}

static void follow_from_beginning(struct mesh *mesh, unsigned one, unsigned another)
{
    const struct origin_applied beginning = {.position = ORIGIN_BEGINNING};
    assert_ok(origin_applied_record(mesh->of[one]->cluster, another + 1, &beginning));
    mesh->at[one][another] = beginning.position;
}

/* Where a start goes on. */
static void recall(struct mesh *mesh, unsigned one)
{
    for (unsigned i = 0; i < CLUSTERS; i++) {
        struct origin_applied applied;
        if (origin_applied(mesh->of[one]->cluster, i + 1, &applied))
            mesh->at[one][i] = applied.position;
    }
}

/* A piece; whether that was all. What is complete then may be recorded, or noted if nothing else is
 * to be. */
static bool pull_between(struct mesh *mesh, unsigned one, unsigned another, size_t most_bytes)
{
    struct cluster_fixture *f = mesh->of[one], *of = mesh->of[another];
    struct replica replica = {.of = of, .f = f, .at = mesh->at[one][another]};
    struct origin_complete complete = origin_feed_complete(home_of(of));
    struct origin_applied applied;
    assert_true(origin_applied(f->cluster, another + 1, &applied));
    bool is_end = pull(&replica, most_bytes);
    mesh->at[one][another] = replica.at;
    if (!is_end || draw(&mesh->random, 3) != 0)
        return is_end;
    applied.position = replica.at;
    if (replica.at.sequence >= complete.sequence && complete.version > applied.complete)
        applied.complete = complete.version;
    assert_ok(origin_applied_record(f->cluster, another + 1, &applied));
    origin_applied_note(f->cluster, another + 1, applied.complete);
    return is_end;
}

/* --- a copy --- */

static void step_of(struct mesh *mesh, unsigned one);

static status take(void *context, const struct origin_change *change)
{
    struct mesh *mesh = context;
    struct origin_change copied = *change;
    bool enough;
    if (draw(&mesh->random, 3) == 0)
        step_of(mesh, draw(&mesh->random, FIRST));
    assert_true(change->is_drop || event_change_read(change->encoded, &copied.change));
    return apply(&mesh->copy, &copied, &enough);
}

static void make_copy(struct mesh *mesh)
{
    struct origin_copy *copy;
    unsigned from = draw(&mesh->random, FIRST), to = FIRST;
    const struct origin_applied none = {0};
    struct cluster_fixture *f = create(to + 1);
    for (unsigned i = 0; i < FIRST; i++)
        assert_ok(origin_applied_record(f->cluster, i + 1, &none));
    assert_ok(origin_copy_begin(mesh->of[from]->cluster, from + 1, &copy));
    mesh->copy = (struct replica){.of = mesh->of[from], .f = f};
    mesh->copied_from = from;
    assert_ok(origin_copy_read(copy, mesh->of[from]->table, take, mesh));
    for (unsigned i = 0; i < FIRST; i++) {
        struct origin_applied place;
        assert_true(origin_copy_place(copy, i + 1, &place));
        assert_ok(origin_applied_record(f->cluster, i + 1, &place));
    }
    origin_copy_end(copy);
    mesh->of[to] = f;
    recall(mesh, to);
    for (unsigned i = 0; i < FIRST; i++)
        follow_from_beginning(mesh, i, to);
    mesh->copied_from = CLUSTERS;
}

/* --- histories --- */

static unsigned count_of(const struct mesh *mesh)
{
    return mesh->of[FIRST] == NULL ? FIRST : CLUSTERS;
}

static void start_anew(struct mesh *mesh, unsigned one)
{
    if (one == mesh->copied_from)
        return;
    reopen_test_cluster(mesh->of[one]);
    recall(mesh, one);
}

static void step_of(struct mesh *mesh, unsigned one)
{
    unsigned other = (one + 1 + draw(&mesh->random, count_of(mesh) - 1)) % count_of(mesh);
    switch (draw(&mesh->random, 8)) {
    case 0:
    case 1:
        (void)pull_between(mesh, one, other, draw(&mesh->random, 4000));
        break;
    case 2:
        if (draw(&mesh->random, 4) == 0)
            start_anew(mesh, one);
        break;
    default:
        change_once(mesh->of[one], &mesh->random);
    }
}

static void pull_all_of(struct mesh *mesh)
{
    for (unsigned i = 0; i < count_of(mesh); i++)
        for (unsigned k = 0; k < count_of(mesh); k++)
            while (i != k && !pull_between(mesh, i, k, 4000))
                ;
}

static void assert_all_same(struct mesh *mesh)
{
    for (unsigned i = 1; i < count_of(mesh); i++) {
        struct replica pair = {.of = mesh->of[0], .f = mesh->of[i]};
        assert_same_rows(&pair);
    }
}

static void go_through(uint64_t seed)
{
    struct mesh mesh = {.random = seed * 2654435761u + 1, .copied_from = CLUSTERS};
    for (unsigned i = 0; i < FIRST; i++)
        mesh.of[i] = create(i + 1);
    for (unsigned i = 0; i < FIRST; i++)
        for (unsigned k = 0; k < FIRST; k++)
            if (i != k)
                follow_from_beginning(&mesh, i, k);
    unsigned copied_at = draw(&mesh.random, run.changes);
    for (unsigned i = 0; i < run.changes; i++) {
        if (i == copied_at)
            make_copy(&mesh);
        step_of(&mesh, draw(&mesh.random, count_of(&mesh)));
    }
    pull_all_of(&mesh);
    assert_all_same(&mesh);
    for (unsigned i = 0; i < count_of(&mesh); i++)
        cluster_fixture_destroy(mesh.of[i]);
}

static void all_come_to_the_same_rows(void **state)
{
    (void)state;
    for (unsigned i = 0; i < run.rounds; i++)
        go_through(run.seed + i);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_come_to_the_same_rows),
    };
    take_test_run(&run, (struct test_run){100, 1000, 1}, argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
