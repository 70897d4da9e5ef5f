/* Words and names of old data (store.h) that others than the store know, too. */
#ifndef TRESTLE_STORE_OLD_DATA_WORDS_H
#define TRESTLE_STORE_OLD_DATA_WORDS_H

/* The end of why there is old data, in store_old_data: what is missing comes after it. */
#define STORE_OLD_DATA_ADVICE "trestle repair --accept-old-data takes it for true"

/* In a directory: what it was made of, after store_accept_old_data. */
#define STORE_REPLACED_DIRECTORY "replaced"

#endif
