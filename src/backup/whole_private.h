/* Declarations that the files of whole.h share. */
#ifndef TRESTLE_BACKUP_WHOLE_PRIVATE_H
#define TRESTLE_BACKUP_WHOLE_PRIVATE_H

#include "backup/whole.h"
#include "os/digest.h"

enum {
    WHOLE_MEMORY = 256 << 20, /* of one manifest, with room for a million files */
    WHOLE_PIECE = 256 << 10,  /* bytes that are read at a time */
    CONTENT_NAME_SIZE = 2 * WHOLE_DIGEST_SIZE + 1,
    OBJECT_NAME_SIZE = 16 + CONTENT_NAME_SIZE, /* in a place: of a content, or a manifest */
};

/* Folders of a place. */
#define WHOLE_BACKUPS "backups"
#define WHOLE_FILES   "files"

/* The name that the place has for a content. */
status content_name(struct place *place, const uint8_t sha256[WHOLE_DIGEST_SIZE],
                    char out[CONTENT_NAME_SIZE]);

bool is_content_name(const char *name);

/* The content's name in the place. */
void content_object(const char *content, char out[OBJECT_NAME_SIZE]);
/* INVALID_ARGUMENT if it can be no backup's name. */
status manifest_object(const char *name, char out[OBJECT_NAME_SIZE]);

/* The name of the first backup of that instant, a second of the wall clock; false: it has none. */
bool whole_name_of(int64_t instant_us, char out[WHOLE_NAME_SIZE]);

/* Whether a backup has that file of a data directory: not its lock (LOCK), nor its identity
 * (IDENTITY). */
bool whole_is_wanted(const char *file);
bool whole_is_table_file(const char *file); /* it never changes */

/* FAILED_PRECONDITION: the backup `chosen` is taken only if it is named, since a newer one cannot
 * be read; frees why that is. */
status whole_refuse_older(const char *unread, status why, const char *chosen);

/* Reads it to its end, with WHOLE_PIECE bytes at a time, as the work goes on. DATA_LOSS if it is
 * missing, or not what was written. */
status whole_check_content(struct place *place, const uint8_t sha256[WHOLE_DIGEST_SIZE],
                           struct whole_work *work, uint8_t *piece);

/* A set of contents' names that grows, then is asked. All zeroes is empty. */
struct content_set {
    char (*names)[CONTENT_NAME_SIZE];
    size_t count;
    size_t capacity;
    bool is_sorted;
};
status content_set_add(struct content_set *set, const char *name); /* others are left out */
bool content_set_has(struct content_set *set, const char *name);
void content_set_free(struct content_set *set);

/* The message and its frame; see whole_manifest.c. */
status whole_encode(const struct whole_backup *backup, struct arena *arena, struct buffer *out);

/* A choice of a backup's files to be fetched. */
struct whole_choice {
    bool (*wants)(const void *context, const struct whole_file *file);
    const void *context;
};

struct whole_harm;

/* The target of whole_fetch. */
struct whole_target {
    struct place *place;
    const struct whole_backup *backup;
    struct files *files;
    const char *directory;
    struct whole_work *work;
    /* Hears of what is damaged in the place, and is fetched as it is, or as an empty file. NULL:
     * the first fails. */
    struct whole_harm *harm;
};

/* whole_fetch of some; NULL: of all. ABORTED if an expiry has removed the backup meanwhile. */
status whole_fetch_chosen(const struct whole_target *target, const struct whole_choice *choice);

#endif
