/* A sample of the keys that requests ask for, to find the middle of a load: the last few dozen keys
 * that were noted, of which each stands for some dozen requests, so what is long ago is forgotten.
 *
 * Any thread; noting costs an atomic increment, and now and then a short lock. */
#ifndef TRESTLE_TABLET_KEY_SAMPLE_H
#define TRESTLE_TABLET_KEY_SAMPLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/bytes.h"
#include "base/status.h"

enum {
    KEY_SAMPLE_SIZE = 32,
    KEY_SAMPLE_REQUESTS = 32, /* that one key of it stands for */
};

struct key_sample {
    atomic_uint requests;
    pthread_mutex_t lock; /* guards what follows */
    struct buffer *keys;  /* KEY_SAMPLE_SIZE of them; NULL: none was noted yet */
    unsigned noted;
};

void key_sample_init(struct key_sample *sample);
void key_sample_free(struct key_sample *sample);

/* Without memory the key is not noted. */
void key_sample_note(struct key_sample *sample, bytes key);

/* Sets `key` (cleared first) to the index-th of those in the sample; false: there are not so many,
 * or there is no memory. */
bool key_sample_at(struct key_sample *sample, unsigned index, struct buffer *key);

/* Whether it is full: worth asking. */
bool key_sample_is_full(struct key_sample *sample);

/* Sets `middle` (cleared first) to a key before which about half of the load is, and at or after
 * which the other half. `*found` false: all of it is on one row. */
status key_sample_middle(struct key_sample *sample, struct buffer *middle, bool *found);

#endif
