/* See siblings.h; and many small tables that should be one. */
#include "advice/advice_private.h"
#include "advice/siblings.h"

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

status advise_on_siblings(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    size_t known = 0, alike = 0;
    uint64_t largest = seen->table_size;
    for (size_t i = 0; i < seen->sibling_count; i++) {
        const struct advice_sibling *sibling = &seen->siblings[i];
        if (!sibling->is_known)
            continue;
        known++;
        alike += sibling->has_same_families;
        largest = sibling->size > largest ? sibling->size : largest;
    }
    if (seen->sibling_count + 1 < SIBLINGS || known + 1 < SIBLINGS || alike < known ||
        largest >= SIBLING_BYTES)
        return status_ok();
    return advise(advisor, RULE_small_tables, &finding,
                  "%zu tables have names like %s and %s; the largest of the %zu that were looked "
                  "at has about %.1f MiB.",
                  seen->sibling_count + 1, seen->table_id, seen->siblings[0].id, known + 1,
                  (double)largest / (1 << 20));
}
