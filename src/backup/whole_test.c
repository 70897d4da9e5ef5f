/* Whole backups: made, made again of what changed, restored, expired; and cut short, with a disk
 * that fails. */
#include "backup/testing/whole_testing.h"

#include "backup/unfinished.h"
#include "backup/whole_scope.h"

/* --- what comes back --- */

static void a_restored_backup_is_the_data_of_another_server(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE], mine[STORE_IDENTITY_SIZE], its[STORE_IDENTITY_SIZE];
    write_rows(f, "a");
    put(f->store, f->keyspace, "key", "value");
    create(f, name);
    assert_string_equal(name, "20231114T221320Z");
    put(f->store, f->keyspace, "key", "later");
    assert_int_equal(verify(f, name), 0);
    assert_ok(restore(f, name));
    assert_restored(f, "key", "value");

    struct store_options options = f->options;
    struct store *store;
    options.directory = f->restored;
    assert_ok(store_open(&options, &store));
    assert_ok(store_identity(f->store, mine));
    assert_ok(store_identity(store, its));
    assert_string_not_equal(mine, its);
    store_close(store);
    char path[192];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", f->restored, WHOLE_SETTINGS_FILE);
    assert_int_equal(stat(path, &info), 0);
}

static void only_what_has_changed_is_copied_again(void **state)
{
    struct fixture *f = *state;
    char first[WHOLE_NAME_SIZE], second[WHOLE_NAME_SIZE];
    write_rows(f, "a");
    write_rows(f, "b");
    create(f, first);
    unsigned files = count_in(f, "files");
    uint64_t bytes = f->work.bytes_copied;
    assert_true(bytes > 1000);
    put(f->store, f->keyspace, "key", "value");
    create(f, second);
    assert_true(f->work.bytes_copied < bytes / 2);
    assert_true(f->work.bytes_read < bytes / 2); /* what is known is not even read */
    assert_in_range(count_in(f, "files"), files + 1, files + 3);
    assert_ok(restore(f, first));
    assert_restored(f, "key", NULL);
}

static void a_content_is_kept_once_for_all_servers(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE];
    write_rows(f, "a");
    create(f, name);
    unsigned files = count_in(f, "files");
    /* Without the last backup's word every file is read, and found to be there. */
    char manifest[256];
    snprintf(manifest, sizeof manifest, "%s/backups/%s", f->place, name);
    assert_int_equal(remove(manifest), 0);
    assert_ok(try_create(f, name));
    assert_int_equal(f->work.files_copied, 0);
    assert_true(f->work.bytes_read > 0);
    assert_int_equal(count_in(f, "files"), files);
    assert_int_equal(verify(f, name), 0);
}

static void two_backups_of_one_second_have_two_names(void **state)
{
    struct fixture *f = *state;
    char first[WHOLE_NAME_SIZE], second[WHOLE_NAME_SIZE];
    create(f, first);
    f->instant_us -= 1000000;
    create(f, second);
    assert_string_equal(second, "20231114T221320Z-02");
    assert_int_equal(count_in(f, "backups"), 2);
    assert_int_equal(verify(f, first) + verify(f, second), 0);
}

static void a_directory_with_something_in_it_is_refused(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE];
    create(f, name);
    assert_ok(restore(f, name));
    assert_status(restore(f, name), STATUS_FAILED_PRECONDITION);
    assert_restored(f, "key", NULL);
    assert_status(restore(f, "20010101T000000Z"), STATUS_NOT_FOUND);
    assert_status(restore(f, "../backups"), STATUS_INVALID_ARGUMENT);
}

static void make_file_in(const char *directory, const char *name)
{
    char path[256];
    assert_ok(files_make_directory(files_of_system(), directory));
    snprintf(path, sizeof path, "%s/%s", directory, name);
    assert_ok(files_replace(files_of_system(), path, bytes_of("x")));
}

static void an_empty_directory_keeps_its_mode(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE];
    struct stat about;
    create(f, name);
    assert_int_equal(mkdir(f->restored, 0777), 0);
    assert_int_equal(chmod(f->restored, 0750), 0);
    assert_ok(restore(f, name));
    assert_int_equal(stat(f->restored, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0750);
}

static void a_killed_restore_does_no_harm(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE], unfinished[160], scratch[192];
    create(f, name);
    snprintf(unfinished, sizeof unfinished, "%s.restoring", f->restored);
    snprintf(scratch, sizeof scratch, "%s/archive", unfinished);
    make_file_in(unfinished, "000007.sst");
    make_file_in(scratch, "9-0");
    assert_status(restore(f, name), STATUS_FAILED_PRECONDITION); /* it may not be ours */
    assert_int_equal(access(scratch, F_OK), 0);
    assert_ok(unfinished_mark(files_of_system(), unfinished, "a restore"));
    assert_ok(restore(f, name));
    assert_int_not_equal(access(unfinished, F_OK), 0);
}

static void one_at_a_time_writes_to_a_place(void **state)
{
    struct fixture *f = *state;
    struct place *place;
    struct place_lock *lock;
    char name[WHOLE_NAME_SIZE];
    create(f, name);
    open_place(f, &place);
    assert_ok(whole_lock(place, &lock));
    assert_status(try_create(f, name), STATUS_FAILED_PRECONDITION);
    assert_int_equal(verify(f, "20231114T221320Z"), 0); /* readers need no lock */
    place_unlock(place, lock);
    place_close(place);
    assert_ok(try_create(f, name));
}

/* --- expiry --- */

static void expiry_removes_unreferenced_contents(void **state)
{
    struct fixture *f = *state;
    char first[WHOLE_NAME_SIZE], second[WHOLE_NAME_SIZE], third[WHOLE_NAME_SIZE];
    const struct whole_expiry keep_two = {.keep = 2}, keep_one = {.keep = 1};
    size_t backups, files;
    write_rows(f, "a");
    create(f, first);
    write_rows(f, "b");
    create(f, second);
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    create(f, third);
    assert_ok(expire(f, &keep_two, &backups, &files));
    assert_int_equal(backups, 1);
    assert_true(files >= 1); /* the first one's manifest and log at least */
    assert_int_equal(count_in(f, "backups"), 2);
    assert_int_equal(verify(f, second) + verify(f, third), 0);
    assert_ok(expire(f, &keep_one, &backups, &files));
    assert_true(files > 1); /* the tables before the compaction */
    assert_int_equal(verify(f, third), 0);
    assert_ok(expire(f, &keep_one, &backups, &files));
    assert_int_equal(backups + files, 0);
    assert_ok(restore(f, third));
}

static void expiry_keeps_to_its_server_and_its_schedule(void **state)
{
    struct fixture *f = *state;
    const struct whole_expiry elsewhere = {.server = "another", .keep = 1};
    const struct whole_expiry scheduled = {.scheduled_only = true, .keep = 1};
    const struct whole_expiry none = {.keep = 0};
    struct place *place;
    char name[WHOLE_NAME_SIZE];
    size_t backups, files;
    for (unsigned i = 0; i < 4; i++) {
        take_checkpoint(f);
        open_place(f, &place);
        assert_ok(create_in(f, place, i % 2 == 0, name));
        place_close(place);
    }
    assert_status(expire(f, &elsewhere, &backups, &files), STATUS_NOT_FOUND);
    assert_int_equal(count_in(f, "backups"), 4);
    assert_ok(expire(f, &scheduled, &backups, &files));
    assert_int_equal(backups, 1);
    assert_int_equal(count_in(f, "backups"), 3);
    assert_status(expire(f, &none, &backups, &files), STATUS_INVALID_ARGUMENT);
}

struct told {
    char names[8][WHOLE_NAME_SIZE];
    size_t count;
};

static void note_gone(void *context, const char *name, const char *server)
{
    struct told *told = context;
    assert_non_null(server);
    snprintf(told->names[told->count++], WHOLE_NAME_SIZE, "%s", name);
}

/* The backups of two servers by turns, `of` letters of them; names from the oldest. */
static void create_of(struct fixture *f, const char *of, char names[][WHOLE_NAME_SIZE])
{
    take_checkpoint(f);
    for (size_t i = 0; of[i] != 0; i++) {
        f->server = of[i] == 'a' ? "server a" : "server b";
        assert_ok(try_create(f, names[i]));
    }
}

static void expiry_counts_each_server_by_itself(void **state)
{
    struct fixture *f = *state;
    char names[5][WHOLE_NAME_SIZE];
    struct told told = {.count = 0};
    struct whole_expiry expiry = {.keep = 1, .tell = note_gone, .context = &told};
    size_t backups, files;
    int64_t first_us = f->instant_us;
    create_of(f, "baaba", names);
    expiry.reach_us = first_us + 1500000; /* each one's first is older, a's second is not */
    assert_ok(expire(f, &expiry, &backups, &files));
    assert_int_equal(backups, 0);
    expiry.reach_us = first_us + 2500000; /* two of a's are older */
    expiry.server = "server b";
    assert_ok(expire(f, &expiry, &backups, &files));
    assert_int_equal(backups, 0);
    expiry.server = NULL;
    expiry.is_trial = true;
    for (unsigned i = 0; i < 2; i++) { /* a trial, and then it is done */
        assert_ok(expire(f, &expiry, &backups, &files));
        assert_int_equal(backups, 1);
        assert_int_equal(files, 0); /* all have the same */
        assert_string_equal(told.names[i], names[1]);
        assert_int_equal(count_in(f, "backups"), 5 - i);
        expiry.is_trial = false;
    }
    expiry.reach_us = 0;
    assert_ok(expire(f, &expiry, &backups, &files));
    assert_int_equal(told.count, 4);
    assert_string_equal(told.names[2], names[0]);
    assert_string_equal(told.names[3], names[2]);
    assert_int_equal(verify(f, names[3]) + verify(f, names[4]), 0);
}

/* --- parts of a server --- */

#define TABLE "projects/p/instances/i/tables/t"

/* Makes a backup for each letter: of (a)ll, of the (t)able, of the (i)nstance. */
static void create_parts(struct fixture *f, const char *order, char names[][WHOLE_NAME_SIZE])
{
    take_checkpoint(f);
    for (size_t i = 0; order[i] != '\0'; i++) {
        f->scope = order[i] == 'a' ? NULL : order[i] == 't' ? TABLE : "projects/p/instances/i";
        assert_ok(try_create(f, names[i]));
    }
}

static void expiry_counts_each_part_by_itself(void **state)
{
    struct fixture *f = *state;
    char names[6][WHOLE_NAME_SIZE];
    struct told told = {.count = 0};
    struct whole_expiry expiry = {.keep = 1, .scope = "", .tell = note_gone, .context = &told};
    size_t backups, files;
    create_parts(f, "tataia", names);
    assert_ok(expire(f, &expiry, &backups, &files));
    assert_int_equal(backups, 2);
    assert_string_equal(told.names[0], names[1]);
    assert_string_equal(told.names[1], names[3]);
    expiry.scope = NULL;
    assert_ok(expire(f, &expiry, &backups, &files));
    assert_int_equal(backups, 1);
    assert_string_equal(told.names[2], names[0]);
    assert_int_equal(verify(f, names[2]) + verify(f, names[4]) + verify(f, names[5]), 0);
}

static void assert_newest(struct fixture *f, const char *from, const char *expected)
{
    struct arena *arena = arena_create(WHOLE_MEMORY);
    struct place *place;
    struct whole_backup backup;
    const char *name;
    open_place(f, &place);
    status s = whole_find_newest(place, from, arena, &name, &backup);
    if (expected == NULL)
        assert_int_equal(s.code, STATUS_NOT_FOUND);
    else if (status_is_ok(s))
        assert_string_equal(name, expected);
    else
        fail_msg("%s", status_message(s));
    status_free(s);
    place_close(place);
    arena_destroy(arena);
}

static void the_newest_is_one_that_may_have_it(void **state)
{
    struct fixture *f = *state;
    char names[4][WHOLE_NAME_SIZE];
    create_parts(f, "ti", names);
    assert_newest(f, NULL, NULL);
    assert_newest(f, "projects/p/instances/j", NULL);
    assert_newest(f, TABLE, names[1]);
    create_parts(f, "at", &names[2]);
    assert_newest(f, NULL, names[2]);
    assert_newest(f, "projects/p/instances/i", names[2]);
    assert_newest(f, "projects/p/instances/i/tables/tt", names[2]);
    assert_newest(f, TABLE, names[3]);
}

/* A name that is not quite right is told, with those that there are. */
static void a_server_without_backups_has_none_that_expire(void **state)
{
    struct fixture *f = *state;
    char names[3][WHOLE_NAME_SIZE];
    struct whole_expiry expiry = {.keep = 1, .server = "server"};
    struct place *place;
    size_t backups, files;
    create_of(f, "aba", names);
    open_place(f, &place);
    status s = whole_expire(place, &expiry, &f->work, &backups, &files);
    assert_int_equal(s.code, STATUS_NOT_FOUND);
    assert_non_null(strstr(status_message(s), "there are some of server a server b"));
    status_free(s);
    place_close(place);
    assert_int_equal(count_in(f, "backups"), 3);
}

static void a_trial_of_an_expiry_counts_files(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE];
    struct whole_expiry expiry = {.keep = 1, .is_trial = true};
    size_t backups, files, would;
    write_rows(f, "a");
    create(f, name);
    write_rows(f, "b");
    create(f, name);
    unsigned there = count_in(f, "files");
    assert_ok(expire(f, &expiry, &backups, &would));
    assert_int_equal(count_in(f, "files"), there);
    expiry.is_trial = false;
    assert_ok(expire(f, &expiry, &backups, &files));
    assert_true(files >= 1);
    assert_int_equal(files, would);
    assert_int_equal(count_in(f, "files"), there - files);
}

/* The fixture's backups are a second apart. */
static void expiry_keeps_what_reaches_back(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE];
    size_t backups, files;
    int64_t first_us = f->instant_us;
    for (unsigned i = 0; i < 5; i++)
        create(f, name);
    struct whole_expiry expiry = {.keep = 1, .reach_us = first_us};
    assert_ok(expire(f, &expiry, &backups, &files));
    assert_int_equal(backups, 0); /* none is older */
    expiry.reach_us = first_us + 1;
    assert_ok(expire(f, &expiry, &backups, &files));
    assert_int_equal(backups, 0); /* one is, and is needed */
    expiry.reach_us = first_us + 2500000;
    assert_ok(expire(f, &expiry, &backups, &files));
    assert_int_equal(backups, 2); /* of three */
    expiry.keep = 3;
    expiry.reach_us = first_us + 100000000;
    assert_ok(expire(f, &expiry, &backups, &files));
    assert_int_equal(backups, 0);
}

static void read_head(struct fixture *f, const char *path)
{
    char head[32] = "";
    FILE *file = fopen(path, "rb");
    (void)f;
    assert_non_null(file);
    assert_int_equal(fread(head, 1, sizeof head - 1, file), sizeof head - 1);
    assert_int_equal(fclose(file), 0);
    assert_memory_equal(head, "trestle whole backup 2\n", strlen("trestle whole backup 2\n"));
}

/* Former programs refuse the number, as one of a later release: they know of no parts. */
static void a_part_makes_no_server(void **state)
{
    struct fixture *f = *state;
    char names[1][WHOLE_NAME_SIZE];
    create_parts(f, "t", names);
    assert_status(restore(f, names[0]), STATUS_FAILED_PRECONDITION);
    for_each_in(f, "backups", read_head);
}

/* --- while it is restored --- */

/* The first look whether the work goes on comes after the manifest was read. */
static bool expire_first(void *context)
{
    struct fixture *f = context;
    const struct whole_expiry keep_one = {.keep = 1};
    size_t backups, files;
    f->work.goes_on = NULL;
    assert_ok(expire(f, &keep_one, &backups, &files));
    assert_int_equal(backups, f->is_held ? 0 : 1);
    return true;
}

/* An expiry as of a former release, which looks at no marks. */
static bool expire_whatever_is_held(void *context)
{
    for_each_in(context, "holds", remove_it);
    return expire_first(context);
}

static void create_two(struct fixture *f, char first[WHOLE_NAME_SIZE], char second[WHOLE_NAME_SIZE])
{
    write_rows(f, "a");
    create(f, first);
    write_rows(f, "b");
    assert_ok(keyspace_compact(f->keyspace, bytes_of(""), bytes_of("")));
    create(f, second);
    f->work.context = f;
}

static void an_expiry_during_a_restore_is_no_damage(void **state)
{
    struct fixture *f = *state;
    char first[WHOLE_NAME_SIZE], second[WHOLE_NAME_SIZE];
    create_two(f, first, second);
    f->work.goes_on = expire_whatever_is_held;
    assert_status(restore(f, first), STATUS_ABORTED);
    assert_ok(restore(f, second));
}

static void a_backup_being_restored_does_not_expire(void **state)
{
    struct fixture *f = *state;
    char first[WHOLE_NAME_SIZE], second[WHOLE_NAME_SIZE];
    create_two(f, first, second);
    f->work.goes_on = expire_first;
    f->is_held = true;
    assert_ok(restore(f, first));
    assert_int_equal(count_in(f, "holds"), 0);
    f->is_held = false;
    expire_first(f); /* and does afterwards */
    assert_int_equal(count_in(f, "backups"), 1);
}

static void write_mark(struct fixture *f, const char *line)
{
    struct place *place;
    open_place(f, &place);
    assert_ok(place_make_folder(place, "holds"));
    assert_ok(place_put(place, "holds/left", bytes_of(line)));
    place_close(place);
}

/* A mark that a killed restore has left, or that is none. */
static void a_mark_lapses(void **state)
{
    struct fixture *f = *state;
    char first[WHOLE_NAME_SIZE], second[WHOLE_NAME_SIZE], line[256];
    long long first_us = f->instant_us, now_us = clock_wall_us(f->work.clock);
    f->server = "a";
    create_two(f, first, second);
    snprintf(line, sizeof line, "a %lld %lld\n", first_us, now_us + 3600000000LL);
    write_mark(f, line);
    f->is_held = true;
    expire_first(f);
    assert_int_equal(count_in(f, "holds"), 1);
    snprintf(line, sizeof line, "a %lld %lld\n", first_us, now_us - 1000000);
    write_mark(f, line);
    f->is_held = false;
    expire_first(f);
    assert_int_equal(count_in(f, "holds"), 0);
    write_mark(f, "no mark");
    f->is_held = true; /* there is no more that could go */
    expire_first(f);
    assert_int_equal(count_in(f, "holds"), 0);
}

/* --- cut short, and a disk that fails --- */

static bool goes_on_for(void *context)
{
    unsigned *left = context;
    return (*left)-- > 0;
}

static void a_cancelled_backup_leaves_none(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE];
    status s = status_make(STATUS_CANCELLED, "not yet");
    write_rows(f, "a");
    take_checkpoint(f);
    f->work.goes_on = goes_on_for;
    for (unsigned step = 0; s.code == STATUS_CANCELLED; step++) {
        unsigned left = step;
        assert_true(step < MOST_FAULTS);
        f->work.context = &left;
        status_free(s);
        s = try_create(f, name);
        if (s.code == STATUS_CANCELLED)
            assert_int_equal(count_in(f, "backups"), 0);
    }
    assert_ok(s);
    f->work.goes_on = NULL;
    assert_int_equal(verify(f, name), 0);
}

/* Every backup that there is, is whole. */
static unsigned verify_all(struct fixture *f)
{
    const char *const *names;
    size_t count;
    struct arena *arena = arena_create(WHOLE_MEMORY);
    struct place *place;
    unsigned wrong = 0;
    open_place(f, &place);
    assert_ok(prepare(place));
    assert_ok(whole_names(place, arena, &names, &count));
    place_close(place);
    for (size_t i = 0; i < count; i++)
        wrong += verify(f, names[i]);
    arena_destroy(arena);
    return wrong;
}

/* Each operation on the place's files fails once. */
static void fail_each(struct fixture *f, enum fault_operation operation, enum fault_kind kind)
{
    char name[WHOLE_NAME_SIZE];
    bool has_failed = true;
    for (unsigned step = 0; has_failed; step++) {
        unsigned before = fault_fs_failures(f->fs);
        assert_true(step < MOST_FAULTS);
        fault_fs_fail_here(f->fs, operation, "", kind, step);
        status s = try_create(f, name);
        fault_fs_heal(f->fs);
        has_failed = fault_fs_failures(f->fs) > before;
        if (kind == FAULT_NO_SPACE && has_failed)
            assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
        assert_true(has_failed != status_is_ok(s));
        status_free(s);
        assert_int_equal(verify_all(f), 0);
        if (has_failed) /* so that each attempt has everything to do */
            for_each_in(f, "files", remove_it);
        for_each_in(f, "backups", remove_it);
    }
}

static void every_failure_of_the_place_leaves_no_backup(void **state)
{
    struct fixture *f = *state;
    put(f->store, f->keyspace, "key", "value");
    assert_ok(keyspace_flush(f->keyspace));
    take_checkpoint(f);
    fail_each(f, FAULT_CREATE, FAULT_IO);
    fail_each(f, FAULT_APPEND, FAULT_NO_SPACE);
    fail_each(f, FAULT_APPEND, FAULT_IO);
    fail_each(f, FAULT_SYNC, FAULT_NO_SPACE);
    fail_each(f, FAULT_SYNC, FAULT_IO);
    fail_each(f, FAULT_SYNC_DIRECTORY, FAULT_IO);
}

static void a_power_cut_leaves_whole_backups_alone(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE], place[128], copy[192];
    write_rows(f, "a");
    create(f, name);
    snprintf(copy, sizeof copy, "%s/after", f->directory);
    fault_fs_cut_power(f->fs, f->place, copy, 0);
    memcpy(place, f->place, sizeof place);
    snprintf(f->place, sizeof f->place, "%s", copy);
    assert_int_equal(verify(f, name), 0);
    memcpy(f->place, place, sizeof place);
}

static void every_failure_of_a_restore_leaves_no_directory(void **state)
{
    struct fixture *f = *state;
    static const enum fault_operation operations[] = {FAULT_CREATE, FAULT_APPEND, FAULT_SYNC,
                                                      FAULT_SYNC_DIRECTORY};
    char name[WHOLE_NAME_SIZE];
    struct stat info;
    put(f->store, f->keyspace, "key", "value");
    create(f, name);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        bool has_failed = true;
        for (unsigned step = 0; has_failed; step++) {
            unsigned before = fault_fs_failures(f->fs);
            fault_fs_fail_here(f->fs, operations[i], "", FAULT_NO_SPACE, step);
            status s = restore(f, name);
            fault_fs_heal(f->fs);
            has_failed = fault_fs_failures(f->fs) > before;
            assert_true(has_failed != status_is_ok(s));
            status_free(s);
            /* If only its name could not be made durable, it is there, and whole. */
            if (stat(f->restored, &info) == 0) {
                assert_restored(f, "key", "value");
                remove_restored(f);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_restored_backup_is_the_data_of_another_server, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(only_what_has_changed_is_copied_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_content_is_kept_once_for_all_servers, setup, teardown),
        cmocka_unit_test_setup_teardown(two_backups_of_one_second_have_two_names, setup, teardown),
        cmocka_unit_test_setup_teardown(a_directory_with_something_in_it_is_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_empty_directory_keeps_its_mode, setup, teardown),
        cmocka_unit_test_setup_teardown(a_killed_restore_does_no_harm, setup, teardown),
        cmocka_unit_test_setup_teardown(one_at_a_time_writes_to_a_place, setup, teardown),
        cmocka_unit_test_setup_teardown(expiry_removes_unreferenced_contents, setup, teardown),
        cmocka_unit_test_setup_teardown(expiry_keeps_to_its_server_and_its_schedule, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(expiry_counts_each_server_by_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(expiry_counts_each_part_by_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(the_newest_is_one_that_may_have_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_part_makes_no_server, setup, teardown),
        cmocka_unit_test_setup_teardown(a_server_without_backups_has_none_that_expire, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_trial_of_an_expiry_counts_files, setup, teardown),
        cmocka_unit_test_setup_teardown(expiry_keeps_what_reaches_back, setup, teardown),
        cmocka_unit_test_setup_teardown(an_expiry_during_a_restore_is_no_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(a_backup_being_restored_does_not_expire, setup, teardown),
        cmocka_unit_test_setup_teardown(a_mark_lapses, setup, teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_backup_leaves_none, setup, teardown),
        cmocka_unit_test_setup_teardown(every_failure_of_the_place_leaves_no_backup, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_power_cut_leaves_whole_backups_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(every_failure_of_a_restore_leaves_no_directory, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
