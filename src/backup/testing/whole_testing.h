/* The fixture of tests of whole backups: a store, and a place that backups of it are made in, a
 * second after the other by their names. */
#ifndef TRESTLE_BACKUP_TESTING_WHOLE_TESTING_H
#define TRESTLE_BACKUP_TESTING_WHOLE_TESTING_H

#include "backup/whole_private.h"
#include "backup/whole_restore.h"
#include "store/testing/fault_fs.h"
#include "store/testing/testing.h"

#include <dirent.h>
#include <sys/stat.h>

enum { KEYSPACE = 7, MOST_FAULTS = 400 };

struct fixture {
    char *directory; /* of all that follows */
    char data[128];
    char checkpoint[128];
    char place[128];
    char restored[128];
    struct fault_fs *fs;
    struct store_options options;
    struct store *store;
    struct keyspace *keyspace;
    struct whole_work work;
    int64_t instant_us;
    uint64_t version;   /* that backups say they have; 0: all the same one */
    const char *hidden; /* the name of a backup that is not in the place yet */
    const char *server; /* that backups say they are of; NULL: the store's */
    const char *scope;  /* the same; NULL: all */
    bool is_held;       /* a restore keeps the older one from expiry */
    int64_t check_period_us;
    char content[512]; /* the path of one */
};

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->directory = make_directory();
    snprintf(f->data, sizeof f->data, "%s/data", f->directory);
    snprintf(f->checkpoint, sizeof f->checkpoint, "%s/checkpoint", f->directory);
    snprintf(f->place, sizeof f->place, "%s/place", f->directory);
    snprintf(f->restored, sizeof f->restored, "%s/restored", f->directory);
    f->fs = fault_fs_create();
    f->options = test_options(f->data);
    assert_ok(fault_fs_open(f->fs, &f->options, &f->store));
    make_keyspace(f->store, 1); /* the catalog's */
    f->keyspace = make_keyspace(f->store, KEYSPACE);
    f->work.clock = clock_system();
    f->instant_us = INT64_C(1700000000) * 1000000;
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    fault_fs_destroy(f->fs);
    remove_directory(f->directory);
    free(f);
    return 0;
}

/* --- making --- */

static inline void take_checkpoint(struct fixture *f)
{
    struct store_checkpoint *checkpoint;
    assert_ok(files_remove_flat_directory(files_of_system(), f->checkpoint));
    assert_ok(store_checkpoint_begin(f->store, &checkpoint));
    assert_ok(store_checkpoint_write(checkpoint, f->checkpoint));
    store_checkpoint_end(checkpoint);
}

static inline void open_place(struct fixture *f, struct place **out)
{
    assert_ok(place_of_directory(files_of_store(f->store), f->place, out));
}

static inline status prepare(struct place *place)
{
    TRY(place_make(place));
    return whole_prepare(place);
}

static inline status create_in(struct fixture *f, struct place *place, bool is_scheduled,
                               char name[WHOLE_NAME_SIZE])
{
    char identity[STORE_IDENTITY_SIZE];
    TRY(store_identity(f->store, identity));
    const struct whole_backup facts = {.server = f->server != NULL ? f->server : identity,
                                       .version = f->version != 0 ? f->version : UINT64_C(1) << 40,
                                       .instant_us = f->instant_us,
                                       .settings = "cache = 1GB\n",
                                       .is_scheduled = is_scheduled,
                                       .scope = f->scope};
    const struct whole_source source = {.files = files_of_store(f->store),
                                        .directory = f->checkpoint,
                                        .facts = &facts,
                                        .check_period_us = f->check_period_us};
    struct place_lock *lock;
    f->instant_us += 1000000;
    TRY(prepare(place));
    TRY(whole_lock(place, &lock));
    status s = whole_create(place, &source, &f->work, name);
    place_unlock(place, lock);
    return s;
}

static inline status try_create(struct fixture *f, char name[WHOLE_NAME_SIZE])
{
    struct place *place;
    open_place(f, &place);
    status s = create_in(f, place, false, name);
    place_close(place);
    return s;
}

static inline void create(struct fixture *f, char name[WHOLE_NAME_SIZE])
{
    take_checkpoint(f);
    assert_ok(try_create(f, name));
}

/* --- reading --- */

static inline void note_wrong(void *context, const char *file, const char *wrong)
{
    unsigned *count = context;
    assert_non_null(file);
    assert_non_null(wrong);
    ++*count;
}

static inline status read_backup(struct fixture *f, const char *name, struct arena *arena,
                                 struct place **place, struct whole_backup *out)
{
    open_place(f, place);
    return whole_read(*place, name, arena, out);
}

/* How much is wrong with it. */
static inline unsigned verify(struct fixture *f, const char *name)
{
    struct arena *arena = arena_create(WHOLE_MEMORY);
    struct place *place;
    struct whole_backup backup;
    unsigned wrong = 0;
    assert_ok(read_backup(f, name, arena, &place, &backup));
    assert_ok(whole_verify(place, &backup, &f->work, note_wrong, &wrong));
    place_close(place);
    arena_destroy(arena);
    return wrong;
}

static inline status restore(struct fixture *f, const char *name)
{
    struct arena *arena = arena_create(WHOLE_MEMORY);
    struct place *place = NULL;
    struct whole_backup backup;
    status s = read_backup(f, name, arena, &place, &backup);
    const struct whole_restore what = {.place = place,
                                       .backup = &backup,
                                       .files = files_of_store(f->store),
                                       .directory = f->restored,
                                       .log = test_log(),
                                       .work = &f->work};
    if (status_is_ok(s))
        s = whole_restore(&what);
    place_close(place);
    arena_destroy(arena);
    return s;
}

/* Opens what was restored, and looks for the value of the key; NULL: there is none. */
static inline void assert_restored(struct fixture *f, const char *key, const char *value)
{
    struct store_options options = f->options;
    struct store *store;
    options.directory = f->restored;
    assert_ok(store_open(&options, &store));
    struct keyspace *keyspace = store_keyspace_find(store, KEYSPACE);
    assert_non_null(keyspace);
    assert_value(keyspace, key, value);
    store_close(store);
}

static inline void remove_restored(struct fixture *f)
{
    assert_ok(files_remove_flat_directory(files_of_system(), f->restored));
}

static inline unsigned count_in(struct fixture *f, const char *folder)
{
    char path[192];
    unsigned count = 0;
    snprintf(path, sizeof path, "%s/%s", f->place, folder);
    DIR *listing = opendir(path);
    assert_non_null(listing);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(listing);
    return count;
}

static inline void write_rows(struct fixture *f, const char *prefix)
{
    char key[32], value[1000] = "";
    uint32_t random = 1;
    for (unsigned i = 0; i < 100; i++) {
        for (size_t at = 0; at < sizeof value - 1; at++) { /* nothing to compress */
            random = random * 1664525 + 1013904223;
            value[at] = (char)(' ' + (random >> 16) % 64);
        }
        snprintf(key, sizeof key, "%s%04u", prefix, i);
        put(f->store, f->keyspace, key, value);
    }
    assert_ok(keyspace_flush(f->keyspace));
}

/* --- files of the place --- */

static inline status expire(struct fixture *f, const struct whole_expiry *expiry, size_t *backups,
                            size_t *files)
{
    struct place *place;
    struct place_lock *lock;
    *backups = *files = 0;
    open_place(f, &place);
    status s = whole_lock(place, &lock);
    if (status_is_ok(s)) {
        s = whole_expire(place, expiry, &f->work, backups, files);
        place_unlock(place, lock);
    }
    place_close(place);
    return s;
}

static inline void for_each_in(struct fixture *f, const char *folder,
                               void (*visit)(struct fixture *f, const char *path))
{
    char path[192], file[512];
    snprintf(path, sizeof path, "%s/%s", f->place, folder);
    DIR *listing = opendir(path);
    assert_non_null(listing);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            visit(f, file);
    }
    closedir(listing);
}

static inline void remove_it(struct fixture *f, const char *path)
{
    (void)f;
    assert_int_equal(remove(path), 0);
}

static inline void flip(const char *path, long offset)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    int c = fgetc(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    assert_int_equal(fputc(c ^ 1, file), c ^ 1);
    assert_int_equal(fclose(file), 0);
}

#endif
