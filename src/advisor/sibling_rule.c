/* See siblings.h; and many small tables that should be one. */
#include "advisor/advice_private.h"
#include "advisor/siblings.h"

#include <ctype.h>

static const char *skip_number(const char *at)
{
    while (isdigit((unsigned char)*at))
        at++;
    return at;
}

bool are_siblings(const char *table_id, const char *other_id)
{
    const char *a = table_id, *b = other_id;
    bool has_letter = false, has_number = false;
    while (*a != '\0' || *b != '\0') {
        bool is_number = isdigit((unsigned char)*a) && isdigit((unsigned char)*b);
        if (is_number) {
            a = skip_number(a);
            b = skip_number(b);
        } else if (*a++ != *b++) {
            return false;
        } else {
            has_letter |= isalpha((unsigned char)a[-1]) != 0;
        }
        has_number |= is_number;
    }
    return has_letter && has_number && strcmp(table_id, other_id) != 0;
}

/* --- words --- */

enum { WORD_LEAST = 3 };

static bool is_joint(char c)
{
    return c == '-' || c == '_' || c == '.';
}

/* The first word with what stands behind it; 0: there is one word alone, or it is short. */
static size_t first_word(const char *id)
{
    size_t size = 0;
    while (id[size] != '\0' && !is_joint(id[size]))
        size++;
    return id[size] != '\0' && size >= WORD_LEAST ? size + 1 : 0;
}

/* The last one with what stands before it. */
static size_t last_word(const char *id)
{
    size_t all = strlen(id), size = 0;
    while (size < all && !is_joint(id[all - 1 - size]))
        size++;
    return size < all && size >= WORD_LEAST ? size + 1 : 0;
}

bool share_first_word(const char *table_id, const char *other_id)
{
    size_t size = first_word(table_id);
    return size > 0 && strncmp(table_id, other_id, size) == 0 && strcmp(table_id, other_id) != 0;
}

bool share_last_word(const char *table_id, const char *other_id)
{
    size_t size = last_word(table_id), all = strlen(table_id), of_other = strlen(other_id);
    return size > 0 && of_other > size && strcmp(table_id, other_id) != 0 &&
           strcmp(table_id + all - size, other_id + of_other - size) == 0;
}

bool may_be_parts(const char *table_id, const char *other_id)
{
    return are_siblings(table_id, other_id) || share_first_word(table_id, other_id) ||
           share_last_word(table_id, other_id);
}

/* --- tables that should be one --- */

struct relatives {
    size_t all;
    size_t known;
    size_t alike;     /* of these, that have the same families */
    uint64_t largest; /* bytes, of those that are alike and of the table itself */
    const char *id;   /* of one */
};

static struct relatives find_relatives(const struct advice_observations *seen,
                                       bool (*are_related)(const char *, const char *))
{
    struct relatives found = {.largest = seen->table_size};
    for (size_t i = 0; i < seen->sibling_count; i++) {
        const struct advice_sibling *sibling = &seen->siblings[i];
        if (!are_related(seen->table_id, sibling->id))
            continue;
        found.all++;
        found.id = sibling->id;
        found.known += sibling->is_known;
        if (!sibling->is_known || !sibling->has_same_families)
            continue;
        found.alike++;
        found.largest = sibling->size > found.largest ? sibling->size : found.largest;
    }
    return found;
}

static status tell(struct advisor *advisor, const struct relatives *found, size_t count)
{
    struct advice_finding *finding;
    return advise(advisor, RULE_small_tables, &finding,
                  "%zu tables have names like %s and %s; the largest of the %zu that were looked "
                  "at has about %.1f MiB.",
                  count, advisor->seen->table_id, found->id, found->alike + 1,
                  (double)found->largest / (1 << 20));
}

static status advise_on_many_tables(struct advisor *advisor)
{
    struct advice_finding *finding;
    if (advisor->seen->table_count < TABLES_MANY)
        return status_ok();
    return advise(advisor, RULE_table_count, &finding, "The instance has %zu tables.",
                  advisor->seen->table_count);
}

/* Tables whose names have a word in common may be of another shape: those that are of the same one
 * count. */
status advise_on_siblings(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    TRY(advise_on_many_tables(advisor));
    struct relatives found = find_relatives(seen, are_siblings);
    if (found.all + 1 >= SIBLINGS && found.known + 1 >= SIBLINGS && found.alike == found.known &&
        found.largest < SIBLING_BYTES)
        return tell(advisor, &found, found.all + 1);
    struct relatives first = find_relatives(seen, share_first_word);
    found = find_relatives(seen, share_last_word);
    found = first.alike > found.alike ? first : found;
    bool is_found = found.alike + 1 >= SIBLINGS && found.largest < SIBLING_BYTES;
    return is_found ? tell(advisor, &found, found.alike + 1) : status_ok();
}
