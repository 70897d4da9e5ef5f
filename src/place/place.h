/* A place: where whole backups and the archive are kept, as objects with names. A directory
 * (place_directory.c), or a bucket (aws/bucket.h).
 *
 * Invariants
 *  1. An object is there as a whole or not at all. A reader meets no part of one that is being put,
 *     nor does a crash leave one.
 *  2. What a put returned OK for is there after a power cut, as far as the place can promise that.
 *  3. The place remembers nothing about who uses it: opening one touches neither disk nor network,
 *     so a server starts while its place is gone.
 *
 * Names: parts joined by '/', each of 1 to LIMIT_PLACE_PART bytes out of letters, digits and
 * `. _ - : , %`, not beginning with '.', not ending with ".new"; all of a name has at most
 * LIMIT_PLACE_NAME bytes. A folder is a name, too; the empty one is the place itself. Names are
 * ours, never a client's: one that breaks the rules is INVALID_ARGUMENT.
 *
 * Threads: all functions from any thread, several at once; all of them block. */
#ifndef TRESTLE_PLACE_PLACE_H
#define TRESTLE_PLACE_PLACE_H

#include "store/files.h"

struct place;

/* One entry of a folder: an object with its size, or a folder. */
struct place_entry {
    const char *name; /* its last part */
    uint64_t size;    /* of a folder 0 */
    bool is_folder;
};

/* An object that is read from its beginning to its end, and one that is written so. What a kind of
 * place makes; begins its struct. One thread at a time. */
struct place_reader {
    status (*next)(struct place_reader *reader, uint8_t *to, size_t size, size_t *got);
    void (*close)(struct place_reader *reader);
};
struct place_writer {
    status (*append)(struct place_writer *writer, bytes piece);
    status (*finish)(struct place_writer *writer);
    void (*close)(struct place_writer *writer);
};

struct place_lock; /* what a kind of place makes of it */

enum { PLACE_DIGEST_BYTES = 32 }; /* of SHA-256 */

/* What a kind of place does. Names have been checked. Its struct begins with a struct place. */
struct place_methods {
    status (*make)(struct place *place);
    status (*make_folder)(struct place *place, const char *folder);
    status (*open)(struct place *place, const char *name, struct place_reader **out);
    status (*create)(struct place *place, const char *name, struct place_writer **out);
    status (*list)(struct place *place, const char *folder,
                   status (*visit)(void *context, const struct place_entry *entry), void *context);
    status (*remove)(struct place *place, const char *name);
    status (*remove_folder)(struct place *place, const char *folder);
    status (*sync_folder)(struct place *place, const char *folder);
    status (*sweep)(struct place *place, const char *folder);
    status (*lock)(struct place *place, struct place_lock **out);
    void (*unlock)(struct place *place, struct place_lock *lock);
    /* NULL: digests are no secret here. */
    status (*hide)(struct place *place, const uint8_t digest[PLACE_DIGEST_BYTES],
                   uint8_t out[PLACE_DIGEST_BYTES]);
    void (*close)(struct place *place);
};

struct place {
    const struct place_methods *methods;
    char *title;         /* for people: the path, or the bucket's address; owned */
    struct files *files; /* of this machine: where files come from and go to */
};

/* The directory, which is there or will be; `files` outlives the place. */
status place_of_directory(struct files *files, const char *path, struct place **out);

void place_close(struct place *place); /* NULL is fine */

/* The place's name for people; lives as long as the place. */
const char *place_title(const struct place *place);

/* Makes the place, unless it is there: a directory whose parent is there. NOT_FOUND without that.
 * Only for a command by which a person begins a place, since the empty mount point of a disk that
 * is away is not the place. */
status place_make(struct place *place);

/* Makes the folder, and those above it, unless they are there. Objects are put into folders that
 * are there: so an object is not put beside a place that has lost what it had. NOT_FOUND: the place
 * itself is gone. */
status place_make_folder(struct place *place, const char *folder);

/* Puts an object in place of one of that name, if there is one. NOT_FOUND without its folder. */
status place_put(struct place *place, const char *name, bytes content);
/* The same with a file's content. `pacer`, which may be NULL, hears of each piece. */
status place_put_file(struct place *place, const char *name, const char *path,
                      const struct store_pacer *pacer);

/* Appends the object. NOT_FOUND; DATA_LOSS if it is larger than `most` bytes. */
status place_get(struct place *place, const char *name, size_t most, struct buffer *out);
/* Makes the object a file, synced, though not its name; in place of one that is there. */
status place_get_file(struct place *place, const char *name, const char *path,
                      const struct store_pacer *pacer);

/* The object, up to `size` bytes each time, 0 at its end only. NOT_FOUND. */
status place_open(struct place *place, const char *name, struct place_reader **out);
status place_reader_next(struct place_reader *reader, uint8_t *to, size_t size, size_t *got);
void place_reader_close(struct place_reader *reader); /* NULL is fine */

/* Puts an object piece after piece: it is there, as after place_put, when `finish` returns OK, and
 * is not if the writer is closed before. NOT_FOUND without its folder, at once or at the end. */
status place_create(struct place *place, const char *name, struct place_writer **out);
status place_writer_append(struct place_writer *writer, bytes piece);
status place_writer_finish(struct place_writer *writer);
void place_writer_close(struct place_writer *writer); /* NULL is fine */

/* Calls `visit` with what lies in the folder, and not below it, by rising name, until it fails.
 * NOT_FOUND if there is no such folder; a place may say OK instead. */
status place_list(struct place *place, const char *folder,
                  status (*visit)(void *context, const struct place_entry *entry), void *context);

/* Removes the object; an empty folder. Fine if there is none. Durable after place_sync_folder. */
status place_remove(struct place *place, const char *name);
status place_remove_folder(struct place *place, const char *folder);
/* Makes removals from the folder durable. */
status place_sync_folder(struct place *place, const char *folder);

/* Keeps others that lock the place out of it, in other processes, too. Readers need no lock.
 * FAILED_PRECONDITION if it is locked. */
status place_lock(struct place *place, struct place_lock **out);
void place_unlock(struct place *place, struct place_lock *lock); /* NULL is fine */

/* Removes what writers that a crash cut short have left in the folder. No writer is in it
 * meanwhile: writers hold the place's lock, and so does the caller. */
status place_sweep(struct place *place, const char *folder);

/* The name here of a content with this SHA-256: the same, or, where objects are sealed (sealed.h),
 * one that does not tell which content it is. */
status place_hide(struct place *place, const uint8_t digest[PLACE_DIGEST_BYTES],
                  uint8_t out[PLACE_DIGEST_BYTES]);

/* Whether it may be the name of an object. */
bool place_name_is_sound(const char *name);

#endif
