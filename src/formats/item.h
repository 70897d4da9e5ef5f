/* Items of DynamoDB: values of its ten types, read from the forms in which DynamoDB hands them out
 * and written in those in which we keep them.
 *
 * An item is a map: the value of type ITEM_MAP whose names are the attributes. Numbers keep the
 * text that they came with: 38 decimal digits are more than any binary type has. What a value
 * points to lives as long as the arena, or as the text, that it was read with. */
#ifndef TRESTLE_FORMATS_ITEM_H
#define TRESTLE_FORMATS_ITEM_H

#include "base/arena.h"
#include "base/status.h"

enum item_type {
    ITEM_STRING,
    ITEM_NUMBER,
    ITEM_BINARY,
    ITEM_BOOL,
    ITEM_NULL,
    ITEM_STRING_SET,
    ITEM_NUMBER_SET,
    ITEM_BINARY_SET,
    ITEM_LIST,
    ITEM_MAP,
};

enum {
    ITEM_MOST_DEPTH = 32,    /* levels of lists and maps, as in DynamoDB */
    ITEM_MOST_DIGITS = 38,   /* of a number, from the first to the last that is not 0 */
    ITEM_LEAST_POWER = -130, /* of ten, of a number's first digit */
    ITEM_MOST_POWER = 125,
};

struct item_value {
    enum item_type type;
    bool boolean; /* BOOL */
    bytes text;   /* STRING: UTF-8. NUMBER: decimal. BINARY: the bytes themselves */
    size_t count; /* of elements: sets, lists, maps */
    struct item_value
        *elements; /* of a set, each of the set's one type; of a map, sorted by name */
    bytes name;    /* of an element of a map: UTF-8 */
};

/* The map's value of that name; NULL if it has none. */
const struct item_value *item_find(const struct item_value *map, bytes name);

/* "S", "NS", "BOOL", …: as DynamoDB's JSON calls the type. */
const char *item_type_name(enum item_type type);

/* Whether two values are the same: sets and maps in any order, numbers by what they stand for
 * ("1.50" is "1.5"). */
bool item_equal(const struct item_value *a, const struct item_value *b);

/* --- numbers --- */

/* A decimal number: 0.d1d2d3… times ten to the `power`, or zero, which has no digits. */
struct item_number {
    bool is_negative;
    uint8_t count;
    int16_t power;
    char digits[ITEM_MOST_DIGITS]; /* '0' to '9'; neither the first nor the last is '0' */
};

/* INVALID_ARGUMENT for what is no number of DynamoDB's: "12x", or more digits or greater powers
 * than it has. */
status item_number_parse(bytes text, struct item_number *out);

/* Appends bytes that order as the numbers do, and of which none is the beginning of another's:
 * a sign (00 negative, 01 zero, 02 positive), for others than zero the power by 16 bits big-endian
 * with its sign bit turned, two digits a byte (each one more than it is), and 00. All but the sign
 * are inverted if it is negative. */
void item_number_append_ordered(const struct item_number *number, struct buffer *out);

/* Appends the plain number: "1500", "-0.25", without a power; canonical, so that equal numbers have
 * equal texts. */
void item_number_append_plain(const struct item_number *number, struct buffer *out);

/* False if it is no integer of 64 bits. */
bool item_number_to_int64(const struct item_number *number, int64_t *out);

/* --- reading --- */

/* How reading fails: INVALID_ARGUMENT, with the byte of the text (from 1) and what is wrong there;
 * RESOURCE_EXHAUSTED when the arena is full. */

/* {"S":"text"}, {"L":[{"N":"1"}]}: a value as DynamoDB's JSON has it, with its type around it. */
status item_read_json(bytes text, struct arena *arena, struct item_value *out);

/* {"Id":{"N":"1"},…}: the map itself. */
status item_read_json_map(bytes text, struct arena *arena, struct item_value *out);

/* The same, where the reader stands, and no further: for what has maps of attributes within JSON of
 * another kind. `start` is where its text begins, for the places of mistakes. */
struct json_reader;
status item_take_json_map(struct json_reader *json, const uint8_t *start, struct arena *arena,
                          struct item_value *out);

/* {Item:{Id:1.}} or $ion_1_0 {…}: a struct of Ion text, which stands for a map. */
status item_read_ion(bytes text, struct arena *arena, struct item_value *out);

/* --- writing; out->failed says whether there was memory --- */

/* With its type around it: {"N":"1"}; bytes as base64 with padding. */
void item_write_json(const struct item_value *value, struct buffer *out);

/* As plain JSON, without DynamoDB's types: strings, numbers as they are, bytes as base64, sets as
 * arrays. */
void item_write_plain(const struct item_value *value, struct buffer *out);

#endif
