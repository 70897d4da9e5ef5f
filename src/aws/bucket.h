/* A place that is in a bucket (place/place.h), and the way from what a person calls a place to it.
 *
 *     s3://BUCKET[/PREFIX]     objects of the bucket whose keys begin with PREFIX/
 *
 * Folders are not made: they are there when something is in them. Objects of more than a part's
 * size are put in parts, which are no object until the last one has come. Threads: as places;
 * readers and writers one thread at a time. */
#ifndef TRESTLE_AWS_BUCKET_H
#define TRESTLE_AWS_BUCKET_H

#include "place/sealed.h"

/* A bucket if it begins with s3://, else a directory; UNIMPLEMENTED for other kinds of addresses.
 * `files` outlives the place. Credentials are read now, and nothing else. */
status place_of_name(struct files *files, const char *name, struct place **out);

/* The same; what is in it is sealed (place/sealed.h) with the key in the file, which is read now,
 * unless that is NULL. */
status place_of_name_with_key(struct files *files, const char *name, const char *key_file,
                              struct place **out);

/* `address` begins with s3://. */
status place_of_bucket(struct files *files, const char *address, struct place **out);

#endif
