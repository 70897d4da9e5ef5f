/* Faults that are planted: each breaks an invariant that a file's head states, or a rule of a
 * function's comment, and a self check must end the process and name it. (tablet/planted_test.c has
 * those of tablet/.) */
#include "base/testing/testing_planted.h"
#include "cluster/index.h"
#include "cluster/testing/testing.h"

/* In the child, which cleans up nothing else. */
static struct cluster_fixture *begin(void)
{
    struct cluster_fixture *f = cluster_fixture_create(NULL);
    remove_test_directory(f->directory);
    return f;
}

static struct tablet *new_tablet(struct cluster_fixture *f, const char *start, const char *end)
{
    struct tablet *tablet;
    struct keyspace *keyspace = f->table->tablets[0]->keyspace;
    assert_ok(tablet_create(99, NULL, keyspace, bytes_of(start), bytes_of(end), &tablet));
    return tablet;
}

/* --- table.h, 2: the tablets cover all keys without hole or overlap --- */

static void swap_for(struct cluster_fixture *f, struct tablet *left, struct tablet *right)
{
    struct tablet *const fresh[] = {left, right};
    struct tablet *old = f->table->tablets[0];
    assert_ok(table_make_room(f->table));
    table_swap_tablets(f->table, &old, 1, fresh, 2);
}

static void tablets_leave_a_hole(void)
{
    struct cluster_fixture *f = begin();
    swap_for(f, new_tablet(f, "", "g"), new_tablet(f, "h", ""));
}

static void tablets_overlap(void)
{
    struct cluster_fixture *f = begin();
    swap_for(f, new_tablet(f, "", "g"), new_tablet(f, "f", ""));
}

static void tablets_end_too_soon(void)
{
    struct cluster_fixture *f = begin();
    swap_for(f, new_tablet(f, "", "g"), new_tablet(f, "g", "x"));
}

static void a_tablet_goes_that_is_not_in_the_map(void)
{
    struct cluster_fixture *f = begin();
    struct tablet *stranger = new_tablet(f, "", "");
    struct tablet *fresh = new_tablet(f, "", "");
    table_swap_tablets(f->table, &stranger, 1, &fresh, 1);
}

static void a_tablet_comes_for_which_no_room_was_made(void)
{
    struct cluster_fixture *f = begin();
    struct tablet *const fresh[] = {new_tablet(f, "", "g"), new_tablet(f, "g", "")};
    struct tablet *old = f->table->tablets[0];
    f->table->tablet_capacity = f->table->tablet_count;
    table_swap_tablets(f->table, &old, 1, fresh, 2);
}

/* --- table.h, 1: the newest description is published --- */

static void a_description_is_older_than_what_stands(void)
{
    struct cluster_fixture *f = begin();
    const struct table_record record = table_record_of(f->table);
    struct description *description;
    assert_ok(description_create(f->cluster, &record, f->table, &description));
    table_publish(f->table, description);
}

/* --- index.h: names rise, each is there once --- */

static void a_name_comes_twice(void)
{
    struct cluster_fixture *f = begin();
    assert_ok(index_make_room(f->cluster));
    index_add(f->cluster, f->table);
}

static void a_table_leaves_that_is_not_there(void)
{
    struct cluster_fixture *f = begin();
    index_remove(f->cluster, f->table);
    index_remove(f->cluster, f->table);
}

static void a_table_comes_for_which_no_room_was_made(void)
{
    struct cluster_fixture *f = begin();
    f->cluster->table_capacity = f->cluster->table_count;
    index_add(f->cluster, f->table);
}

/* --- reshape.h: a split lies inside, a merge is one of neighbours --- */

static void a_tablet_splits_where_it_begins(void)
{
    struct cluster_fixture *f = begin();
    split_at(f, "g");
    struct tablet *right = table_route(f->table, bytes_of("g"));
    status_ignore(reshape_split(f->table, right, bytes_of("g")));
}

static void tablets_merge_that_are_no_neighbours(void)
{
    struct cluster_fixture *f = begin();
    split_at(f, "g");
    split_at(f, "p");
    struct tablet *left = table_route(f->table, bytes_of("a"));
    struct tablet *right = table_route(f->table, bytes_of("p"));
    status_ignore(reshape_merge(f->table, left, right));
}

/* --- cluster_private.h: with admin held; with every row lock held --- */

static void a_preallocated_keyspace_is_taken_without_admin(void)
{
    struct cluster_fixture *f = begin();
    struct keyspace *keyspace;
    status_ignore(shard_take_preallocated(f->cluster->home, &keyspace));
}

static void a_name_is_looked_for_without_admin(void)
{
    struct cluster_fixture *f = begin();
    status_ignore(cluster_check_is_new(f->cluster, "projects/p/instances/i/tables/new"));
}

static void a_drop_is_noted_without_the_locks(void)
{
    struct cluster_fixture *f = begin();
    refill_note_drop(f->cluster->home, f->table->tablets[0]->keyspace, bytes_of("a"),
                     bytes_of("b"));
}

static const struct planted faults[] = {
    PLANTED(tablets_leave_a_hole, "covers_all_keys(table)", false),
    PLANTED(tablets_overlap, "covers_all_keys(table)", false),
    PLANTED(tablets_end_too_soon, "covers_all_keys(table)", false),
    PLANTED(a_tablet_goes_that_is_not_in_the_map, "*place == old[0]", true),
    PLANTED(a_tablet_comes_for_which_no_room_was_made,
            "table->tablet_count + count - old_count <= table->tablet_capacity", true),
    PLANTED(a_description_is_older_than_what_stands,
            "description->generation > newest(table)->generation", false),
    PLANTED(a_name_comes_twice, "is_in_place(cluster, at)", false),
    PLANTED(a_table_leaves_that_is_not_there,
            "at < cluster->table_count && cluster->tables[at] == table", true),
    PLANTED(a_table_comes_for_which_no_room_was_made,
            "cluster->table_count < cluster->table_capacity", true),
    PLANTED(a_tablet_splits_where_it_begins,
            "bytes_compare(tablet->start, at) < 0 && tablet_contains(tablet, at)", true),
    PLANTED(tablets_merge_that_are_no_neighbours,
            "bytes_equal(left->end, right->start) && left->keyspace == right->keyspace", true),
    PLANTED(a_preallocated_keyspace_is_taken_without_admin, "check_is_held(&shard->cluster->admin)",
            false),
    PLANTED(a_name_is_looked_for_without_admin, "check_is_held(&cluster->admin)", false),
    PLANTED(a_drop_is_noted_without_the_locks, "row_locks_are_all_held(shard->locks)", false),
};

static void each_planted_fault_is_caught_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        assert_caught(&faults[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_planted_fault_is_caught_by_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
