/* See dynamo_record.h. */
#include "formats/dynamo_record.h"

#include "wire/json_text.h"

#include <stdlib.h>

enum { OTHER_DEPTH = 64 /* of what is passed over */ };

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

/* The parts of a line, each a map of attributes. */
enum part { ITEM_PART, METADATA_PART, KEYS_PART, NEW_PART, PARTS };

static const char *const part_names[PARTS] = {
    [ITEM_PART] = "Item",
    [METADATA_PART] = "Metadata",
    [KEYS_PART] = "Keys",
    [NEW_PART] = "NewImage",
};

struct parts {
    struct item_value values[PARTS];
    bool is_there[PARTS];
};

/* PARTS if it is none of them. */
static enum part part_named(bytes name)
{
    unsigned part = 0;
    while (part < PARTS && !bytes_equal(name, bytes_of(part_names[part])))
        part++;
    return (enum part)part;
}

/* --- JSON --- */

static status misplaced(const struct json_reader *json, bytes line, const char *what)
{
    return INVALID("byte %zu: %s", (size_t)(json->at - line.data) + 1, what);
}

static status take_part(struct json_reader *json, bytes line, struct arena *arena,
                        struct parts *parts)
{
    bytes name;
    if (json_peek(json) != JSON_STRING || json_take_scalar(json, &name) != JSON_STRING ||
        !json_take(json, ':'))
        return misplaced(json, line, "a name and ':' are expected");
    enum part part = part_named(name);
    if (part == PARTS)
        return json_skip(json, OTHER_DEPTH) ? status_ok()
                                            : misplaced(json, line, "a value of JSON is expected");
    if (parts->is_there[part])
        return misplaced(json, line, "the name before is there twice");
    parts->is_there[part] = true;
    return item_take_json_map(json, line.data, arena, &parts->values[part]);
}

static status read_json(bytes line, struct arena *arena, struct parts *parts)
{
    struct json_reader json = {.at = line.data, .end = bytes_from(line, line.size).data};
    if (!json_take(&json, '{'))
        return misplaced(&json, line, "'{' is expected");
    do
        TRY(take_part(&json, line, arena, parts));
    while (json_take(&json, ','));
    if (!json_take(&json, '}'))
        return misplaced(&json, line, "',' or '}' is expected");
    json_peek(&json);
    return json.at == json.end ? status_ok() : misplaced(&json, line, "something follows the item");
}

/* --- Ion --- */

/* A change may stand within a struct Record. */
static void unwrap(struct item_value *whole)
{
    const struct item_value *record = item_find(whole, bytes_of("Record"));
    if (record != NULL && record->type == ITEM_MAP &&
        item_find(record, bytes_of(part_names[KEYS_PART])) != NULL)
        *whole = *record;
}

static status read_ion(bytes line, struct arena *arena, struct parts *parts)
{
    struct item_value whole;
    TRY(item_read_ion(line, arena, &whole));
    unwrap(&whole);
    for (unsigned part = 0; part < PARTS; part++) {
        const struct item_value *value = item_find(&whole, bytes_of(part_names[part]));
        parts->is_there[part] = value != NULL;
        if (value == NULL)
            continue;
        if (value->type != ITEM_MAP)
            return INVALID("%s is no struct", part_names[part]);
        parts->values[part] = *value;
    }
    return status_ok();
}

/* --- what the parts say --- */

static status find_time(const struct parts *parts, int64_t *us)
{
    struct item_number number;
    const struct item_value *time =
        parts->is_there[METADATA_PART]
            ? item_find(&parts->values[METADATA_PART], bytes_of("WriteTimestampMicros"))
            : NULL;
    if (time == NULL || time->type != ITEM_NUMBER)
        return INVALID("Metadata has no WriteTimestampMicros");
    TRY(item_number_parse(time->text, &number));
    if (!item_number_to_int64(&number, us) || *us < 0)
        return INVALID("WriteTimestampMicros is no time");
    return status_ok();
}

static status take_change(const struct parts *parts, struct dynamo_record *out)
{
    out->is_incremental = true;
    out->is_gone = !parts->is_there[NEW_PART];
    out->item = parts->values[out->is_gone ? KEYS_PART : NEW_PART];
    return find_time(parts, &out->written_us);
}

status dynamo_record_read(enum dynamo_format format, bytes line, struct arena *arena,
                          struct dynamo_record *out)
{
    struct parts parts = {.is_there = {false}};
    *out = (struct dynamo_record){.is_gone = false};
    TRY(format == DYNAMO_ION ? read_ion(line, arena, &parts) : read_json(line, arena, &parts));
    if (parts.is_there[KEYS_PART])
        return take_change(&parts, out);
    if (!parts.is_there[ITEM_PART])
        return INVALID("the line has neither Item nor Keys");
    out->item = parts.values[ITEM_PART];
    return status_ok();
}

/* --- records of streams --- */

struct stream_record {
    struct parts parts;
    bytes event; /* "REMOVE" */
    bytes sequence;
    bytes time; /* a number of seconds */
};

static status take_text(struct json_reader *json, bytes text, enum json_kind kind, bytes *out)
{
    return json_take_scalar(json, out) == kind
               ? status_ok()
               : misplaced(json, text, "a string or number is expected before");
}

static status take_field(struct json_reader *json, bytes text, bytes name, struct arena *arena,
                         struct stream_record *record)
{
    enum part part = part_named(name);
    if (part == KEYS_PART || part == NEW_PART) {
        record->parts.is_there[part] = true;
        return item_take_json_map(json, text.data, arena, &record->parts.values[part]);
    }
    if (bytes_equal(name, bytes_of("SequenceNumber")))
        return take_text(json, text, JSON_STRING, &record->sequence);
    if (bytes_equal(name, bytes_of("ApproximateCreationDateTime")))
        return take_text(json, text, JSON_NUMBER, &record->time);
    if (bytes_equal(name, bytes_of("eventName")))
        return take_text(json, text, JSON_STRING, &record->event);
    return json_skip(json, OTHER_DEPTH) ? status_ok()
                                        : misplaced(json, text, "a value of JSON is expected");
}

/* The members of the record, and those of "dynamodb" in it. */
static status take_fields(struct json_reader *json, bytes text, bool is_inner, struct arena *arena,
                          struct stream_record *record)
{
    if (!json_take(json, '{'))
        return misplaced(json, text, "'{' is expected");
    do {
        bytes name;
        if (json_peek(json) != JSON_STRING || json_take_scalar(json, &name) != JSON_STRING ||
            !json_take(json, ':'))
            return misplaced(json, text, "a name and ':' are expected");
        if (!is_inner && bytes_equal(name, bytes_of("dynamodb")))
            TRY(take_fields(json, text, true, arena, record));
        else
            TRY(take_field(json, text, name, arena, record));
    } while (json_take(json, ','));
    return json_take(json, '}') ? status_ok() : misplaced(json, text, "',' or '}' is expected");
}

/* "1480000000", "1.48E9", "1480000000.123" */
static status read_seconds(bytes text, int64_t *us)
{
    const double most = 1e11; /* the year 5138 */
    char number[32] = {0};
    char *end;
    if (text.size == 0 || text.size >= sizeof number)
        return INVALID("the record has no ApproximateCreationDateTime");
    memcpy(number, text.data, text.size);
    double seconds = strtod(number, &end);
    if (*end != '\0' || !(seconds >= 0 && seconds < most))
        return INVALID("ApproximateCreationDateTime is no time");
    *us = (int64_t)(seconds * 1e6 + 0.5);
    return status_ok();
}

status dynamo_record_read_stream(bytes text, struct arena *arena, struct dynamo_record *out,
                                 bytes *sequence)
{
    struct stream_record record = {.time = {0}};
    struct json_reader json = {.at = text.data, .end = bytes_from(text, text.size).data};
    *out = (struct dynamo_record){.is_incremental = true};
    TRY(take_fields(&json, text, false, arena, &record));
    TRY(read_seconds(record.time, &out->written_us));
    *sequence = record.sequence;
    if (record.sequence.size == 0)
        return INVALID("the record has no SequenceNumber");
    out->is_gone = bytes_equal(record.event, bytes_of("REMOVE"));
    enum part part = out->is_gone ? KEYS_PART : NEW_PART;
    if (!record.parts.is_there[part])
        return INVALID("the record has no %s", part_names[part]);
    out->item = record.parts.values[part];
    return status_ok();
}
