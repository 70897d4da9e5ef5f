/* See follow_position.h.
 *
 *     {"follow": "projects/…", "copying": false, "changes": 1234, "feed": {…}}
 *
 * In the target it is the cell f:position, always of the same timestamp. */
#include "transfer/follow_position.h"

#include "client/change_writer.h"
#include "client/row_reader.h"
#include "os/file.h"
#include "transfer/table.h"
#include "transfer/text_file.h"

#include <jansson.h>
#include <stdlib.h>

#define FAMILY    "f"
#define QUALIFIER "position"

enum { MOST_BYTES = 64 << 20, SETUP_LIMIT = 16 << 20 };

struct position_store {
    struct position_store_options options;
    struct buffer table;          /* the full name of POSITIONS_TABLE, and a NUL */
    struct change_writer *writer; /* NULL: it is a file */
};

void follow_position_free(struct follow_position *position)
{
    buffer_free(&position->feed);
}

/* --- making and ending --- */

static status prepare_table(const struct position_store *store, struct arena *arena)
{
    const struct move_family family = {.name = FAMILY, .versions = 1};
    struct transfer_table table = {.id = POSITIONS_TABLE};
    const BtAdmin__Table *present;
    bool is_made;
    TRY(transfer_make_schema(&family, 1, arena, &table.schema));
    return transfer_prepare_table(store->options.target, &table, arena, &is_made, &present);
}

static status prepare(struct position_store *store)
{
    struct client_session *target = store->options.target;
    if (store->options.file != NULL)
        return status_ok();
    struct arena *arena = arena_create(SETUP_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    status s = prepare_table(store, arena);
    arena_destroy(arena);
    TRY(s);
    buffer_append_format(&store->table, "%s/tables/%s%c", client_session_instance(target),
                         POSITIONS_TABLE, 0);
    if (store->table.failed)
        return status_out_of_memory();
    const struct change_writer_options writer = {
        .loop = client_session_loop(target),
        .endpoint = client_session_endpoint(target),
        .table = (const char *)store->table.data,
        .app_profile = client_session_app_profile(target),
        .under_way = 1,
    };
    return change_writer_create(&writer, &store->writer);
}

status position_store_create(const struct position_store_options *options,
                             struct position_store **out)
{
    struct position_store *store = *out = calloc(1, sizeof *store);
    if (store == NULL)
        return status_out_of_memory();
    store->options = *options;
    status s = prepare(store);
    if (status_is_ok(s))
        return s;
    position_store_destroy(store);
    *out = NULL;
    return s;
}

void position_store_destroy(struct position_store *store)
{
    if (store == NULL)
        return;
    change_writer_destroy(store->writer);
    buffer_free(&store->table);
    free(store);
}

void position_store_describe(const struct position_store *store, struct buffer *out)
{
    if (store->options.file != NULL)
        buffer_append_format(out, "the file %s", store->options.file);
    else
        buffer_append_format(out, "the row %s of the target's table %s", store->options.table_id,
                             POSITIONS_TABLE);
}

/* --- reading --- */

/* A failure in words that say where the position is. */
static status complain(const struct position_store *store, enum status_code code, const char *what)
{
    struct buffer place = {0};
    position_store_describe(store, &place);
    buffer_append_byte(&place, '\0');
    status s = status_make(code, "the position in %s %s",
                           place.failed ? "" : (const char *)place.data, what);
    buffer_free(&place);
    return s;
}

static status keep_feed(const json_t *feed, struct follow_position *out)
{
    char *text = json_dumps(feed, JSON_COMPACT | JSON_ENCODE_ANY);
    if (text == NULL)
        return status_out_of_memory();
    buffer_append_bytes(&out->feed, bytes_of(text));
    free(text);
    return out->feed.failed ? status_out_of_memory() : status_ok();
}

static status take(const struct position_store *store, json_t *json, struct follow_position *out)
{
    const char *identity;
    int is_copying;
    json_int_t changes;
    const json_t *feed;
    if (json_unpack(json, "{s:s, s:b, s:I, s:o}", "follow", &identity, "copying", &is_copying,
                    "changes", &changes, "feed", &feed) != 0)
        return complain(store, STATUS_DATA_LOSS, "cannot be read");
    if (strcmp(identity, store->options.identity) != 0)
        return complain(store, STATUS_FAILED_PRECONDITION,
                        "is of something else that was followed, or of other options: remove it, "
                        "or name a file by --state");
    out->is_copying = is_copying;
    out->changes = (uint64_t)changes;
    return keep_feed(feed, out);
}

static status take_text(const struct position_store *store, bytes text, struct follow_position *out)
{
    json_error_t error;
    json_t *json = json_loadb((const char *)text.data, text.size, 0, &error);
    if (json == NULL)
        return complain(store, STATUS_DATA_LOSS, "is no JSON");
    status s = take(store, json, out);
    json_decref(json);
    if (!status_is_ok(s))
        follow_position_free(out);
    return s;
}

static status keep_cell(void *context, const struct move_change *row)
{
    struct buffer *text = context;
    if (row->count > 0)
        buffer_append_bytes(text, row->cells[0].value);
    return text->failed ? status_out_of_memory() : status_ok();
}

static status read_row(struct position_store *store, struct buffer *text)
{
    ProtobufCBinaryData key = proto_data(bytes_of(store->options.table_id));
    Bt__RowSet rows = BT__ROW_SET__INIT;
    rows.row_keys = &key;
    rows.n_row_keys = 1;
    const struct row_reading reading = {.session = store->options.target,
                                        .table = (const char *)store->table.data,
                                        .app_profile =
                                            client_session_app_profile(store->options.target),
                                        .rows = &rows,
                                        .context = text,
                                        .on_row = keep_cell};
    return rows_read(&reading);
}

static status read_text(struct position_store *store, struct buffer *text)
{
    if (store->options.file == NULL)
        return read_row(store, text);
    status s = file_read(store->options.file, MOST_BYTES, 0, text);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_ok();
}

status position_store_read(struct position_store *store, struct follow_position *out, bool *found)
{
    struct buffer text = {0};
    *out = (struct follow_position){0};
    status s = read_text(store, &text);
    *found = status_is_ok(s) && text.size > 0;
    if (*found)
        s = take_text(store, buffer_bytes(&text), out);
    buffer_free(&text);
    return s;
}

/* --- writing --- */

static status write_row(struct position_store *store, const char *text)
{
    Bt__Mutation__SetCell set = BT__MUTATION__SET_CELL__INIT;
    Bt__Mutation mutation = BT__MUTATION__INIT;
    Bt__Mutation *mutations[] = {&mutation};
    set.family_name = FAMILY;
    set.column_qualifier = proto_data(bytes_of(QUALIFIER));
    set.value = proto_data(bytes_of(text));
    mutation.mutation_case = BT__MUTATION__MUTATION_SET_CELL;
    mutation.set_cell = &set;
    TRY(change_writer_add(store->writer, bytes_of(store->options.table_id), mutations, 1));
    return change_writer_flush(store->writer);
}

static char *text_of(const struct position_store *store, const struct follow_position *position)
{
    json_error_t error;
    json_t *feed =
        json_loadb((const char *)position->feed.data, position->feed.size, JSON_DECODE_ANY, &error);
    json_t *json =
        json_pack("{s:s, s:b, s:I, s:o}", "follow", store->options.identity, "copying",
                  position->is_copying, "changes", (json_int_t)position->changes, "feed", feed);
    char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

status position_store_write(struct position_store *store, const struct follow_position *position)
{
    char *text = text_of(store, position);
    if (text == NULL)
        return status_out_of_memory();
    status s = store->options.file == NULL ? write_row(store, text)
                                           : text_file_replace(store->options.file, text);
    free(text);
    return s;
}
