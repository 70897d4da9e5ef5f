/* What is the same of all places: names, and the way to the methods. See place.h. */
#include "place/place.h"

#include "base/limits.h"

#include <stdlib.h>

/* --- names --- */

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr("._-:,%", c) != NULL);
}

static bool part_is_sound(const char *part, size_t size)
{
    static const char unfinished[] = ".new";
    const size_t suffix = sizeof unfinished - 1;
    if (size == 0 || size > LIMIT_PLACE_PART || part[0] == '.')
        return false;
    for (size_t i = 0; i < size; i++)
        if (!is_plain(part[i]))
            return false;
    return size < suffix || memcmp(part + size - suffix, unfinished, suffix) != 0;
}

bool place_name_is_sound(const char *name)
{
    if (strlen(name) > LIMIT_PLACE_NAME)
        return false;
    for (;;) {
        size_t size = strcspn(name, "/");
        if (!part_is_sound(name, size))
            return false;
        if (name[size] == 0)
            return true;
        name += size + 1;
    }
}

static status check_name(const char *name)
{
    return place_name_is_sound(name)
               ? status_ok()
               : status_make(STATUS_INVALID_ARGUMENT, "no name for an object: %s", name);
}

static status check_folder(const char *folder)
{
    return folder[0] == 0 ? status_ok() : check_name(folder);
}

/* --- the methods --- */

static bool always_go_on(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
    return true;
}

static const struct store_pacer unpaced = {.go_on = always_go_on};

static const struct store_pacer *pacer_or_none(const struct store_pacer *pacer)
{
    return pacer != NULL ? pacer : &unpaced;
}

void place_close(struct place *place)
{
    if (place == NULL)
        return;
    free(place->title);
    place->methods->close(place);
}

const char *place_title(const struct place *place)
{
    return place->title;
}

status place_make_folder(struct place *place, const char *folder)
{
    TRY(check_name(folder));
    return place->methods->make_folder(place, folder);
}

status place_put(struct place *place, const char *name, bytes content)
{
    TRY(check_name(name));
    return place->methods->put(place, name, content);
}

status place_put_file(struct place *place, const char *name, const char *path,
                      const struct store_pacer *pacer)
{
    TRY(check_name(name));
    return place->methods->put_file(place, name, path, pacer_or_none(pacer));
}

status place_get(struct place *place, const char *name, size_t most, struct buffer *out)
{
    TRY(check_name(name));
    return place->methods->get(place, name, most, out);
}

status place_get_file(struct place *place, const char *name, const char *path,
                      const struct store_pacer *pacer)
{
    TRY(check_name(name));
    return place->methods->get_file(place, name, path, pacer_or_none(pacer));
}

status place_list(struct place *place, const char *folder,
                  status (*visit)(void *context, const struct place_entry *entry), void *context)
{
    TRY(check_folder(folder));
    return place->methods->list(place, folder, visit, context);
}

status place_remove(struct place *place, const char *name)
{
    TRY(check_name(name));
    return place->methods->remove(place, name);
}

status place_remove_folder(struct place *place, const char *folder)
{
    TRY(check_name(folder));
    return place->methods->remove_folder(place, folder);
}
