/* See bases.h. */
#include "archive/bases.h"

#include <endian.h>

static const char prefix[] = "archive-base", behind[] = "archive-basf";

enum { PREFIX_SIZE = sizeof prefix - 1, HEAD_SIZE = PREFIX_SIZE + sizeof(uint64_t) };

/* --- changing --- */

struct base_commit {
    struct commit commit;
    struct keyspace *catalog;
    bytes key;
    bytes value; /* empty: it goes */
};

static void extend(struct commit *commit, struct store_batch *batch)
{
    const struct base_commit *write = (const struct base_commit *)(void *)commit;
    if (write->value.size > 0)
        store_batch_put(batch, write->catalog, write->key, write->value);
    else
        store_batch_delete(batch, write->catalog, write->key);
}

/* No event tells of it: a copy that is taken on is another server's. */
static status write_base(struct commit_queue *commits, struct keyspace *catalog, bytes key,
                         bytes value)
{
    struct base_commit write = {.commit = {.kind = COMMIT_INTERNAL,
                                           .extend = extend,
                                           .frees_space = true,
                                           .is_synced = true},
                                .catalog = catalog,
                                .key = key,
                                .value = value};
    return commit_and_wait(commits, &write.commit);
}

static status change(struct commit_queue *commits, struct keyspace *catalog,
                     const struct archive_base *base, bytes value)
{
    struct buffer key = {0};
    uint64_t version = htobe64(base->version);
    buffer_append(&key, prefix, PREFIX_SIZE);
    buffer_append(&key, &version, sizeof version);
    buffer_append(&key, base->place, strlen(base->place) + 1);
    buffer_append(&key, base->name, strlen(base->name) + 1);
    status s = key.failed ? status_out_of_memory()
                          : write_base(commits, catalog, buffer_bytes(&key), value);
    buffer_free(&key);
    return s;
}

status bases_add(struct commit_queue *commits, struct keyspace *catalog,
                 const struct archive_base *base)
{
    uint64_t stream = htobe64(base->stream);
    return change(commits, catalog, base, bytes_make(&stream, sizeof stream));
}

status bases_remove(struct commit_queue *commits, struct keyspace *catalog,
                    const struct archive_base *base)
{
    return change(commits, catalog, base, bytes_of(""));
}

/* --- reading --- */

/* The two strings behind the head, each with its zero byte, and nothing behind them. */
static bool parse_strings(bytes b, struct archive_base *out)
{
    const uint8_t *end = b.size == 0 ? NULL : memchr(b.data, 0, b.size);
    if (end == NULL)
        return false;
    out->place = (const char *)b.data;
    out->name = (const char *)end + 1;
    size_t left = b.size - (size_t)(end + 1 - b.data);
    return left > 0 && memchr(end + 1, 0, left) == end + left;
}

static status parse(bytes key, bytes value, struct archive_base *out)
{
    uint64_t numbers[2];
    if (key.size < HEAD_SIZE || value.size != sizeof numbers[0] ||
        !parse_strings(bytes_from(key, HEAD_SIZE), out))
        return status_make(STATUS_DATA_LOSS, "a record of a whole backup is damaged");
    memcpy(&numbers[0], key.data + PREFIX_SIZE, sizeof numbers[0]);
    memcpy(&numbers[1], value.data, sizeof numbers[1]);
    out->version = be64toh(numbers[0]);
    out->stream = be64toh(numbers[1]);
    return status_ok();
}

status bases_visit(struct keyspace *catalog,
                   status (*visit)(void *context, const struct archive_base *base), void *context)
{
    struct store_cursor_options options = {
        .lower = bytes_of(prefix), .upper = bytes_of(behind), .read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    status s = status_ok();
    TRY(store_cursor_create(catalog, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor) && status_is_ok(s);
         store_cursor_next(cursor)) {
        struct archive_base base;
        s = parse(store_cursor_key(cursor), store_cursor_value(cursor), &base);
        if (status_is_ok(s))
            s = visit(context, &base);
    }
    if (status_is_ok(s))
        s = store_cursor_status(cursor);
    store_cursor_destroy(cursor);
    return s;
}
