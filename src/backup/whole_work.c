/* Functions that making, verifying, restoring and expiring whole backups share: folders, the rate,
 * names. */
#include "backup/whole_hold.h"
#include "backup/whole_private.h"
#include "os/thread.h"

#include <stdio.h>
#include <stdlib.h>

/* --- the place --- */

status whole_prepare(struct place *place)
{
    TRY(place_make_folder(place, WHOLE_FILES));
    return place_make_folder(place, WHOLE_BACKUPS);
}

static status ignore_entry(void *context, const struct place_entry *entry)
{
    (void)context, (void)entry;
    return status_ok();
}

status whole_lock(struct place *place, struct place_lock **out)
{
    *out = NULL;
    TRY(place_list(place, WHOLE_BACKUPS, ignore_entry, NULL)); /* no lock where nothing is kept */
    TRY(place_lock(place, out));
    status s = place_sweep(place, WHOLE_FILES);
    if (status_is_ok(s))
        s = place_sweep(place, WHOLE_BACKUPS);
    if (status_is_ok(s))
        return s;
    place_unlock(place, *out);
    *out = NULL;
    return s;
}

/* --- pace --- */

void whole_begin(struct whole_work *work, uint64_t bytes_total)
{
    work->bytes_total = bytes_total;
    work->bytes_done = 0;
    work->bytes_read = 0;
    work->start_us = clock_steady_us(work->clock);
}

/* How long the work is ahead of its rate. */
static int64_t ahead_us(const struct whole_work *work)
{
    if (work->bytes_per_second == 0)
        return 0;
    double due_us = (double)work->bytes_read / (double)work->bytes_per_second * 1e6;
    return (int64_t)due_us - (clock_steady_us(work->clock) - work->start_us);
}

static bool is_over(void *context)
{
    const struct whole_work *work = context;
    return work->goes_on != NULL && !work->goes_on(work->context);
}

status whole_pace(struct whole_work *work, uint64_t bytes)
{
    work->bytes_read += bytes;
    whole_hold_renew(work->hold);
    int64_t ahead = ahead_us(work);
    bool ends = ahead > 0 ? thread_wait_for(is_over, work, ahead) : is_over(work);
    return ends ? status_make(STATUS_CANCELLED, "cancelled") : status_ok();
}

/* --- files of a data directory --- */

static bool ends_with(const char *name, const char *suffix)
{
    size_t size = strlen(name), length = strlen(suffix);
    return size > length && strcmp(name + size - length, suffix) == 0;
}

bool whole_is_table_file(const char *name)
{
    return ends_with(name, ".sst");
}

bool whole_is_wanted(const char *name)
{
    return strcmp(name, "CURRENT") == 0 || strcmp(name, "FORMAT") == 0 ||
           strcmp(name, "SYNCED") == 0 || strncmp(name, "MANIFEST-", strlen("MANIFEST-")) == 0 ||
           whole_is_table_file(name) || ends_with(name, ".log");
}

/* --- contents --- */

status content_name(struct place *place, const uint8_t sha256[WHOLE_DIGEST_SIZE],
                    char out[CONTENT_NAME_SIZE])
{
    uint8_t shown[PLACE_DIGEST_BYTES];
    TRY(place_hide(place, sha256, shown));
    for (size_t i = 0; i < WHOLE_DIGEST_SIZE; i++)
        snprintf(out + 2 * i, 3, "%02x", shown[i]);
    return status_ok();
}

void content_object(const char *content, char out[OBJECT_NAME_SIZE])
{
    snprintf(out, OBJECT_NAME_SIZE, WHOLE_FILES "/%s", content);
}

status manifest_object(const char *name, char out[OBJECT_NAME_SIZE])
{
    if (strlen(name) >= WHOLE_NAME_SIZE || strchr(name, '/') != NULL || !place_name_is_sound(name))
        return status_make(STATUS_INVALID_ARGUMENT, "\"%s\" is no backup's name", name);
    snprintf(out, OBJECT_NAME_SIZE, WHOLE_BACKUPS "/%s", name);
    return status_ok();
}

bool is_content_name(const char *name)
{
    size_t size = strspn(name, "0123456789abcdef");
    return size == CONTENT_NAME_SIZE - 1 && name[size] == '\0';
}

status content_set_add(struct content_set *set, const char *name)
{
    if (!is_content_name(name))
        return status_ok();
    if (set->count == set->capacity) {
        size_t capacity = set->capacity == 0 ? 256 : 2 * set->capacity;
        void *larger = realloc(set->names, capacity * sizeof *set->names);
        if (larger == NULL)
            return status_out_of_memory();
        set->names = larger;
        set->capacity = capacity;
    }
    memcpy(set->names[set->count++], name, CONTENT_NAME_SIZE);
    set->is_sorted = false;
    return status_ok();
}

static int compare_names(const void *a, const void *b)
{
    return memcmp(a, b, CONTENT_NAME_SIZE);
}

bool content_set_has(struct content_set *set, const char *name)
{
    if (set->count == 0)
        return false;
    if (!set->is_sorted)
        qsort(set->names, set->count, sizeof *set->names, compare_names);
    set->is_sorted = true;
    return bsearch(name, set->names, set->count, sizeof *set->names, compare_names) != NULL;
}

void content_set_free(struct content_set *set)
{
    free(set->names);
    *set = (struct content_set){0};
}
