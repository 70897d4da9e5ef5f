/* For tests of what is archived: a place that can be told to fail. */
#ifndef TRESTLE_ARCHIVE_TESTING_TESTING_H
#define TRESTLE_ARCHIVE_TESTING_TESTING_H

#include "place/place.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct flaky_place {
    struct place place;
    struct place *target;
    atomic_bool is_gone;    /* all fails */
    atomic_bool loses_word; /* a put is done, and fails all the same */
    /* The operation after so many fails, or kills the process; a put is two, its beginning and the
     * word that it is done. 0: none does. */
    atomic_int fails_after;
    bool kills;
};

static inline struct flaky_place *flaky_of(struct place *place)
{
    return (struct flaky_place *)place;
}

static inline status flaky_say(struct place *place)
{
    struct flaky_place *flaky = flaky_of(place);
    bool strikes = atomic_fetch_sub(&flaky->fails_after, 1) == 1;
    if (strikes && flaky->kills)
        kill(getpid(), SIGKILL);
    return strikes || atomic_load(&flaky->is_gone)
               ? status_make(STATUS_UNAVAILABLE, "the place is gone")
               : status_ok();
}

/* Whether it has struck since it was set. */
static inline bool flaky_has_struck(struct flaky_place *flaky)
{
    return atomic_load(&flaky->fails_after) <= 0;
}

static inline status flaky_make_folder(struct place *place, const char *folder)
{
    TRY(flaky_say(place));
    return place_make_folder(flaky_of(place)->target, folder);
}

static inline status flaky_open(struct place *place, const char *name, struct place_reader **out)
{
    TRY(flaky_say(place));
    return place_open(flaky_of(place)->target, name, out);
}

struct flaky_writer {
    struct place_writer writer;
    struct flaky_place *place;
    struct place_writer *target;
};

static inline status flaky_append(struct place_writer *writer, bytes piece)
{
    return place_writer_append(((struct flaky_writer *)writer)->target, piece);
}

static inline status flaky_finish(struct place_writer *writer)
{
    const struct flaky_writer *flaky = (const struct flaky_writer *)writer;
    TRY(place_writer_finish(flaky->target));
    TRY(flaky_say(&flaky->place->place));
    return atomic_load(&flaky->place->loses_word)
               ? status_make(STATUS_UNAVAILABLE, "no answer came back")
               : status_ok();
}

static inline void flaky_close_writer(struct place_writer *writer)
{
    place_writer_close(((struct flaky_writer *)writer)->target);
    free(writer);
}

static inline status flaky_create(struct place *place, const char *name, struct place_writer **out)
{
    TRY(flaky_say(place));
    struct flaky_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return status_out_of_memory();
    writer->writer = (struct place_writer){flaky_append, flaky_finish, flaky_close_writer};
    writer->place = flaky_of(place);
    status s = place_create(flaky_of(place)->target, name, &writer->target);
    if (status_is_ok(s))
        *out = &writer->writer;
    else
        free(writer);
    return s;
}

static inline status flaky_list(struct place *place, const char *folder,
                                status (*visit)(void *context, const struct place_entry *entry),
                                void *context)
{
    TRY(flaky_say(place));
    return place_list(flaky_of(place)->target, folder, visit, context);
}

static inline status flaky_remove(struct place *place, const char *name)
{
    TRY(flaky_say(place));
    return place_remove(flaky_of(place)->target, name);
}

static inline status flaky_remove_folder(struct place *place, const char *folder)
{
    TRY(flaky_say(place));
    return place_remove_folder(flaky_of(place)->target, folder);
}

static inline status flaky_sync_folder(struct place *place, const char *folder)
{
    TRY(flaky_say(place));
    return place_sync_folder(flaky_of(place)->target, folder);
}

static inline void flaky_close(struct place *place)
{
    place_close(flaky_of(place)->target);
    free(place);
}

/* A flaky place in a directory; NULL without memory. */
static inline struct flaky_place *flaky_place_create(const char *directory)
{
    static const struct place_methods methods = {.make_folder = flaky_make_folder,
                                                 .open = flaky_open,
                                                 .create = flaky_create,
                                                 .list = flaky_list,
                                                 .remove = flaky_remove,
                                                 .remove_folder = flaky_remove_folder,
                                                 .sync_folder = flaky_sync_folder,
                                                 .close = flaky_close};
    struct flaky_place *flaky = calloc(1, sizeof *flaky);
    if (flaky == NULL)
        return NULL;
    flaky->place =
        (struct place){.methods = &methods, .title = strdup(directory), .files = files_of_system()};
    status_ignore(place_of_directory(files_of_system(), directory, &flaky->target));
    return flaky;
}

#endif
