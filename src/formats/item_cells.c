/* See item_cells.h. */
#include "formats/item_cells.h"

#include "base/limits.h"
#include "formats/item_private.h"
#include "os/digest.h"
#include "wire/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MS = 1000, /* microseconds */
    S = 1000 * MS,
};

int item_shown(bytes name)
{
    enum { MOST = 100 };
    return name.size < MOST ? (int)name.size : MOST;
}

#define SHOWN(name) item_shown(name), (const char *)(name).data

/* --- keys --- */

status item_find_key(const struct item_value *item, bytes name, const struct item_value **out)
{
    *out = item_find(item, name);
    if (*out == NULL)
        return ITEM_INVALID("the key attribute %.*s is not there", SHOWN(name));
    if ((*out)->type != ITEM_STRING && (*out)->type != ITEM_NUMBER && (*out)->type != ITEM_BINARY)
        return ITEM_INVALID("the key attribute %.*s is of type %s", SHOWN(name),
                            item_type_name((*out)->type));
    return (*out)->text.size > 0 ? status_ok()
                                 : ITEM_INVALID("the key attribute %.*s is empty", SHOWN(name));
}

status item_append_key(const struct item_value *value, bool orders_numbers, struct buffer *out)
{
    struct item_number number;
    if (value->type != ITEM_NUMBER) {
        buffer_append_bytes(out, value->text);
        return status_ok();
    }
    TRY(item_number_parse(value->text, &number));
    if (orders_numbers)
        item_number_append_ordered(&number, out);
    else
        item_number_append_plain(&number, out);
    return status_ok();
}

status item_append_salt(bytes key, unsigned salts, const char *delimiter, struct buffer *out)
{
    uint8_t digest[DIGEST_MOST_BYTES];
    size_t size;
    TRY(digest_compute(DIGEST_SHA256, key, digest, &size));
    uint32_t first = (uint32_t)digest[0] << 24 | (uint32_t)digest[1] << 16 |
                     (uint32_t)digest[2] << 8 | digest[3];
    int digits = snprintf(NULL, 0, "%u", salts - 1);
    buffer_append_format(out, "%0*u%s", digits, (unsigned)(first % salts), delimiter);
    return status_ok();
}

/* --- values --- */

status item_text(const struct item_value *value, struct arena *arena, bytes *out)
{
    struct buffer text = {0};
    switch (value->type) {
    case ITEM_STRING:
    case ITEM_NUMBER:
    case ITEM_BINARY:
        *out = value->text;
        return status_ok();
    case ITEM_BOOL:
        *out = bytes_of(value->boolean ? "true" : "false");
        return status_ok();
    case ITEM_NULL:
        *out = bytes_of("");
        return status_ok();
    default:
        item_write_plain(value, &text);
        return item_keep(arena, &text, out);
    }
}

status item_counter(const struct item_value *value, struct arena *arena, bytes *out)
{
    struct item_number number;
    int64_t integer = 0;
    uint8_t *to = arena_alloc(arena, sizeof integer);
    if (to == NULL)
        return status_out_of_memory();
    if (value->type != ITEM_NUMBER)
        return ITEM_INVALID("the counter %.*s is of type %s", SHOWN(value->name),
                            item_type_name(value->type));
    TRY(item_number_parse(value->text, &number));
    if (!item_number_to_int64(&number, &integer))
        return ITEM_INVALID("the counter %.*s is no integer of 64 bits", SHOWN(value->name));
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)((uint64_t)integer >> (56 - 8 * i));
    *out = bytes_make(to, sizeof integer);
    return status_ok();
}

status item_typed_json(const struct item_value *value, struct arena *arena, bytes *out)
{
    struct buffer json = {0};
    item_write_json(value, &json);
    return item_keep(arena, &json, out);
}

/* --- cells --- */

status item_add_cell(struct move_change *change, struct arena *arena, const struct move_cell *cell)
{
    if (cell->qualifier.size > LIMIT_QUALIFIER_BYTES)
        return ITEM_INVALID("the name %.*s… has %zu bytes, more than %d", SHOWN(cell->qualifier),
                            cell->qualifier.size, LIMIT_QUALIFIER_BYTES);
    if (change->count == LIMIT_MUTATIONS_A_REQUEST)
        return ITEM_INVALID("the item makes more than %d cells, which is the most that a row can "
                            "be written with",
                            LIMIT_MUTATIONS_A_REQUEST);
    return move_change_add(change, arena, cell);
}

static bool has_members(const struct item_value *value)
{
    return value->type == ITEM_MAP || value->type == ITEM_STRING_SET ||
           value->type == ITEM_NUMBER_SET || value->type == ITEM_BINARY_SET;
}

status item_add_family(const struct item_value *value, const char *family, int64_t timestamp_us,
                       struct arena *arena, struct move_change *change)
{
    if (!has_members(value))
        return ITEM_INVALID("%.*s is to be a family, and is no set or map", SHOWN(value->name));
    for (size_t i = 0; i < value->count; i++) {
        const struct item_value *element = &value->elements[i];
        struct move_cell cell = {.family = family, .timestamp_us = timestamp_us};
        TRY(item_text(element, arena, &cell.value));
        cell.qualifier = value->type == ITEM_MAP ? element->name : cell.value;
        if (value->type != ITEM_MAP)
            cell.value = bytes_make("", 1);
        TRY(item_add_cell(change, arena, &cell));
    }
    return status_ok();
}

/* --- times --- */

/* Seconds since 1970 if it is less than 10^11 (the year 5138), else milliseconds. */
static bool time_of_number(bytes text, int64_t *us)
{
    const int64_t seconds_most = 100ll * 1000 * 1000 * 1000;
    struct item_number number;
    struct buffer plain = {0};
    status s = item_number_parse(text, &number);
    if (!status_is_ok(s)) {
        status_free(s);
        return false;
    }
    item_number_append_plain(&number, &plain);
    buffer_append_byte(&plain, '\0');
    double value = plain.failed ? -1 : strtod((const char *)plain.data, NULL);
    buffer_free(&plain);
    if (value < 0 || value >= 1e14)
        return false;
    double ms = value < (double)seconds_most ? value * 1000 : value;
    *us = (int64_t)(ms + 0.5) * MS;
    return true;
}

/* RFC 3339; where it leaves out the zone it is UTC, without a time midnight. */
static bool time_of_text(bytes text, int64_t *us)
{
    static const char midnight[] = "T00:00:00Z";
    char whole[64];
    int64_t seconds;
    int32_t nanos;
    if (text.size + sizeof midnight > sizeof whole || text.size < strlen("2024-01-01"))
        return false;
    memcpy(whole, text.data, text.size);
    whole[text.size] = '\0';
    bytes told = bytes_make(whole, text.size);
    if (text.size == strlen("2024-01-01")) {
        memcpy(whole + text.size, midnight, sizeof midnight);
        told.size += sizeof midnight - 1;
    } else if (strpbrk(whole + strlen("2024-01-01"), "Zz+-") == NULL) {
        whole[text.size] = 'Z';
        told.size++;
    }
    if (!json_parse_timestamp(told, &seconds, &nanos) || seconds < 0)
        return false;
    *us = seconds * S + nanos / (1000 * 1000) * MS;
    return true;
}

bool item_time(const struct item_value *value, int64_t *us)
{
    if (value->type == ITEM_NUMBER)
        return time_of_number(value->text, us);
    if (value->type != ITEM_STRING)
        return false;
    return time_of_text(value->text, us) || time_of_number(value->text, us);
}

int64_t item_end(const struct item_value *item, const char *attribute, int64_t now_us)
{
    const int64_t five_years_us = 5ll * 365 * 24 * 60 * 60 * S;
    const int64_t seconds_most = 253402300799; /* the end of the year 9999 */
    struct item_number number;
    int64_t seconds;
    const struct item_value *value =
        attribute == NULL ? NULL : item_find(item, bytes_of(attribute));
    if (value == NULL || value->type != ITEM_NUMBER)
        return 0;
    status s = item_number_parse(value->text, &number);
    bool is_time = status_is_ok(s) && item_number_to_int64(&number, &seconds) && seconds > 0 &&
                   seconds <= seconds_most;
    status_free(s);
    return is_time && seconds * S > now_us - five_years_us ? seconds * S : 0;
}

int64_t item_dated(int64_t ends_us, int64_t age_us)
{
    return ends_us > age_us ? (ends_us - age_us) / MS * MS : 0;
}
