/* Items laid out by the rules of a mapping. See item_mapping.h; item_mapping_read.c reads the file.
 */
#include "formats/item_mapping.h"

#include "base/limits.h"
#include "formats/item_cells.h"
#include "formats/item_private.h"

struct mapped {
    const struct item_mapping *mapping;
    const struct item_rule *rule;
    const struct item_value *item;
    struct arena *arena;
    struct move_change *change;
    const char *family;
    int64_t timestamp_us;
};

/* --- which rule --- */

/* Whether the text is as the pattern has it, whose stars stand for any bytes. */
static bool fits(bytes pattern, bytes text)
{
    size_t at = 0, star = SIZE_MAX, star_text = 0, i = 0;
    while (i < text.size) {
        bool is_star = at < pattern.size && pattern.data[at] == '*';
        if (is_star) {
            star = at++;
            star_text = i;
        } else if (at < pattern.size && pattern.data[at] == text.data[i]) {
            at++;
            i++;
        } else if (star != SIZE_MAX) { /* the star takes one more */
            at = star + 1;
            i = ++star_text;
        } else {
            return false;
        }
    }
    while (at < pattern.size && pattern.data[at] == '*')
        at++;
    return at == pattern.size;
}

static bool is_text(const struct item_value *value)
{
    return value != NULL &&
           (value->type == ITEM_STRING || value->type == ITEM_NUMBER || value->type == ITEM_BINARY);
}

static bool is_of(const struct item_rule *rule, const struct item_value *item)
{
    for (size_t i = 0; i < rule->condition_count; i++) {
        const struct item_value *value = item_find(item, rule->conditions[i].attribute);
        if (!is_text(value) || !fits(rule->conditions[i].pattern, value->text))
            return false;
    }
    return true;
}

static status find_rule(const struct item_mapping *mapping, const struct item_value *item,
                        const struct item_rule **out)
{
    for (size_t i = 0; i < mapping->rule_count; i++) {
        *out = &mapping->rules[i];
        if (is_of(*out, item))
            return status_ok();
    }
    return ITEM_INVALID("no rule of the mapping is for this item");
}

/* --- row key, time, end --- */

/* The salt follows from the first attribute of the row key, so that what begins alike stays
 * together. */
static status append_row_key(const struct mapped *mapped, struct buffer *out)
{
    const struct item_template *row_key = &mapped->rule->row_key;
    const struct item_value *first = NULL;
    for (size_t i = 0; mapped->mapping->salts > 0 && first == NULL && i < row_key->count; i++)
        if (row_key->parts[i].form != ITEM_PART_TEXT)
            TRY(item_find_key(mapped->item, row_key->parts[i].text, &first));
    if (first != NULL)
        TRY(item_append_salt(first->text, mapped->mapping->salts, "#", out));
    return item_template_append(row_key, &mapped->rule->prefixes, mapped->item, out);
}

static status make_row_key(struct mapped *mapped)
{
    struct buffer key = {0};
    status s = append_row_key(mapped, &key);
    if (!status_is_ok(s)) {
        buffer_free(&key);
        return s;
    }
    TRY(item_keep(mapped->arena, &key, &mapped->change->row_key));
    size_t size = mapped->change->row_key.size;
    if (size == 0)
        return ITEM_INVALID("the row key is empty");
    return size <= LIMIT_ROW_KEY_BYTES
               ? status_ok()
               : ITEM_INVALID("the row key has %zu bytes, more than %d", size, LIMIT_ROW_KEY_BYTES);
}

/* The attribute's time, which may have a prefix; if it is not there, `*us` stays. */
static status find_time(const struct mapped *mapped, const char *attribute, int64_t *us)
{
    if (attribute == NULL)
        return status_ok();
    const struct item_value *found = item_find(mapped->item, bytes_of(attribute));
    if (found == NULL)
        return status_ok();
    struct item_value value = *found;
    if (is_text(found))
        value.text = item_without_prefix(&mapped->rule->prefixes, value.name, value.text);
    return item_time(&value, us)
               ? status_ok()
               : ITEM_INVALID("%s is no time: neither seconds or milliseconds since 1970, nor as "
                              "in RFC 3339",
                              attribute);
}

static int64_t age_of(const struct item_mapping *mapping, const char *family)
{
    for (size_t i = 0; i < mapping->family_count; i++)
        if (strcmp(mapping->families[i].name, family) == 0)
            return mapping->families[i].age_us;
    return 0;
}

/* --- cells --- */

/* The timestamp of cells that end: with it the family's rule ends them then. */
static int64_t dated(const struct mapped *mapped, const char *family, int64_t timestamp_us)
{
    int64_t age_us = age_of(mapped->mapping, family);
    bool ends = mapped->change->ends_us != 0 && age_us != 0;
    return ends ? item_dated(mapped->change->ends_us, age_us) : timestamp_us;
}

static status add_cell(struct mapped *mapped, struct move_cell cell)
{
    cell.timestamp_us = dated(mapped, cell.family, cell.timestamp_us);
    return item_add_cell(mapped->change, mapped->arena, &cell);
}

static status add_members(struct mapped *mapped, const struct item_value *value,
                          const struct move_cell *cell)
{
    return item_add_family(value, cell->family, dated(mapped, cell->family, cell->timestamp_us),
                           mapped->arena, mapped->change);
}

static status value_of(const struct mapped *mapped, enum item_column_form form,
                       const struct item_value *value, bytes *out)
{
    struct buffer json = {0};
    switch (form) {
    case ITEM_COLUMN_COUNTER:
        return item_counter(value, mapped->arena, out);
    case ITEM_COLUMN_TYPED:
        return item_typed_json(value, mapped->arena, out);
    case ITEM_COLUMN_JSON:
        item_write_plain(value, &json);
        return item_keep(mapped->arena, &json, out);
    default:
        return item_text(value, mapped->arena, out);
    }
}

static status qualifier_of(const struct mapped *mapped, const struct item_column *column,
                           const struct item_value *value, bytes *out)
{
    struct buffer text = {0};
    *out = value->name;
    if (column->qualifier.count == 0)
        return status_ok();
    status s =
        item_template_append(&column->qualifier, &mapped->rule->prefixes, mapped->item, &text);
    if (status_is_ok(s))
        return item_keep(mapped->arena, &text, out);
    buffer_free(&text);
    return s;
}

/* The elements of a list, of which the last is the newest: it has the time of the item, and each
 * one before it a millisecond less. */
static status add_versions(struct mapped *mapped, const struct item_value *value,
                           struct move_cell cell)
{
    enum { US_PER_MS = 1000 };
    if (value->type != ITEM_LIST)
        return ITEM_INVALID("%.*s is to be versions of a cell, and is no list",
                            item_shown(value->name), (const char *)value->name.data);
    cell.timestamp_us = dated(mapped, cell.family, cell.timestamp_us);
    int64_t span_us = value->count == 0 ? 0 : (int64_t)(value->count - 1) * US_PER_MS;
    cell.timestamp_us = cell.timestamp_us > span_us ? cell.timestamp_us - span_us : 0;
    for (size_t i = 0; i < value->count; i++) {
        TRY(item_text(&value->elements[i], mapped->arena, &cell.value));
        TRY(item_add_cell(mapped->change, mapped->arena, &cell));
        cell.timestamp_us += US_PER_MS;
    }
    return status_ok();
}

static status add_column(struct mapped *mapped, const struct item_column *column,
                         const struct item_value *value)
{
    struct move_cell cell = {.family = column->family != NULL ? column->family : mapped->family,
                             .timestamp_us = mapped->timestamp_us};
    if (column->form == ITEM_COLUMN_DROP)
        return status_ok();
    TRY(find_time(mapped, column->timestamp, &cell.timestamp_us));
    if (column->form == ITEM_COLUMN_FAMILY)
        return add_members(mapped, value, &cell);
    TRY(qualifier_of(mapped, column, value, &cell.qualifier));
    if (column->form == ITEM_COLUMN_VERSIONS)
        return add_versions(mapped, value, cell);
    TRY(value_of(mapped, column->form, value, &cell.value));
    return add_cell(mapped, cell);
}

/* --- attributes --- */

static const struct item_column *find_column(const struct item_rule *rule, bytes attribute)
{
    for (size_t i = 0; i < rule->column_count; i++)
        if (bytes_equal(rule->columns[i].attribute, attribute))
            return &rule->columns[i];
    return NULL;
}

/* Whether the row tells the attribute without a cell for it: it is in the row key or in a
 * qualifier, or the rule is for one value of it. */
static bool is_told(const struct item_rule *rule, bytes attribute)
{
    if (item_template_names(&rule->row_key, attribute) ||
        item_template_names(&rule->together.qualifier, attribute))
        return true;
    for (size_t i = 0; i < rule->column_count; i++)
        if (item_template_names(&rule->columns[i].qualifier, attribute))
            return true;
    for (size_t i = 0; i < rule->condition_count; i++)
        if (bytes_equal(rule->conditions[i].attribute, attribute) &&
            memchr(rule->conditions[i].pattern.data, '*', rule->conditions[i].pattern.size) == NULL)
            return true;
    return false;
}

static status add_attribute(struct mapped *mapped, const struct item_value *value,
                            struct item_value *others)
{
    static const struct item_column plain = {.form = ITEM_COLUMN_TEXT};
    const struct item_rule *rule = mapped->rule;
    const struct item_column *column = find_column(rule, value->name);
    if (column != NULL)
        return add_column(mapped, column, value);
    if (rule->others == ITEM_OTHERS_DROPPED || is_told(rule, value->name))
        return status_ok();
    if (rule->others == ITEM_OTHERS_AS_COLUMNS)
        return add_column(mapped, &plain, value);
    others->elements[others->count++] = *value;
    return status_ok();
}

/* A row is there if it has a cell: an item of which none is left is an empty one. */
static status add_presence(struct mapped *mapped)
{
    if (mapped->change->count > 0)
        return status_ok();
    return add_cell(mapped, (struct move_cell){.family = mapped->family,
                                               .qualifier = bytes_of(""),
                                               .timestamp_us = mapped->timestamp_us,
                                               .value = bytes_of("")});
}

static status add_attributes(struct mapped *mapped)
{
    const struct item_value *item = mapped->item;
    struct item_value others = {.type = ITEM_MAP};
    others.elements = arena_alloc(mapped->arena, (item->count + 1) * sizeof *others.elements);
    if (others.elements == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < item->count; i++)
        TRY(add_attribute(mapped, &item->elements[i], &others));
    if (mapped->rule->others == ITEM_OTHERS_TOGETHER)
        TRY(add_column(mapped, &mapped->rule->together, &others));
    return add_presence(mapped);
}

status item_map(const struct item_mapping *mapping, const struct item_value *item,
                int64_t default_us, int64_t now_us, struct arena *arena, struct move_change *out)
{
    struct mapped mapped = {.mapping = mapping,
                            .item = item,
                            .arena = arena,
                            .change = out,
                            .timestamp_us = default_us};
    *out = (struct move_change){0};
    TRY(find_rule(mapping, item, &mapped.rule));
    TRY(make_row_key(&mapped));
    TRY(find_time(&mapped, mapped.rule->timestamp, &mapped.timestamp_us));
    out->ends_us = item_end(item, mapped.rule->ttl, now_us);
    mapped.family = out->ends_us != 0 && mapped.rule->ttl_family != NULL ? mapped.rule->ttl_family
                                                                         : mapped.rule->family;
    return add_attributes(&mapped);
}
