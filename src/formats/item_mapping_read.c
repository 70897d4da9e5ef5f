/* The file of a mapping, read. See item_mapping.h.
 *
 * jansson parses, and says where JSON is none; what it means is checked here, and a mistake's place
 * is told by names: "items[1].columns.Likes". */
#include "formats/item_mapping.h"

#include "base/limits.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>

enum { SALTS_MOST = 1000 };

/* Where in the file something stands. */
struct place {
    const struct place *outer; /* NULL: the file itself, and `name` is its path */
    const char *name;          /* NULL: `index` */
    size_t index;
};

struct reading {
    struct arena *arena;
    struct item_mapping *out;
    size_t family_capacity;
};

/* --- what is wrong --- */

static void append_place(const struct place *place, struct buffer *out)
{
    if (place->outer == NULL) {
        buffer_append_format(out, "%s: ", place->name);
        return;
    }
    append_place(place->outer, out);
    if (place->name == NULL)
        buffer_append_format(out, "[%zu]", place->index);
    else
        buffer_append_format(out, "%s%s", place->outer->outer == NULL ? "" : ".", place->name);
}

#define REFUSE(place, ...) refuse(place, status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__))

/* The same, with its place before it. Takes the status. */
static status refuse(const struct place *place, status s)
{
    struct buffer text = {0};
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    append_place(place, &text);
    status placed = text.failed ? status_out_of_memory()
                                : status_make(STATUS_INVALID_ARGUMENT, "%.*s%s%s", (int)text.size,
                                              (const char *)text.data,
                                              place->outer == NULL ? "" : ": ", status_message(s));
    status_free(s);
    buffer_free(&text);
    return placed;
}

/* --- values of JSON --- */

static status check_names(const struct place *place, const json_t *object, const char *const *names)
{
    const char *name;
    json_t *value;
    if (!json_is_object(object))
        return REFUSE(place, "an object {…} is expected");
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        size_t i = 0;
        while (names[i] != NULL && strcmp(names[i], name) != 0)
            i++;
        if (names[i] == NULL)
            return REFUSE(place, "the name \"%s\" means nothing here", name);
    }
    return status_ok();
}

static status take_text(const struct reading *reading, const struct place *place,
                        const json_t *value, bytes *out)
{
    if (!json_is_string(value) || json_string_length(value) == 0)
        return REFUSE(place, "a text in quotes is expected");
    *out =
        arena_copy(reading->arena, bytes_make(json_string_value(value), json_string_length(value)));
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

static status take_string(const struct reading *reading, const struct place *place,
                          const json_t *value, const char **out)
{
    bytes text = bytes_make(NULL, 0);
    TRY(take_text(reading, place, value, &text));
    *out = arena_string(reading->arena, text);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

/* The member's text, if there is one. */
static status take_optional(const struct reading *reading, const struct place *outer,
                            const json_t *object, const char *name, const char **out)
{
    const struct place place = {.outer = outer, .name = name};
    const json_t *value = json_object_get(object, name);
    return value == NULL ? status_ok() : take_string(reading, &place, value, out);
}

static status take_number(const struct place *place, const json_t *value, json_int_t most,
                          json_int_t *out)
{
    *out = json_integer_value(value);
    if (!json_is_integer(value) || *out < 0 || *out > most)
        return REFUSE(place, "a number from 0 to %" JSON_INTEGER_FORMAT " is expected", most);
    return status_ok();
}

static status take_template(const struct reading *reading, const struct place *place,
                            const json_t *value, struct item_template *out)
{
    bytes text = bytes_make(NULL, 0);
    TRY(take_text(reading, place, value, &text));
    status s = item_template_parse(text, reading->arena, out);
    return status_is_ok(s) ? s : refuse(place, s);
}

/* --- families --- */

static bool is_family_name(const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)name[i]) && strchr("-_.", name[i]) == NULL)
            return false;
    return size > 0 && size <= LIMIT_FAMILY_NAME_BYTES;
}

static struct move_family *find_family(const struct item_mapping *mapping, const char *name)
{
    for (size_t i = 0; i < mapping->family_count; i++)
        if (strcmp(mapping->families[i].name, name) == 0)
            return &mapping->families[i];
    return NULL;
}

/* The family is one of the table's; if nothing else is said, one version of a cell is kept. */
static status need_family(struct reading *reading, const struct place *place, const char *name)
{
    struct item_mapping *out = reading->out;
    if (!is_family_name(name))
        return REFUSE(place, "\"%s\" cannot be a column family's name", name);
    if (find_family(out, name) != NULL)
        return status_ok();
    if (out->family_count == reading->family_capacity) {
        size_t capacity = 2 * reading->family_capacity + 8;
        struct move_family *families = arena_alloc(reading->arena, capacity * sizeof *families);
        if (families == NULL)
            return status_out_of_memory();
        if (out->family_count > 0)
            memcpy(families, out->families, out->family_count * sizeof *families);
        out->families = families;
        reading->family_capacity = capacity;
    }
    out->families[out->family_count++] = (struct move_family){.name = name, .versions = 1};
    return status_ok();
}

static status take_family(struct reading *reading, const struct place *outer, const json_t *object,
                          const char *member, const char **out)
{
    const struct place place = {.outer = outer, .name = member};
    if (json_object_get(object, member) == NULL)
        return status_ok();
    TRY(take_optional(reading, outer, object, member, out));
    return need_family(reading, &place, *out);
}

static status take_age(const struct reading *reading, const struct place *place,
                       const json_t *value, int64_t *us)
{
    const char *text;
    TRY(take_string(reading, place, value, &text));
    status s = move_age_parse(text, us);
    return status_is_ok(s) ? s : refuse(place, s);
}

static status take_family_rule(struct reading *reading, const struct place *outer, const char *name,
                               const json_t *rule)
{
    static const char *const names[] = {"max_versions", "max_age", NULL};
    const struct place place = {.outer = outer, .name = name};
    const struct place versions_place = {.outer = &place, .name = "max_versions"};
    const struct place age_place = {.outer = &place, .name = "max_age"};
    const json_t *versions = json_object_get(rule, "max_versions");
    const json_t *age = json_object_get(rule, "max_age");
    const char *kept = arena_string(reading->arena, bytes_of(name));
    json_int_t number = 0;
    if (kept == NULL)
        return status_out_of_memory();
    TRY(check_names(&place, rule, names));
    TRY(need_family(reading, &place, kept));
    struct move_family *family = find_family(reading->out, kept);
    if (versions != NULL) {
        TRY(take_number(&versions_place, versions, INT32_MAX, &number));
        family->versions = (uint32_t)number;
    }
    return age == NULL ? status_ok() : take_age(reading, &age_place, age, &family->age_us);
}

static status take_families(struct reading *reading, const struct place *file, const json_t *object)
{
    const struct place place = {.outer = file, .name = "families"};
    const char *name;
    json_t *rule, *families = json_object_get(object, "families");
    if (families == NULL)
        return status_ok();
    if (!json_is_object(families))
        return REFUSE(&place, "an object {…} of families is expected");
    json_object_foreach(families, name, rule) TRY(take_family_rule(reading, &place, name, rule));
    return status_ok();
}

/* --- columns --- */

static const char *const column_forms[] = {
    [ITEM_COLUMN_TEXT] = "text",     [ITEM_COLUMN_COUNTER] = "counter",
    [ITEM_COLUMN_JSON] = "json",     [ITEM_COLUMN_TYPED] = "typed",
    [ITEM_COLUMN_FAMILY] = "family", [ITEM_COLUMN_VERSIONS] = "versions",
    [ITEM_COLUMN_DROP] = "drop",
};

static status take_form(const struct place *place, const json_t *value, enum item_column_form *out)
{
    for (unsigned i = 0; i < sizeof column_forms / sizeof *column_forms; i++) {
        *out = (enum item_column_form)i;
        if (json_is_string(value) && strcmp(json_string_value(value), column_forms[i]) == 0)
            return status_ok();
    }
    return REFUSE(place, "\"text\", \"counter\", \"json\", \"typed\", \"family\", \"versions\" or "
                         "\"drop\" is expected");
}

static status take_column_parts(struct reading *reading, const struct place *place,
                                const json_t *object, struct item_column *out)
{
    const struct place form_place = {.outer = place, .name = "as"};
    const struct place qualifier_place = {.outer = place, .name = "qualifier"};
    const json_t *form = json_object_get(object, "as");
    const json_t *qualifier = json_object_get(object, "qualifier");
    if (form != NULL)
        TRY(take_form(&form_place, form, &out->form));
    if (qualifier != NULL)
        TRY(take_template(reading, &qualifier_place, qualifier, &out->qualifier));
    TRY(take_optional(reading, place, object, "timestamp", &out->timestamp));
    return take_family(reading, place, object, "family", &out->family);
}

static status take_column(struct reading *reading, const struct place *place, const json_t *value,
                          struct item_column *out)
{
    static const char *const names[] = {"as", "family", "qualifier", "timestamp", NULL};
    if (json_is_string(value)) {
        TRY(take_form(place, value, &out->form));
    } else {
        TRY(check_names(place, value, names));
        TRY(take_column_parts(reading, place, value, out));
    }
    if (out->form != ITEM_COLUMN_FAMILY || out->family != NULL)
        return status_ok();
    out->family = arena_string(reading->arena, out->attribute);
    return out->family == NULL ? status_out_of_memory() : need_family(reading, place, out->family);
}

static status take_columns(struct reading *reading, const struct place *outer, const json_t *object,
                           struct item_rule *rule)
{
    const struct place place = {.outer = outer, .name = "columns"};
    const char *name;
    json_t *value, *columns = json_object_get(object, "columns");
    if (columns == NULL)
        return status_ok();
    if (!json_is_object(columns))
        return REFUSE(&place, "an object {…} of attributes is expected");
    rule->column_count = 0;
    rule->columns =
        arena_zalloc(reading->arena, (json_object_size(columns) + 1) * sizeof *rule->columns);
    if (rule->columns == NULL)
        return status_out_of_memory();
    json_object_foreach(columns, name, value)
    {
        const struct place at = {.outer = &place, .name = name};
        struct item_column *column = &rule->columns[rule->column_count++];
        column->attribute = arena_copy(reading->arena, bytes_of(name));
        if (column->attribute.data == NULL)
            return status_out_of_memory();
        TRY(take_column(reading, &at, value, column));
    }
    return status_ok();
}

static status take_together(struct reading *reading, const struct place *place, const json_t *value,
                            struct item_rule *rule)
{
    rule->others = ITEM_OTHERS_TOGETHER;
    rule->together = (struct item_column){.form = ITEM_COLUMN_JSON};
    TRY(take_column(reading, place, value, &rule->together));
    if (rule->together.form != ITEM_COLUMN_JSON && rule->together.form != ITEM_COLUMN_TYPED)
        return REFUSE(place, "attributes can lie together as \"json\" or \"typed\"");
    return rule->together.qualifier.count > 0 ? status_ok()
                                              : REFUSE(place, "a \"qualifier\" is missing");
}

static status take_others(struct reading *reading, const struct place *outer, const json_t *object,
                          struct item_rule *rule)
{
    const struct place place = {.outer = outer, .name = "others"};
    const json_t *others = json_object_get(object, "others");
    if (others == NULL)
        return status_ok();
    if (json_is_object(others))
        return take_together(reading, &place, others, rule);
    const char *word = json_is_string(others) ? json_string_value(others) : "";
    rule->others = strcmp(word, "drop") == 0 ? ITEM_OTHERS_DROPPED : ITEM_OTHERS_AS_COLUMNS;
    if (strcmp(word, "drop") == 0 || strcmp(word, "columns") == 0)
        return status_ok();
    return REFUSE(&place, "\"columns\", \"drop\" or an object {…} is expected");
}

/* --- rules --- */

/* An object of texts: for each name, `take` has name and text, which the arena keeps. */
static status take_pairs(struct reading *reading, const struct place *outer, const json_t *object,
                         const char *member, struct item_prefix **out, size_t *count)
{
    const struct place place = {.outer = outer, .name = member};
    const char *name;
    json_t *value, *pairs = json_object_get(object, member);
    if (pairs == NULL)
        return status_ok();
    if (!json_is_object(pairs))
        return REFUSE(&place, "an object {…} of attributes is expected");
    *count = 0;
    *out = arena_zalloc(reading->arena, (json_object_size(pairs) + 1) * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    json_object_foreach(pairs, name, value)
    {
        const struct place at = {.outer = &place, .name = name};
        struct item_prefix *pair = &(*out)[(*count)++];
        pair->attribute = arena_copy(reading->arena, bytes_of(name));
        if (pair->attribute.data == NULL)
            return status_out_of_memory();
        TRY(take_text(reading, &at, value, &pair->prefix));
    }
    return status_ok();
}

static status take_where(struct reading *reading, const struct place *outer, const json_t *object,
                         struct item_rule *rule)
{
    struct item_prefix *pairs = NULL;
    size_t count = 0;
    TRY(take_pairs(reading, outer, object, "where", &pairs, &count));
    rule->condition_count = count;
    rule->conditions = arena_alloc(reading->arena, (count + 1) * sizeof *rule->conditions);
    if (rule->conditions == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        rule->conditions[i] =
            (struct item_condition){.attribute = pairs[i].attribute, .pattern = pairs[i].prefix};
    return status_ok();
}

static status take_ttl(struct reading *reading, const struct place *outer, const json_t *object,
                       struct item_rule *rule)
{
    static const char *const names[] = {"attribute", "family", NULL};
    const struct place place = {.outer = outer, .name = "ttl"};
    const json_t *ttl = json_object_get(object, "ttl");
    if (ttl == NULL)
        return status_ok();
    rule->ttl_family = NULL;
    if (json_is_string(ttl))
        return take_string(reading, &place, ttl, &rule->ttl);
    TRY(check_names(&place, ttl, names));
    if (json_object_get(ttl, "attribute") == NULL)
        return REFUSE(&place, "an \"attribute\" is missing");
    TRY(take_optional(reading, &place, ttl, "attribute", &rule->ttl));
    return take_family(reading, &place, ttl, "family", &rule->ttl_family);
}

/* Takes what the object says; the rest stays as it is. */
static status take_rule(struct reading *reading, const struct place *place, const json_t *object,
                        struct item_rule *rule)
{
    const struct place key_place = {.outer = place, .name = "row_key"};
    const json_t *row_key = json_object_get(object, "row_key");
    if (row_key != NULL)
        TRY(take_template(reading, &key_place, row_key, &rule->row_key));
    TRY(take_pairs(reading, place, object, "strip_prefix", &rule->prefixes.all,
                   &rule->prefixes.count));
    TRY(take_family(reading, place, object, "family", &rule->family));
    TRY(take_optional(reading, place, object, "timestamp", &rule->timestamp));
    TRY(take_ttl(reading, place, object, rule));
    TRY(take_columns(reading, place, object, rule));
    return take_others(reading, place, object, rule);
}

static status need_row_key(const struct place *place, const struct item_rule *rule)
{
    return rule->row_key.count > 0 ? status_ok() : REFUSE(place, "a \"row_key\" is missing");
}

static status take_items(struct reading *reading, const struct place *file, const json_t *items,
                         const struct item_rule *common)
{
    static const char *const names[] = {"where",   "row_key", "strip_prefix", "family", "timestamp",
                                        "columns", "others",  "ttl",          NULL};
    const struct place place = {.outer = file, .name = "items"};
    struct item_mapping *out = reading->out;
    if (!json_is_array(items) || json_array_size(items) == 0)
        return REFUSE(&place, "an array […] of rules is expected");
    out->has_items = true;
    out->rules = arena_alloc(reading->arena, json_array_size(items) * sizeof *out->rules);
    if (out->rules == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < json_array_size(items); i++) {
        const struct place at = {.outer = &place, .index = i};
        const json_t *item = json_array_get(items, i);
        struct item_rule *rule = &out->rules[out->rule_count++];
        *rule = *common;
        TRY(check_names(&at, item, names));
        TRY(take_where(reading, &at, item, rule));
        TRY(take_rule(reading, &at, item, rule));
        TRY(need_row_key(&at, rule));
    }
    return status_ok();
}

/* --- the file --- */

static status take_salts(const struct place *file, const json_t *whole, unsigned *out)
{
    const struct place place = {.outer = file, .name = "salts"};
    const json_t *salts = json_object_get(whole, "salts");
    json_int_t number = 0;
    if (salts != NULL)
        TRY(take_number(&place, salts, SALTS_MOST, &number));
    *out = (unsigned)number;
    return status_ok();
}

static status take_mapping(struct reading *reading, const struct place *file, const json_t *whole)
{
    static const char *const names[] = {"row_key", "salts",  "strip_prefix", "families",  "family",
                                        "columns", "others", "items",        "timestamp", "ttl",
                                        NULL};
    struct item_rule common = {.family = NULL};
    const json_t *items = json_object_get(whole, "items");
    TRY(check_names(file, whole, names));
    TRY(take_families(reading, file, whole));
    TRY(take_salts(file, whole, &reading->out->salts));
    TRY(take_rule(reading, file, whole, &common));
    if (items != NULL)
        return take_items(reading, file, items, &common);
    TRY(need_row_key(file, &common));
    reading->out->rules = arena_alloc(reading->arena, sizeof common);
    if (reading->out->rules == NULL)
        return status_out_of_memory();
    reading->out->rules[reading->out->rule_count++] = common;
    return status_ok();
}

/* Where no family is said, cells lie in "item". */
static status resolve_families(struct reading *reading, const struct place *file)
{
    for (size_t i = 0; i < reading->out->rule_count; i++) {
        struct item_rule *rule = &reading->out->rules[i];
        if (rule->family == NULL)
            rule->family = "item";
        TRY(need_family(reading, file, rule->family));
    }
    return status_ok();
}

status item_mapping_parse(const char *path, bytes text, struct arena *arena,
                          struct item_mapping *out)
{
    const struct place file = {.name = path};
    struct reading reading = {.arena = arena, .out = out};
    json_error_t error;
    *out = (struct item_mapping){0};
    json_t *whole = json_loadb((const char *)text.data, text.size, JSON_REJECT_DUPLICATES, &error);
    if (whole == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "%s:%d:%d: %s", path, error.line, error.column,
                           error.text);
    status s = take_mapping(&reading, &file, whole);
    if (status_is_ok(s))
        s = resolve_families(&reading, &file);
    json_decref(whole);
    return s;
}
