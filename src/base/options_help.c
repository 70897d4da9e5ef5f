/* Describing settings from their table: --help, the reference page, what is expected. */
#include "base/options_private.h"

/* A number as one would write it: with the largest suffix that divides it. */
static void append_scaled(struct buffer *out, uint64_t value, const struct option_suffix *suffixes)
{
    const struct option_suffix *best = suffixes;
    for (const struct option_suffix *s = suffixes; s->text != NULL; s++)
        if (value != 0 && value % s->factor == 0)
            best = s;
    buffer_append_format(out, "%llu%s", (unsigned long long)(value / best->factor),
                         value == 0 ? "" : best->text);
}

static void append_number(struct buffer *out, const struct option *option, int64_t value)
{
    static const struct option_suffix none[] = {{"", 1}, {NULL, 0}};
    const struct option_suffix *suffixes = none;
    if (option->kind == OPTION_SIZE)
        suffixes = option_size_suffixes;
    else if (option->kind == OPTION_DURATION)
        suffixes = option_duration_suffixes;
    append_scaled(out, (uint64_t)value, suffixes);
}

static void append_range(struct buffer *out, const struct option *option)
{
    append_number(out, option, option->least);
    buffer_append_format(out, " to ");
    append_number(out, option, option->most);
}

void option_append_expectation(const struct option *option, struct buffer *out)
{
    static const char *const articles[] = {[OPTION_SIZE] = "a size",
                                           [OPTION_INTEGER] = "a whole number",
                                           [OPTION_DURATION] = "a duration"};
    switch (option->kind) {
    case OPTION_STRING:
        buffer_append_format(out, "a possible %s", option->unit);
        break;
    case OPTION_BOOLEAN:
        buffer_append_format(out, "true or false");
        break;
    case OPTION_ENUM:
        buffer_append_format(out, "one of %s", option->unit);
        break;
    case OPTION_SIZE:
    case OPTION_INTEGER:
    case OPTION_DURATION:
        buffer_append_format(out, "%s from ", articles[option->kind]);
        append_range(out, option);
        break;
    }
}

/* The word that stands for the value: "DIR", "sync|async", "SIZE". */
static const char *placeholder(const struct option *option)
{
    static const char *const words[] = {
        [OPTION_SIZE] = "SIZE", [OPTION_DURATION] = "DURATION", [OPTION_BOOLEAN] = "true|false"};
    if (option->kind == OPTION_SIZE || option->kind == OPTION_DURATION ||
        option->kind == OPTION_BOOLEAN)
        return words[option->kind];
    return option->unit;
}

static bool has_range(const struct option *option)
{
    return option->kind == OPTION_SIZE || option->kind == OPTION_INTEGER ||
           option->kind == OPTION_DURATION;
}

void options_write_help(const struct option_table *table, struct buffer *out)
{
    buffer_append_format(out, "usage: %s [--SETTING VALUE]...\n\nSettings:\n", table->command);
    for (size_t i = 0; i < table->count; i++) {
        const struct option *option = &table->rows[i];
        char name[OPTION_NAME_SIZE];
        option_name(option, name);
        if (option->kind == OPTION_BOOLEAN)
            buffer_append_format(out, "  --%s[=true|false]\n", name);
        else
            buffer_append_format(out, "  --%s %s\n", name, placeholder(option));
        buffer_append_format(out, "        %s", option->sentence);
        buffer_append_format(out, " Default: %s", option->preset == NULL ? "none" : option->preset);
        if (has_range(option)) {
            buffer_append_format(out, " (");
            append_range(out, option);
            buffer_append_format(out, ")");
        }
        buffer_append_format(out, ".\n");
    }
    buffer_append_format(out, "\nSizes: 4096, 64KB, 512MB, 1GB (powers of 1024). "
                              "Durations: 500us, 100ms, 30s, 5m, 2h, 7d.\n");
    if (table->environment_prefix != NULL)
        buffer_append_format(out,
                             "Each setting may also come from the environment (%sDATA_DIR for "
                             "--data-dir)\n",
                             table->environment_prefix);
    if (table->config_member != NULL)
        buffer_append_format(out,
                             "or from the file that --config names (data-dir = DIR, # comments).\n"
                             "A flag outranks the environment, which outranks the file.\n");
}

/* --- what they are set to --- */

static bool is_public(const struct option *option)
{
    static const char *const units[] = {"FILE", "DIR", "ADDR:PORT", "RULES", "NAMES", "SCHEDULES"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(option->unit, units[i]) == 0)
            return true;
    return false;
}

static void append_text(struct buffer *out, const struct option *option, const char *text)
{
    if (text == NULL)
        buffer_append_format(out, "none");
    else
        buffer_append_format(out, "%s", is_public(option) ? text : "(given, and not shown)");
}

static void append_word(struct buffer *out, const char *words, int place)
{
    for (; place > 0; place--)
        words += strcspn(words, "|") + 1;
    buffer_append(out, words, strcspn(words, "|"));
}

static void append_value(struct buffer *out, const struct option *option, const void *member)
{
    switch (option->kind) {
    case OPTION_STRING:
        append_text(out, option, *(const char *const *)member);
        break;
    case OPTION_BOOLEAN:
        buffer_append_format(out, "%s", *(const bool *)member ? "true" : "false");
        break;
    case OPTION_ENUM:
        append_word(out, option->unit, *(const int *)member);
        break;
    case OPTION_SIZE:
    case OPTION_INTEGER:
    case OPTION_DURATION:
        append_number(out, option, *(const int64_t *)member);
        break;
    }
}

void options_append_value(const struct option_table *table, const struct option_values *values,
                          size_t row, struct buffer *out)
{
    const struct option *option = &table->rows[row];
    append_value(out, option, (const char *)values->object + option->offset);
}

void options_write_values(const struct option_table *table, const struct option_values *values,
                          struct buffer *out)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct option *option = &table->rows[i];
        char name[OPTION_NAME_SIZE];
        option_name(option, name);
        buffer_append_format(out, "%s = ", name);
        options_append_value(table, values, i, out);
        if (values->origins[i].source != OPTION_PRESET) {
            buffer_append_format(out, "  (");
            options_origin(table, values, option->member, out);
            buffer_append_format(out, ")");
        }
        buffer_append_format(out, "\n");
    }
}

static void append_cell(struct buffer *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|')
            buffer_append_byte(out, '\\');
        buffer_append_byte(out, (uint8_t)*text);
    }
}

void options_write_markdown(const struct option_table *table, struct buffer *out)
{
    buffer_append_format(out, "| setting | value | default | range | environment | meaning |\n"
                              "|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < table->count; i++) {
        const struct option *option = &table->rows[i];
        char name[OPTION_NAME_SIZE];
        option_name(option, name);
        buffer_append_format(out, "| `%s` | ", name);
        append_cell(out, placeholder(option));
        buffer_append_format(out, " | %s | ", option->preset == NULL ? "" : option->preset);
        if (has_range(option))
            append_range(out, option);
        buffer_append_format(out, " | `");
        if (table->environment_prefix != NULL)
            option_environment_name(table->environment_prefix, option, out);
        buffer_append_format(out, "` | ");
        append_cell(out, option->sentence);
        buffer_append_format(out, " |\n");
    }
}
