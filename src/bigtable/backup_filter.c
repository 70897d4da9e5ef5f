/* See backup_filter.h. */
#include "bigtable/backup_filter.h"

#include "bigtable/backup_facts.h"
#include "wire/json.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

/* --- fields --- */

static const char *const field_names[BACKUP_FIELDS] = {
    [BACKUP_NAME] = "name",
    [BACKUP_SOURCE_TABLE] = "source_table",
    [BACKUP_STATE] = "state",
    [BACKUP_START_TIME] = "start_time",
    [BACKUP_END_TIME] = "end_time",
    [BACKUP_EXPIRE_TIME] = "expire_time",
    [BACKUP_SIZE_BYTES] = "size_bytes",
};

static bool find_field(bytes name, enum backup_field *out)
{
    for (unsigned i = 0; i < BACKUP_FIELDS; i++) {
        *out = (enum backup_field)i;
        if (name.size == strlen(field_names[i]) &&
            strncasecmp((const char *)name.data, field_names[i], name.size) == 0)
            return true;
    }
    return false;
}

static bool is_text(enum backup_field field)
{
    return field <= BACKUP_STATE;
}

static const char *text_of(const BtAdmin__Backup *backup, enum backup_field field)
{
    switch (field) {
    case BACKUP_NAME:
        return backup->name;
    case BACKUP_SOURCE_TABLE:
        return backup->source_table;
    default:
        return backup->state == BT_ADMIN__BACKUP__STATE__READY ? "READY" : "CREATING";
    }
}

/* Times in microseconds. A backup that has no such time has 0. */
static int64_t number_of(const BtAdmin__Backup *backup, enum backup_field field)
{
    switch (field) {
    case BACKUP_START_TIME:
        return timestamp_us(backup->start_time);
    case BACKUP_END_TIME:
        return timestamp_us(backup->end_time);
    case BACKUP_EXPIRE_TIME:
        return timestamp_us(backup->expire_time);
    default:
        return backup->size_bytes;
    }
}

/* --- filters --- */

enum relation { EQUALS, DIFFERS, LESS, AT_MOST, MORE, AT_LEAST, HAS };
enum node_kind { ALL_OF, ANY_OF, NONE_OF, COMPARISON };

struct backup_filter {
    enum node_kind kind;
    struct backup_filter *children;
    struct backup_filter *next; /* of the same parent */

    /* Of a comparison: */
    enum backup_field field;
    enum relation relation;
    const char *text;
    int64_t number;
    bool is_quoted;
};

/* How the value that the backup has relates to the one of the filter. */
static bool relates(int order, enum relation relation)
{
    switch (relation) {
    case LESS:
        return order < 0;
    case AT_MOST:
        return order <= 0;
    case MORE:
        return order > 0;
    case AT_LEAST:
        return order >= 0;
    case DIFFERS:
        return order != 0;
    default:
        return order == 0;
    }
}

static bool matches_text(const struct backup_filter *filter, const char *actual)
{
    const char *last = strrchr(actual, '/');
    bool is_whole = strcasecmp(actual, filter->text) == 0 ||
                    (last != NULL && strcasecmp(last + 1, filter->text) == 0);
    switch (filter->relation) {
    case HAS:
        return is_whole || (!filter->is_quoted && strcasestr(actual, filter->text) != NULL);
    case EQUALS:
        return is_whole;
    case DIFFERS:
        return !is_whole;
    default:
        return relates(strcasecmp(actual, filter->text), filter->relation);
    }
}

static bool matches_number(const struct backup_filter *filter, int64_t actual)
{
    bool is_absent = filter->field != BACKUP_SIZE_BYTES && actual == 0;
    int order = actual < filter->number ? -1 : actual > filter->number;
    return is_absent ? filter->relation == DIFFERS : relates(order, filter->relation);
}

static bool any_child_is(const struct backup_filter *filter, const BtAdmin__Backup *backup,
                         bool wanted)
{
    for (const struct backup_filter *at = filter->children; at != NULL; at = at->next)
        if (backup_filter_matches(at, backup) == wanted)
            return true;
    return false;
}

bool backup_filter_matches(const struct backup_filter *filter, const BtAdmin__Backup *backup)
{
    if (filter == NULL)
        return true;
    switch (filter->kind) {
    case ALL_OF:
        return !any_child_is(filter, backup, false);
    case ANY_OF:
        return any_child_is(filter, backup, true);
    case NONE_OF:
        return !any_child_is(filter, backup, true);
    default:
        return is_text(filter->field) ? matches_text(filter, text_of(backup, filter->field))
                                      : matches_number(filter, number_of(backup, filter->field));
    }
}

/* --- reading them --- */

enum { MOST_DEPTH = 20 };

struct reader {
    const char *at;
    const char *whole;
    struct arena *arena;
    unsigned depth;
};

static status bad(const struct reader *reader, const char *expected)
{
    return status_make(STATUS_INVALID_ARGUMENT, "Invalid filter '%s': expected %s at '%s'",
                       reader->whole, expected, reader->at);
}

static void skip_space(struct reader *reader)
{
    reader->at += strspn(reader->at, " \t\r\n");
}

static bool take(struct reader *reader, const char *token)
{
    size_t size = strlen(token);
    skip_space(reader);
    if (strncmp(reader->at, token, size) != 0)
        return false;
    reader->at += size;
    return true;
}

/* A word by itself, not the beginning of a longer one. */
static bool take_word(struct reader *reader, const char *word)
{
    size_t size = strlen(word);
    skip_space(reader);
    const char *end = reader->at + size;
    if (strncasecmp(reader->at, word, size) != 0 || strchr(" \t\r\n(", *end) == NULL)
        return false;
    reader->at = end;
    return true;
}

static status new_node(struct reader *reader, enum node_kind kind, struct backup_filter **out)
{
    *out = arena_zalloc(reader->arena, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    (*out)->kind = kind;
    return status_ok();
}

/* A quoted value, in which a backslash takes the next character as it is. */
static status take_quoted(struct reader *reader, char quote, char *out)
{
    reader->at++;
    for (; *reader->at != quote; reader->at++) {
        if (*reader->at == '\\')
            reader->at++;
        if (*reader->at == '\0')
            return bad(reader, "the end of a quoted value");
        *out++ = *reader->at;
    }
    *out = '\0';
    reader->at++;
    return status_ok();
}

static status take_value(struct reader *reader, struct backup_filter *node)
{
    skip_space(reader);
    char *text = arena_alloc(reader->arena, strlen(reader->at) + 1);
    if (text == NULL)
        return status_out_of_memory();
    node->text = text;
    node->is_quoted = *reader->at == '"' || *reader->at == '\'';
    if (node->is_quoted)
        return take_quoted(reader, *reader->at, text);
    size_t size = strcspn(reader->at, " \t\r\n()\"'");
    if (size == 0)
        return bad(reader, "a value");
    memcpy(text, reader->at, size);
    text[size] = '\0';
    reader->at += size;
    return status_ok();
}

static bool to_time(const char *text, int64_t *us)
{
    int64_t seconds;
    int32_t nanos;
    if (!json_parse_timestamp(bytes_of(text), &seconds, &nanos))
        return false;
    *us = seconds * 1000000 + nanos / 1000;
    return true;
}

static bool to_size(const char *text, int64_t *size)
{
    char *end;
    errno = 0;
    *size = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static bool is_state(const char *text)
{
    return strcasecmp(text, "READY") == 0 || strcasecmp(text, "CREATING") == 0;
}

/* Whether the value is one of the field's. */
static status check_value(const struct reader *reader, struct backup_filter *node)
{
    if (node->field == BACKUP_STATE)
        return is_state(node->text) ? status_ok() : bad(reader, "CREATING or READY before here");
    if (is_text(node->field))
        return status_ok();
    if (node->field == BACKUP_SIZE_BYTES)
        return to_size(node->text, &node->number) ? status_ok()
                                                  : bad(reader, "a number before here");
    return to_time(node->text, &node->number)
               ? status_ok()
               : bad(reader, "a time like \"2026-01-31T00:00:00Z\" before here");
}

static status take_relation(struct reader *reader, enum relation *out)
{
    static const struct {
        const char *token; /* what begins another comes after it */
        enum relation relation;
    } relations[] = {{"!=", DIFFERS}, {"<=", AT_MOST}, {">=", AT_LEAST}, {"=", EQUALS},
                     {"<", LESS},     {">", MORE},     {":", HAS}};
    for (size_t i = 0; i < sizeof relations / sizeof *relations; i++) {
        *out = relations[i].relation;
        if (take(reader, relations[i].token))
            return status_ok();
    }
    return bad(reader, "=, !=, <, <=, >, >= or :");
}

static status take_comparison(struct reader *reader, struct backup_filter **out)
{
    TRY(new_node(reader, COMPARISON, out));
    bytes name = bytes_make(reader->at, strcspn(reader->at, " \t\r\n()!=<>:\"'"));
    if (!find_field(name, &(*out)->field))
        return bad(reader, "name, source_table, state, start_time, end_time, expire_time or "
                           "size_bytes");
    reader->at += name.size;
    TRY(take_relation(reader, &(*out)->relation));
    TRY(take_value(reader, *out));
    return check_value(reader, *out);
}

static status take_filter(struct reader *reader, struct backup_filter **out);

static status take_group(struct reader *reader, struct backup_filter **out)
{
    if (++reader->depth > MOST_DEPTH)
        return bad(reader, "fewer nested parentheses");
    TRY(take_filter(reader, out));
    reader->depth--;
    return take(reader, ")") ? status_ok() : bad(reader, "')'");
}

static status take_term(struct reader *reader, struct backup_filter **out)
{
    bool is_negated = take_word(reader, "NOT") || take(reader, "-");
    struct backup_filter *term;
    skip_space(reader);
    TRY(take(reader, "(") ? take_group(reader, &term) : take_comparison(reader, &term));
    *out = term;
    if (!is_negated)
        return status_ok();
    TRY(new_node(reader, NONE_OF, out));
    (*out)->children = term;
    return status_ok();
}

static status take_factor(struct reader *reader, struct backup_filter **out)
{
    TRY(new_node(reader, ANY_OF, out));
    struct backup_filter **last = &(*out)->children;
    do {
        TRY(take_term(reader, last));
        last = &(*last)->next;
    } while (take_word(reader, "OR"));
    return status_ok();
}

static bool is_at_end(struct reader *reader)
{
    skip_space(reader);
    return *reader->at == '\0' || *reader->at == ')';
}

static status take_filter(struct reader *reader, struct backup_filter **out)
{
    TRY(new_node(reader, ALL_OF, out));
    struct backup_filter **last = &(*out)->children;
    do {
        TRY(take_factor(reader, last));
        last = &(*last)->next;
    } while (take_word(reader, "AND") || !is_at_end(reader));
    return status_ok();
}

status backup_filter_parse(const char *text, struct arena *arena, const struct backup_filter **out)
{
    struct reader reader = {.at = text, .whole = text, .arena = arena};
    struct backup_filter *filter = NULL;
    *out = NULL;
    skip_space(&reader);
    if (*reader.at == '\0')
        return status_ok();
    TRY(take_filter(&reader, &filter));
    *out = filter;
    return *reader.at == '\0' ? status_ok() : bad(&reader, "the end");
}

/* --- orders --- */

static status add_key(bytes name, bool descends, struct backup_ordering *out)
{
    enum backup_field field;
    if (!find_field(name, &field))
        return status_make(STATUS_INVALID_ARGUMENT, "order_by: '%.*s' is no field to order by",
                           (int)name.size, (const char *)name.data);
    for (size_t i = 0; i < out->count; i++)
        if (out->keys[i].field == field)
            return status_make(STATUS_INVALID_ARGUMENT, "order_by: '%s' comes twice",
                               field_names[field]);
    out->keys[out->count].field = field;
    out->keys[out->count++].descends = descends;
    return status_ok();
}

static status take_key(struct reader *reader, struct backup_ordering *out)
{
    skip_space(reader);
    bytes name = bytes_make(reader->at, strcspn(reader->at, " \t\r\n,"));
    reader->at += name.size;
    skip_space(reader);
    size_t size = strcspn(reader->at, " \t\r\n,");
    bool descends = size == 4 && strncasecmp(reader->at, "desc", size) == 0;
    bool ascends = size == 3 && strncasecmp(reader->at, "asc", size) == 0;
    if (size > 0 && !ascends && !descends)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "order_by: expected 'asc', 'desc' or ',' at '%s'", reader->at);
    reader->at += size;
    return add_key(name, descends, out);
}

status backup_ordering_parse(const char *text, struct backup_ordering *out)
{
    struct reader reader = {.at = text, .whole = text};
    *out = (struct backup_ordering){.count = 0};
    skip_space(&reader);
    if (*reader.at == '\0')
        return add_key(bytes_of("start_time"), true, out);
    do {
        TRY(take_key(&reader, out));
    } while (take(&reader, ","));
    if (*reader.at == '\0')
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "order_by: expected ',' at '%s'", reader.at);
}

static int compare_by(enum backup_field field, const BtAdmin__Backup *a, const BtAdmin__Backup *b)
{
    if (is_text(field))
        return strcmp(text_of(a, field), text_of(b, field));
    int64_t x = number_of(a, field), y = number_of(b, field);
    return x < y ? -1 : x > y;
}

int backup_ordering_compare(const struct backup_ordering *ordering, const BtAdmin__Backup *a,
                            const BtAdmin__Backup *b)
{
    for (size_t i = 0; i < ordering->count; i++) {
        int order = compare_by(ordering->keys[i].field, a, b);
        if (order != 0)
            return ordering->keys[i].descends ? -order : order;
    }
    return strcmp(a->name, b->name);
}
