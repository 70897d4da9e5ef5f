/* See repair_keyspaces.h.
 *
 * A table's name, its families' names and their rules are lost. Its rows still have the families'
 * numbers, and what kind of cells they have: so the table gets the name that it is given, families
 * f1, f2 …, and no rules: nothing is collected before a user sets some.
 *
 * Rows that are out of service are passed over, and stay so: they are for a repair of the table
 * that it becomes. So are then large cells that their rows do not name, which go at once otherwise:
 * the record of a drop may be lost with the table's.
 *
 * The directory is looked at while it is open for reading, and then once more for the batch: while
 * it is open for writing, no damage is met. Without --in-place nothing is written.
 */
#include "cmd/repair/repair_keyspaces.h"

#include "cluster/catalog.h"
#include "cluster/shard_directories.h"
#include "cmd/command.h"
#include "cmd/plural.h"
#include "cmd/repair/stray_cells.h"
#include "row/fragment.h"
#include "row/row_key.h"
#include "server/offline_cluster.h"
#include "tablet/change_log.h"
#include "tablet/commit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_FAMILIES = 1000 };

struct wish {
    const char *directory;
    uint64_t keyspace;
    const char *table; /* NULL: it goes */
    bool in_place;
};

struct found_family {
    uint32_t id;
    enum entry_kind kind;
    char name[16];
};

struct claim {
    const struct wish *wish;
    struct store *store;
    struct keyspace *catalog;
    bool is_unclaimed;
    bool has_name; /* a table of that name is there */
    uint64_t next_id;
    struct found_family families[MOST_FAMILIES];
    size_t family_count;
    uint64_t rows;
    uint64_t newest; /* version */
    bool has_damage; /* of the rows some are out of service, and not counted */
    uint64_t strays; /* rows with large cells that they did not name, which were removed */
};

/* Keys of it, up to `to` (empty: its end), of which none is out of service. */
struct stretch {
    struct buffer from;
    struct buffer to;
    bool is_moved; /* `from` was, lately */
    bool is_over;
    bool has_damage;
};

/* --- what the catalog says --- */

static status see_table(void *context, const struct table_record *record)
{
    struct claim *claim = context;
    const char *name = claim->wish->table;
    claim->has_name |= name != NULL && record->deleted_us == 0 && strcmp(record->name, name) == 0;
    return status_ok();
}

static status see_next_id(void *context, uint64_t next_id)
{
    ((struct claim *)context)->next_id = next_id;
    return status_ok();
}

static status see_unclaimed(void *context, uint64_t id, int64_t found_us)
{
    struct claim *claim = context;
    (void)found_us;
    claim->is_unclaimed |= id == claim->wish->keyspace;
    return status_ok();
}

static status read_catalog(struct claim *claim)
{
    const struct catalog_visitor visitor = {
        .context = claim, .table = see_table, .next_id = see_next_id, .unclaimed = see_unclaimed};
    TRY(catalog_read(claim->catalog, &visitor));
    if (!claim->is_unclaimed)
        return status_make(STATUS_NOT_FOUND, "no start with --salvage has kept a keyspace %" PRIu64,
                           claim->wish->keyspace);
    if (claim->has_name)
        return status_make(STATUS_ALREADY_EXISTS, "there is a table %s", claim->wish->table);
    return status_ok();
}

/* --- what its rows say --- */

static status note_family(struct claim *claim, uint32_t id, enum entry_kind kind)
{
    for (size_t i = 0; i < claim->family_count; i++)
        if (claim->families[i].id == id)
            return status_ok();
    if (claim->family_count == MOST_FAMILIES)
        return status_make(STATUS_DATA_LOSS, "more families than a table may have");
    struct found_family *family = &claim->families[claim->family_count++];
    *family = (struct found_family){.id = id, .kind = kind};
    snprintf(family->name, sizeof family->name, "f%" PRIu32, id);
    return status_ok();
}

/* An overflow cell's family is in its key. */
static status note_record(struct claim *claim, bytes key, bytes record)
{
    struct fragment_reader reader;
    struct entry entry;
    uint32_t family = 0;
    int64_t timestamp_us;
    bool is_row = key.size > 0 && key.data[0] == ROW_SPACE;
    if (!is_row && !overflow_key_tail(key, &family, &timestamp_us))
        return status_make(STATUS_DATA_LOSS, "a key does not parse");
    if (!fragment_reader_start(&reader, record))
        return status_make(STATUS_DATA_LOSS, "a record does not parse");
    claim->rows += is_row;
    while (fragment_reader_next(&reader, &entry)) {
        claim->newest = entry.version > claim->newest ? entry.version : claim->newest;
        if (entry_is_cell(entry.kind))
            TRY(note_family(claim, is_row ? entry.family : family, entry.kind));
    }
    return status_ok();
}

static status read_stretch(struct claim *claim, struct keyspace *keyspace,
                           const struct stretch *stretch)
{
    const struct store_cursor_options options = {.lower = buffer_bytes(&stretch->from),
                                                 .upper = buffer_bytes(&stretch->to),
                                                 .read_tier = STORE_READ_ANY,
                                                 .bypasses_cache = true};
    struct store_cursor *cursor;
    TRY(store_cursor_create(keyspace, &options, &cursor));
    status s = status_ok();
    store_cursor_first(cursor);
    for (; status_is_ok(s) && store_cursor_valid(cursor); store_cursor_next(cursor))
        s = note_record(claim, store_cursor_key(cursor), store_cursor_value(cursor));
    if (status_is_ok(s))
        s = store_cursor_status(cursor);
    store_cursor_destroy(cursor);
    return s;
}

static void set(struct buffer *buffer, bytes key)
{
    buffer_clear(buffer);
    buffer_append_bytes(buffer, key);
}

static bool is_before(bytes key, const struct buffer *bound)
{
    return bound->size == 0 || bytes_compare(key, buffer_bytes(bound)) < 0;
}

static status step_around(void *context, const struct store_damage *closed)
{
    struct stretch *stretch = context;
    bytes from = buffer_bytes(&stretch->from);
    if (closed->to.size > 0 && bytes_compare(closed->to, from) <= 0)
        return status_ok();
    if (bytes_compare(closed->from, from) > 0) {
        if (is_before(closed->from, &stretch->to))
            set(&stretch->to, closed->from);
        return status_ok();
    }
    stretch->is_moved = true;
    stretch->is_over = closed->to.size == 0;
    set(&stretch->from, closed->to);
    return status_ok();
}

/* Moves it behind what is out of service, and ends it before what is next. */
static status find_stretch(struct keyspace *keyspace, struct stretch *stretch)
{
    do {
        stretch->is_moved = false;
        buffer_clear(&stretch->to);
        TRY(keyspace_list_closed(keyspace, step_around, stretch));
        stretch->has_damage |= stretch->is_moved || stretch->to.size > 0;
    } while (stretch->is_moved && !stretch->is_over);
    return stretch->from.failed || stretch->to.failed ? status_out_of_memory() : status_ok();
}

static status read_stretches(struct claim *claim, struct keyspace *keyspace,
                             struct stretch *stretch)
{
    TRY(keyspace_look_for_damage(keyspace));
    TRY(find_stretch(keyspace, stretch));
    while (!stretch->is_over) {
        TRY(read_stretch(claim, keyspace, stretch));
        stretch->is_over = stretch->to.size == 0;
        set(&stretch->from, buffer_bytes(&stretch->to));
        if (!stretch->is_over)
            TRY(find_stretch(keyspace, stretch));
    }
    return status_ok();
}

static status read_rows(struct claim *claim, struct keyspace *keyspace)
{
    struct stretch stretch = {0};
    status s = read_stretches(claim, keyspace, &stretch);
    claim->has_damage = stretch.has_damage;
    buffer_free(&stretch.from);
    buffer_free(&stretch.to);
    return s;
}

static enum aggregate aggregate_of(enum entry_kind kind)
{
    switch (kind) {
    case ENTRY_SUM:
        return AGGREGATE_SUM;
    case ENTRY_MIN:
        return AGGREGATE_MIN;
    case ENTRY_MAX:
        return AGGREGATE_MAX;
    case ENTRY_HLL:
        return AGGREGATE_HLL;
    default:
        return AGGREGATE_NONE;
    }
}

static status make_schema(const struct claim *claim, struct schema **out)
{
    struct family families[MOST_FAMILIES];
    uint32_t next = 1;
    for (size_t i = 0; i < claim->family_count; i++) {
        const struct found_family *found = &claim->families[i];
        families[i] =
            (struct family){.id = found->id,
                            .name = bytes_of(found->name),
                            .aggregate = aggregate_of(found->kind),
                            .input = found->kind == ENTRY_HLL ? INPUT_BYTES : INPUT_INT64};
        next = found->id >= next ? found->id + 1 : next;
    }
    return schema_create(GRANULARITY_MICROS, families, claim->family_count, next, out);
}

/* --- what is written --- */

/* The ceiling of versions may have been lost, too, and the rows be of a clock that was ahead: what
 * is written to them from now on must not lose to what they have. */
static status raise_ceiling(const struct claim *claim, struct store_batch *batch)
{
    struct commit_ceilings ceilings;
    TRY(commit_read_ceilings(claim->catalog, &ceilings));
    if (ceilings.version <= claim->newest) {
        ceilings.version = claim->newest + version_at(COMMIT_CEILING_SLACK_US);
        commit_put_ceilings(batch, claim->catalog, &ceilings);
    }
    return status_ok();
}

static status put_table(const struct claim *claim, struct store_batch *batch)
{
    struct schema *schema;
    TRY(make_schema(claim, &schema));
    const struct table_record table = {
        .id = claim->next_id, .name = claim->wish->table, .generation = 1, .schema = schema};
    const struct tablet_record tablet = {
        .table_id = claim->next_id, .id = claim->next_id + 1, .keyspace_id = claim->wish->keyspace};
    status s = catalog_put_table(batch, claim->catalog, &table);
    schema_destroy(schema);
    TRY(s);
    TRY(catalog_put_tablet(batch, claim->catalog, &tablet));
    TRY(raise_ceiling(claim, batch));
    return catalog_put_next_id(batch, claim->catalog, claim->next_id + 2);
}

/* A write without a change log ends the log. */
static status write_claim(const struct claim *claim, struct store_batch *batch)
{
    if (claim->wish->table != NULL)
        TRY(put_table(claim, batch));
    catalog_delete_unclaimed(batch, claim->catalog, claim->wish->keyspace);
    change_log_end(batch, claim->catalog);
    return store_write(claim->store, batch, STORE_SYNCED);
}

static status carry_out(const struct claim *claim)
{
    struct store_batch *batch = store_batch_create();
    if (batch == NULL)
        return status_out_of_memory();
    status s = write_claim(claim, batch);
    store_batch_destroy(batch);
    return s;
}

/* Of a table that has just been claimed. */
static status remove_strays(struct claim *claim)
{
    struct keyspace *keyspace = store_keyspace_find(claim->store, claim->wish->keyspace);
    if (claim->wish->table == NULL || claim->has_damage || keyspace == NULL)
        return status_ok();
    return stray_cells_remove(claim->store, keyspace, claim->catalog, &claim->strays);
}

static void tell_strays(const struct claim *claim)
{
    if (claim->strays > 0)
        printf("%s: removed large cells that their rows do not name, of %" PRIu64 " row%s\n",
               claim->wish->table, claim->strays, plural(claim->strays));
}

static void tell(const struct claim *claim)
{
    const struct wish *wish = claim->wish;
    printf("keyspace %" PRIu64 ", %" PRIu64 " rows%s: ", wish->keyspace, claim->rows,
           claim->has_damage ? ", and others that are out of service" : "");
    if (wish->table == NULL)
        printf("%s\n", wish->in_place ? "the next start drops it" : "would be dropped");
    else
        printf("%s table %s, with %zu families\n", wish->in_place ? "is now" : "would become",
               wish->table, claim->family_count);
    if (!wish->in_place)
        printf("%s: nothing was changed (--in-place does)\n", wish->directory);
}

/* --- the command --- */

static status open_store(struct claim *claim, bool read_only, const struct log *log)
{
    struct store_options options = offline_store_options(claim->wish->directory, log);
    options.read_only = read_only;
    TRY(shard_directories_check(claim->wish->directory, 1));
    TRY(store_open(&options, &claim->store));
    claim->catalog = store_keyspace_find(claim->store, CATALOG_KEYSPACE_ID);
    return claim->catalog == NULL ? status_make(STATUS_DATA_LOSS, "there is no catalog")
                                  : status_ok();
}

static void close_store(struct claim *claim)
{
    if (claim->store != NULL)
        store_close(claim->store);
    claim->store = NULL;
}

static status look(struct claim *claim)
{
    TRY(read_catalog(claim));
    struct keyspace *keyspace = store_keyspace_find(claim->store, claim->wish->keyspace);
    return keyspace == NULL ? status_make(STATUS_NOT_FOUND, "the keyspace is gone")
                            : read_rows(claim, keyspace);
}

static status run_claim(struct claim *claim, const struct log *log)
{
    TRY(open_store(claim, true, log));
    TRY(look(claim));
    close_store(claim);
    if (claim->wish->in_place) {
        TRY(open_store(claim, false, log));
        TRY(carry_out(claim));
        TRY(remove_strays(claim));
    }
    tell(claim);
    tell_strays(claim);
    return status_ok();
}

static int run(const struct wish *wish)
{
    const struct log log = {.fd = STDERR_FILENO, .level = LOG_WARN, .clock = clock_system()};
    struct claim *claim = calloc(1, sizeof *claim);
    status s = claim == NULL ? status_out_of_memory() : status_ok();
    if (status_is_ok(s)) {
        claim->wish = wish;
        s = run_claim(claim, &log);
        close_store(claim);
    }
    free(claim);
    return command_end("repair", s, wish->in_place);
}

/* "5", or "5=projects/p/instances/i/tables/t". */
static bool parse_keyspace(const char *text, bool has_table, struct wish *wish)
{
    char *end;
    errno = 0;
    wish->keyspace = text == NULL ? 0 : strtoull(text, &end, 10);
    if (wish->keyspace <= CATALOG_KEYSPACE_ID || errno != 0 || *end != (has_table ? '=' : '\0'))
        return false;
    wish->table = has_table ? end + 1 : NULL;
    return true;
}

/* projects/P/instances/I/tables/T */
static bool names_a_table(const char *name)
{
    char part[3][64];
    int end = 0;
    int parts = sscanf(name, "projects/%63[^/]/instances/%63[^/]/tables/%63[-_.a-zA-Z0-9]%n",
                       part[0], part[1], part[2], &end);
    return parts == 3 && name[end] == '\0';
}

bool repair_is_of_keyspaces(const char *const *arguments)
{
    return command_asks_for(arguments, "--claim") || command_asks_for(arguments, "--drop");
}

int repair_keyspaces(const char *const *arguments)
{
    struct wish wish = {0};
    bool is_understood = true;
    for (; is_understood && *arguments != NULL; arguments++) {
        bool is_claim = strcmp(*arguments, "--claim") == 0;
        if (strcmp(*arguments, "--in-place") == 0)
            wish.in_place = true;
        else if (wish.keyspace == 0 && (is_claim || strcmp(*arguments, "--drop") == 0))
            is_understood = parse_keyspace(*++arguments, is_claim, &wish);
        else if (wish.directory == NULL && (*arguments)[0] != '-')
            wish.directory = *arguments;
        else
            is_understood = false;
    }
    if (!is_understood || wish.directory == NULL)
        return command_usage_error("repair", "takes the data directory, and one of --claim "
                                             "ID=TABLE and --drop ID");
    if (wish.table != NULL && !names_a_table(wish.table))
        return command_usage_error("repair", "a table's name is "
                                             "projects/P/instances/I/tables/T");
    return run(&wish);
}
