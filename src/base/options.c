/* Reading settings: see options.h. Sources are read from the least to the most important, each
 * value is checked as it comes, and a later source overwrites. */
#include "base/check.h"
#include "base/options_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

enum { LARGEST_FILE = 1 << 20 };

const struct option_suffix option_size_suffixes[] = {
    {"", 1},   {"KB", 1ull << 10}, {"MB", 1ull << 20}, {"GB", 1ull << 30}, {"TB", 1ull << 40},
    {NULL, 0},
};

const struct option_suffix option_duration_suffixes[] = {
    {"us", 1},
    {"ms", 1000},
    {"s", 1000 * 1000},
    {"m", 60ull * 1000 * 1000},
    {"h", 3600ull * 1000 * 1000},
    {"d", 86400ull * 1000 * 1000},
    {NULL, 0},
};

void option_name(const struct option *option, char name[OPTION_NAME_SIZE])
{
    snprintf(name, OPTION_NAME_SIZE, "%s", option->member);
    for (char *c = name; *c != '\0'; c++)
        if (*c == '_')
            *c = '-';
}

void option_environment_name(const char *prefix, const struct option *option, struct buffer *out)
{
    buffer_append_bytes(out, bytes_of(prefix));
    for (const char *c = option->member; *c != '\0'; c++)
        buffer_append_byte(out, (uint8_t)toupper((unsigned char)*c));
}

/* --- values --- */

/* A whole number below 2^63, then one of the suffixes. */
static bool parse_scaled(const char *text, const struct option_suffix *suffixes, uint64_t *value)
{
    uint64_t number = 0;
    if (!isdigit((unsigned char)*text))
        return false;
    for (; isdigit((unsigned char)*text); text++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
            return false;
    for (; suffixes->text != NULL; suffixes++)
        if (strcmp(text, suffixes->text) == 0)
            return !__builtin_mul_overflow(number, suffixes->factor, value) && *value <= INT64_MAX;
    return false;
}

bool options_parse_size(const char *text, uint64_t *bytes)
{
    return parse_scaled(text, option_size_suffixes, bytes);
}

bool options_parse_duration(const char *text, int64_t *microseconds)
{
    uint64_t value = 0;
    if (strcmp(text, "0") != 0 && !parse_scaled(text, option_duration_suffixes, &value))
        return false;
    *microseconds = (int64_t)value;
    return true;
}

static bool parse_integer(const char *text, uint64_t *value)
{
    static const struct option_suffix none[] = {{"", 1}, {NULL, 0}};
    return parse_scaled(text, none, value);
}

static bool parse_boolean(const char *text, bool *value)
{
    *value = strcmp(text, "true") == 0;
    return *value || strcmp(text, "false") == 0;
}

static bool parse_word(const char *words, const char *text, int *place)
{
    size_t length = strlen(text);
    *place = 0;
    for (const char *word = words;; (*place)++) {
        size_t size = strcspn(word, "|");
        if (size == length && memcmp(word, text, size) == 0)
            return true;
        if (word[size] == '\0')
            return false;
        word += size + 1;
    }
}

static bool in_range(const struct option *option, uint64_t value)
{
    return (int64_t)value >= option->least && (int64_t)value <= option->most;
}

/* Puts the value of `text` into `*member`; false if it is impossible. */
static bool store_value(const struct option *option, const char *text, void *member)
{
    switch (option->kind) {
    case OPTION_STRING:
        *(const char **)member = text;
        return *text != '\0';
    case OPTION_SIZE:
        return options_parse_size(text, member) && in_range(option, *(uint64_t *)member);
    case OPTION_INTEGER:
        return parse_integer(text, member) && in_range(option, *(uint64_t *)member);
    case OPTION_DURATION:
        return options_parse_duration(text, member) && in_range(option, *(uint64_t *)member);
    case OPTION_BOOLEAN:
        return parse_boolean(text, member);
    case OPTION_ENUM:
        return parse_word(option->unit, text, member);
    }
    return false;
}

/* --- one setting from one source --- */

struct reading {
    const struct option_table *table;
    struct option_values *values;
};

static const struct option *find_member(const struct option_table *table, const char *member)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->rows[i].member, member) == 0)
            return &table->rows[i];
    return NULL;
}

/* `separator` stands where the member has '_': flags and files have "data-dir". The environment's
 * names, with '_', are in letters of either case. */
static bool is_name_of(const char *member, char separator, const char *name, size_t size)
{
    if (strlen(member) != size)
        return false;
    for (size_t i = 0; i < size; i++) {
        int c = separator == '_' ? tolower((unsigned char)name[i]) : name[i];
        if (c != (member[i] == '_' ? separator : member[i]))
            return false;
    }
    return true;
}

static const struct option *find_former(const struct option_table *table, char separator,
                                        const char *name, size_t size)
{
    for (size_t i = 0; i < table->alias_count; i++)
        if (is_name_of(table->aliases[i].former, separator, name, size))
            return find_member(table, table->aliases[i].member);
    return NULL;
}

/* The row of this name, or of this former name, which is noted in `origins` unless that is NULL;
 * NULL if there is none. */
static const struct option *find(const struct option_table *table, char separator,
                                 struct option_origin *origins, const char *name, size_t size)
{
    for (size_t i = 0; i < table->count; i++)
        if (is_name_of(table->rows[i].member, separator, name, size))
            return &table->rows[i];
    const struct option *option = find_former(table, separator, name, size);
    if (option != NULL && origins != NULL)
        origins[option - table->rows].has_former_name = true;
    return option;
}

static void append_origin(const struct option_table *table, const struct option_values *values,
                          const struct option *option, enum option_source source,
                          struct buffer *out)
{
    char name[OPTION_NAME_SIZE];
    option_name(option, name);
    if (source == OPTION_ENVIRONMENT) {
        option_environment_name(table->environment_prefix, option, out);
        return;
    }
    if (source == OPTION_FILE)
        buffer_append_format(out, "%s:%u: ", values->file_name,
                             values->origins[option - table->rows].line);
    buffer_append_format(out, "%s%s%s", source == OPTION_FLAG ? "--" : "", name,
                         source == OPTION_DERIVED ? ", from other settings" : "");
}

/* A refusal is written into a buffer, "--cache: …", which end_refusal turns into the status. */
static void start_refusal(const struct reading *r, const struct option *option,
                          enum option_source source, struct buffer *words)
{
    append_origin(r->table, r->values, option, source, words);
    buffer_append_format(words, ": ");
}

static status end_refusal(struct buffer *words)
{
    status s = words->failed ? status_out_of_memory()
                             : status_make(STATUS_INVALID_ARGUMENT, "%.*s", (int)words->size,
                                           (const char *)words->data);
    buffer_free(words);
    return s;
}

static status refuse_value(const struct reading *r, const struct option *option,
                           enum option_source source, const char *text)
{
    struct buffer words = {0};
    start_refusal(r, option, source, &words);
    buffer_append_format(&words, "\"%s\" is not ", text);
    option_append_expectation(option, &words);
    return end_refusal(&words);
}

static status give(const struct reading *r, const struct option *option, enum option_source source,
                   unsigned line, const char *text)
{
    struct option_origin *origin = &r->values->origins[option - r->table->rows];
    if (source == OPTION_FILE)
        origin->line = line;
    if (origin->given & 1u << source) {
        struct buffer words = {0};
        start_refusal(r, option, source, &words);
        buffer_append_format(&words, "is given twice");
        return end_refusal(&words);
    }
    if (!store_value(option, text, (char *)r->values->object + option->offset))
        return refuse_value(r, option, source, text);
    origin->given |= 1u << source;
    origin->source = source;
    return status_ok();
}

/* A refusal, or nothing if it has been noted and reading goes on. */
static status collect_refusal(const struct reading *r, status s)
{
    struct buffer *refusals = r->values->refusals;
    if (status_is_ok(s) || refusals == NULL)
        return s;
    buffer_append_format(refusals, "%s\n", status_message(s));
    status_free(s);
    return status_ok();
}

/* --- the sources --- */

static void give_presets(const struct reading *r)
{
    for (size_t i = 0; i < r->table->count; i++) {
        const struct option *option = &r->table->rows[i];
        void *member = (char *)r->values->object + option->offset;
        if (option->preset == NULL)
            *(const char **)member = NULL;
        else
            CHECK(store_value(option, option->preset, member));
    }
}

static status no_such_flag(const struct reading *r, const char *flag, size_t size)
{
    return status_make(STATUS_INVALID_ARGUMENT, "%.*s: no such setting; see %s --help", (int)size,
                       flag, r->table->command);
}

/* Takes `--name value`, `--name=value` or a boolean's `--name` at `*arguments`, and steps over. */
static status take_flag(const struct reading *r, const char *const **arguments,
                        const struct option **option, const char **value)
{
    const char *flag = *(*arguments)++;
    if (strncmp(flag, "--", 2) != 0)
        return status_make(STATUS_INVALID_ARGUMENT, "unexpected argument \"%s\"", flag);
    size_t size = strcspn(flag, "=");
    *option = find(r->table, '-', r->values->origins, flag + 2, size - 2);
    if (*option == NULL)
        return no_such_flag(r, flag, size);
    if (flag[size] == '=')
        *value = flag + size + 1;
    else if ((*option)->kind == OPTION_BOOLEAN)
        *value = "true";
    else if (**arguments == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "%s: its value is missing", flag);
    else
        *value = *(*arguments)++;
    return status_ok();
}

static status give_flags(const struct reading *r, const char *const *arguments)
{
    while (*arguments != NULL) {
        const struct option *option;
        const char *value;
        status s = take_flag(r, &arguments, &option, &value);
        if (status_is_ok(s))
            s = give(r, option, OPTION_FLAG, 0, value);
        TRY(collect_refusal(r, s));
    }
    return status_ok();
}

/* The row that an environment variable names, and its value; NULL if none. */
static const struct option *match_variable(const struct option_table *table,
                                           struct option_origin *origins, const char *variable,
                                           const char **value)
{
    const char *name = variable + strlen(table->environment_prefix);
    size_t size = strcspn(name, "=");
    *value = name[size] == '=' ? name + size + 1 : "";
    return find(table, '_', origins, name, size);
}

static status give_environment(const struct reading *r, const char *const *environment)
{
    const char *prefix = r->table->environment_prefix;
    if (prefix == NULL)
        return status_ok();
    for (; *environment != NULL; environment++) {
        const char *value;
        if (strncmp(*environment, prefix, strlen(prefix)) != 0)
            continue;
        const struct option *option =
            match_variable(r->table, r->values->origins, *environment, &value);
        if (option != NULL)
            TRY(collect_refusal(r, give(r, option, OPTION_ENVIRONMENT, 0, value)));
    }
    return status_ok();
}

const char *options_unknown_variable(const struct option_table *table,
                                     const char *const **environment)
{
    const char *prefix = table->environment_prefix;
    while (**environment != NULL) {
        const char *variable = *(*environment)++, *value;
        if (strncmp(variable, prefix, strlen(prefix)) == 0 &&
            match_variable(table, NULL, variable, &value) == NULL)
            return variable;
    }
    return NULL;
}

const struct option_alias *options_next_alias(const struct option_table *table,
                                              const struct option_values *values, size_t *at)
{
    while (*at < table->alias_count) {
        const struct option_alias *alias = &table->aliases[(*at)++];
        if (values->origins[find_member(table, alias->member) - table->rows].has_former_name)
            return alias;
    }
    return NULL;
}

/* --- the file --- */

/* Reads the whole file and ends it with a NUL. */
static status read_file(const char *name, struct buffer *text)
{
    FILE *file = fopen(name, "re");
    if (file == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "cannot open %s: %s", name,
                           strerrordesc_np(errno));
    uint8_t *to = buffer_reserve(text, LARGEST_FILE + 1);
    size_t size = to == NULL ? 0 : fread(to, 1, LARGEST_FILE, file);
    bool whole = feof(file);
    fclose(file);
    if (to == NULL)
        return status_out_of_memory();
    if (!whole || memchr(to, '\0', size) != NULL)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "%s: is not a configuration file of at most 1MB", name);
    to[size] = '\0';
    text->size = size + 1;
    return status_ok();
}

static char *skip_space(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

static void cut_trailing_space(char *text)
{
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
}

static void cut_comment(char *line)
{
    for (char *c = line; *c != '\0'; c++)
        if (*c == '#' && (c == line || isspace((unsigned char)c[-1]))) {
            *c = '\0';
            return;
        }
}

static status give_line(const struct reading *r, char *line, unsigned number)
{
    cut_comment(line);
    line = skip_space(line);
    cut_trailing_space(line);
    if (*line == '\0')
        return status_ok();
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "%s:%u: a line is \"key = value\"",
                           r->values->file_name, number);
    *equals = '\0';
    cut_trailing_space(line);
    const struct option *option = find(r->table, '-', r->values->origins, line, strlen(line));
    if (option == NULL || option == find_member(r->table, r->table->config_member))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "%s:%u: %s: no such setting in a file; see %s "
                           "--help",
                           r->values->file_name, number, line, r->table->command);
    return give(r, option, OPTION_FILE, number, skip_space(equals + 1));
}

static status give_file(const struct reading *r)
{
    TRY(read_file(r->values->file_name, &r->values->file));
    char *next = (char *)r->values->file.data;
    for (unsigned number = 1; next != NULL; number++) {
        char *line = strsep(&next, "\n");
        TRY(collect_refusal(r, give_line(r, line, number)));
    }
    return status_ok();
}

/* The file's name, which only flags and environment give: they are read twice, since all they say
 * outranks the file. */
static status find_file(const struct reading *r, const char *const *arguments,
                        const char *const *environment)
{
    if (r->table->config_member == NULL)
        return status_ok();
    size_t noted = r->values->refusals == NULL ? 0 : r->values->refusals->size;
    TRY(give_environment(r, environment));
    TRY(give_flags(r, arguments));
    if (r->values->refusals != NULL)
        r->values->refusals->size = noted;
    const struct option *config = find_member(r->table, r->table->config_member);
    CHECK(config != NULL && config->kind == OPTION_STRING);
    r->values->file_name = *(const char **)(void *)((char *)r->values->object + config->offset);
    memset(r->values->origins, 0, r->table->count * sizeof *r->values->origins);
    give_presets(r);
    return status_ok();
}

status options_read(const struct option_table *table, const char *const *arguments,
                    const char *const *environment, struct option_values *values)
{
    const struct reading r = {.table = table, .values = values};
    give_presets(&r);
    TRY(find_file(&r, arguments, environment));
    if (values->file_name != NULL)
        TRY(give_file(&r));
    TRY(give_environment(&r, environment));
    return give_flags(&r, arguments);
}

void options_origin(const struct option_table *table, const struct option_values *values,
                    const char *member, struct buffer *out)
{
    const struct option *option = find_member(table, member);
    CHECK(option != NULL);
    append_origin(table, values, option, values->origins[option - table->rows].source, out);
}
