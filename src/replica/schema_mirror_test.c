/* Tests of schema_mirror.h: a peer that follows another one. Random histories: with
 * TRESTLE_LONG=all more; TRESTLE_SEED plays one again. */
#include "replica/schema_mirror.h"

#include "base/testing/failmalloc.h"
#include "replica/testing/schema_testing.h"

#include <inttypes.h>

struct fixture {
    struct schema_peer leader;
    struct schema_peer follower;
    unsigned made; /* tables at the follower */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    make_peer(&f->leader, 1);
    make_peer(&f->follower, 2);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    end_peer(&f->leader);
    end_peer(&f->follower);
    free(f);
    return 0;
}

static void note_made(void *context, struct table *table)
{
    assert_true(schema_has_table(table));
    ++*(unsigned *)context;
}

static status try_to_mirror(struct fixture *f)
{
    const struct schema_mirror_options options = {
        .control = f->follower.control, .made = note_made, .context = &f->made};
    struct way way;
    struct schema_snapshot *sent = picture(&f->leader), *received = carried(sent, &way);
    status s = schema_mirror(&options, received);
    schema_snapshot_release(sent);
    schema_snapshot_release(received);
    return s;
}

static void assert_alike(struct fixture *f)
{
    struct schema_snapshot *leader = picture(&f->leader), *follower = picture(&f->follower);
    assert_int_equal(leader->tables.count, follower->tables.count);
    assert_int_equal(leader->resources.count, follower->resources.count);
    assert_true(bytes_equal(schema_snapshot_digest(leader), schema_snapshot_digest(follower)));
    schema_snapshot_release(leader);
    schema_snapshot_release(follower);
}

/* It is so also after a start. */
static void mirror(struct fixture *f)
{
    assert_ok(try_to_mirror(f));
    assert_alike(f);
    reopen_peer(&f->follower);
    assert_alike(f);
}

static void make_instance(struct schema_peer *peer)
{
    put(peer, RESOURCE_INSTANCE, INSTANCE);
    put(peer, RESOURCE_CLUSTER, INSTANCE "/clusters/c");
    put(peer, RESOURCE_APP_PROFILE, INSTANCE "/appProfiles/default");
}

static void all_of_it_comes(void **state)
{
    struct fixture *f = *state;
    make_instance(&f->leader);
    make_table(&f->leader, TABLE_T);
    put(&f->leader, RESOURCE_AUTHORIZED_VIEW, TABLE_T "/authorizedViews/v");
    put(&f->leader, RESOURCE_POLICY, TABLE_T);
    put(&f->leader, RESOURCE_LOGICAL_VIEW, INSTANCE "/logicalViews/l");
    put(&f->leader, RESOURCE_MATERIALIZED_VIEW, INSTANCE "/materializedViews/m");
    mirror(f);
    assert_int_equal(f->made, 1);
    assert_int_equal(uid_at(&f->leader, TABLE_T), uid_at(&f->follower, TABLE_T));
    struct table *table = table_named(&f->follower, TABLE_T);
    assert_int_equal(table_tablet_count(table), 3);
    table_release(table);
    uint64_t edits = control_edit_count(f->follower.control);
    assert_ok(try_to_mirror(f));
    assert_int_equal(control_edit_count(f->follower.control), edits);
}

/* What a server had made for itself before it was a peer has the same names. */
static void what_was_here_before_is_replaced(void **state)
{
    struct fixture *f = *state;
    make_instance(&f->follower);
    put(&f->follower, RESOURCE_APP_PROFILE, INSTANCE "/appProfiles/own");
    put(&f->follower, RESOURCE_INSTANCE, INSTANCE "2");
    put(&f->follower, RESOURCE_POLICY, INSTANCE "2");
    make_instance(&f->leader);
    mirror(f);
    assert_false(has(&f->follower, RESOURCE_INSTANCE, INSTANCE "2"));
    assert_false(has(&f->follower, RESOURCE_POLICY, INSTANCE "2"));
    assert_false(has(&f->follower, RESOURCE_APP_PROFILE, INSTANCE "/appProfiles/own"));
}

/* What a picture has not stays as it is. */
static void what_is_its_own_stays(void **state)
{
    struct fixture *f = *state;
    make_instance(&f->leader);
    mirror(f);
    put(&f->follower, RESOURCE_POLICY, INSTANCE "/clusters/c/backups/b");
    put(&f->follower, RESOURCE_FIELD, "projects/p/databases/d/collectionGroups/k/fields/f");
    make_table(&f->follower, "projects/p/databases/d/entities");
    make_table(&f->follower, CLUSTER_OWN_TABLES "notes");
    make_table(&f->leader, TABLE_T);
    mirror(f);
    assert_true(has(&f->follower, RESOURCE_POLICY, INSTANCE "/clusters/c/backups/b"));
    assert_true(
        has(&f->follower, RESOURCE_FIELD, "projects/p/databases/d/collectionGroups/k/fields/f"));
    assert_true(has_table(&f->follower, "projects/p/databases/d/entities"));
    assert_true(has_table(&f->follower, CLUSTER_OWN_TABLES "notes"));
}

/* --- tables --- */

static uint32_t id_of_f(struct schema_peer *peer)
{
    struct table *table = table_named(peer, TABLE_T);
    uint32_t id = schema_family_named(table_schema(table), bytes_of("f"))->id;
    table_release(table);
    return id;
}

static void families_follow(void **state)
{
    struct fixture *f = *state;
    make_table(&f->leader, TABLE_T);
    mirror(f);
    change_table(&f->leader, TABLE_T, (struct family_change){.count = 3});
    change_table(&f->leader, TABLE_T, (struct family_change){.count = 0});
    change_table(&f->leader, TABLE_T, (struct family_change){.count = 1, .is_anew = true});
    mirror(f);
    assert_int_equal(id_of_f(&f->leader), 5);
    assert_int_equal(id_of_f(&f->follower), 5);
    assert_int_equal(f->made, 1);
}

static void what_protects_a_table_here_does_not_keep_it(void **state)
{
    struct fixture *f = *state;
    make_instance(&f->leader);
    make_table(&f->leader, TABLE_T);
    make_table(&f->leader, TABLE_T "2");
    change_table(&f->leader, TABLE_T,
                 (struct family_change){.is_protected = true, .has_stream = true});
    mirror(f);
    delete_table_at(&f->leader, TABLE_T);
    mirror(f);
    assert_false(has_table(&f->follower, TABLE_T));
    change_table(&f->leader, TABLE_T "2",
                 (struct family_change){.is_protected = true, .has_stream = true});
    mirror(f);
    delete_instance_at(&f->leader, INSTANCE);
    mirror(f);
    assert_false(undelete_at(&f->follower, TABLE_T)); /* gone with the instance, for good */
}

static void a_table_that_was_made_anew_is_made_anew(void **state)
{
    struct fixture *f = *state;
    make_table(&f->leader, TABLE_T);
    put(&f->leader, RESOURCE_POLICY, TABLE_T);
    mirror(f);
    uint64_t before = uid_at(&f->follower, TABLE_T);
    delete_table_at(&f->leader, TABLE_T);
    make_table(&f->leader, TABLE_T);
    mirror(f);
    assert_int_not_equal(uid_at(&f->follower, TABLE_T), before);
    assert_false(has(&f->follower, RESOURCE_POLICY, TABLE_T));
    assert_int_equal(f->made, 2);
}

static void an_undeleted_table_comes_back_as_it_was(void **state)
{
    struct fixture *f = *state;
    make_table(&f->leader, TABLE_T);
    put(&f->leader, RESOURCE_POLICY, TABLE_T);
    mirror(f);
    struct table *table = table_named(&f->follower, TABLE_T);
    uint64_t id = table_id(table);
    table_release(table);
    delete_table_at(&f->leader, TABLE_T);
    mirror(f);
    assert_false(has_table(&f->follower, TABLE_T));
    assert_true(undelete_at(&f->leader, TABLE_T));
    change_table(&f->leader, TABLE_T, (struct family_change){.count = 2, .has_stream = true});
    mirror(f);
    table = table_named(&f->follower, TABLE_T);
    assert_int_equal(table_id(table), id);
    table_release(table);
    assert_int_equal(f->made, 1);
}

static void one_that_is_not_kept_is_made_anew(void **state)
{
    struct fixture *f = *state;
    f->follower.base->options.undelete_window_us = 0;
    reopen_peer(&f->follower);
    make_table(&f->leader, TABLE_T);
    put(&f->leader, RESOURCE_POLICY, TABLE_T);
    mirror(f);
    delete_table_at(&f->leader, TABLE_T);
    mirror(f);
    assert_true(undelete_at(&f->leader, TABLE_T));
    mirror(f);
    assert_int_equal(f->made, 2);
    assert_true(has(&f->follower, RESOURCE_POLICY, TABLE_T));
}

/* What a server kept of before it had peers has ids of its own. */
static void what_was_deleted_here_before_does_not_come_back(void **state)
{
    struct fixture *f = *state;
    cluster_set_number(f->follower.base->cluster, 0);
    cluster_set_number(f->leader.base->cluster, 0);
    make_table(&f->follower, TABLE_T);
    make_table(&f->leader, TABLE_T);
    assert_int_equal(uid_at(&f->leader, TABLE_T), uid_at(&f->follower, TABLE_T));
    delete_table_at(&f->follower, TABLE_T);
    cluster_set_number(f->follower.base->cluster, 2);
    mirror(f);
    assert_int_equal(f->made, 1);
}

/* --- views --- */

#define VIEW INSTANCE "/materializedViews/m"

/* As the engine does it at the sight of the resource. */
static void make_view_table(struct schema_peer *peer)
{
    static const char *const families[] = {"default"};
    struct table *source = table_named(peer, TABLE_T), *view;
    const struct view_spec spec = {
        .name = VIEW, .source = source, .families = families, .family_count = 1};
    bool is_new;
    assert_ok(cluster_ensure_view(peer->base->cluster, &spec, &view, &is_new));
    table_release(view);
    table_release(source);
}

static void a_view_goes_with_its_table(void **state)
{
    struct fixture *f = *state;
    make_instance(&f->leader);
    make_table(&f->leader, TABLE_T);
    put(&f->leader, RESOURCE_MATERIALIZED_VIEW, VIEW);
    mirror(f);
    make_view_table(&f->follower);
    assert_alike(f);
    take_away(&f->leader, RESOURCE_MATERIALIZED_VIEW, VIEW);
    delete_table_at(&f->leader, TABLE_T);
    mirror(f);
    assert_false(has_table(&f->follower, VIEW));
    assert_false(has_table(&f->follower, TABLE_T));
}

/* Another view may have been made by the name of one, and another table by that of its source. */
static void a_view_that_was_made_anew_is_made_anew(void **state)
{
    struct fixture *f = *state;
    make_table(&f->leader, TABLE_T);
    put(&f->leader, RESOURCE_MATERIALIZED_VIEW, VIEW);
    mirror(f);
    make_view_table(&f->follower);
    take_away(&f->leader, RESOURCE_MATERIALIZED_VIEW, VIEW);
    put(&f->leader, RESOURCE_MATERIALIZED_VIEW, VIEW);
    mirror(f);
    assert_false(has_table(&f->follower, VIEW));
    assert_true(has(&f->follower, RESOURCE_MATERIALIZED_VIEW, VIEW));
    make_view_table(&f->follower);
    delete_table_at(&f->leader, TABLE_T);
    make_table(&f->leader, TABLE_T);
    mirror(f);
    assert_false(has_table(&f->follower, VIEW));
    assert_true(has(&f->follower, RESOURCE_MATERIALIZED_VIEW, VIEW));
}

static void an_instance_goes_with_all_it_has(void **state)
{
    struct fixture *f = *state;
    make_instance(&f->leader);
    make_table(&f->leader, TABLE_T);
    put(&f->leader, RESOURCE_MATERIALIZED_VIEW, VIEW);
    mirror(f);
    make_view_table(&f->follower);
    delete_instance_at(&f->leader, INSTANCE);
    mirror(f);
    assert_false(has_table(&f->follower, VIEW));
    assert_false(undelete_at(&f->follower, TABLE_T));
}

/* --- random histories --- */

struct dice {
    uint64_t state;
};

static unsigned roll(struct dice *dice, unsigned sides)
{
    dice->state = dice->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(dice->state >> 33) % sides;
}

static const char *some_table(struct dice *dice, char out[64])
{
    snprintf(out, 64, INSTANCE "%u/tables/t%u", roll(dice, 2), roll(dice, 3));
    return out;
}

static void administer_table(struct fixture *f, struct dice *dice)
{
    char name[64];
    struct schema_peer *leader = &f->leader;
    some_table(dice, name);
    if (!has_table(leader, name)) {
        if (roll(dice, 2) == 0 || !undelete_at(leader, name))
            make_table(leader, name);
    } else if (roll(dice, 3) == 0) {
        delete_table_at(leader, name);
    } else {
        change_table(leader, name,
                     (struct family_change){.count = roll(dice, 5),
                                            .is_anew = roll(dice, 2),
                                            .is_protected = roll(dice, 2),
                                            .has_stream = roll(dice, 2)});
    }
}

static const struct {
    enum resource_kind kind;
    const char *parent; /* NULL: a table */
    const char *collection;
} some_kinds[] = {{RESOURCE_POLICY, NULL, NULL},
                  {RESOURCE_AUTHORIZED_VIEW, NULL, "authorizedViews"},
                  {RESOURCE_SCHEMA_BUNDLE, NULL, "schemaBundles"},
                  {RESOURCE_APP_PROFILE, INSTANCE "1", "appProfiles"},
                  {RESOURCE_LOGICAL_VIEW, INSTANCE "0", "logicalViews"}};

static void administer_resource(struct fixture *f, struct dice *dice)
{
    char table[64], name[128];
    unsigned at = roll(dice, sizeof some_kinds / sizeof *some_kinds);
    const char *parent = some_kinds[at].parent;
    if (parent == NULL)
        parent = some_table(dice, table);
    if (some_kinds[at].collection == NULL)
        snprintf(name, sizeof name, "%s", parent);
    else
        snprintf(name, sizeof name, "%s/%s/%u", parent, some_kinds[at].collection, roll(dice, 3));
    if (roll(dice, 3) > 0)
        put(&f->leader, some_kinds[at].kind, name);
    else
        take_away(&f->leader, some_kinds[at].kind, name);
}

static void administer(struct fixture *f, struct dice *dice)
{
    char name[64];
    snprintf(name, sizeof name, INSTANCE "%u", roll(dice, 2));
    switch (roll(dice, 12)) {
    case 0:
        delete_instance_at(&f->leader, name);
        break;
    case 1:
        put(&f->leader, RESOURCE_INSTANCE, name);
        break;
    case 2:
    case 3:
    case 4:
        administer_resource(f, dice);
        break;
    default:
        administer_table(f, dice);
        break;
    }
}

/* Memory runs out somewhere in the midst, and the follower starts anew: what it had come to is on
 * the disk, and is gone on from. */
static void mirror_in_part(struct fixture *f, struct dice *dice)
{
    const struct schema_mirror_options options = {
        .control = f->follower.control, .made = note_made, .context = &f->made};
    struct way way;
    struct schema_snapshot *sent = picture(&f->leader), *received = carried(sent, &way);
    failmalloc_start(roll(dice, 400));
    status_ignore(schema_mirror(&options, received));
    (void)failmalloc_stop();
    schema_snapshot_release(sent);
    schema_snapshot_release(received);
    if (roll(dice, 2) == 0)
        reopen_peer(&f->follower);
}

static void play(struct fixture *f, uint64_t seed)
{
    struct dice dice = {seed};
    for (unsigned i = 0; i < 60; i++) {
        administer(f, &dice);
        unsigned then = roll(&dice, 6);
        if (then == 0)
            mirror_in_part(f, &dice);
        else if (then == 1)
            assert_ok(try_to_mirror(f));
        if (then == 1)
            assert_alike(f);
    }
    mirror(f);
}

static void random_histories_end_alike(void **state)
{
    struct fixture *f = *state;
    const char *is_long = getenv("TRESTLE_LONG"), *seed = getenv("TRESTLE_SEED");
    unsigned count = is_long != NULL && strcmp(is_long, "all") == 0 ? 200 : 6;
    uint64_t first = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    for (unsigned i = 0; i < (seed != NULL ? 1 : count); i++) {
        uint64_t history = first + i;
        print_message("TRESTLE_SEED=%" PRIu64 "\n", history);
        play(f, history);
    }
}

/* --- without memory --- */

/* Of each life another allocation fails; the next one finds more to do. */
static void memory_may_run_out(void **state)
{
    struct fixture *f = *state;
    struct dice dice = {1};
    const struct schema_mirror_options options = {.control = f->follower.control};
    bool ran_out = true;
    make_instance(&f->leader);
    for (size_t count = 0; ran_out; count++) {
        for (unsigned i = 0; i < 4; i++)
            administer(f, &dice);
        struct schema_snapshot *wanted = picture(&f->leader);
        failmalloc_start(count);
        status s = schema_mirror(&options, wanted);
        ran_out = failmalloc_stop();
        assert_true(ran_out || status_is_ok(s));
        if (!status_is_ok(s))
            assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
        status_free(s);
        schema_snapshot_release(wanted);
        assert_true(count < 5000);
    }
    mirror(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
        CASE(all_of_it_comes),
        CASE(what_was_here_before_is_replaced),
        CASE(what_is_its_own_stays),
        CASE(families_follow),
        CASE(what_protects_a_table_here_does_not_keep_it),
        CASE(a_table_that_was_made_anew_is_made_anew),
        CASE(an_undeleted_table_comes_back_as_it_was),
        CASE(one_that_is_not_kept_is_made_anew),
        CASE(what_was_deleted_here_before_does_not_come_back),
        CASE(a_view_goes_with_its_table),
        CASE(a_view_that_was_made_anew_is_made_anew),
        CASE(an_instance_goes_with_all_it_has),
        CASE(random_histories_end_alike),
        CASE(memory_may_run_out),
    };
    return cmocka_run_group_tests_name("schema_mirror", tests, NULL, NULL);
}
