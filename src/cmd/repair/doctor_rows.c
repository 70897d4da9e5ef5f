/* What the doctor finds in the keys of a table, see doctor.h.
 *
 * Every key is a row's or an overflow cell's; every record parses, in order, and its families are,
 * or once were, the table's; overflow cells belong to rows whose record says that it has some. What
 * was dropped (tablet/drop_records.h) is passed over, as readers do. */
#include "cmd/command.h"
#include "cmd/repair/doctor_private.h"
#include "cmd/repair/stray_cells.h"
#include "datastore/database.h"
#include "datastore/model/rows.h"
#include "row/fold.h"
#include "row/fragment.h"
#include "row/row_key.h"
#include "tablet/drop_records.h"

/* --- records --- */

static bool family_is_known(const struct found_table *table, uint32_t id)
{
    return schema_family(table->schema, id) != NULL || schema_family_was_dropped(table->schema, id);
}

/* An overflow cell's time is in its key. */
static void note_times(const struct doctor *doctor, struct found_table *table,
                       const struct entry *entry)
{
    doctor_clock_note(&doctor->clock, entry, &table->ahead);
    if (table->is_database && entry_is_cell(entry->kind))
        doctor_clock_note_moment(&doctor->clock, entry->timestamp_us, &table->ahead);
}

/* Former releases wrote to `h` the types of what an index row became: of one that ended, none.
 * Those of a value's row are never none. What it held instead of other types cannot be told. */
static void note_types(struct found_table *table, bytes row_key, const struct entry *entry)
{
    if (!table->is_database || entry->kind != ENTRY_CELL || entry->value.size > 0 ||
        row_key.size == 0 || row_key.data[0] != DS_ASCENDING_ROW)
        return;
    const struct family *family = schema_family(table->schema, entry->family);
    table->later_types += family != NULL && bytes_equal(family->name, bytes_of(DS_FAMILY_WAS));
}

/* The cells of a record; NULL or what is wrong with it. */
static const char *count_cells(const struct doctor *doctor, struct found_table *table,
                               bytes row_key, bytes record, uint64_t *cells)
{
    struct fragment_reader reader;
    struct entry entry;
    const char *wrong = NULL;
    if (!fragment_reader_start(&reader, record))
        return "the record's head does not parse";
    while (fragment_reader_next(&reader, &entry)) {
        *cells += entry_is_cell(entry.kind);
        note_times(doctor, table, &entry);
        note_types(table, row_key, &entry);
        if (entry.family != 0 && !family_is_known(table, entry.family))
            wrong = "a cell of a family that the table never had";
    }
    return wrong;
}

static void check_fragment(struct doctor *doctor, struct found_table *table, bytes row_key,
                           bytes record, uint64_t *cells)
{
    status s = fragment_check(record);
    const char *wrong =
        status_is_ok(s) ? count_cells(doctor, table, row_key, record, cells) : status_message(s);
    if (wrong != NULL)
        doctor_report_key(doctor, table, row_key, wrong);
    status_free(s);
}

static void check_record(struct doctor *doctor, struct found_table *table, bytes row_key,
                         bytes record)
{
    uint64_t cells = 0;
    check_fragment(doctor, table, row_key, record, &cells);
    table->rows += cells > 0 || fragment_has_overflow(record);
    table->cells += cells;
}

/* `row` holds the last overflow cell's row key, for which the mark was found; `scratch` is for the
 * key's parts. */
struct overflow_check {
    struct buffer row;
    bool has_row;
    struct buffer scratch;
};

static status check_overflow(struct doctor *doctor, struct found_table *table,
                             struct keyspace *keyspace, struct overflow_check *check, bytes key,
                             bytes value)
{
    struct overflow_key parts;
    if (!overflow_key_parse(key, &check->scratch, &parts)) {
        doctor_report_key(doctor, table, key, "an overflow cell's key does not parse");
        return status_ok();
    }
    if (!check->has_row || !bytes_equal(buffer_bytes(&check->row), parts.row_key)) {
        bool has_overflow;
        TRY(stray_cells_has_mark(keyspace, parts.row_key, &has_overflow));
        if (!has_overflow)
            doctor_report_key(doctor, table, parts.row_key,
                              "it has overflow cells, but its record does not say so");
        check->has_row = true;
        buffer_clear(&check->row);
        buffer_append_bytes(&check->row, parts.row_key);
    }
    if (!family_is_known(table, parts.family))
        doctor_report_key(doctor, table, parts.row_key, "an overflow cell of a family never known");
    if (table->is_database)
        doctor_clock_note_moment(&doctor->clock, parts.timestamp_us, &table->ahead);
    check_fragment(doctor, table, parts.row_key, value, &table->overflow_cells);
    return status_ok();
}

static status check_entry(struct doctor *doctor, struct found_table *table,
                          struct keyspace *keyspace, struct overflow_check *check, bytes key,
                          bytes value)
{
    table->bytes += key.size + value.size;
    if (key.size > 0 && key.data[0] == OVERFLOW_SPACE)
        return check_overflow(doctor, table, keyspace, check, key, value);
    if (key.size > 1 && key.data[0] == ROW_SPACE)
        check_record(doctor, table, bytes_from(key, 1), value);
    else
        doctor_report_key(doctor, table, key, "a key of no known kind");
    return status_ok();
}

/* --- keyspaces --- */

/* The keys of one keyspace, as far as they can be read. */
struct reading {
    struct doctor *doctor;
    struct found_table *table;
    struct keyspace *keyspace;
    struct row_drops *drops; /* what was dropped of it */
    struct buffer scratch;   /* for what is left */
    struct overflow_check check;
    struct buffer last; /* the key that was read last, or that nothing is read before */
};

/* As it is without what was dropped of it. What does not parse is damage, and told as such. */
static status read_entry(struct reading *reading, bytes key, bytes value)
{
    bool is_left;
    status s = row_leave_out_dropped(reading->drops, key, &value, &reading->scratch, &is_left);
    if (s.code == STATUS_RESOURCE_EXHAUSTED)
        return s;
    status_free(s);
    return is_left ? check_entry(reading->doctor, reading->table, reading->keyspace,
                                 &reading->check, key, value)
                   : status_ok();
}

static status read_entries(struct reading *reading, struct store_cursor *cursor)
{
    status s = status_ok();
    for (store_cursor_first(cursor); store_cursor_valid(cursor) && status_is_ok(s);
         store_cursor_next(cursor)) {
        bytes key = store_cursor_key(cursor);
        s = read_entry(reading, key, store_cursor_value(cursor));
        buffer_clear(&reading->last);
        buffer_append_bytes(&reading->last, key);
    }
    TRY(s);
    return reading->last.failed ? status_out_of_memory() : store_cursor_status(cursor);
}

static status read_from(struct reading *reading, bytes lower)
{
    const struct store_cursor_options options = {
        .read_tier = STORE_READ_ANY, .bypasses_cache = true, .lower = lower};
    struct store_cursor *cursor;
    TRY(store_cursor_create(reading->keyspace, &options, &cursor));
    status s = read_entries(reading, cursor);
    store_cursor_destroy(cursor);
    return s;
}

/* What is out of service is told by its rows, and passed over; what else cannot be read ends it. */
static status read_around_damage(struct reading *reading)
{
    const struct damage_look *look = reading->doctor->look;
    uint64_t id = keyspace_id(reading->keyspace);
    status s = read_from(reading, bytes_make(NULL, 0));
    while (s.code == STATUS_DATA_LOSS) {
        const struct damage_record *range =
            damage_look_behind(look, id, buffer_bytes(&reading->last));
        if (range == NULL)
            return s;
        status_free(s);
        if (range->to.size == 0)
            return status_ok();
        buffer_clear(&reading->last);
        buffer_append_bytes(&reading->last, range->to);
        s = reading->last.failed ? status_out_of_memory() : read_from(reading, range->to);
    }
    return s;
}

/* A record of them that does not parse is damage of the table's. */
static status load_drops(struct reading *reading)
{
    struct keyspace *catalog = store_keyspace_find(reading->doctor->store, CATALOG_KEYSPACE_ID);
    TRY(row_drops_create(&reading->drops));
    status s = drop_records_load(catalog, keyspace_id(reading->keyspace), reading->drops);
    if (s.code != STATUS_DATA_LOSS)
        return s;
    doctor_report(reading->doctor, reading->table, status_message(s));
    status_free(s);
    return status_ok();
}

status doctor_read_rows(struct doctor *doctor, struct found_table *table, struct keyspace *keyspace)
{
    struct reading reading = {.doctor = doctor, .table = table, .keyspace = keyspace};
    status s = load_drops(&reading);
    if (status_is_ok(s))
        s = read_around_damage(&reading);
    row_drops_destroy(reading.drops);
    buffer_free(&reading.scratch);
    buffer_free(&reading.check.row);
    buffer_free(&reading.check.scratch);
    buffer_free(&reading.last);
    return s;
}
