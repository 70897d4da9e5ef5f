/* What a damaged range is for people: rows, and large cells, which have keys of their own. */
#include "cluster/cluster.h"
#include "cluster/damage.h"
#include "row/key_text.h"
#include "row/row_key.h"

enum { KEY_SHOWN = 100 };

/* --- parts --- */

struct damage_part damage_part(const struct damage_record *record, uint8_t space)
{
    static const uint8_t borders[] = {ROW_SPACE, OVERFLOW_SPACE, OVERFLOW_SPACE + 1};
    bytes least = bytes_make(&borders[space == OVERFLOW_SPACE], 1);
    bytes end = bytes_make(&borders[1 + (space == OVERFLOW_SPACE)], 1);
    return (struct damage_part){
        .from = bytes_compare(record->from, least) > 0 ? record->from : least,
        .to = record->to.size > 0 && bytes_compare(record->to, end) < 0 ? record->to : end};
}

bool damage_part_is_empty(struct damage_part part)
{
    return bytes_compare(part.from, part.to) >= 0;
}

bytes damage_row(bytes key)
{
    return key.data[0] == ROW_SPACE ? bytes_from(key, 1) : bytes_make(NULL, 0);
}

/* --- words --- */

/* The row that an S key begins with, or what there is of it: an index cuts keys off anywhere. */
static bytes read_row(bytes text, struct buffer *plain)
{
    for (size_t at = 0; at < text.size; at++) {
        bool is_escape = text.data[at] == KEY_TEXT_ZERO;
        if (is_escape && (at + 1 == text.size || text.data[at + 1] != KEY_TEXT_ESCAPED))
            break;
        buffer_append_byte(plain, text.data[at]);
        at += is_escape;
    }
    return buffer_bytes(plain);
}

/* The row that a key of the store belongs to, perhaps in `plain`, which is to be freed. Of a key
 * between two the first row that has greater ones. */
static bytes row_of_key(bytes key, struct buffer *plain)
{
    bytes row = bytes_from(key, key.size > 0);
    return key.size > 0 && key.data[0] == OVERFLOW_SPACE ? read_row(row, plain) : row;
}

static void append_row(struct buffer *out, bytes key)
{
    struct buffer plain = {0};
    buffer_append_quoted(out, row_of_key(key, &plain), KEY_SHOWN);
    buffer_free(&plain);
}

/* The end of a range is the key that comes after its last, as a rule. */
static bytes last_of(bytes end)
{
    bool is_successor = end.size > 1 && end.data[end.size - 1] == 0;
    return bytes_make(end.data, end.size - is_successor);
}

static void append_end(struct buffer *out, bytes to)
{
    if (to.size < 2) {
        buffer_append_format(out, " on");
        return;
    }
    buffer_append_format(out, " to ");
    append_row(out, last_of(to));
}

static bool is_in_space(bytes key, uint8_t space)
{
    return key.size > 0 && key.data[0] == space;
}

static void append_rows(struct buffer *out, const struct damage_record *record)
{
    bool begins_overflow = is_in_space(record->from, OVERFLOW_SPACE);
    bool ends_overflow = record->to.size > 1 && is_in_space(record->to, OVERFLOW_SPACE);
    buffer_append_format(out, begins_overflow ? "large cells of rows from " : "rows from ");
    append_row(out, record->from);
    if (!begins_overflow && ends_overflow)
        buffer_append_format(out, " on, and large cells of rows");
    append_end(out, record->to);
}

void damage_describe(const struct damage_record *record, const char *table, struct buffer *out)
{
    append_rows(out, record);
    buffer_append_format(out, " of %s are out of service: %s", table, record->what);
    buffer_append_byte(out, 0);
}

/* --- what would be lost --- */

/* What the texts of a `struct lost_rows` are in. */
struct lost_texts {
    struct buffer words, first, last;
};

static struct lost_rows lost_rows_of(const struct damage_record *record, bool is_cells,
                                     const char *table, struct lost_texts *texts)
{
    damage_describe(record, table, &texts->words);
    return (struct lost_rows){
        .table = table,
        .from = is_cells ? row_of_key(record->from, &texts->first) : damage_row(record->from),
        .to = is_cells ? row_of_key(last_of(record->to), &texts->last) : damage_row(record->to),
        .is_large_cells = is_cells,
        .first_key = record->from,
        .end_key = record->to,
        .file = damage_file(record),
        .words = (const char *)texts->words.data,
        .found_us = record->found_us};
}

static status tell_part(const struct damage_record *record, uint8_t space, const char *table,
                        status (*tell)(void *context, const struct lost_rows *lost), void *context)
{
    struct damage_part part = damage_part(record, space);
    if (damage_part_is_empty(part))
        return status_ok();
    struct damage_record piece = *record;
    piece.from = part.from;
    piece.to = part.to;
    struct lost_texts texts = {0};
    struct lost_rows lost = lost_rows_of(&piece, space == OVERFLOW_SPACE, table, &texts);
    bool failed = texts.words.failed || texts.first.failed || texts.last.failed;
    status s = failed ? status_out_of_memory() : tell(context, &lost);
    buffer_free(&texts.words);
    buffer_free(&texts.first);
    buffer_free(&texts.last);
    return s;
}

status damage_tell(const struct damage_record *record, const char *table,
                   status (*tell)(void *context, const struct lost_rows *lost), void *context)
{
    TRY(tell_part(record, ROW_SPACE, table, tell, context));
    return tell_part(record, OVERFLOW_SPACE, table, tell, context);
}
