/* See identity_record.h. */
#include "cluster/identity_record.h"

static bytes record_key(void)
{
    return bytes_of("server-identity");
}

/* "LAST" or "LAST BEFORE". */
static status parse(bytes text, struct arena *arena, struct identity_record *out)
{
    char *last = arena_string(arena, text);
    if (last == NULL)
        return status_out_of_memory();
    char *blank = strchr(last, ' ');
    if (blank != NULL)
        *blank = '\0';
    *out = (struct identity_record){last, blank == NULL ? NULL : blank + 1};
    return status_ok();
}

status identity_record_read(struct keyspace *catalog, struct arena *arena,
                            struct identity_record *out)
{
    struct store_value value;
    enum store_presence presence = STORE_ABSENT;
    *out = (struct identity_record){.last = NULL};
    status s = store_get(catalog, NULL, record_key(), STORE_READ_ANY, &value, &presence);
    if (status_is_ok(s) && presence == STORE_FOUND)
        s = parse(value.bytes, arena, out);
    store_value_release(&value);
    return s;
}

bool identity_record_is_other(const struct identity_record *record, const char *identity)
{
    return record->last != NULL && strcmp(record->last, identity) != 0 &&
           (record->before == NULL || strcmp(record->before, identity) != 0);
}

/* Empty: there is to be none. */
static status write_record(struct store *store, struct keyspace *catalog, bytes text,
                           enum store_durability durability)
{
    struct store_batch *batch = store_batch_create();
    if (batch == NULL)
        return status_out_of_memory();
    if (text.size == 0)
        store_batch_delete(batch, catalog, record_key());
    else
        store_batch_put(batch, catalog, record_key(), text);
    status s = store_write(store, batch, durability);
    store_batch_destroy(batch);
    return s;
}

status identity_record_forget(struct store *store, struct keyspace *catalog)
{
    return write_record(store, catalog, bytes_make(NULL, 0), STORE_SYNCED);
}

/* A start waits for no disk for it: what a power cut takes is told, and recorded, by the next. */
static status record_now(struct store *store, struct keyspace *catalog, const char *identity,
                         const char *former)
{
    struct buffer text = {0};
    buffer_append_format(&text, "%s%s%s", identity, former == NULL ? "" : " ",
                         former == NULL ? "" : former);
    status s = text.failed ? status_out_of_memory()
                           : write_record(store, catalog, buffer_bytes(&text), STORE_ASYNC);
    buffer_free(&text);
    return s;
}

static status update(struct store *store, struct keyspace *catalog, const struct log *log,
                     struct arena *arena)
{
    char identity[STORE_IDENTITY_SIZE];
    struct identity_record record;
    if (store_old_data(store) != NULL)
        return identity_record_forget(store, catalog);
    TRY(store_identity(store, identity));
    TRY(identity_record_read(catalog, arena, &record));
    if (record.last != NULL && strcmp(record.last, identity) == 0)
        return status_ok();
    if (identity_record_is_other(&record, identity))
        log_warn(log,
                 "the file IDENTITY named another server when this was written to last: whole "
                 "backups of before are that one's, unless it is put back",
                 LOG_STR("was", record.last), LOG_STR("is", identity));
    return record_now(store, catalog, identity, record.last);
}

void identity_record_update(struct store *store, struct keyspace *catalog, const struct log *log)
{
    struct arena *arena = arena_create(1 << 12);
    status s = arena == NULL ? status_out_of_memory() : update(store, catalog, log, arena);
    arena_destroy(arena);
    if (!status_is_ok(s))
        log_warn(log, "which server it is cannot be recorded", LOG_STR("cause", status_message(s)));
    status_free(s);
}
