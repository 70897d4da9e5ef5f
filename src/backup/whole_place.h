/* A place that keeps whole backups: a directory.
 *
 *     backups/<name>       manifests, one a backup (whole_manifest.c)
 *     files/<content>      what they refer to, each by its content's name
 *     LOCK                 locked by whoever adds or removes
 *
 * Something is in the place once it is whole: it is written under another name first. What a
 * killed writer leaves is removed by the next one.
 *
 * One thread at a time; all of it blocks. */
#ifndef TRESTLE_BACKUP_WHOLE_PLACE_H
#define TRESTLE_BACKUP_WHOLE_PLACE_H

#include "store/files.h"

struct whole_place;

enum whole_folder { WHOLE_BACKUPS, WHOLE_FILES };

struct whole_place_options {
    const char *where;   /* the directory */
    struct files *files; /* NULL: the system's */
    bool is_new_fine;    /* a directory that is not there is made; its parent is there */
};

/* NOT_FOUND; INVALID_ARGUMENT for what is no place. The options' memory outlives the place. */
status whole_place_open(const struct whole_place_options *options, struct whole_place **out);
void whole_place_close(struct whole_place *place); /* gives the lock back, too; NULL is fine */

/* Before anything is added or removed. FAILED_PRECONDITION if somebody else does. */
status whole_place_lock(struct whole_place *place);

/* Calls `visit` for each name in the folder, in no order, until it fails. */
status whole_place_list(struct whole_place *place, enum whole_folder folder,
                        status (*visit)(void *context, const char *name), void *context);

/* Appends the whole of it. NOT_FOUND; DATA_LOSS if it is larger than `most` bytes. */
status whole_place_read(struct whole_place *place, enum whole_folder folder, const char *name,
                        size_t most, struct buffer *out);

/* From its beginning to its end: up to `size` bytes each time, 0 at the end only. */
struct whole_place_reader;
status whole_place_read_begin(struct whole_place *place, enum whole_folder folder, const char *name,
                              struct whole_place_reader **out);
status whole_place_reader_next(struct whole_place_reader *reader, uint8_t *to, size_t size,
                               size_t *got);
void whole_place_reader_end(struct whole_place_reader *reader); /* NULL is fine */

/* What is not finished is not there. */
struct whole_place_writer;
status whole_place_write_begin(struct whole_place *place, enum whole_folder folder,
                               const char *name, struct whole_place_writer **out);
status whole_place_writer_append(struct whole_place_writer *writer, bytes piece);
status whole_place_writer_finish(struct whole_place_writer *writer);
void whole_place_writer_end(
    struct whole_place_writer *writer); /* removes what is not finished; NULL is fine */

/* What was written and removed so far stays so, whatever happens. */
status whole_place_settle(struct whole_place *place);

/* Fine if there is none. */
status whole_place_remove(struct whole_place *place, enum whole_folder folder, const char *name);

#endif
