/* Signatures of functions, read: see signature.h. */
#include "sql/analyze/signature.h"

#include "base/check.h"

#include <ctype.h>

struct reader {
    const char *at;
    struct arena *arena;
    bool failed;          /* without memory */
    struct pattern spare; /* written to from then on */
};

static struct pattern *read_pattern(struct reader *reader);

static void skip_blanks(struct reader *reader)
{
    while (*reader->at == ' ')
        reader->at++;
}

static bool take(struct reader *reader, const char *symbol)
{
    skip_blanks(reader);
    bool is_there = strncmp(reader->at, symbol, strlen(symbol)) == 0;
    if (is_there)
        reader->at += strlen(symbol);
    return is_there;
}

static void expect(struct reader *reader, const char *symbol)
{
    bool is_there = take(reader, symbol);
    CHECK(is_there);
}

static bytes read_word(struct reader *reader)
{
    skip_blanks(reader);
    const char *from = reader->at;
    while (isalnum((unsigned char)*reader->at) || *reader->at == '_')
        reader->at++;
    CHECK(reader->at > from);
    return bytes_make(from, (size_t)(reader->at - from));
}

static struct pattern *new_pattern(struct reader *reader, enum pattern_kind kind)
{
    struct pattern *pattern = arena_zalloc(reader->arena, sizeof *pattern);
    reader->failed = reader->failed || pattern == NULL;
    if (pattern == NULL)
        pattern = &reader->spare;
    pattern->kind = kind;
    pattern->field = "";
    return pattern;
}

/* A struct's field: a name in small letters may come before its type. */
static struct pattern *read_field(struct reader *reader)
{
    const char *name = "";
    skip_blanks(reader);
    if (islower((unsigned char)*reader->at)) {
        name = arena_string(reader->arena, read_word(reader));
        reader->failed = reader->failed || name == NULL;
    }
    struct pattern *field = read_pattern(reader);
    field->field = name;
    return field;
}

static struct pattern *read_composite(struct reader *reader, enum pattern_kind kind)
{
    struct pattern *pattern = new_pattern(reader, kind);
    struct pattern **part = &pattern->parts;
    expect(reader, "<");
    do {
        *part = read_field(reader);
        part = &(*part)->next;
    } while (take(reader, ","));
    expect(reader, ">");
    return pattern;
}

static enum pattern_bound read_bound(struct reader *reader)
{
    static const char *const names[] = {"",          "equality",  "order",
                                        "orderable", "groupable", "element"};
    if (!take(reader, ":"))
        return BOUND_NONE;
    bytes word = read_word(reader);
    for (enum pattern_bound i = BOUND_EQUALITY; i <= BOUND_ELEMENT; i++)
        if (bytes_equal(word, bytes_of(names[i])))
            return i;
    CHECK(!"a bound in a signature");
    return BOUND_NONE;
}

static struct pattern *read_letter(struct reader *reader, char letter)
{
    struct pattern *pattern = new_pattern(reader, PATTERN_ANY);
    pattern->letter = letter;
    pattern->bound = read_bound(reader);
    return pattern;
}

static struct pattern *read_simple(struct reader *reader, bytes word)
{
    const struct sql_type *type = sql_type_named(word);
    CHECK(type != NULL);
    struct pattern *pattern = new_pattern(reader, PATTERN_TYPE);
    pattern->type = type;
    return pattern;
}

/* (T, INT64) -> BOOL: only as an argument. */
static struct pattern *read_lambda(struct reader *reader)
{
    struct pattern *lambda = new_pattern(reader, PATTERN_LAMBDA);
    struct pattern **part = &lambda->parts;
    expect(reader, "(");
    do {
        *part = read_pattern(reader);
        part = &(*part)->next;
    } while (take(reader, ","));
    expect(reader, ")");
    expect(reader, "->");
    *part = read_pattern(reader);
    return lambda;
}

static struct pattern *read_pattern(struct reader *reader)
{
    skip_blanks(reader);
    if (*reader->at == '(')
        return read_lambda(reader);
    bytes word = read_word(reader);
    if (word.size == 1)
        return read_letter(reader, (char)word.data[0]);
    if (bytes_equal(word, bytes_of("ARRAY")))
        return read_composite(reader, PATTERN_ARRAY);
    if (bytes_equal(word, bytes_of("MAP")))
        return read_composite(reader, PATTERN_MAP);
    if (bytes_equal(word, bytes_of("STRUCT")))
        return read_composite(reader, PATTERN_STRUCT);
    if (bytes_equal(word, bytes_of("PART")))
        return new_pattern(reader, PATTERN_PART);
    return read_simple(reader, word);
}

static struct pattern *read_arg(struct reader *reader)
{
    bool is_optional = take(reader, "[");
    struct pattern *pattern = read_pattern(reader);
    bool is_repeated = take(reader, "...");
    if (is_optional)
        expect(reader, "]");
    pattern->is_optional = is_optional;
    pattern->is_repeated = is_repeated;
    return pattern;
}

status signature_read(const char *text, struct arena *arena, struct signature *out)
{
    struct reader reader = {.at = text, .arena = arena};
    *out = (struct signature){.result = read_pattern(&reader)};
    struct pattern **arg = &out->args;
    expect(&reader, "(");
    for (bool more = !take(&reader, ")"); more; arg = &(*arg)->next) {
        *arg = read_arg(&reader);
        more = take(&reader, ",");
        if (!more)
            expect(&reader, ")");
    }
    CHECK(*reader.at == '\0');
    return reader.failed ? status_out_of_memory() : status_ok();
}

/* --- what the letters stand for --- */

static bool unify_parts(const struct pattern *pattern, const struct sql_type *type,
                        struct letters *letters)
{
    if (pattern->kind == PATTERN_ARRAY)
        return pattern_unify(pattern->parts, type->element, letters);
    if (pattern->kind == PATTERN_MAP)
        return pattern_unify(pattern->parts, type->key, letters) &&
               pattern_unify(pattern->parts->next, type->element, letters);
    size_t i = 0;
    for (const struct pattern *part = pattern->parts; part != NULL; part = part->next, i++)
        if (i >= type->field_count || !pattern_unify(part, type->fields[i].type, letters))
            return false;
    return i == type->field_count;
}

bool pattern_unify(const struct pattern *pattern, const struct sql_type *type,
                   struct letters *letters)
{
    static const enum sql_kind kinds[] = {
        [PATTERN_ARRAY] = SQL_ARRAY, [PATTERN_MAP] = SQL_MAP, [PATTERN_STRUCT] = SQL_STRUCT};
    switch (pattern->kind) {
    case PATTERN_TYPE:
        return sql_type_equal(pattern->type, type);
    case PATTERN_ANY: {
        const struct sql_type **known = letter_type(letters, pattern->letter);
        if (*known == NULL)
            *known = type;
        return sql_type_equal(*known, type);
    }
    case PATTERN_ARRAY:
    case PATTERN_MAP:
    case PATTERN_STRUCT:
        return type->kind == kinds[pattern->kind] && unify_parts(pattern, type, letters);
    default:
        return false;
    }
}

/* Types of the parts, as fields; *out NULL if a letter is not known. */
static status part_types(const struct pattern *pattern, const struct letters *letters,
                         struct arena *arena, struct sql_field **out, size_t *count)
{
    *count = 0;
    for (const struct pattern *part = pattern->parts; part != NULL; part = part->next)
        ++*count;
    struct sql_field *fields = *out = arena_alloc(arena, *count * sizeof *fields);
    if (fields == NULL)
        return status_out_of_memory();
    for (const struct pattern *part = pattern->parts; part != NULL; part = part->next, fields++) {
        fields->name = part->field;
        TRY(pattern_type(part, letters, arena, &fields->type));
        if (fields->type == NULL)
            *out = NULL;
    }
    return status_ok();
}

status pattern_type(const struct pattern *pattern, const struct letters *letters,
                    struct arena *arena, const struct sql_type **out)
{
    struct sql_field *parts;
    size_t count;
    *out = pattern->type;
    if (pattern->kind == PATTERN_ANY)
        *out = letters->types[pattern->letter - 'A'];
    else if (pattern->kind == PATTERN_PART)
        *out = &sql_int64;
    if (pattern->parts == NULL || pattern->kind == PATTERN_LAMBDA)
        return status_ok();
    TRY(part_types(pattern, letters, arena, &parts, &count));
    if (parts == NULL)
        return status_ok();
    if (pattern->kind == PATTERN_ARRAY)
        *out = sql_array_of(arena, parts[0].type);
    else if (pattern->kind == PATTERN_MAP)
        *out = sql_map_of(arena, parts[0].type, parts[1].type);
    else
        *out = sql_struct_of(arena, parts, count);
    return *out == NULL ? status_out_of_memory() : status_ok();
}
