/* A place: where whole backups and the archive are kept, as objects with names. A directory now
 * (place_directory.c); whatever else can put, get, list and remove may be one.
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

/* What a kind of place does. Names have been checked. Its struct begins with a struct place. */
struct place_methods {
    status (*make_folder)(struct place *place, const char *folder);
    status (*put)(struct place *place, const char *name, bytes content);
    status (*put_file)(struct place *place, const char *name, const char *path,
                       const struct store_pacer *pacer);
    status (*get)(struct place *place, const char *name, size_t most, struct buffer *out);
    status (*get_file)(struct place *place, const char *name, const char *path,
                       const struct store_pacer *pacer);
    status (*list)(struct place *place, const char *folder,
                   status (*visit)(void *context, const struct place_entry *entry), void *context);
    status (*remove)(struct place *place, const char *name);
    status (*remove_folder)(struct place *place, const char *folder);
    void (*close)(struct place *place);
};

struct place {
    const struct place_methods *methods;
    char *title; /* for people: the path, or the bucket's address; owned */
};

/* The directory, which is there or will be: the place never makes it, since the empty mount point
 * of a disk that is away is not the place. `files` outlives it. */
status place_of_directory(struct files *files, const char *path, struct place **out);
void place_close(struct place *place); /* NULL is fine */

/* For people; as long as the place. */
const char *place_title(const struct place *place);

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

/* Calls `visit` with what lies in the folder, and not below it, by rising name, until it fails.
 * NOT_FOUND if there is no such folder; a place may say OK instead. */
status place_list(struct place *place, const char *folder,
                  status (*visit)(void *context, const struct place_entry *entry), void *context);

/* Removes the object; an empty folder. Fine if there is none. */
status place_remove(struct place *place, const char *name);
status place_remove_folder(struct place *place, const char *folder);

/* Whether it may be the name of an object. */
bool place_name_is_sound(const char *name);

#endif
