/* For tests of what is archived: a place that can be told to fail. */
#ifndef TRESTLE_ARCHIVE_TESTING_H
#define TRESTLE_ARCHIVE_TESTING_H

#include "place/place.h"

#include <stdatomic.h>
#include <stdlib.h>

struct flaky_place {
    struct place place;
    struct place *target;
    atomic_bool is_gone;    /* all fails */
    atomic_bool loses_word; /* a put is done, and fails all the same */
};

static inline struct flaky_place *flaky_of(struct place *place)
{
    return (struct flaky_place *)place;
}

static inline status flaky_say(struct place *place)
{
    return atomic_load(&flaky_of(place)->is_gone)
               ? status_make(STATUS_UNAVAILABLE, "the place is gone")
               : status_ok();
}

static inline status flaky_make_folder(struct place *place, const char *folder)
{
    TRY(flaky_say(place));
    return place_make_folder(flaky_of(place)->target, folder);
}

static inline status flaky_put(struct place *place, const char *name, bytes content)
{
    TRY(flaky_say(place));
    TRY(place_put(flaky_of(place)->target, name, content));
    return atomic_load(&flaky_of(place)->loses_word)
               ? status_make(STATUS_UNAVAILABLE, "no answer came back")
               : status_ok();
}

static inline status flaky_put_file(struct place *place, const char *name, const char *path,
                                    const struct store_pacer *pacer)
{
    TRY(flaky_say(place));
    return place_put_file(flaky_of(place)->target, name, path, pacer);
}

static inline status flaky_get(struct place *place, const char *name, size_t most,
                               struct buffer *out)
{
    TRY(flaky_say(place));
    return place_get(flaky_of(place)->target, name, most, out);
}

static inline status flaky_get_file(struct place *place, const char *name, const char *path,
                                    const struct store_pacer *pacer)
{
    TRY(flaky_say(place));
    return place_get_file(flaky_of(place)->target, name, path, pacer);
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

static inline void flaky_close(struct place *place)
{
    place_close(flaky_of(place)->target);
    free(place);
}

/* Of a directory; NULL without memory. */
static inline struct flaky_place *flaky_place_create(const char *directory)
{
    static const struct place_methods methods = {.make_folder = flaky_make_folder,
                                                 .put = flaky_put,
                                                 .put_file = flaky_put_file,
                                                 .get = flaky_get,
                                                 .get_file = flaky_get_file,
                                                 .list = flaky_list,
                                                 .remove = flaky_remove,
                                                 .remove_folder = flaky_remove_folder,
                                                 .close = flaky_close};
    struct flaky_place *flaky = calloc(1, sizeof *flaky);
    if (flaky == NULL)
        return NULL;
    flaky->place = (struct place){.methods = &methods, .title = strdup(directory)};
    status_ignore(place_of_directory(files_of_system(), directory, &flaky->target));
    return flaky;
}

#endif
