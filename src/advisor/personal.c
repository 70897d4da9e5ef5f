/* See personal.h. */
#include "advisor/personal.h"

#include "advisor/key_start.h"
#include "advisor/personal_forms.h"
#include "advisor/plain_text.h"
#include "advisor/thresholds.h"

const char *personal_mark(enum personal kind)
{
    static const char *const marks[] = {
        [PERSONAL_MAIL] = "<e-mail>",  [PERSONAL_CARD] = "<card>",
        [PERSONAL_PHONE] = "<phone>",  [PERSONAL_SOCIAL] = "<social-number>",
        [PERSONAL_ACCOUNT] = "<iban>", [PERSONAL_TAX] = "<tax-number>",
        [PERSONAL_NAME] = "<name>",
    };
    return marks[kind];
}

const char *personal_name(enum personal kind)
{
    static const char *const names[] = {
        [PERSONAL_MAIL] = "an e-mail address",   [PERSONAL_CARD] = "a payment card's number",
        [PERSONAL_PHONE] = "a telephone number", [PERSONAL_SOCIAL] = "a social security number",
        [PERSONAL_ACCOUNT] = "a bank account",   [PERSONAL_TAX] = "a taxpayer's number",
        [PERSONAL_NAME] = "a person's name",
    };
    return names[kind];
}

static bool is_written_address(bytes name)
{
    static const char *const ats[] = {"-at-", "_at_", ".at."};
    size_t last = name.size;
    while (last > 0 && name.data[last - 1] != '.')
        last--;
    bool is_host = last > 1 && is_top_level_domain(bytes_from(name, last));
    for (size_t i = 0; is_host && i < sizeof ats / sizeof *ats; i++)
        for (size_t at = 1; at + strlen(ats[i]) < name.size; at++)
            if (bytes_start_with(bytes_from(name, at), bytes_of(ats[i])))
                return true;
    return false;
}

enum personal_naming personal_naming_of(bytes name, enum personal *kind)
{
    static const enum personal certain[] = {PERSONAL_CARD, PERSONAL_ACCOUNT, PERSONAL_TAX};
    for (size_t i = 0; i < sizeof certain / sizeof *certain; i++)
        for (size_t at = 0; at < name.size; at++)
            if (personal_part_at(name, at, certain[i]).is_valid) {
                *kind = certain[i];
                return PERSONAL_CERTAINLY;
            }
    *kind = PERSONAL_NAME;
    bool is_one = is_written_address(name) ||
                  (name.size > 0 && personal_part_at(name, 0, PERSONAL_NAME).size > 0);
    return is_one ? PERSONAL_PERHAPS : PERSONAL_NO_NAME;
}

/* --- all of them --- */

/* The first that is valid; else the first that is alike, if there is one. */
static struct personal_part best_part(bytes text, enum personal kind)
{
    struct personal_part first = {0};
    if (!personal_may_be_in(text, kind))
        return first;
    first = personal_part_from(text, 0, kind);
    for (struct personal_part part = first; part.size > 0;
         part = personal_part_from(text, part.start + part.size, kind))
        if (part.is_valid)
            return part;
    return first;
}

enum { ALL_KINDS = (1 << PERSONAL_KINDS) - 1 };

/* Bits of the kinds. */
struct found {
    unsigned alike;
    unsigned valid;
};

static void look_at(bytes text, unsigned kinds, struct found *found)
{
    for (unsigned kind = 0; kind < PERSONAL_KINDS; kind++) {
        if ((kinds & 1U << kind) == 0)
            continue;
        struct personal_part part = best_part(text, (enum personal)kind);
        found->alike |= (unsigned)(part.size > 0) << kind;
        found->valid |= (unsigned)part.is_valid << kind;
    }
}

/* For these kinds, as it stands and as it is meant; without memory for that as it stands. */
static struct found look_in(bytes text, unsigned kinds)
{
    struct found found = {0};
    struct plain_text plain;
    look_at(text, kinds, &found);
    if (!plain_text_differs(text))
        return found;
    plain_text_make(text, &plain);
    if (!plain.text.failed)
        look_at(buffer_bytes(&plain.text), kinds, &found);
    plain_text_free(&plain);
    return found;
}

void personal_count(struct personal_counts *counts, bytes text)
{
    struct found found = look_in(text, ALL_KINDS);
    counts->texts++;
    for (enum personal kind = 0; kind < PERSONAL_KINDS; kind++) {
        counts->alike[kind] += found.alike >> kind & 1;
        counts->valid[kind] += found.valid >> kind & 1;
    }
}

bool personal_has(bytes text, unsigned kinds)
{
    return look_in(text, kinds).valid != 0;
}

/* A kind without a checksum must be in more of the texts. */
static bool is_told(const struct personal_counts *counts, enum personal kind)
{
    static const unsigned shares[] = {
        [PERSONAL_MAIL] = 5,    [PERSONAL_CARD] = 20,    [PERSONAL_PHONE] = 50,
        [PERSONAL_SOCIAL] = 50, [PERSONAL_ACCOUNT] = 20, [PERSONAL_TAX] = 20,
        [PERSONAL_NAME] = 50,
    };
    unsigned right = kind == PERSONAL_SOCIAL ? PERSONAL_SOCIAL_PERCENT : PERSONAL_VALID_PERCENT;
    size_t valid = counts->valid[kind];
    return valid >= PERSONAL_LEAST && valid * 100 >= counts->texts * shares[kind] &&
           valid * 100 >= counts->alike[kind] * right;
}

unsigned personal_kinds(const struct personal_counts *counts)
{
    unsigned kinds = 0;
    for (enum personal kind = 0; kind < PERSONAL_KINDS; kind++)
        if (is_told(counts, kind))
            kinds |= 1U << kind;
    return kinds;
}

/* --- hiding --- */

/* What is hidden there of those kinds; `*kind`: what it is. */
typedef struct personal_part chooser(bytes text, size_t at, unsigned kinds, enum personal *kind);

static struct personal_part part_at(bytes text, size_t at, unsigned kinds, enum personal *kind)
{
    for (unsigned i = 0; i < PERSONAL_KINDS; i++) {
        struct personal_part part = {0};
        *kind = (enum personal)i;
        if ((kinds & 1U << i) != 0)
            part = personal_part_at(text, at, *kind);
        if (part.size > 0)
            return part;
    }
    struct personal_part begun = {0};
    *kind = PERSONAL_MAIL;
    if ((kinds & 1U << PERSONAL_MAIL) != 0)
        begun = personal_begun_mail_at(text, at);
    if (begun.size > 0 || (kinds & 1U << PERSONAL_PHONE) == 0)
        return begun;
    *kind = PERSONAL_PHONE;
    return personal_begun_phone_at(text, at);
}

/* A long address, which is none of many keys, may be one here. */
static struct personal_part certain_at(bytes text, size_t at, unsigned kinds, enum personal *kind)
{
    (void)kinds;
    for (unsigned i = 0; i < PERSONAL_NAME; i++) {
        *kind = (enum personal)i;
        struct personal_part part = personal_part_at(text, at, *kind);
        if (part.is_valid || (*kind == PERSONAL_MAIL && part.size > 0))
            return part;
    }
    *kind = PERSONAL_MAIL;
    return personal_begun_mail_at(text, at);
}

/* `plain`: what the source means; NULL: it means what it says. */
static void hide_once(bytes source, const struct plain_text *plain, chooser *choose, unsigned kinds,
                      struct buffer *out)
{
    bytes text = plain == NULL ? source : buffer_bytes(&plain->text);
    for (size_t at = 0, end; at < text.size; at = end) {
        enum personal kind;
        struct personal_part part = choose(text, at, kinds, &kind);
        end = at + (part.size > 0 ? part.size : 1);
        size_t from = plain == NULL ? at : plain_text_place(plain, at);
        size_t behind = plain == NULL ? end : plain_text_place(plain, end);
        if (part.size > 0)
            buffer_append_bytes(out, bytes_of(personal_mark(kind)));
        else
            buffer_append(out, source.data + from, behind - from);
    }
}

/* As it is meant at first, and what is left as it stands: a percent sign may be that of LIKE. */
static void hide_all(bytes source, chooser *choose, unsigned kinds, struct buffer *out)
{
    struct plain_text plain;
    struct buffer left = {0};
    if (!plain_text_differs(source)) {
        hide_once(source, NULL, choose, kinds, out);
        return;
    }
    plain_text_make(source, &plain);
    if (!plain.text.failed)
        hide_once(source, &plain, choose, kinds, &left);
    out->failed |= plain.text.failed || left.failed;
    hide_once(buffer_bytes(&left), NULL, choose, kinds, out);
    plain_text_free(&plain);
    buffer_free(&left);
}

/* Whether it passes a checksum or not: a number that somebody has mistyped is hidden, too. */
void personal_hide(bytes text, unsigned kinds, struct buffer *out)
{
    hide_all(text, part_at, kinds, out);
}

void personal_hide_certain(bytes text, struct buffer *out)
{
    hide_all(text, certain_at, 0, out);
}
