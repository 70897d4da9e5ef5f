/* Personal data in keys and in the names of columns and families. The findings of a table that has
 * it show none of it, whatever they are about. */
#include "advisor/advice_private.h"
#include "advisor/personal.h"

/* --- where it is --- */

static void count_qualifiers(const struct advice_observations *seen, struct personal_counts *out)
{
    for (size_t i = 0; i < seen->row_count && out->texts < PERSONAL_NAMES_MOST; i++)
        for (size_t j = 0; j < seen->rows[i].cell_count; j++) {
            const struct advice_cell *cell = &seen->rows[i].cells[j];
            if (j == 0 || !bytes_equal(cell[-1].qualifier, cell->qualifier))
                personal_count(out, cell->qualifier);
        }
}

/* Names of families, or of tables. */
struct names {
    size_t all;
    size_t people;  /* perhaps */
    size_t certain; /* that have a number of somebody in them */
    enum personal kind;
};

static void count_name(struct names *names, const char *name)
{
    enum personal kind;
    enum personal_naming naming = personal_naming_of(bytes_of(name), &kind);
    names->all++;
    names->people += naming == PERSONAL_PERHAPS;
    names->certain += naming == PERSONAL_CERTAINLY;
    if (naming == PERSONAL_CERTAINLY)
        names->kind = kind;
}

static struct names count_families(const struct advice_observations *seen)
{
    struct names names = {0};
    for (size_t i = 0; i < seen->family_count; i++)
        count_name(&names, seen->families[i].name);
    if (names.people < PERSONAL_FAMILIES ||
        names.people * 100 < names.all * PERSONAL_FAMILIES_PERCENT)
        names.people = 0;
    return names;
}

/* In names of tables people stand anywhere: orders_anna_weber. */
static void count_table(struct names *names, const char *id)
{
    size_t before = names->people + names->certain;
    count_name(names, id);
    bool is_counted = names->people + names->certain > before;
    names->people += !is_counted && personal_has(bytes_of(id), 1U << PERSONAL_NAME);
}

/* The table's, which must have one itself, and those of others that are named like it. */
static struct names count_tables(const struct advice_observations *seen)
{
    struct names own = {0}, others = {0};
    if (seen->table_id == NULL)
        return own;
    count_table(&own, seen->table_id);
    for (size_t i = 0; i < seen->sibling_count; i++)
        count_table(&others, seen->siblings[i].id);
    bool are_people = own.people > 0 && others.people + 1 >= PERSONAL_FAMILIES &&
                      others.people * 100 >= others.all * PERSONAL_FAMILIES_PERCENT;
    own.people = are_people ? others.people + 1 : 0;
    return own;
}

/* --- what is told --- */

/* "300 of 300 sampled keys have an e-mail address in them." */
static void write_counts(const struct personal_counts *counts, unsigned kinds, const char *what,
                         struct buffer *out)
{
    for (enum personal kind = 0; kind < PERSONAL_KINDS; kind++)
        if ((kinds & 1U << kind) != 0)
            buffer_append_format(out, "%s%zu of %zu sampled %s have %s in them.",
                                 out->size == 0 ? "" : " ", counts->valid[kind], counts->texts,
                                 what, personal_name(kind));
}

static void write_families(const struct names *names, struct buffer *out)
{
    const char *gap = out->size == 0 ? "" : " ";
    if (names->people > 0)
        buffer_append_format(out, "%s%zu of %zu families are named after a person.", gap,
                             names->people, names->all);
    gap = out->size == 0 ? "" : " ";
    if (names->certain > 0)
        buffer_append_format(out, "%s%zu of %zu families' names have %s in them.", gap,
                             names->certain, names->all, personal_name(names->kind));
}

static void write_tables(const struct names *names, struct buffer *out)
{
    const char *gap = out->size == 0 ? "" : " ";
    if (names->certain > 0)
        buffer_append_format(out, "%sThe table's name has %s in it.", gap,
                             personal_name(names->kind));
    else if (names->people > 0)
        buffer_append_format(out, "%sThe table is named after a person, and so are %zu others.",
                             gap, names->people - 1);
}

static bool are_any(const struct names *names)
{
    return names->people + names->certain > 0;
}

static status hide(struct advisor *advisor, unsigned kinds, bytes *text)
{
    struct buffer hidden = {0};
    if (text->size == 0)
        return status_ok();
    personal_hide(*text, kinds, &hidden);
    return keep_text(advisor, &hidden, text);
}

/* Each part becomes an id, which another table finds. */
static status better_key(struct advisor *advisor, unsigned kinds, bytes key, bytes *out)
{
    struct buffer hidden = {0}, text = {0};
    personal_hide(key, kinds, &hidden);
    bytes rest = buffer_bytes(&hidden);
    for (size_t at = 0; at < rest.size; at++) {
        const uint8_t *end =
            rest.data[at] == '<' ? memchr(rest.data + at, '>', rest.size - at) : NULL;
        if (end == NULL) {
            buffer_append_byte(&text, rest.data[at]);
            continue;
        }
        buffer_append_bytes(&text, bytes_of("<id>"));
        at = (size_t)(end - rest.data);
    }
    text.failed |= hidden.failed;
    buffer_free(&hidden);
    return keep_text(advisor, &text, out);
}

/* Of those that have it, which may be few, from all over the sample. */
static status add_keys(struct advisor *advisor, unsigned kinds, const bytes *keys, size_t count,
                       struct advice_finding *finding)
{
    size_t found = 0;
    bytes *having = arena_alloc(advisor->arena, count * sizeof *having);
    if (having == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        if (personal_has(keys[i], kinds))
            having[found++] = keys[i];
    size_t shown = found < ADVICE_KEYS_SHOWN ? found : ADVICE_KEYS_SHOWN;
    for (size_t i = 0; i < shown; i++) {
        bytes key = having[found * (2 * i + 1) / (2 * shown)], better;
        TRY(better_key(advisor, kinds, key, &better));
        finding_add_key(finding, key);
        finding_add_better(finding, key, better);
    }
    return status_ok();
}

status advise_on_personal_data(struct advisor *advisor, const bytes *keys, size_t count,
                               const struct personal_counts *names)
{
    struct personal_counts in_keys = {0};
    struct advice_finding *finding;
    struct buffer evidence = {0};
    bytes text;
    for (size_t i = 0; i < count; i++)
        personal_count(&in_keys, keys[i]);
    unsigned of_keys = personal_kinds(&in_keys), of_names = personal_kinds(names);
    const struct names families = count_families(advisor->seen);
    const struct names tables = count_tables(advisor->seen);
    if (of_keys == 0 && of_names == 0 && !are_any(&families) && !are_any(&tables))
        return status_ok();
    write_counts(&in_keys, of_keys, advisor->is_database ? "entities' keys" : "keys", &evidence);
    write_counts(names, of_names, advisor->is_database ? "properties' names" : "columns' names",
                 &evidence);
    write_families(&families, &evidence);
    write_tables(&tables, &evidence);
    TRY(keep_text(advisor, &evidence, &text));
    TRY(advise(advisor, RULE_personal_data, &finding, "%.*s", (int)text.size, text.data));
    advisor->hidden = of_keys | of_names;
    advisor->hides_families = are_any(&families);
    advisor->hides_tables = are_any(&tables);
    return of_keys == 0 ? status_ok() : add_keys(advisor, of_keys, keys, count, finding);
}

status advise_on_personal_rows(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    struct personal_counts names = {0};
    bytes *keys = arena_alloc(advisor->arena, seen->row_count * sizeof *keys);
    if (keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < seen->row_count; i++)
        keys[i] = seen->rows[i].key;
    count_qualifiers(seen, &names);
    return advise_on_personal_data(advisor, keys, seen->row_count, &names);
}

/* --- what no finding shows --- */

static status replace(struct advisor *advisor, bytes name, bytes mark, bytes *text)
{
    struct buffer hidden = {0};
    for (size_t at = 0; at < text->size;) {
        bool is_here = bytes_start_with(bytes_from(*text, at), name);
        if (is_here)
            buffer_append_bytes(&hidden, mark);
        else
            buffer_append_byte(&hidden, text->data[at]);
        at += is_here ? name.size : 1;
    }
    return keep_text(advisor, &hidden, text);
}

static status hide_family(struct advisor *advisor, const char *name, bytes *text)
{
    enum personal kind;
    if (personal_naming_of(bytes_of(name), &kind) == PERSONAL_NO_NAME)
        return status_ok();
    return replace(advisor, bytes_of(name), bytes_of(personal_mark(kind)), text);
}

static status hide_table(struct advisor *advisor, const char *id, bytes *text)
{
    const unsigned kinds =
        1U << PERSONAL_NAME | 1U << PERSONAL_CARD | 1U << PERSONAL_ACCOUNT | 1U << PERSONAL_TAX;
    bytes shown = bytes_of(id);
    TRY(hide(advisor, kinds, &shown));
    return bytes_equal(shown, bytes_of(id)) ? status_ok()
                                            : replace(advisor, bytes_of(id), shown, text);
}

static status hide_tables(struct advisor *advisor, bytes *text)
{
    const struct advice_observations *seen = advisor->seen;
    for (size_t i = 0; i < seen->sibling_count; i++)
        TRY(hide_table(advisor, seen->siblings[i].id, text));
    return hide_table(advisor, seen->table_id, text);
}

static status hide_in_evidence(struct advisor *advisor, struct advice_finding *finding)
{
    const struct advice_observations *seen = advisor->seen;
    bytes text = bytes_of(finding->evidence);
    TRY(hide(advisor, advisor->hidden, &text));
    for (size_t i = 0; i < seen->family_count && advisor->hides_families; i++)
        TRY(hide_family(advisor, seen->families[i].name, &text));
    if (advisor->hides_tables)
        TRY(hide_tables(advisor, &text));
    finding->evidence = arena_string(advisor->arena, text);
    return finding->evidence == NULL ? status_out_of_memory() : status_ok();
}

static status hide_in_finding(struct advisor *advisor, struct advice_finding *finding)
{
    TRY(hide_in_evidence(advisor, finding));
    TRY(hide(advisor, advisor->hidden, &finding->start));
    TRY(hide(advisor, advisor->hidden, &finding->end));
    for (size_t i = 0; i < finding->key_count; i++)
        TRY(hide(advisor, advisor->hidden, &finding->keys[i]));
    for (size_t i = 0; i < finding->better_count; i++) {
        TRY(hide(advisor, advisor->hidden, &finding->better[i].key));
        TRY(hide(advisor, advisor->hidden, &finding->better[i].better));
    }
    return status_ok();
}

status hide_personal_data(struct advisor *advisor)
{
    bool hides = !advisor->seen->shows_values &&
                 (advisor->hidden != 0 || advisor->hides_families || advisor->hides_tables);
    for (size_t i = 0; i < advisor->out->count && hides; i++)
        TRY(hide_in_finding(advisor, &advisor->out->findings[i]));
    return status_ok();
}
