/* See whole_hold.h. A mark is one line: server, instant and end in microseconds since 1970. */
#include "backup/whole_hold.h"

#include "backup/whole_private.h"
#include "os/cipher.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define HOLDS "holds"

enum { NAME_SIZE = 32, MOST_BYTES = 256 };
static const int64_t HOLD_US = INT64_C(15) * 60 * 1000000;
static const int64_t RENEW_US = INT64_C(60) * 1000000;

struct whole_hold {
    struct place *place;
    const struct whole_backup *backup;
    struct clock *clock;
    int64_t put_us; /* by the steady clock */
    char name[NAME_SIZE];
};

/* --- holding --- */

static status put(struct whole_hold *hold)
{
    char line[MOST_BYTES];
    hold->put_us = clock_steady_us(hold->clock);
    int size = snprintf(line, sizeof line, "%s %" PRId64 " %" PRId64 "\n", hold->backup->server,
                        hold->backup->instant_us, clock_wall_us(hold->clock) + HOLD_US);
    if (size < 0 || size >= MOST_BYTES)
        return status_make(STATUS_INVALID_ARGUMENT, "the server has too long a name");
    return place_put(hold->place, hold->name, bytes_make(line, (size_t)size));
}

static status begin(struct whole_hold *hold)
{
    uint64_t random;
    TRY(cipher_random((uint8_t *)&random, sizeof random));
    snprintf(hold->name, sizeof hold->name, HOLDS "/%016" PRIx64, random);
    TRY(place_make_folder(hold->place, HOLDS));
    return put(hold);
}

void whole_hold_begin(struct whole_work *work, struct place *place,
                      const struct whole_backup *backup)
{
    struct whole_hold *hold = calloc(1, sizeof *hold);
    work->hold = NULL;
    if (hold == NULL)
        return;
    *hold = (struct whole_hold){.place = place, .backup = backup, .clock = work->clock};
    status s = begin(hold);
    if (status_is_ok(s))
        work->hold = hold;
    else
        free(hold);
    status_free(s);
}

/* A hold that cannot be put again lasts until its time is over. */
void whole_hold_renew(struct whole_hold *hold)
{
    if (hold != NULL && clock_steady_us(hold->clock) - hold->put_us >= RENEW_US)
        status_ignore(put(hold));
}

void whole_hold_end(struct whole_work *work)
{
    if (work->hold == NULL)
        return;
    status_ignore(place_remove(work->hold->place, work->hold->name));
    free(work->hold);
    work->hold = NULL;
}

/* --- backups that are held --- */

struct listing {
    struct place *place;
    int64_t now_us;
    bool tidies;
    struct arena *arena;
    struct whole_held *held;
    size_t count;
    size_t capacity;
};

static status add(struct listing *listing, const struct whole_held *held)
{
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity == 0 ? 8 : 2 * listing->capacity;
        struct whole_held *larger = arena_alloc(listing->arena, capacity * sizeof *larger);
        if (larger == NULL)
            return status_out_of_memory();
        if (listing->count > 0)
            memcpy(larger, listing->held, listing->count * sizeof *larger);
        listing->held = larger;
        listing->capacity = capacity;
    }
    listing->held[listing->count++] = *held;
    return status_ok();
}

/* False: it says nothing. */
static bool parse(char *line, struct whole_held *out)
{
    char *end, *space = strchr(line, ' ');
    if (space == NULL)
        return false;
    *space = '\0';
    out->server = line;
    out->instant_us = strtoll(space + 1, &end, 10);
    if (end == space + 1 || *end != ' ')
        return false;
    out->until_us = strtoll(end + 1, &end, 10);
    return *end == '\n' && end[1] == '\0';
}

static status take_line(struct listing *listing, const char *name, bytes content)
{
    struct whole_held held;
    char *line = arena_string(listing->arena, content);
    if (line == NULL)
        return status_out_of_memory();
    if (parse(line, &held) && held.until_us >= listing->now_us)
        return add(listing, &held);
    return listing->tidies ? place_remove(listing->place, name) : status_ok();
}

/* A hold that was removed meanwhile, or is damaged, is none. */
static status look(void *context, const struct place_entry *entry)
{
    struct listing *listing = context;
    struct buffer content = {0};
    char name[sizeof HOLDS + 256];
    int size = snprintf(name, sizeof name, HOLDS "/%s", entry->name);
    if (entry->is_folder || size < 0 || (size_t)size >= sizeof name)
        return status_ok();
    status s = place_get(listing->place, name, MOST_BYTES, &content);
    bool is_none = s.code == STATUS_NOT_FOUND || s.code == STATUS_DATA_LOSS;
    if (is_none) {
        status_free(s);
        s = status_ok();
    } else if (status_is_ok(s)) {
        s = take_line(listing, name, buffer_bytes(&content));
    }
    buffer_free(&content);
    return s;
}

status whole_held_list(struct place *place, int64_t now_us, bool tidies, struct arena *arena,
                       struct whole_held **out, size_t *count)
{
    struct listing listing = {.place = place, .now_us = now_us, .tidies = tidies, .arena = arena};
    status s = place_list(place, HOLDS, look, &listing);
    if (s.code == STATUS_NOT_FOUND) { /* nothing was ever held here */
        status_free(s);
        s = status_ok();
    }
    *out = listing.held;
    *count = listing.count;
    return s;
}
