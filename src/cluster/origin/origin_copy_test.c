/* Clusters that follow each other, and copies: random histories of three clusters with two tables,
 * which write, delete, add, drop, flush, compact and start anew, pull each other's feeds in pieces,
 * record how far they have come now and then, and forget the rest in a start. Amid which a fourth
 * begins with nothing, and any of them takes a table's rows away and copies them anew from another
 * one, as replica/placement_copy.c does: it goes back to where that one has come in each feed, if
 * that is less far, and leaves out of what comes again what is of its other table. In the end all
 * have the same rows, each add once.
 *
 *     origin_copy_test [HISTORIES] [CHANGES] [SEED] */
#include "cluster/origin/origin_copy.h"

#include "cluster/testing/origin_testing.h"

enum {
    CLUSTERS = 4,
    FIRST = 3 /* that are there from the beginning */,
    TABLES = 2,
    NONE = CLUSTERS
};

static const char *const table_names[TABLES] = {TEST_TABLE, "projects/p/instances/i/tables/u"};

static struct test_run run = {.rounds = 2, .changes = 300, .seed = 1};

struct member {
    struct cluster_fixture *f; /* NULL: it is not there yet */
    struct table *tables[TABLES];
    struct stream_position at[CLUSTERS];           /* in the feed of another one */
    struct stream_position from[TABLES][CLUSTERS]; /* placed_from (replica/placed.h) */
    bool has[TABLES];                              /* its rows, whole */
    bool takes[TABLES];                            /* changes of its rows */
};

struct mesh {
    struct member of[CLUSTERS];
    uint64_t random;
    unsigned copies_from, copies_to; /* NONE: nobody copies */
};

static struct cluster *cluster_of(const struct mesh *mesh, unsigned one)
{
    return mesh->of[one].f->cluster;
}

/* --- a cluster --- */

static void open_tables(struct member *member)
{
    for (unsigned t = 0; t < TABLES; t++)
        assert_ok(cluster_table(member->f->cluster, bytes_of(table_names[t]), &member->tables[t]));
    member->f->table = member->tables[0];
}

static void close_tables(struct member *member)
{
    for (unsigned t = 0; t < TABLES; t++)
        table_release(member->tables[t]);
}

static void create_second_table(struct cluster_fixture *f)
{
    struct table *table;
    const struct table_spec spec = {.name = table_names[1], .schema = table_schema(f->table)};
    assert_ok(cluster_create_table(f->cluster, &spec, &table));
    table_release(table);
    table_release(f->table);
}

static void create(struct mesh *mesh, unsigned number)
{
    struct member *member = &mesh->of[number];
    member->f = cluster_fixture_create(NULL);
    create_second_table(member->f);
    close_test_cluster(member->f);
    member->f->options.number = number + 1;
    open_test_cluster(member->f);
    open_tables(member);
    begin_feed(member->f);
}

static void destroy(struct member *member)
{
    table_release(member->tables[1]);
    member->f->table = member->tables[0];
    cluster_fixture_destroy(member->f);
}

/* Where a start goes on, or who was stopped. */
static void recall(struct mesh *mesh, unsigned one)
{
    for (unsigned i = 0; i < CLUSTERS; i++) {
        struct origin_applied applied;
        if (i != one && origin_applied(cluster_of(mesh, one), i + 1, &applied))
            mesh->of[one].at[i] = applied.position;
    }
}

static void start_anew(struct mesh *mesh, unsigned one)
{
    struct member *member = &mesh->of[one];
    if (one == mesh->copies_from || one == mesh->copies_to)
        return;
    close_tables(member);
    close_test_cluster(member->f);
    open_test_cluster(member->f);
    open_tables(member);
    recall(mesh, one);
}

/* --- one follows another --- */

static void follow_from_beginning(struct mesh *mesh, unsigned one, unsigned another)
{
    const struct origin_applied beginning = {.position = ORIGIN_BEGINNING};
    assert_ok(origin_applied_record(cluster_of(mesh, one), another + 1, &beginning));
    mesh->of[one].at[another] = beginning.position;
}

struct pull {
    struct member *member;
    struct replica replica;
    unsigned another;
    struct stream_position until; /* of a sequence 0: no bound */
};

static bool is_past(const struct pull *pull, struct stream_position position)
{
    return pull->until.sequence != 0 && stream_position_compare(position, pull->until) > 0;
}

static status apply_one(void *context, const struct origin_change *change, bool *enough)
{
    struct pull *pull = context;
    struct member *member = pull->member;
    *enough = is_past(pull, change->position);
    if (*enough)
        return status_ok();
    for (unsigned t = 0; t < TABLES; t++) {
        bool is_behind =
            stream_position_compare(change->position, member->from[t][pull->another]) > 0;
        if (member->tables[t]->id != change->table || !member->takes[t] || !is_behind)
            continue;
        member->f->table = member->tables[t];
        TRY(apply(&pull->replica, change, enough));
    }
    return status_ok();
}

static struct stream_position bound_of(const struct member *member, unsigned another)
{
    struct stream_position until = {0, 0};
    for (unsigned t = 0; t < TABLES; t++) {
        struct stream_position from = member->from[t][another];
        if (stream_position_compare(from, member->at[another]) > 0 &&
            (until.sequence == 0 || stream_position_compare(from, until) < 0))
            until = from;
    }
    return until;
}

/* A piece; whether that was all. What is complete then may be recorded, or noted if nothing else is
 * to be. */
static bool pull_between(struct mesh *mesh, unsigned one, unsigned another, size_t most_bytes)
{
    struct member *member = &mesh->of[one];
    struct shard *feed = home_of(mesh->of[another].f);
    struct origin_complete complete = origin_feed_complete(feed);
    struct origin_applied applied;
    struct pull pull = {.member = member,
                        .replica = {.of = mesh->of[another].f, .f = member->f},
                        .another = another,
                        .until = bound_of(member, another)};
    struct stream_position reached;
    bool is_end;
    assert_true(origin_applied(member->f->cluster, another + 1, &applied));
    assert_ok(origin_feed_read(feed, member->at[another], most_bytes, apply_one, &pull, &reached,
                               &is_end));
    is_end = is_end && !is_past(&pull, reached);
    member->at[another] = is_past(&pull, reached) ? pull.until : reached;
    if (!is_end || draw(&mesh->random, 3) != 0)
        return is_end;
    applied.position = member->at[another];
    if (applied.position.sequence >= complete.sequence && complete.version > applied.complete)
        applied.complete = complete.version;
    assert_ok(origin_applied_record(member->f->cluster, another + 1, &applied));
    origin_applied_note(member->f->cluster, another + 1, applied.complete);
    return is_end;
}

static void compact(struct member *member, unsigned table)
{
    for (size_t i = 0; i < member->tables[table]->space_count; i++)
        assert_ok(keyspace_compact(member->tables[table]->spaces[i].keyspace, bytes_of(""),
                                   bytes_of("")));
}

/* What has come so far becomes one as far as it may. */
static void settle(struct mesh *mesh, unsigned one)
{
    struct member *member = &mesh->of[one];
    for (unsigned i = 0; i < CLUSTERS; i++)
        for (unsigned tries = 0; i != one && mesh->of[i].f != NULL && tries < 4; tries++)
            while (!pull_between(mesh, one, i, 4000))
                ;
    for (unsigned t = 0; t < TABLES; t++)
        assert_ok(
            keyspace_compact(member->tables[t]->spaces[0].keyspace, bytes_of(""), bytes_of("")));
}

/* --- copies --- */

static void step_of(struct mesh *mesh, unsigned one);

static unsigned count_of(const struct mesh *mesh)
{
    return mesh->of[FIRST].f == NULL ? FIRST : CLUSTERS;
}

struct copy {
    struct mesh *mesh;
    unsigned table;
};

static status take(void *context, const struct origin_change *change)
{
    const struct copy *copy = context;
    struct mesh *mesh = copy->mesh;
    struct member *to = &mesh->of[mesh->copies_to];
    struct replica replica = {.of = mesh->of[mesh->copies_from].f, .f = to->f};
    struct origin_change copied = *change;
    bool enough;
    if (draw(&mesh->random, 3) == 0)
        step_of(mesh, draw(&mesh->random, count_of(mesh)));
    assert_true(change->is_drop || event_change_read(change->encoded, &copied.change));
    if (draw(&mesh->random, 6) == 0)
        compact(to, copy->table);
    to->f->table = to->tables[copy->table];
    return apply(&replica, &copied, &enough);
}

/* As set_place of replica/placement_copy.c. */
static void set_place(struct mesh *mesh, unsigned table, unsigned origin,
                      const struct origin_applied *there)
{
    struct member *to = &mesh->of[mesh->copies_to];
    struct origin_applied here;
    if (!origin_applied(to->f->cluster, origin + 1, &here))
        return;
    if (stream_position_compare(there->position, here.position) < 0) {
        for (unsigned t = 0; t < TABLES; t++)
            if (to->has[t] && stream_position_compare(to->from[t][origin], here.position) < 0)
                to->from[t][origin] = here.position;
        assert_ok(origin_applied_rewind(to->f->cluster, origin + 1, there));
    }
    to->from[table][origin] = there->position;
}

static void set_places(struct mesh *mesh, unsigned table, const struct origin_copy *copy)
{
    const struct member *from = &mesh->of[mesh->copies_from];
    for (unsigned i = 0; i < CLUSTERS; i++) {
        struct origin_applied place = {.position = ORIGIN_BEGINNING};
        if (i == mesh->copies_to)
            continue;
        (void)origin_copy_place(copy, i + 1, &place);
        if (stream_position_compare(from->from[table][i], place.position) > 0)
            place.position = from->from[table][i];
        set_place(mesh, table, i, &place);
    }
    recall(mesh, mesh->copies_to);
}

/* All that it has changed itself is in the other's rows then. */
static void let_source_come(struct mesh *mesh, unsigned from, unsigned to)
{
    struct origin_applied applied;
    while (from != to && origin_applied(cluster_of(mesh, from), to + 1, &applied) &&
           !pull_between(mesh, from, to, 4000))
        ;
}

static void copy_table(struct mesh *mesh, unsigned from, unsigned to, unsigned table)
{
    struct origin_copy *rows;
    struct copy copy = {mesh, table};
    struct member *member = &mesh->of[to];
    let_source_come(mesh, from, to);
    mesh->copies_from = from;
    mesh->copies_to = to;
    member->has[table] = member->takes[table] = false;
    assert_ok(origins_keep_all(member->f->cluster, true));
    assert_ok(table_clear(member->tables[table]));
    assert_ok(origin_copy_begin(mesh->of[from].f->cluster, from + 1, &rows));
    set_places(mesh, table, rows);
    member->takes[table] = true;
    assert_ok(origin_copy_read(rows, mesh->of[from].tables[table], take, &copy));
    origin_copy_end(rows);
    member->has[table] = true;
    assert_ok(origins_keep_all(member->f->cluster, false));
    mesh->copies_from = mesh->copies_to = NONE;
}

/* Begins where another one has come to, with no rows. */
static void join(struct mesh *mesh)
{
    struct origin_copy *copy;
    unsigned from = draw(&mesh->random, FIRST), to = FIRST;
    create(mesh, to);
    assert_ok(origin_copy_begin(mesh->of[from].f->cluster, from + 1, &copy));
    for (unsigned i = 0; i < FIRST; i++) {
        struct origin_applied place;
        assert_true(origin_copy_place(copy, i + 1, &place));
        assert_ok(origin_applied_record(cluster_of(mesh, to), i + 1, &place));
    }
    origin_copy_end(copy);
    recall(mesh, to);
    for (unsigned i = 0; i < FIRST; i++)
        follow_from_beginning(mesh, i, to);
    for (unsigned t = 0; t < TABLES; t++)
        copy_table(mesh, draw(&mesh->random, FIRST), to, t);
}

static void copy_anew(struct mesh *mesh, unsigned to)
{
    unsigned from = (to + 1 + draw(&mesh->random, count_of(mesh) - 1)) % count_of(mesh);
    unsigned table = draw(&mesh->random, TABLES);
    if (mesh->copies_to == NONE && mesh->of[from].has[table])
        copy_table(mesh, from, to, table);
}

/* --- histories --- */

/* Clients write where all rows are. */
static void change_table(struct mesh *mesh, unsigned one)
{
    struct member *member = &mesh->of[one];
    unsigned table = draw(&mesh->random, TABLES);
    if (!member->has[table])
        return;
    member->f->table = member->tables[table];
    change_once(member->f, &mesh->random);
}

static void step_of(struct mesh *mesh, unsigned one)
{
    unsigned other = (one + 1 + draw(&mesh->random, count_of(mesh) - 1)) % count_of(mesh);
    switch (draw(&mesh->random, 12)) {
    case 0:
    case 1:
        (void)pull_between(mesh, one, other, draw(&mesh->random, 4000));
        break;
    case 2:
        if (draw(&mesh->random, 4) == 0)
            start_anew(mesh, one);
        break;
    case 3:
        if (draw(&mesh->random, 4) == 0)
            copy_anew(mesh, one);
        break;
    case 4:
        if (draw(&mesh->random, 3) == 0)
            settle(mesh, one);
        break;
    default:
        change_table(mesh, one);
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
    for (unsigned i = 1; i < count_of(mesh); i++)
        for (unsigned t = 0; t < TABLES; t++) {
            struct replica pair = {.of = mesh->of[0].f, .f = mesh->of[i].f};
            pair.of->table = mesh->of[0].tables[t];
            pair.f->table = mesh->of[i].tables[t];
            assert_same_rows(&pair);
        }
}

static void begin_all(struct mesh *mesh)
{
    for (unsigned i = 0; i < FIRST; i++)
        create(mesh, i);
    for (unsigned i = 0; i < FIRST; i++) {
        for (unsigned k = 0; k < FIRST; k++)
            if (i != k)
                follow_from_beginning(mesh, i, k);
        for (unsigned t = 0; t < TABLES; t++)
            mesh->of[i].has[t] = mesh->of[i].takes[t] = true;
    }
}

static void go_through(uint64_t seed)
{
    struct mesh mesh = {.random = seed * 2654435761u + 1, .copies_from = NONE, .copies_to = NONE};
    begin_all(&mesh);
    unsigned joins_at = draw(&mesh.random, run.changes);
    for (unsigned i = 0; i < run.changes; i++) {
        if (i == joins_at)
            join(&mesh);
        step_of(&mesh, draw(&mesh.random, count_of(&mesh)));
    }
    pull_all_of(&mesh);
    assert_all_same(&mesh);
    for (unsigned i = 0; i < count_of(&mesh); i++)
        destroy(&mesh.of[i]);
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
