/* See eras.h. The record's value: of each era its id and its sequence, 8 bytes each, big-endian. */
#include "stream/eras.h"

#include "base/big_endian.h"
#include "base/check.h"
#include "base/clock.h"
#include "tablet/version.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

enum { ERA_BYTES = 16 };

static bytes record_key(void)
{
    return bytes_of("stream-eras");
}

/* --- the record --- */

static status parse(bytes value, struct stream_eras *out)
{
    size_t count = value.size / ERA_BYTES;
    if (count == 0 || value.size % ERA_BYTES != 0)
        return status_make(STATUS_DATA_LOSS, "the record of restores has %zu bytes", value.size);
    out->all = calloc(count, sizeof *out->all);
    if (out->all == NULL)
        return status_out_of_memory();
    for (; out->count < count; out->count++) {
        const uint8_t *at = value.data + out->count * ERA_BYTES;
        out->all[out->count] = (struct stream_era){.id = big_endian_read(at),
                                                   .until = big_endian_read(at + BIG_ENDIAN_SIZE)};
    }
    return status_ok();
}

status stream_eras_read(struct keyspace *system, struct stream_eras *out)
{
    struct store_value value = {0};
    enum store_presence presence = STORE_ABSENT;
    *out = (struct stream_eras){0};
    status s = store_get(system, NULL, record_key(), STORE_READ_ANY, &value, &presence);
    if (status_is_ok(s) && presence == STORE_FOUND)
        s = parse(value.bytes, out);
    store_value_release(&value);
    return s;
}

void stream_eras_free(struct stream_eras *eras)
{
    free(eras->all);
    *eras = (struct stream_eras){0};
}

/* --- a restore --- */

static status write_eras(struct store *store, struct keyspace *system, bytes value)
{
    struct store_batch *batch = store_batch_create();
    if (batch == NULL)
        return status_out_of_memory();
    store_batch_put(batch, system, record_key(), value);
    status s = store_write(store, batch, STORE_SYNCED);
    store_batch_destroy(batch);
    return s;
}

static status add_era(struct store *store, struct keyspace *system, const struct stream_eras *eras,
                      uint64_t until)
{
    struct buffer value = {0};
    uint64_t id;
    if (getrandom(&id, sizeof id, 0) != sizeof id)
        return status_from_errno(errno, "no random number for a restored server");
    for (size_t i = 0; i < eras->count; i++) {
        big_endian_append(&value, eras->all[i].id);
        big_endian_append(&value, eras->all[i].until);
    }
    big_endian_append(&value, id | 1); /* never 0 */
    big_endian_append(&value, until);
    status s =
        value.failed ? status_out_of_memory() : write_eras(store, system, buffer_bytes(&value));
    buffer_free(&value);
    return s;
}

status stream_eras_begin(struct store *store, struct keyspace *system, uint64_t until)
{
    struct stream_eras eras;
    status s = stream_eras_read(system, &eras);
    if (status_is_ok(s))
        s = add_era(store, system, &eras, until);
    stream_eras_free(&eras);
    return s;
}

/* --- tokens --- */

uint64_t stream_eras_present(const struct stream_eras *eras)
{
    return eras->count == 0 ? 0 : eras->all[eras->count - 1].id;
}

/* The eras that have begun since that one; those of another server: all, if there are any. */
static bool eras_since(const struct stream_eras *eras, uint64_t id, size_t *first)
{
    *first = 0;
    for (size_t i = 0; i < eras->count && id != 0; i++)
        if (eras->all[i].id == id)
            *first = i + 1;
    return id == 0 || *first > 0;
}

static bool is_behind(const struct stream_token *token, uint64_t until)
{
    for (size_t i = 0; i < token->part_count; i++)
        if (token->parts[i].after.sequence > until)
            return true;
    return false;
}

static status refuse(uint64_t until)
{
    char date[CLOCK_DATE_SIZE];
    return status_make(STATUS_OUT_OF_RANGE,
                       "The server was restored to %s: what the reader with this continuation "
                       "token has been given since is not there",
                       clock_date(version_time_us(until), date));
}

status stream_eras_check(const struct stream_eras *eras, const struct stream_token *token)
{
    size_t first;
    bool is_known = eras_since(eras, token->era, &first);
    if (!is_known && eras->count == 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The continuation token is one of a server that was restored from a "
                           "copy of this one");
    for (size_t i = first; i < eras->count; i++)
        if (!is_known || is_behind(token, eras->all[i].until))
            return refuse(eras->all[i].until);
    return status_ok();
}
