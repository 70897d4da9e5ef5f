/* Whole backups of which something is damaged, in their place. */
#include "backup/testing/whole_testing.h"

#include "backup/whole_copy.h"
#include "backup/whole_harm.h"
#include "backup/whole_scope.h"

static const char *damaged_backup;

static void assert_flip_is_found(struct fixture *f, const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    if (info.st_size == 0)
        return;
    flip(path, (long)info.st_size / 2);
    assert_int_equal(verify(f, damaged_backup), 1);
    assert_status(restore(f, damaged_backup), STATUS_DATA_LOSS);
    assert_int_not_equal(stat(f->restored, &info), 0);
    flip(path, (long)info.st_size / 2);
}

static void a_flipped_bit_of_any_content_is_found(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE];
    write_rows(f, "a");
    create(f, name);
    damaged_backup = name;
    for_each_in(f, "files", assert_flip_is_found);
    assert_int_equal(verify(f, name), 0);
    assert_ok(restore(f, name));
}

static void a_missing_content_is_found(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE];
    create(f, name);
    for_each_in(f, "files", remove_it);
    assert_true(verify(f, name) > 2);
    assert_status(restore(f, name), STATUS_DATA_LOSS);
    /* The last backup's word is no proof: the next one brings all back. */
    create(f, name);
    assert_int_equal(verify(f, name), 0);
}

static void assert_manifest_is_refused(struct fixture *f, const char *path)
{
    struct stat info;
    struct place *place;
    struct whole_backup backup;
    struct arena *arena = arena_create(WHOLE_MEMORY);
    size_t backups, files;
    const struct whole_expiry keep_one = {.keep = 1};
    assert_int_equal(stat(path, &info), 0);
    for (long at = 0; at < (long)info.st_size; at += 7) {
        flip(path, at);
        status s = read_backup(f, damaged_backup, arena, &place, &backup);
        assert_true(s.code == STATUS_DATA_LOSS || s.code == STATUS_FAILED_PRECONDITION);
        status_free(s);
        place_close(place);
        flip(path, at);
    }
    flip(path, (long)info.st_size / 2);
    assert_status(expire(f, &keep_one, &backups, &files), STATUS_DATA_LOSS);
    arena_destroy(arena);
}

static void a_damaged_manifest_is_refused_and_nothing_expires(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE], next[WHOLE_NAME_SIZE];
    create(f, name);
    unsigned files = count_in(f, "files");
    damaged_backup = name;
    for_each_in(f, "backups", assert_manifest_is_refused);
    assert_int_equal(count_in(f, "files"), files);
    create(f, next); /* is no obstacle to others */
    assert_int_equal(verify(f, next), 0);
}

/* --- written again --- */

static void take_larger(struct fixture *f, const char *path)
{
    struct stat info, largest;
    assert_int_equal(stat(path, &info), 0);
    bool is_larger = stat(f->content, &largest) != 0 || info.st_size > largest.st_size;
    if (is_larger)
        snprintf(f->content, sizeof f->content, "%s", path);
}

static char first_table[512];

/* Takes the one of two tables' contents that is not the first. */
static void take_another(struct fixture *f, const char *path)
{
    enum { LEAST = 50000 };
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    if (info.st_size > LEAST && strcmp(path, first_table) != 0)
        snprintf(f->content, sizeof f->content, "%s", path);
}

static void copy_over(const char *from, const char *to)
{
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    int byte;
    assert_non_null(in);
    assert_non_null(out);
    while ((byte = getc(in)) != EOF)
        assert_int_equal(putc(byte, out), byte);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

/* A backup of a table; then the table is damaged in the place. */
static void create_and_damage(struct fixture *f, char name[WHOLE_NAME_SIZE])
{
    struct stat info;
    write_rows(f, "a");
    create(f, name);
    for_each_in(f, "files", take_larger);
    assert_int_equal(stat(f->content, &info), 0);
    flip(f->content, (long)info.st_size / 2);
    assert_int_equal(verify(f, name), 1);
}

/* Each has one within a period. */
static void a_damaged_content_is_written_again_at_its_turn(void **state)
{
    struct fixture *f = *state;
    char first[WHOLE_NAME_SIZE], second[WHOLE_NAME_SIZE];
    create_and_damage(f, first);
    f->check_period_us = 1000000; /* the backups are so far apart */
    create(f, second);
    assert_int_equal(f->work.files_mended, 1);
    assert_int_equal(verify(f, first) + verify(f, second), 0);
    create(f, second);
    assert_int_equal(f->work.files_mended, 0);
}

/* Without any turn, and without being read: a place says how large what it has is. */
static void a_content_of_another_size_is_written_again(void **state)
{
    struct fixture *f = *state;
    char first[WHOLE_NAME_SIZE], second[WHOLE_NAME_SIZE];
    struct stat info;
    create_and_damage(f, first);
    assert_int_equal(stat(f->content, &info), 0);
    assert_int_equal(truncate(f->content, info.st_size / 2), 0);
    create(f, second);
    assert_int_equal(f->work.files_mended, 1);
    assert_int_equal(verify(f, first) + verify(f, second), 0);
}

static void no_turn_is_missed_and_none_comes_twice(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE];
    write_rows(f, "a");
    create(f, name);
    uint64_t table = f->work.bytes_copied - f->work.bytes_copied % 1000; /* most of it */
    create(f, name);
    uint64_t without = f->work.bytes_read, with = 0;
    f->check_period_us = 5000000;
    for (unsigned i = 0; i < 10; i++) { /* two periods */
        create(f, name);
        with += f->work.bytes_read;
    }
    assert_true(with > 10 * without + table);
    assert_true(with < 10 * without + 3 * table);
}

/* A content that another server, or a killed backup, has put. */
static void the_first_reference_to_a_content_reads_it(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE];
    create_and_damage(f, name);
    for_each_in(f, "backups", remove_it);
    assert_ok(try_create(f, name));
    assert_int_equal(f->work.files_mended, 1);
    assert_int_equal(f->work.files_copied, 1);
    assert_int_equal(verify(f, name), 0);
}

static void mark(struct fixture *f, const char *content)
{
    struct place *place;
    open_place(f, &place);
    assert_ok(whole_mark_damaged(place, content));
    assert_status(whole_mark_damaged(place, "LOCK"), STATUS_INVALID_ARGUMENT);
    place_close(place);
}

static void a_marked_content_is_written_again(void **state)
{
    struct fixture *f = *state;
    char first[WHOLE_NAME_SIZE], second[WHOLE_NAME_SIZE];
    create_and_damage(f, first);
    mark(f, strrchr(f->content, '/') + 1);
    assert_int_equal(count_in(f, "damaged"), 1);
    create(f, second);
    assert_int_equal(f->work.files_mended, 1);
    assert_int_equal(verify(f, first) + verify(f, second), 0);
    assert_int_equal(count_in(f, "damaged"), 0);
}

static void a_mark_of_what_is_gone_is_removed(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE];
    create_and_damage(f, name);
    mark(f, strrchr(f->content, '/') + 1);
    assert_int_equal(remove(f->content), 0);
    create(f, name);
    assert_int_equal(f->work.files_mended, 0);
    assert_int_equal(f->work.files_copied > 0, true);
    assert_int_equal(count_in(f, "damaged"), 0);
    assert_int_equal(verify(f, name), 0);
}

/* A disk that does not read now is no damage: nothing is written, and no backup made. */
static void a_failing_disk_fails_the_backup(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE];
    create_and_damage(f, name);
    f->check_period_us = 1000000;
    take_checkpoint(f);
    fault_fs_fail_here(f->fs, FAULT_READ, strrchr(f->content, '/') + 1, FAULT_IO, 0);
    status s = try_create(f, name);
    fault_fs_heal(f->fs);
    assert_false(status_is_ok(s) || s.code == STATUS_DATA_LOSS);
    status_free(s);
    assert_int_equal(count_in(f, "backups"), 1);
    assert_ok(try_create(f, name));
    assert_int_equal(f->work.files_mended, 1);
}

/* --- salvaged --- */

struct salvaging {
    unsigned calls;
    unsigned tables; /* files of these that are there */
};

static status note_salvage(void *context, const char *directory, const struct whole_harm *harm)
{
    assert_true(harm->count > 0);
    struct salvaging *salvaging = context;
    salvaging->calls++;
    DIR *listing = opendir(directory);
    assert_non_null(listing);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;)
        salvaging->tables += whole_is_table_file(entry->d_name);
    closedir(listing);
    return status_ok();
}

static status restore_salvaging(struct fixture *f, const char *name, struct salvaging *salvaging)
{
    struct arena *arena = arena_create(WHOLE_MEMORY);
    struct place *place;
    struct whole_backup backup;
    assert_ok(read_backup(f, name, arena, &place, &backup));
    const struct whole_restore what = {.place = place,
                                       .backup = &backup,
                                       .files = files_of_store(f->store),
                                       .directory = f->restored,
                                       .log = test_log(),
                                       .work = &f->work,
                                       .salvage = salvaging == NULL ? NULL : note_salvage,
                                       .salvage_context = salvaging,
                                       .way_out = "This is the way out"};
    status s = whole_restore(&what);
    place_close(place);
    arena_destroy(arena);
    return s;
}

/* Asserts that some rows are out of service, and that a read of this one ends with `code`. */
static void assert_has_damage(struct fixture *f, const char *key, enum status_code code)
{
    struct store_options options = f->options;
    struct store *store;
    struct store_value value = {0};
    enum store_presence presence;
    options.directory = f->restored;
    options.read_only = true;
    assert_ok(store_open(&options, &store));
    struct keyspace *keyspace = store_keyspace_find(store, KEYSPACE);
    assert_ok(keyspace_look_for_damage(keyspace));
    assert_true(keyspace_has_damage(keyspace));
    status s = store_get(keyspace, NULL, bytes_of(key), STORE_READ_ANY, &value, &presence);
    assert_int_equal(s.code, code);
    status_free(s);
    store_value_release(&value);
    store_close(store);
}

static void damage_in_the_place_is_refused_by_name_or_salvaged(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE];
    struct stat info;
    struct salvaging salvaging = {0};
    create_and_damage(f, name);
    status s = restore_salvaging(f, name, NULL);
    assert_int_equal(s.code, STATUS_DATA_LOSS);
    assert_non_null(strstr(status_message(s), strrchr(f->content, '/') + 1));
    assert_non_null(strstr(status_message(s), "This is the way out"));
    status_free(s);
    assert_int_not_equal(stat(f->restored, &info), 0);
    assert_ok(restore_salvaging(f, name, &salvaging));
    assert_int_equal(salvaging.calls, 1);
    assert_has_damage(f, "a0000", STATUS_OK);
}

/* A table file in place of another is whole, and says nothing of the damage: it counts as missing.
 */
static void a_content_that_is_another_table_is_not_taken(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE];
    struct salvaging salvaging = {0};
    write_rows(f, "a");
    write_rows(f, "b");
    create(f, name);
    f->content[0] = '\0';
    for_each_in(f, "files", take_larger);
    snprintf(first_table, sizeof first_table, "%s", f->content);
    for_each_in(f, "files", take_another);
    assert_string_not_equal(first_table, f->content);
    copy_over(first_table, f->content);
    assert_ok(restore_salvaging(f, name, &salvaging));
    assert_int_equal(salvaging.calls, 1);
    assert_has_damage(f, "c", STATUS_OK); /* of neither */
    remove_restored(f);
    assert_int_equal(remove(f->content), 0);
    assert_ok(restore_salvaging(f, name, &salvaging));
    assert_has_damage(f, "c", STATUS_OK);
}

/* --- a part --- */

static void remove_content_of(struct fixture *f, struct place *place,
                              const struct whole_backup *backup, const char *file)
{
    char content[CONTENT_NAME_SIZE], path[256];
    for (size_t i = 0; i < backup->file_count; i++) {
        if (strcmp(backup->files[i].name, file) != 0)
            continue;
        assert_ok(content_name(place, backup->files[i].sha256, content));
        snprintf(path, sizeof path, "%s/files/%s", f->place, content);
        assert_int_equal(remove(path), 0);
        return;
    }
    fail_msg("the backup has no file %s", file);
}

static void assert_part_says(const struct whole_copy_options *options, const char *words)
{
    struct whole_copy *copy;
    struct stat info;
    status s = whole_copy_open(options, &copy);
    assert_int_equal(s.code, STATUS_DATA_LOSS);
    assert_non_null(strstr(status_message(s), "which is to be SYNCED: it is missing"));
    assert_non_null(strstr(status_message(s), words));
    status_free(s);
    assert_int_not_equal(stat(options->directory, &info), 0);
}

/* --salvage of a part does without rows alone. */
static void a_part_without_a_file_of_all_says_the_way_out(void **state)
{
    struct fixture *f = *state;
    char name[WHOLE_NAME_SIZE];
    struct arena *arena = arena_create(WHOLE_MEMORY);
    struct place *place;
    struct whole_backup backup;
    create(f, name);
    assert_ok(read_backup(f, name, arena, &place, &backup));
    remove_content_of(f, place, &backup, "SYNCED");
    const struct whole_copy_options options = {.place = place,
                                               .backup = &backup,
                                               .files = files_of_store(f->store),
                                               .directory = f->restored,
                                               .name = "projects/p/instances/i/tables/t",
                                               .work = &f->work,
                                               .salvage = true};
    assert_part_says(&options, "Restore all of the backup with --salvage");
    backup.scope = options.name;
    assert_part_says(&options, "this is a backup of a part");
    place_close(place);
    arena_destroy(arena);
}

/* --- which one is the newest --- */

/* In its middle, and back. */
static void flip_manifest(struct fixture *f, const char *name)
{
    char path[256];
    struct stat info;
    snprintf(path, sizeof path, "%s/backups/%s", f->place, name);
    assert_int_equal(stat(path, &info), 0);
    flip(path, (long)info.st_size / 2);
}

/* Asserts which backup is the newest; or what it fails with, and which two that names. */
static void assert_newest(struct fixture *f, const char *name, enum status_code code,
                          const char *other)
{
    struct arena *arena = arena_create(WHOLE_MEMORY);
    struct place *place;
    struct whole_backup backup;
    const char *found;
    open_place(f, &place);
    status s = whole_find_newest(place, NULL, arena, &found, &backup);
    assert_int_equal(s.code, code);
    if (code == STATUS_OK)
        assert_string_equal(found, name);
    if (code != STATUS_OK)
        assert_non_null(strstr(status_message(s), name));
    if (code == STATUS_FAILED_PRECONDITION)
        assert_non_null(strstr(status_message(s), other));
    status_free(s);
    place_close(place);
    arena_destroy(arena);
}

static void a_newest_that_cannot_be_read_is_not_passed_over(void **state)
{
    struct fixture *f = *state;
    char first[WHOLE_NAME_SIZE], second[WHOLE_NAME_SIZE], third[WHOLE_NAME_SIZE];
    create(f, first);
    create(f, second);
    create(f, third);
    flip_manifest(f, second);
    assert_newest(f, third, STATUS_OK, NULL); /* none is missed */
    flip_manifest(f, third);
    assert_newest(f, third, STATUS_FAILED_PRECONDITION, first);
    flip_manifest(f, second);
    assert_newest(f, third, STATUS_FAILED_PRECONDITION, second);
    flip_manifest(f, first);
    flip_manifest(f, second);
    assert_newest(f, third, STATUS_DATA_LOSS, NULL);
}

#define DAMAGED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DAMAGED(a_flipped_bit_of_any_content_is_found),
        DAMAGED(a_missing_content_is_found),
        DAMAGED(a_damaged_manifest_is_refused_and_nothing_expires),
        DAMAGED(a_damaged_content_is_written_again_at_its_turn),
        DAMAGED(a_content_of_another_size_is_written_again),
        DAMAGED(no_turn_is_missed_and_none_comes_twice),
        DAMAGED(the_first_reference_to_a_content_reads_it),
        DAMAGED(a_marked_content_is_written_again),
        DAMAGED(a_mark_of_what_is_gone_is_removed),
        DAMAGED(a_failing_disk_fails_the_backup),
        DAMAGED(damage_in_the_place_is_refused_by_name_or_salvaged),
        DAMAGED(a_content_that_is_another_table_is_not_taken),
        DAMAGED(a_part_without_a_file_of_all_says_the_way_out),
        DAMAGED(a_newest_that_cannot_be_read_is_not_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
