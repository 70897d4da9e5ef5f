/* See fields.h. */
#include "design/fields.h"

#include "base/options.h"

#include <math.h>
#include <stdio.h>

/* "a, b, c" */
static void append_names(const char *const *names, size_t count, struct buffer *out)
{
    for (size_t i = 0; i < count; i++)
        buffer_append_format(out, "%s%s", i == 0 ? "" : ", ", names[i]);
    buffer_append_byte(out, 0);
}

/* The text at hand is none of the names. */
static status refuse_name(const struct yaml_value *at, const char *what, const char *const *names,
                          size_t count)
{
    struct buffer known = {0};
    append_names(names, count, &known);
    status s = known.failed ? status_out_of_memory()
                            : yaml_error(at, "%s is not %s; there are %s", at->text, what,
                                         (const char *)known.data);
    buffer_free(&known);
    return s;
}

static status refuse_field(const struct yaml_value *key, const char *what,
                           const struct field *fields, size_t count)
{
    enum { NAMES_MOST = 32 };
    const char *names[NAMES_MOST];
    char words[128];
    for (size_t i = 0; i < count && i < NAMES_MOST; i++)
        names[i] = fields[i].name;
    snprintf(words, sizeof words, "a field of %s", what);
    return refuse_name(key, words, names, count);
}

static struct field *find_field(struct field *fields, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

status fields_take(const struct yaml_value *map, const char *what, struct field *fields,
                   size_t count)
{
    if (map->kind != YAML_MAP)
        return yaml_error(map, "%s has fields: NAME: VALUE", what);
    for (size_t i = 0; i < map->count; i++) {
        struct field *field = find_field(fields, count, map->keys[i]->text);
        if (field == NULL)
            return refuse_field(map->keys[i], what, fields, count);
        field->value = map->items[i];
        field->line = map->keys[i]->line;
    }
    for (size_t i = 0; i < count; i++)
        if (fields[i].is_required && fields[i].value == NULL)
            return yaml_error(map, "%s needs the field %s", what, fields[i].name);
    return status_ok();
}

status field_is_list(const struct yaml_value *value, size_t least)
{
    if (value->kind != YAML_LIST)
        return yaml_error(value, "this is a list: [A, B], or lines with a hyphen");
    return value->count < least ? yaml_error(value, "the list is empty") : status_ok();
}

status field_text(const struct yaml_value *value, const char **out)
{
    if (value == NULL)
        return status_ok();
    if (value->kind != YAML_TEXT)
        return yaml_error(value, "this is a text");
    *out = value->text;
    return status_ok();
}

/* A number in digits that end at `*end`; false: none, or one too large. */
static bool read_number(const char *text, const char **end, uint64_t *out)
{
    uint64_t number = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
            return false;
    *end = at;
    *out = number;
    return at > text;
}

status field_number(const struct yaml_value *value, uint64_t least, uint64_t most, uint64_t *out)
{
    const char *text = NULL, *end;
    uint64_t number;
    TRY(field_text(value, &text));
    if (text == NULL)
        return status_ok();
    if (!read_number(text, &end, &number) || *end != '\0' || number < least || number > most)
        return yaml_error(value, "%s is not a whole number from %llu to %llu", text,
                          (unsigned long long)least, (unsigned long long)most);
    *out = number;
    return status_ok();
}

status field_size(const struct yaml_value *value, uint64_t most, uint64_t *out)
{
    const char *text = NULL;
    uint64_t size;
    TRY(field_text(value, &text));
    if (text == NULL)
        return status_ok();
    if (!options_parse_size(text, &size) || size > most)
        return yaml_error(value, "%s is not a size of %llu bytes at most, such as 100 or 4KB", text,
                          (unsigned long long)most);
    *out = size;
    return status_ok();
}

status field_duration(const struct yaml_value *value, int64_t *out_us)
{
    const char *text = NULL;
    TRY(field_text(value, &text));
    if (text != NULL && !options_parse_duration(text, out_us))
        return yaml_error(value, "%s is not a time, such as 90s, 5m, 12h or 30d", text);
    return status_ok();
}

/* A number without hotspot or exponent, perhaps with a decimal point. */
static bool read_decimal(const char *text, const char **end, double *out)
{
    double number = 0, unit = 1;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        number = 10 * number + (*at - '0');
    bool has_digits = at > text;
    if (has_digits && *at == '.')
        for (at++; *at >= '0' && *at <= '9'; at++)
            number += (unit /= 10) * (*at - '0');
    *end = at;
    *out = number;
    return has_digits && isfinite(number);
}

status field_percent(const struct yaml_value *value, double *out)
{
    const char *text = NULL, *end;
    double percent;
    TRY(field_text(value, &text));
    if (text == NULL)
        return status_ok();
    if (!read_decimal(text, &end, &percent) || strcmp(end, "%") != 0 || percent > 100)
        return yaml_error(value, "%s is not a share from 0%% to 100%%", text);
    *out = percent / 100;
    return status_ok();
}

status field_rate(const struct yaml_value *value, double *out)
{
    static const struct {
        const char *text;
        double seconds;
    } units[] = {{"/s", 1}, {"/m", 60}, {"/h", 3600}, {"/d", 86400}};
    const double most = 1e9;
    const char *text = NULL, *end;
    double rate;
    TRY(field_text(value, &text));
    if (text == NULL)
        return status_ok();
    bool is_number = read_decimal(text, &end, &rate);
    for (size_t i = 0; is_number && i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].text) == 0 && rate / units[i].seconds <= most) {
            *out = rate / units[i].seconds;
            return status_ok();
        }
    return yaml_error(value, "%s is not a rate up to 1000000000/s, such as 200/s, 5/m, 1/h or 3/d",
                      text);
}

status field_choice(const struct yaml_value *value, const char *const *names, int *out)
{
    const char *text = NULL;
    size_t count = 0;
    TRY(field_text(value, &text));
    if (text == NULL)
        return status_ok();
    for (; names[count] != NULL; count++)
        if (strcmp(names[count], text) == 0) {
            *out = (int)count;
            return status_ok();
        }
    return refuse_name(value, "known here", names, count);
}

status field_flag(const struct yaml_value *value, bool *out)
{
    static const char *const names[] = {"false", "true", NULL};
    int choice = *out;
    TRY(field_choice(value, names, &choice));
    *out = choice == 1;
    return status_ok();
}
