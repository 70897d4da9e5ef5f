/* A bucket's place, and lists of what is in it: for the bucket*.c files. */
#ifndef TRESTLE_AWS_BUCKET_PRIVATE_H
#define TRESTLE_AWS_BUCKET_PRIVATE_H

#include "aws/bucket.h"
#include "base/arena.h"

#include <pthread.h>

enum { LOCK_NAME_SIZE = 48, PAGE_MOST = 4 << 20 /* bytes of a list of a thousand names */ };

struct bucket_place {
    struct place place;
    struct bucket *bucket;
    char *prefix; /* of keys: empty, or ends with a slash */

    pthread_mutex_t lock;           /* of what follows */
    char lock_name[LOCK_NAME_SIZE]; /* of the lock that this place has; empty: none */
    int64_t renewed_us;             /* by the steady clock */
};

static inline struct bucket_place *own(struct place *place)
{
    return (struct bucket_place *)place;
}

/* The text of a buffer that ends with a NUL. */
static inline const char *text(const struct buffer *buffer)
{
    return (const char *)buffer->data;
}

struct bucket_found {
    struct place_entry entry;
    int64_t modified_us; /* by the bucket's clock */
};

struct bucket_listing {
    struct bucket_place *place;
    struct arena *arena;
    struct buffer prefix; /* of the folder's keys; with a NUL */
    struct buffer found;  /* struct bucket_found */
    struct buffer token;  /* of the next page; with a NUL; empty: there is none */
    int64_t server_us;    /* when it was listed */
};

/* Begins the list of a folder, "" for all: nothing is asked yet. bucket_listing_end is due either
 * way. */
status bucket_listing_begin(struct bucket_listing *l, struct place *place, const char *folder);

/* Begins it and asks for all pages; what is found is sorted by name. The same holds. */
status bucket_listing_gather(struct bucket_listing *l, struct place *place, const char *folder);
void bucket_listing_end(struct bucket_listing *l);

/* UNAVAILABLE: the answer is no listing, and why. */
status bucket_listing_refuse(const struct bucket_listing *l, const char *why);
/* An element's text, unescaped, in the arena, with a NUL behind it. */
status bucket_listing_take_text(struct bucket_listing *l, bytes inner, bytes *out);
/* The name below the folder of an element that is a key of it. */
status bucket_listing_take_key(struct bucket_listing *l, bytes inner, bytes *out);

#endif
