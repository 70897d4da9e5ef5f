/* See doctor_keyspaces.h. */
#include "cmd/repair/doctor_keyspaces.h"

#include "cluster/catalog.h"
#include "cluster/heat/heat_keyspace.h"
#include "row/row_key.h"
#include "stream/feed.h"
#include "stream/record.h"
#include "tablet/change_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum purpose { OF_NOBODY, OF_A_TABLE, SPARE, UNCLAIMED };

struct named {
    uint64_t id;
    enum purpose purpose;
};

struct naming {
    struct named *named;
    size_t count;
    size_t capacity;
};

/* --- what the catalog names --- */

static status name(struct naming *naming, uint64_t id, enum purpose purpose)
{
    if (naming->count == naming->capacity) {
        size_t capacity = 2 * naming->capacity + 64;
        struct named *more = realloc(naming->named, capacity * sizeof *more);
        if (more == NULL)
            return status_out_of_memory();
        naming->named = more;
        naming->capacity = capacity;
    }
    naming->named[naming->count++] = (struct named){.id = id, .purpose = purpose};
    return status_ok();
}

/* That of a view's records. */
static status name_table(void *context, const struct table_record *record)
{
    return record->view.source_id == 0 ? status_ok()
                                       : name(context, record->view.records_id, OF_A_TABLE);
}

static status name_tablet(void *context, const struct tablet_record *record)
{
    return name(context, record->keyspace_id, OF_A_TABLE);
}

static status name_preallocated(void *context, uint64_t id)
{
    return name(context, id, SPARE);
}

static status name_unclaimed(void *context, uint64_t id, int64_t found_us)
{
    (void)found_us;
    return name(context, id, UNCLAIMED);
}

static status read_names(struct keyspace *catalog, struct naming *naming)
{
    const struct catalog_visitor visitor = {.context = naming,
                                            .table = name_table,
                                            .tablet = name_tablet,
                                            .preallocated = name_preallocated,
                                            .unclaimed = name_unclaimed};
    struct change_log_state log;
    bool has_log;
    TRY(name(naming, CATALOG_KEYSPACE_ID, OF_A_TABLE));
    TRY(change_log_read(catalog, &log, &has_log));
    if (has_log)
        TRY(name(naming, log.keyspace, OF_A_TABLE));
    return catalog_read(catalog, &visitor);
}

static enum purpose purpose_of(const struct naming *naming, uint64_t id)
{
    for (size_t i = 0; i < naming->count; i++)
        if (naming->named[i].id == id)
            return naming->named[i].purpose;
    return OF_NOBODY;
}

/* --- what they have --- */

static bool is_row(bytes key)
{
    return key.size > 0 && key.data[0] == ROW_SPACE;
}

static status count_rows(struct keyspace *keyspace, uint64_t *rows)
{
    const struct store_cursor_options options = {.read_tier = STORE_READ_ANY,
                                                 .bypasses_cache = true};
    struct store_cursor *cursor;
    *rows = 0;
    TRY(store_cursor_create(keyspace, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor))
        *rows += is_row(store_cursor_key(cursor));
    status s = store_cursor_status(cursor);
    store_cursor_destroy(cursor);
    return s;
}

static const char *words_for(enum purpose purpose)
{
    switch (purpose) {
    case SPARE:
        return "is in reserve for new tables, but has";
    case UNCLAIMED:
        return "was kept by a start with --salvage, has no table, and has";
    default:
        return "has no table, since what named it is lost, and has";
    }
}

static void check(struct keyspace *keyspace, enum purpose purpose, uint64_t *damages)
{
    uint64_t rows;
    status s = count_rows(keyspace, &rows);
    if (rows > 0 || !status_is_ok(s)) {
        (*damages)++;
        fprintf(stderr, "damage: keyspace %" PRIu64 " %s %" PRIu64 " rows%s%s\n",
                keyspace_id(keyspace), words_for(purpose), rows, status_is_ok(s) ? "" : ": ",
                status_message(s));
    }
    status_free(s);
}

static status pass_entry(void *context, const struct stream_feed_entry *entry, bool *enough)
{
    (void)context, (void)entry, (void)enough;
    return status_ok();
}

/* Nobody has looked at what a mark or a piece of a large value says. */
static bool is_sound_record(bytes key, bytes value)
{
    struct stream_record record;
    uint32_t piece;
    bool enough;
    if (!stream_record_key_read(key, &record.tablet, &record.position, &piece) || piece > 0)
        return true;
    bool is_page = value.size > 0 && value.data[0] == STREAM_FEED_PAGE;
    status s = is_page ? stream_feed_page_read(key, value, pass_entry, NULL, &enough)
                       : stream_record_read(key, value, &record);
    bool is_sound = status_is_ok(s);
    status_free(s);
    return is_sound;
}

/* A part of the log of change streams. What cannot be read of it is told as what is out of service.
 */
static status check_segment(struct keyspace *keyspace, uint64_t *damages)
{
    const struct store_cursor_options options = {.read_tier = STORE_READ_ANY,
                                                 .bypasses_cache = true};
    struct store_cursor *cursor;
    uint64_t bad = 0;
    TRY(store_cursor_create(keyspace, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor))
        bad += !is_sound_record(store_cursor_key(cursor), store_cursor_value(cursor));
    status_ignore(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
    if (bad > 0)
        fprintf(stderr,
                "damage: the log of change streams has %" PRIu64 " records in keyspace %" PRIu64
                " that do not parse\n",
                bad, keyspace_id(keyspace));
    *damages += bad;
    return status_ok();
}

/* Whether it is the keyspace of heat, which a salvage leaves to the next start, that drops it. */
static bool is_heat(struct keyspace *keyspace)
{
    bool is_all = false;
    status_ignore(heat_keyspace_is_one(keyspace, &is_all)); /* then it is not known to be */
    return is_all;
}

status doctor_check_keyspaces(struct store *store, struct keyspace *catalog, uint64_t *damages)
{
    struct naming naming = {0};
    bool is_lost = store_log_end(store).verdict == STORE_LOG_LOST;
    struct keyspace *keyspace;
    status s = read_names(catalog, &naming);
    for (size_t i = 0; status_is_ok(s) && (keyspace = store_keyspace_at(store, i)) != NULL; i++) {
        enum purpose purpose = purpose_of(&naming, keyspace_id(keyspace));
        bool is_to_be_kept = purpose != OF_NOBODY || (is_lost && !is_heat(keyspace));
        if (keyspace_kind(keyspace) == KEYSPACE_LOG)
            s = check_segment(keyspace, damages);
        else if (purpose != OF_A_TABLE && is_to_be_kept)
            check(keyspace, purpose, damages);
    }
    free(naming.named);
    return s;
}
