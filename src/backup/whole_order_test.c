/* Tests of which whole backup is newer, where a clock was wrong for a while: a clock was three days
 * ahead once, and each backup that was made after it was right again was removed in the second in
 * which it was made. And of an expiry of a place that does not show all that it has. */
#include "backup/testing/whole_testing.h"
#include "backup/whole_order.h"
#include "backup/whole_scope.h"
#include "tablet/commit.h"

static const int64_t SECOND = 1000000, DAY = INT64_C(86400) * 1000000;

/* Makes a backup for each digit: its commit version; a second after the one before. */
static void create_versions(struct fixture *f, const char *versions, char names[][WHOLE_NAME_SIZE])
{
    take_checkpoint(f);
    for (size_t i = 0; versions[i] != '\0'; i++) {
        f->version = (uint64_t)(versions[i] - '0');
        assert_ok(try_create(f, names[i]));
    }
}

/* Three of a clock that is three days ahead, and as many of when it was right again. */
static void create_ahead(struct fixture *f, char names[6][WHOLE_NAME_SIZE])
{
    int64_t true_us = f->instant_us;
    f->instant_us += 3 * DAY;
    create_versions(f, "123", names);
    f->instant_us = true_us + 3 * SECOND;
    create_versions(f, "456", &names[3]);
}

static bool is_there(struct fixture *f, const char *name)
{
    struct arena *arena = arena_create(WHOLE_MEMORY);
    struct place *place;
    struct whole_backup backup;
    status s = read_backup(f, name, arena, &place, &backup);
    assert_true(s.code == STATUS_OK || s.code == STATUS_NOT_FOUND);
    bool is = status_is_ok(s);
    status_free(s);
    place_close(place);
    arena_destroy(arena);
    return is;
}

static status find(struct fixture *f, char found[WHOLE_NAME_SIZE])
{
    struct arena *arena = arena_create(WHOLE_MEMORY);
    struct place *place;
    struct whole_backup backup;
    const char *name;
    open_place(f, &place);
    status s = whole_find_newest(place, NULL, arena, &name, &backup);
    snprintf(found, WHOLE_NAME_SIZE, "%s", status_is_ok(s) ? name : "");
    place_close(place);
    arena_destroy(arena);
    return s;
}

static void damage(struct fixture *f, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/backups/%s", f->place, name);
    flip(path, 30);
}

/* --- order --- */

static void the_newest_is_the_one_that_has_most(void **state)
{
    struct fixture *f = *state;
    char names[6][WHOLE_NAME_SIZE], found[WHOLE_NAME_SIZE];
    create_ahead(f, names);
    assert_true(strcmp(names[5], names[0]) < 0);
    assert_ok(find(f, found));
    assert_string_equal(found, names[5]);
}

static void names_come_by_age(void **state)
{
    struct fixture *f = *state;
    char names[6][WHOLE_NAME_SIZE];
    struct arena *arena = arena_create(WHOLE_MEMORY);
    struct place *place;
    const char *const *sorted;
    size_t count;
    create_ahead(f, names);
    open_place(f, &place);
    assert_ok(whole_names_by_age(place, arena, &sorted, &count));
    place_close(place);
    assert_int_equal(count, 6);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(sorted[i], names[i]);
    arena_destroy(arena);
}

/* Where names are true one that cannot be read is as old as its name says; where they are not, it
 * may be the newest. */
static void an_unreadable_backup_is_not_passed_over(void **state)
{
    struct fixture *f = *state;
    char names[6][WHOLE_NAME_SIZE], found[WHOLE_NAME_SIZE];
    create_versions(f, "123", names);
    damage(f, names[1]);
    assert_ok(find(f, found));
    assert_string_equal(found, names[2]);
    for_each_in(f, "backups", remove_it);
    create_ahead(f, names);
    damage(f, names[5]);
    status s = find(f, found);
    assert_int_equal(s.code, STATUS_FAILED_PRECONDITION);
    assert_non_null(strstr(status_message(s), names[5]));
    assert_non_null(strstr(status_message(s), names[4]));
    status_free(s);
}

/* --- expiry --- */

static void expiry_removes_the_oldest_whatever_the_clock_was(void **state)
{
    struct fixture *f = *state;
    char names[6][WHOLE_NAME_SIZE];
    const struct whole_expiry keep_three = {.keep = 3};
    size_t backups = 0, files = 0;
    create_ahead(f, names);
    assert_ok(expire(f, &keep_three, &backups, &files));
    assert_int_equal(backups, 3);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(is_there(f, names[i]), i >= 3);
}

/* Of a server to which nothing was written since: all have the same version. */
static void a_backup_just_made_stays(void **state)
{
    struct fixture *f = *state;
    char names[6][WHOLE_NAME_SIZE];
    int64_t true_us = f->instant_us;
    size_t backups = 0, files = 0;
    f->instant_us += 3 * DAY;
    create_versions(f, "111", names);
    f->instant_us = true_us;
    create_versions(f, "1", &names[3]);
    const struct whole_expiry keep_three = {.keep = 3, .made = names[3]};
    assert_ok(expire(f, &keep_three, &backups, &files));
    assert_int_equal(backups, 1);
    assert_true(is_there(f, names[3]));
}

/* By a clock that is fifty years behind, the newest would be from before all that is to stay. */
static void a_backup_that_reaches_back_stays_whatever_the_clock(void **state)
{
    struct fixture *f = *state;
    char first[WHOLE_NAME_SIZE], second[WHOLE_NAME_SIZE];
    int64_t true_us = f->instant_us;
    size_t backups = 0, files = 0;
    take_checkpoint(f);
    f->version = version_at(true_us);
    assert_ok(try_create(f, first));
    f->version = version_at(true_us + 3600 * SECOND);
    f->instant_us = 1000 * SECOND;
    assert_ok(try_create(f, second));
    struct whole_expiry expiry = {.keep = 1, .reach_us = true_us + 60 * SECOND};
    assert_ok(expire(f, &expiry, &backups, &files));
    assert_int_equal(backups, 0);
    expiry.reach_us = true_us + 3601 * SECOND;
    assert_ok(expire(f, &expiry, &backups, &files));
    assert_int_equal(backups, 1);
    assert_true(is_there(f, second));
}

/* --- places that do not show all --- */

static void a_backup_that_is_not_shown_is_not_gone(void **state)
{
    struct fixture *f = *state;
    char names[3][WHOLE_NAME_SIZE];
    const struct whole_expiry expiry = {.keep = 1, .made = "20301124T034500Z"};
    size_t backups = 0, files = 0;
    create_versions(f, "123", names);
    unsigned there = count_in(f, "files");
    assert_status(expire(f, &expiry, &backups, &files), STATUS_UNAVAILABLE);
    assert_int_equal(count_in(f, "backups"), 3);
    assert_int_equal(count_in(f, "files"), there);
}

static void without_manifests_no_file_goes(void **state)
{
    struct fixture *f = *state;
    char names[1][WHOLE_NAME_SIZE];
    const struct whole_expiry expiry = {.keep = 1};
    size_t backups = 0, files = 0;
    create_versions(f, "1", names);
    unsigned there = count_in(f, "files");
    for_each_in(f, "backups", remove_it);
    assert_status(expire(f, &expiry, &backups, &files), STATUS_FAILED_PRECONDITION);
    assert_int_equal(count_in(f, "files"), there);
    for_each_in(f, "files", remove_it); /* there is nothing to do then */
    assert_ok(expire(f, &expiry, &backups, &files));
}

/* While manifests are read: one shows that was not listed before. */
static bool show_another(void *context)
{
    struct fixture *f = context;
    char from[256], to[256];
    snprintf(from, sizeof from, "%s/hidden", f->directory);
    snprintf(to, sizeof to, "%s/backups/%s", f->place, f->hidden);
    assert_true(rename(from, to) == 0 || is_there(f, f->hidden));
    return true;
}

static void a_place_that_shows_others_the_second_time_keeps_its_files(void **state)
{
    struct fixture *f = *state;
    char hidden[WHOLE_NAME_SIZE], shown[WHOLE_NAME_SIZE], from[256], to[256];
    const struct whole_expiry expiry = {.keep = 1};
    size_t backups = 0, files = 0;
    write_rows(f, "a");
    create(f, hidden);
    write_rows(f, "b");
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    create(f, shown);
    snprintf(from, sizeof from, "%s/backups/%s", f->place, hidden);
    snprintf(to, sizeof to, "%s/hidden", f->directory);
    assert_int_equal(rename(from, to), 0);
    f->hidden = hidden;
    f->work.context = f;
    f->work.goes_on = show_another;
    assert_status(expire(f, &expiry, &backups, &files), STATUS_UNAVAILABLE);
    f->work.goes_on = NULL;
    assert_int_equal(files, 0);
    assert_int_equal(verify(f, hidden) + verify(f, shown), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_newest_is_the_one_that_has_most, setup, teardown),
        cmocka_unit_test_setup_teardown(names_come_by_age, setup, teardown),
        cmocka_unit_test_setup_teardown(an_unreadable_backup_is_not_passed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(expiry_removes_the_oldest_whatever_the_clock_was, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_backup_just_made_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(a_backup_that_reaches_back_stays_whatever_the_clock, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_backup_that_is_not_shown_is_not_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(without_manifests_no_file_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_place_that_shows_others_the_second_time_keeps_its_files,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
