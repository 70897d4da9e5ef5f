/* See read_private.h: the form of keys. */
#include "base/check.h"
#include "base/limits.h"
#include "design/read_private.h"

#include <stdio.h>

enum {
    NUMBER_DIGITS_MOST = 19,
    HASH_DIGITS_MOST = 64,
    BYTES_MOST = 4096,
};

#define NUMBER_MOST ((uint64_t)INT64_MAX)
#define VALUES_MOST ((uint64_t)1000 * 1000 * 1000 * 1000)

enum part_field {
    FIELD_KIND,
    FIELD_NAME,
    FIELD_TEXT,
    FIELD_WORDS,
    FIELD_COUNT,
    FIELD_FROM,
    FIELD_TO,
    FIELD_DIGITS,
    FIELD_ORDER,
    FIELD_FORM,
    FIELD_REVERSED,
    FIELD_VERSION,
    FIELD_SIZE,
    FIELD_OF,
    FIELDS,
};

#define BIT(field) (1u << (field))
#define ALWAYS     (BIT(FIELD_KIND) | BIT(FIELD_NAME))
#define OF_A_SET   (ALWAYS | BIT(FIELD_COUNT))

static const char *const field_names[FIELDS] = {
    "kind",   "name",  "text", "words",    "count",   "from", "to",
    "digits", "order", "form", "reversed", "version", "size", "of",
};

static const char *const kind_names[PART_KINDS + 1] = {
    "constant", "word", "number", "time", "uuid", "hash", "domain", "email", "phone", "bytes", NULL,
};

/* Of each kind the fields that it has, a bit each. */
static const unsigned fields_of_kind[PART_KINDS] = {
    [PART_CONSTANT] = ALWAYS | BIT(FIELD_TEXT),
    [PART_WORD] = OF_A_SET | BIT(FIELD_WORDS),
    [PART_NUMBER] = OF_A_SET | BIT(FIELD_FROM) | BIT(FIELD_TO) | BIT(FIELD_DIGITS) |
                    BIT(FIELD_ORDER) | BIT(FIELD_OF),
    [PART_TIME] = ALWAYS | BIT(FIELD_FORM) | BIT(FIELD_REVERSED),
    [PART_UUID] = OF_A_SET | BIT(FIELD_VERSION),
    [PART_HASH] = OF_A_SET | BIT(FIELD_DIGITS) | BIT(FIELD_OF),
    [PART_DOMAIN] = OF_A_SET | BIT(FIELD_REVERSED),
    [PART_EMAIL] = OF_A_SET,
    [PART_PHONE] = OF_A_SET,
    [PART_BYTES] = OF_A_SET | BIT(FIELD_SIZE),
};

struct part_fields {
    struct field fields[FIELDS]; /* those of the kind */
    size_t count;
};

/* NULL: it is not there. */
static const struct yaml_value *value_of(const struct part_fields *part, enum part_field field)
{
    for (size_t i = 0; i < part->count; i++)
        if (part->fields[i].name == field_names[field])
            return part->fields[i].value;
    return NULL;
}

static status take_fields(const struct yaml_value *map, int kind, struct part_fields *out)
{
    char what[64];
    CHECK(kind >= 0 && kind < PART_KINDS);
    *out = (struct part_fields){.count = 0};
    for (unsigned i = 0; i < FIELDS; i++)
        if (fields_of_kind[kind] & BIT(i))
            out->fields[out->count++] = (struct field){.name = field_names[i]};
    snprintf(what, sizeof what, "a part of the kind %s", kind_names[kind]);
    return fields_take(map, what, out->fields, out->count);
}

/* Before it is known which other fields there are. */
static status read_kind(const struct yaml_value *map, const char *what, int *out)
{
    *out = -1;
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->keys[i]->text, field_names[FIELD_KIND]) == 0)
            TRY(field_choice(map->items[i], kind_names, out));
    return *out < 0 ? yaml_error(map, "%s needs the field kind", what) : status_ok();
}

static status read_words(const struct yaml_value *value, struct arena *arena,
                         struct design_part *out)
{
    TRY(field_is_list(value, 1));
    const char **words = arena_alloc(arena, value->count * sizeof *words);
    if (words == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < value->count; i++)
        TRY(field_text(value->items[i], &words[i]));
    out->words = words;
    out->count = value->count;
    return status_ok();
}

static status read_word(const struct yaml_value *map, const struct part_fields *fields,
                        struct arena *arena, struct design_part *out)
{
    const struct yaml_value *words = value_of(fields, FIELD_WORDS);
    if ((words == NULL) == (value_of(fields, FIELD_COUNT) == NULL))
        return yaml_error(map, "a word is one of the list words, or there are so many: count");
    return words == NULL ? status_ok() : read_words(words, arena, out);
}

static status read_number(const struct yaml_value *map, const struct part_fields *fields,
                          struct design_part *out)
{
    static const char *const orders[] = {"random", "rising", NULL};
    int order = 0;
    out->to = NUMBER_MOST;
    TRY(field_number(value_of(fields, FIELD_FROM), 0, NUMBER_MOST, &out->from));
    TRY(field_number(value_of(fields, FIELD_TO), out->from, NUMBER_MOST, &out->to));
    TRY(field_number(value_of(fields, FIELD_DIGITS), 1, NUMBER_DIGITS_MOST, &out->digits));
    TRY(field_choice(value_of(fields, FIELD_ORDER), orders, &order));
    out->is_rising = order == 1;
    if (!out->is_rising && value_of(fields, FIELD_TO) == NULL)
        return yaml_error(map, "a number that does not rise (order: rising) needs the field to");
    if (out->is_rising && (out->count > 0 || value_of(fields, FIELD_OF) != NULL))
        return yaml_error(map, "a number that rises has neither count nor of");
    return status_ok();
}

static status read_time(const struct part_fields *fields, struct design_part *out)
{
    static const char *const forms[] = {"date",        "compact-date", "datetime",
                                        "seconds",     "milliseconds", "microseconds",
                                        "nanoseconds", "hex-seconds",  NULL};
    int form = TIME_SECONDS;
    TRY(field_choice(value_of(fields, FIELD_FORM), forms, &form));
    out->form = (enum design_time_form)form;
    if (out->is_reversed && form < TIME_SECONDS)
        return yaml_error(value_of(fields, FIELD_REVERSED),
                          "only a number since 1970 can be reversed");
    return status_ok();
}

static status read_uuid(const struct part_fields *fields, struct design_part *out)
{
    const struct yaml_value *value = value_of(fields, FIELD_VERSION);
    out->version = 4;
    TRY(field_number(value, 4, 7, &out->version));
    if (out->version != 4 && out->version != 7)
        return yaml_error(value, "a UUID is of version 4 or 7 here");
    return status_ok();
}

static status read_of_kind(const struct yaml_value *map, const struct part_fields *fields,
                           struct arena *arena, struct design_part *out)
{
    switch (out->kind) {
    case PART_CONSTANT:
        out->text = "";
        return field_text(value_of(fields, FIELD_TEXT), &out->text);
    case PART_WORD:
        return read_word(map, fields, arena, out);
    case PART_NUMBER:
        return read_number(map, fields, out);
    case PART_TIME:
        return read_time(fields, out);
    case PART_UUID:
        return read_uuid(fields, out);
    case PART_HASH:
        out->digits = 32;
        return field_number(value_of(fields, FIELD_DIGITS), 1, HASH_DIGITS_MOST, &out->digits);
    case PART_BYTES:
        out->size = 8;
        return field_size(value_of(fields, FIELD_SIZE), BYTES_MOST, &out->size);
    default:
        return status_ok();
    }
}

status read_part(const struct yaml_value *value, const char *what, struct arena *arena,
                 struct design_part *out)
{
    struct part_fields fields;
    int kind;
    *out = (struct design_part){.line = value->line, .of = PART_OF_NONE};
    if (value->kind == YAML_TEXT) {
        out->text = value->text;
        return status_ok();
    }
    if (value->kind != YAML_MAP)
        return yaml_error(value, "%s is a text, or has fields: {kind: word, count: 100}", what);
    TRY(read_kind(value, what, &kind));
    out->kind = (enum design_part_kind)kind;
    TRY(take_fields(value, kind, &fields));
    TRY(field_text(value_of(&fields, FIELD_NAME), &out->name));
    TRY(field_number(value_of(&fields, FIELD_COUNT), 1, VALUES_MOST, &out->count));
    TRY(field_flag(value_of(&fields, FIELD_REVERSED), &out->is_reversed));
    return read_of_kind(value, &fields, arena, out);
}

/* --- keys --- */

static int find_part(const struct design_key *key, const char *name)
{
    for (size_t i = 0; i < key->count; i++)
        if (key->parts[i].name != NULL && strcmp(key->parts[i].name, name) == 0)
            return (int)i;
    return PART_OF_NONE;
}

static const struct yaml_value *find_of(const struct yaml_value *part)
{
    for (size_t i = 0; part->kind == YAML_MAP && i < part->count; i++)
        if (strcmp(part->keys[i]->text, field_names[FIELD_OF]) == 0)
            return part->items[i];
    return NULL;
}

/* Reads which part each one is made of, once all are known. */
static status read_of(const struct yaml_value *parts, struct design_key *key)
{
    for (size_t i = 0; i < key->count; i++) {
        const struct yaml_value *of = find_of(parts->items[i]);
        const char *name = NULL;
        if (of == NULL)
            continue;
        TRY(field_text(of, &name));
        int other = find_part(key, name);
        if (other == PART_OF_NONE || other == (int)i)
            return yaml_error(of, "%s is the name of no other part of the key", name);
        if (find_of(parts->items[other]) != NULL)
            return yaml_error(of, "%s is itself made of another part", name);
        key->parts[i].of = other;
    }
    return status_ok();
}

static status check_names(const struct yaml_value *parts, const struct design_key *key)
{
    for (size_t i = 0; i < key->count; i++)
        if (key->parts[i].name != NULL && find_part(key, key->parts[i].name) != (int)i)
            return yaml_error(parts->items[i], "a part with the name %s is there already",
                              key->parts[i].name);
    return status_ok();
}

/* Bytes of the part's longest value; of what is made up about so many. */
static uint64_t size_of_part(const struct design_part *part)
{
    enum { OTHERS = 40 };
    uint64_t size = 0;
    switch (part->kind) {
    case PART_CONSTANT:
        return part->text == NULL ? 0 : strlen(part->text);
    case PART_HASH:
        return part->digits;
    case PART_BYTES:
        return part->size;
    case PART_WORD:
        for (uint64_t i = 0; part->words != NULL && i < part->count; i++)
            size = strlen(part->words[i]) > size ? strlen(part->words[i]) : size;
        return size;
    default:
        return OTHERS;
    }
}

uint64_t key_size(const struct design_key *key)
{
    uint64_t size = (key->count - 1) * strlen(key->delimiter);
    for (size_t i = 0; i < key->count; i++)
        size += size_of_part(&key->parts[i]);
    return size;
}

static status check_size(const struct yaml_value *parts, const struct design_key *key)
{
    uint64_t size = key_size(key);
    return size <= LIMIT_ROW_KEY_BYTES
               ? status_ok()
               : yaml_error(parts, "keys of %llu bytes, and a row key has %d at most",
                            (unsigned long long)size, LIMIT_ROW_KEY_BYTES);
}

status read_key(const struct yaml_value *value, struct arena *arena, struct design_key *out)
{
    struct field fields[] = {{.name = "delimiter"}, {.name = "parts", .is_required = true}};
    TRY(fields_take(value, "a key", fields, sizeof fields / sizeof *fields));
    const struct yaml_value *parts = fields[1].value;
    *out = (struct design_key){.delimiter = "#"};
    TRY(field_text(fields[0].value, &out->delimiter));
    TRY(field_is_list(parts, 1));
    if (parts->count > DESIGN_PARTS_MOST)
        return yaml_error(parts, "a key has more than %d parts", DESIGN_PARTS_MOST);
    out->count = parts->count;
    out->parts = arena_zalloc(arena, out->count * sizeof *out->parts);
    if (out->parts == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < out->count; i++)
        TRY(read_part(parts->items[i], "a part of a key", arena, &out->parts[i]));
    TRY(check_names(parts, out));
    TRY(check_size(parts, out));
    return read_of(parts, out);
}
