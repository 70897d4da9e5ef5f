/* See lost_records.h. */
#include "cluster/lost_records.h"

#include "cluster/catalog.h"
#include "cluster/cluster_private.h"
#include "store/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* --- kinds of records: catalog.h, and docs/internals/format.md, have all keys --- */

struct kind {
    const char *prefix;
    const char *words;
};

static const struct kind kinds[] = {
    {"C", "the counter of ids"},
    {"D", "rows that are out of service"},
    {"I", "idempotency tokens"},
    {"K", "keyspaces in reserve"},
    {"L", "where the log of change streams lies"},
    {"M", "findings that are muted"},
    {"Ra", "authorized views"},
    {"Rc", "clusters"},
    {"Rf", "properties by which entities expire"},
    {"Ri", "instances"},
    {"Rl", "logical views"},
    {"Rm", "materialized views"},
    {"Ro", "operations"},
    {"Rp", "app profiles"},
    {"Rs", "schema bundles"},
    {"Ry", "access policies"},
    {"T", "tables"},
    {"U", "keyspaces without a table"},
    {"V", "the version of the last edit"},
    {"abandoned-operations", "that operations were abandoned"},
    {"archive-base", "whole backups that the archive goes on from"},
    {"change-log", "the change log"},
    {"clusters-from", "from where on versions name clusters"},
    {"d", "which ranges of rows were dropped"},
    {"lost-records", "what was lost before"},
    {"origin-applied", "what of its peers' changes it has"},
    {"origin-feed", "what its peers are to be told"},
    {"peers", "who its peers are"},
    {"r", "what deleted tables had"},
    {"sequence-ceiling", "the ceiling of sequences"},
    {"server-identity", "which server it is"},
    {"stream-eras", "to which moments it was restored"},
    {"t", "tablets"},
    {"version-ceiling", "the ceiling of versions"},
};

/* Whether a key that begins so may lie there; `to` empty: there is no bound. */
static bool may_hold(bytes from, bytes to, const char *prefix)
{
    bytes least = bytes_of(prefix);
    bool ends_before = to.size > 0 && bytes_compare(to, least) <= 0;
    bool begins_behind = bytes_compare(from, least) > 0 && !bytes_start_with(from, least);
    return !ends_before && !begins_behind;
}

void lost_records_kinds(bytes from, bytes to, struct buffer *out)
{
    const char *between = "";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!may_hold(from, to, kinds[i].prefix))
            continue;
        buffer_append_format(out, "%s%s", between, kinds[i].words);
        between = ", ";
    }
}

/* --- what is damaged --- */

struct finding {
    status (*visit)(void *context, const struct lost_records *lost);
    void *context;
};

static status find_one(void *context, const struct store_damage *range)
{
    const struct finding *finding = context;
    struct buffer words = {0};
    buffer_append_format(&words, "records of the catalog (");
    lost_records_kinds(range->from, range->to, &words);
    buffer_append_format(&words, "): %s%c", range->what, 0);
    struct lost_records lost = {
        .from = range->from, .to = range->to, .words = (const char *)words.data};
    status s = words.failed ? status_out_of_memory() : finding->visit(finding->context, &lost);
    buffer_free(&words);
    return s;
}

status lost_records_find(struct keyspace *catalog,
                         status (*visit)(void *context, const struct lost_records *lost),
                         void *context)
{
    struct finding finding = {visit, context};
    TRY(keyspace_look_for_damage(catalog));
    return keyspace_list_closed(catalog, find_one, &finding);
}

static status append_words(void *context, const struct lost_records *lost)
{
    struct buffer *out = context;
    buffer_append_format(out, "%s%s", out->size == 0 ? "" : "; ", lost->words);
    return out->failed ? status_out_of_memory() : status_ok();
}

/* What else is wrong with it has no way out but a backup. */
status lost_records_explain(struct keyspace *catalog, status cause)
{
    struct buffer words = {0};
    status s = lost_records_find(catalog, append_words, &words);
    bool is_known = status_is_ok(s) && words.size > 0;
    status_ignore(s);
    buffer_append_byte(&words, 0);
    if (is_known && !words.failed)
        s = status_make(STATUS_DATA_LOSS,
                        "the catalog is damaged, and may have lost %s. A whole backup has them; "
                        "`trestle repair`, or a start with --salvage, goes on without them",
                        (const char *)words.data);
    else
        s = status_make(STATUS_DATA_LOSS, "the catalog is damaged: %s", status_message(cause));
    status_free(cause);
    buffer_free(&words);
    return s;
}

/* --- the record of what was lost --- */

static bytes lost_key(void)
{
    return bytes_of("lost-records");
}

status lost_records_read(struct keyspace *catalog, char **words)
{
    struct store_value value = {0};
    enum store_presence presence;
    *words = NULL;
    status s = store_get(catalog, NULL, lost_key(), STORE_READ_ANY, &value, &presence);
    if (status_is_ok(s) && presence == STORE_FOUND) {
        *words = bytes_to_string(value.bytes);
        s = *words == NULL ? status_out_of_memory() : status_ok();
    }
    store_value_release(&value);
    return s;
}

void lost_records_end(struct store_batch *batch, struct keyspace *catalog)
{
    store_batch_delete(batch, catalog, lost_key());
}

/* --- rows that were out of service ---
 *
 * A range of rows that is on record stays closed when its damaged file has long been compacted
 * away. Without the record it would be open, with what the file had deleted or overwritten. That
 * there was one is known by the file, which was kept beside the others. */

struct kept_file {
    struct keyspace *catalog;
    uint64_t number;
    bool is_catalogs; /* it is damaged now */
    char name[64];    /* of one that is not; "": there is none */
};

static status compare_file(void *context, const struct store_damage *range)
{
    struct kept_file *file = context;
    file->is_catalogs |= range->file == file->number;
    return status_ok();
}

static status look_at_name(void *context, const char *name)
{
    struct kept_file *file = context;
    int end = 0;
    if (sscanf(name, "%" SCNu64 ".sst.damaged%n", &file->number, &end) != 1 || end == 0 ||
        name[end] != '\0')
        return status_ok();
    file->is_catalogs = false;
    TRY(keyspace_list_closed(file->catalog, compare_file, file));
    if (!file->is_catalogs)
        snprintf(file->name, sizeof file->name, "%s", name);
    return status_ok();
}

static status note_records_of_damage(void *context, const struct store_damage *range)
{
    bool *may_be_lost = context;
    *may_be_lost |= may_hold(range->from, range->to, "D");
    return status_ok();
}

static status check_closed_rows(struct cluster *cluster)
{
    bool may_be_lost = false;
    struct kept_file file = {.catalog = cluster->catalog};
    TRY(keyspace_list_closed(cluster->catalog, note_records_of_damage, &may_be_lost));
    if (!may_be_lost)
        return status_ok();
    TRY(files_list(files_of_store(cluster->home->store), cluster->options.data_directory,
                   look_at_name, &file));
    if (file.name[0] == '\0')
        return status_ok();
    return status_make(STATUS_DATA_LOSS,
                       "the catalog is damaged, and may have lost which rows are out of service. "
                       "There were some, as the file %s shows: what it had deleted or overwritten "
                       "would be there again. Restore a whole backup; or, if those rows had been "
                       "repaired, or that may be, move the file elsewhere",
                       file.name);
}

/* --- giving up --- */

struct giving_up {
    struct cluster *cluster;
    struct store_batch *batch;
    struct buffer words;
};

/* Keys are texts that begin with a letter. */
static bytes end_of(bytes to)
{
    static const uint8_t behind_all = 0xff;
    return to.size > 0 ? to : bytes_make(&behind_all, 1);
}

static status give_up_range(void *context, const struct lost_records *lost)
{
    struct giving_up *up = context;
    store_batch_delete_range(up->batch, up->cluster->catalog, lost->from, end_of(lost->to));
    log_error(up->cluster->options.log, "records are given up", LOG_STR("lost", lost->words));
    return append_words(&up->words, lost);
}

static void name_keyspaces(const struct giving_up *up)
{
    struct cluster *cluster = up->cluster;
    int64_t now_us = clock_wall_us(cluster->options.clock);
    struct keyspace *keyspace;
    for (size_t i = 0; (keyspace = store_keyspace_at(cluster->home->store, i)) != NULL; i++)
        if (keyspace != cluster->catalog && keyspace_kind(keyspace) == KEYSPACE_ROWS)
            catalog_put_unclaimed(up->batch, cluster->catalog, keyspace_id(keyspace), now_us);
}

static status write_loss(struct giving_up *up)
{
    struct cluster *cluster = up->cluster;
    up->batch = store_batch_create();
    if (up->batch == NULL)
        return status_out_of_memory();
    TRY(lost_records_find(cluster->catalog, give_up_range, up));
    name_keyspaces(up);
    store_batch_put(up->batch, cluster->catalog, lost_key(), buffer_bytes(&up->words));
    free(cluster->home->lost_records);
    cluster->home->lost_records = bytes_to_string(buffer_bytes(&up->words));
    return cluster->home->lost_records == NULL
               ? status_out_of_memory()
               : store_write(cluster->home->store, up->batch, STORE_SYNCED);
}

/* Remembers the loss: from here on compactions may go without what is damaged. */
static status remember(void *context, const struct store_damage *range)
{
    struct store_damage remembered = *range;
    remembered.is_remembered = true;
    return keyspace_close_range(context, &remembered);
}

static status heal(struct cluster *cluster)
{
    const bytes none = bytes_of("");
    TRY(keyspace_list_closed(cluster->catalog, remember, cluster->catalog));
    TRY(keyspace_heal(cluster->catalog, none, none));
    keyspace_open_range(cluster->catalog, 0, none, none);
    damages_forget_keyspace(cluster->home->damages, CATALOG_KEYSPACE_ID);
    return status_ok();
}

static status give_up(struct cluster *cluster)
{
    struct giving_up up = {.cluster = cluster};
    TRY(check_closed_rows(cluster));
    status s = write_loss(&up);
    store_batch_destroy(up.batch);
    buffer_free(&up.words);
    TRY(s);
    return heal(cluster);
}

/* A record that cannot be read is damage like any other: any read of the catalog meets it. */
static status read_begun(struct cluster *cluster)
{
    status s = lost_records_read(cluster->catalog, &cluster->home->lost_records);
    if (s.code != STATUS_DATA_LOSS)
        return s;
    status_free(s);
    return status_ok();
}

/* A start without accepts_lost_records writes nothing yet: compactions rest, and writes may wait
 * for them. */
static status check_ended(const char *lost)
{
    if (lost == NULL)
        return status_ok();
    return status_make(STATUS_DATA_LOSS,
                       "the catalog has lost %s. It was given up, but the rest is not put right "
                       "yet: `trestle repair --in-place`, or a start with --salvage, goes on with "
                       "that",
                       lost);
}

status lost_records_give_up(struct cluster *cluster)
{
    if (store_old_data(cluster->home->store) != NULL)
        return status_ok();
    TRY(read_begun(cluster));
    if (!cluster->options.accepts_lost_records)
        return check_ended(cluster->home->lost_records);
    TRY(keyspace_look_for_damage(cluster->catalog));
    return keyspace_has_damage(cluster->catalog) ? give_up(cluster) : status_ok();
}

/* --- a look --- */

static status read_all(struct keyspace *catalog)
{
    const struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    TRY(store_cursor_create(catalog, &options, &cursor));
    store_cursor_first(cursor);
    while (store_cursor_valid(cursor))
        store_cursor_next(cursor);
    status s = store_cursor_status(cursor);
    store_cursor_destroy(cursor);
    return s;
}

status lost_records_check(struct keyspace *catalog)
{
    char *lost = NULL;
    status s = lost_records_read(catalog, &lost);
    if (status_is_ok(s) && lost != NULL)
        s = check_ended(lost);
    else if (status_is_ok(s))
        s = read_all(catalog);
    bool is_explained = lost != NULL || s.code != STATUS_DATA_LOSS;
    free(lost);
    return is_explained ? s : lost_records_explain(catalog, s);
}

/* --- what has no name --- */

const char *lost_keyspace_name(uint64_t id, char out[LOST_KEYSPACE_NAME_SIZE])
{
    snprintf(out, LOST_KEYSPACE_NAME_SIZE, "keyspace %" PRIu64 " (it has no table)", id);
    return out;
}
