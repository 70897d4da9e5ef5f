/* The contents of a place that a new backup may refer to: one that is there, but not what was
 * written, would be in every later backup.
 *
 * A content that a backup refers to has been read, and was good,
 *
 *     when the server referred to it for the first time, or put it there
 *     after that once a period, at its turn, which follows from its name and the clock alone (as
 * the scrub's turns do, cluster/scrub.c): so nothing is remembered
 *
 * One that was found damaged, that has another size, or that was marked, is written again. A mark
 * is an object in the folder `damaged`, called as the content is.
 *
 * One thread; all of it blocks. */
#ifndef TRESTLE_BACKUP_WHOLE_CONTENTS_H
#define TRESTLE_BACKUP_WHOLE_CONTENTS_H

#include "backup/whole_private.h"

/* A content that the place lists. */
struct listed_content {
    char name[CONTENT_NAME_SIZE];
    uint64_t size;
};

struct whole_contents {
    struct place *place; /* locked */
    struct whole_work *work;
    uint8_t *piece; /* WHOLE_PIECE bytes */
    /* Turns that come after the one and not after the other, by the wall clock; period 0: none. */
    int64_t period_us;
    int64_t after_us;
    int64_t to_us;
    /* Hears of each that is there and damaged, with what is wrong. May be NULL. */
    void (*tell)(void *context, const char *content, const char *wrong);
    void *context;
    /* Private; all zeroes at first. */
    struct buffer there;     /* of struct listed_content, rising names */
    struct content_set good; /* they were read, or written, just now */
    struct content_set marked;
};

/* Learns what is there. Marks of what is not are removed. */
status whole_contents_list(struct whole_contents *contents);

/* Whether the content of that file is there and may be referred to. `is_trusted`: the server's last
 * backup refers to it, so that only its size and its turn count. Contents that are due are read. */
status whole_contents_find(struct whole_contents *contents, const struct whole_file *file,
                           bool is_trusted, bool *out);

/* It has been put, by that name, in place of what was there. */
status whole_contents_note(struct whole_contents *contents, const char *content);

void whole_contents_free(struct whole_contents *contents);

#endif
