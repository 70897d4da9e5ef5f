/* See personal.h. A part begins where no letter or digit stands before it. */
#include "advisor/personal.h"

#include "advisor/key_start.h"
#include "advisor/thresholds.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

struct part {
    size_t start;
    size_t size; /* 0: there is none */
    bool is_valid;
};

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

static bool begins_at(bytes text, size_t at)
{
    return at == 0 || !isalnum(text.data[at - 1]);
}

static bool ends_at(bytes text, size_t at)
{
    return at == text.size || !isalnum(text.data[at]);
}

static size_t digits_at(bytes text, size_t at)
{
    size_t size = 0;
    while (at + size < text.size && isdigit(text.data[at + size]))
        size++;
    return size;
}

/* --- addresses --- */

static bool is_of_local_part(uint8_t c)
{
    return isalnum(c) || is_one_of(c, "._%+-");
}

/* The size of a host's name with a dot in it and letters at its end. */
static size_t host_size(bytes text, size_t at)
{
    size_t end = at, dot = 0;
    for (; end < text.size && (isalnum(text.data[end]) || is_one_of(text.data[end], ".-")); end++)
        if (text.data[end] == '.')
            dot = end;
    while (end > at && !isalnum(text.data[end - 1]))
        end--;
    bool has_letters = dot > at && end > dot + 2;
    for (size_t i = dot + 1; has_letters && i < end; i++)
        has_letters = isalpha(text.data[i]) != 0;
    return has_letters ? end - at : 0;
}

/* Whether the name of a host ends as those do that have mail: a unit.service does not. */
static bool may_have_mail(bytes host)
{
    enum { SHORT_MOST = 4 };
    size_t start = host.size;
    while (start > 0 && host.data[start - 1] != '.')
        start--;
    return host.size - start <= SHORT_MOST || is_top_level_domain(bytes_from(host, start));
}

/* What stands before the @ of a message's id is longer than what people choose. */
static struct part mail_at(bytes text, size_t at)
{
    enum { LOCAL_PART_MOST = 30 };
    if (!is_of_local_part(text.data[at]) || (at > 0 && is_of_local_part(text.data[at - 1])))
        return (struct part){0};
    size_t end = at;
    while (end < text.size && is_of_local_part(text.data[end]))
        end++;
    size_t host = end < text.size && text.data[end] == '@' ? host_size(text, end + 1) : 0;
    bool is_valid = end - at <= LOCAL_PART_MOST && end < text.size &&
                    may_have_mail(bytes_make(text.data + end + 1, host));
    return host == 0 ? (struct part){0} : (struct part){at, end + 1 + host - at, is_valid};
}

/* --- numbers of cards --- */

enum { CARD_LEAST = 13, CARD_MOST = 19 };

static bool passes_luhn(const uint8_t *digits, size_t count)
{
    unsigned sum = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned digit = digits[count - 1 - i] - '0';
        unsigned doubled = i % 2 == 0 ? digit : 2 * digit;
        sum += doubled / 10 + doubled % 10;
    }
    return sum % 10 == 0;
}

static bool is_issuer(const uint8_t *digits, size_t count)
{
    static const struct {
        unsigned first;
        unsigned last; /* four digits */
        size_t least;
        size_t most;
    } issuers[] = {
        {4000, 4999, 13, 19}, {5100, 5599, 16, 16}, {2221, 2720, 16, 16}, {3400, 3499, 15, 15},
        {3700, 3799, 15, 15}, {6011, 6011, 16, 19}, {6440, 6599, 16, 19}, {3528, 3589, 16, 19},
        {3000, 3059, 14, 19}, {3600, 3699, 14, 19}, {3800, 3999, 14, 19}, {6200, 6299, 16, 19},
        {5000, 5099, 13, 19}, {5600, 5899, 13, 19},
    };
    unsigned prefix = 0;
    for (size_t i = 0; i < 4; i++)
        prefix = 10 * prefix + (digits[i] - '0');
    for (size_t i = 0; i < sizeof issuers / sizeof *issuers; i++)
        if (prefix >= issuers[i].first && prefix <= issuers[i].last && count >= issuers[i].least &&
            count <= issuers[i].most)
            return true;
    return false;
}

/* Digits alone, or in groups of three to six with the same mark between, the first of four. */
static struct part card_at(bytes text, size_t at)
{
    enum { FIRST = 4, GROUP_LEAST = 3, GROUP_MOST = 6 };
    uint8_t digits[CARD_MOST];
    size_t count = 0, end = at, run = digits_at(text, at);
    uint8_t mark = 0;
    if (!begins_at(text, at) || run < FIRST || run > CARD_MOST)
        return (struct part){0};
    while (run > 0 && count + run <= CARD_MOST) {
        memcpy(digits + count, text.data + end, run);
        count += run;
        end += run;
        bool has_mark = run <= GROUP_MOST && end + 1 < text.size &&
                        is_one_of(text.data[end], "- ") && (mark == 0 || text.data[end] == mark);
        size_t next = has_mark && count >= FIRST ? digits_at(text, end + 1) : 0;
        if (next < GROUP_LEAST || next > GROUP_MOST || (mark == 0 && count != FIRST))
            break;
        mark = text.data[end++];
        run = next;
    }
    if (count < CARD_LEAST || !ends_at(text, end))
        return (struct part){0};
    return (struct part){at, end - at, is_issuer(digits, count) && passes_luhn(digits, count)};
}

/* --- telephones --- */

/* The first digits of the numbers of countries. */
static bool is_country(const uint8_t *digits)
{
    static const char *const of_two = "20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 "
                                      "53 54 55 56 57 58 60 61 62 63 64 65 66 81 82 84 86 90 91 92 "
                                      "93 94 95 98";
    static const char *const of_three = "21 22 23 24 25 26 29 35 37 38 42 50 59 67 68 80 85 87 88 "
                                        "96 97 99";
    const char first_two[] = {(char)digits[0], (char)digits[1], '\0'};
    return digits[0] == '1' || digits[0] == '7' || strstr(of_two, first_two) != NULL ||
           strstr(of_three, first_two) != NULL;
}

static struct part phone_at(bytes text, size_t at)
{
    enum { LEAST = 8, MOST = 15 };
    bool is_start = text.data[at] == '+' && begins_at(text, at);
    size_t count = is_start ? digits_at(text, at + 1) : 0;
    if (count < LEAST || count > MOST || !ends_at(text, at + 1 + count))
        return (struct part){0};
    return (struct part){at, 1 + count, is_country(text.data + at + 1)};
}

/* --- social security and tax --- */

/* Whether it has a digit for each 9 of the form and otherwise what that has. */
static bool has_form(bytes text, size_t at, const char *form)
{
    size_t size = strlen(form);
    if (!begins_at(text, at) || text.size - at < size || !ends_at(text, at + size))
        return false;
    for (size_t i = 0; i < size; i++) {
        uint8_t c = text.data[at + i];
        if (form[i] == '9' ? !isdigit(c) : c != (uint8_t)form[i])
            return false;
    }
    return true;
}

/* Social security numbers have no checksum, but a tenth of all are given to no person. */
static struct part social_at(bytes text, size_t at)
{
    static const char form[] = "999-99-9999";
    if (!has_form(text, at, form))
        return (struct part){0};
    const char *digits = (const char *)text.data + at;
    bool is_nobodys = digits[0] == '9' || memcmp(digits, "000", 3) == 0 ||
                      memcmp(digits, "666", 3) == 0 || memcmp(digits + 4, "00", 2) == 0 ||
                      memcmp(digits + 7, "0000", 4) == 0;
    return (struct part){at, strlen(form), !is_nobodys};
}

static struct part tax_at(bytes text, size_t at)
{
    static const char form[] = "999.999.999-99";
    enum { DIGITS = 11, FIRST_CHECK = 9 };
    unsigned digits[DIGITS];
    size_t count = 0;
    bool is_valid = true;
    if (!has_form(text, at, form))
        return (struct part){0};
    for (size_t i = 0; form[i] != '\0'; i++)
        if (form[i] == '9')
            digits[count++] = text.data[at + i] - '0';
    for (size_t check = FIRST_CHECK; check < DIGITS; check++) {
        unsigned sum = 0;
        for (size_t i = 0; i < check; i++)
            sum += digits[i] * (unsigned)(check + 1 - i);
        is_valid &= digits[check] == sum * 10 % 11 % 10;
    }
    return (struct part){at, strlen(form), is_valid};
}

/* --- bank accounts --- */

/* Two capitals, two digits, then digits and capitals, as ISO 13616 has it. */
static struct part account_at(bytes text, size_t at)
{
    enum { LEAST = 15, MOST = 34, MOVED = 4, MODULUS = 97 };
    size_t size = 0;
    while (at + size < text.size &&
           (isupper(text.data[at + size]) || isdigit(text.data[at + size])))
        size++;
    bool has_form = begins_at(text, at) && ends_at(text, at + size) && size >= LEAST &&
                    size <= MOST && isupper(text.data[at]) && isupper(text.data[at + 1]) &&
                    isdigit(text.data[at + 2]) && isdigit(text.data[at + 3]);
    if (!has_form)
        return (struct part){0};
    unsigned rest = 0;
    for (size_t i = 0; i < size; i++) {
        uint8_t c = text.data[at + (i + MOVED) % size];
        rest = isdigit(c) ? (rest * 10 + (c - '0')) % MODULUS
                          : (rest * 100 + (unsigned)(c - 'A' + 10)) % MODULUS;
    }
    return (struct part){at, size, rest == 1};
}

/* --- names --- */

/* Given names that are common in one country or another, and no usual words; in order. */
static const char *const given_names[] = {
    "aaron",   "adam",      "agnes",     "ahmed",     "alan",      "albert",    "alejandro",
    "alex",    "ali",       "alice",     "amanda",    "ana",       "andrea",    "andreas",
    "andrew",  "angela",    "anita",     "anna",      "anne",      "anthony",   "antonio",
    "barbara", "beatriz",   "benjamin",  "bernd",     "brian",     "bruno",     "camila",
    "carl",    "carla",     "carlos",    "carmen",    "carol",     "catherine", "cecilia",
    "charles", "charlotte", "chris",     "christian", "christine", "claire",    "claudia",
    "daniel",  "daniela",   "david",     "deborah",   "denis",     "diana",     "diego",
    "dmitri",  "donald",    "edward",    "elena",     "elisabeth", "elizabeth", "ella",
    "emil",    "emily",     "emma",      "eric",      "erik",      "eva",       "fatima",
    "felix",   "fernando",  "francesca", "francisco", "gabriel",   "george",    "giulia",
    "greta",   "hannah",    "hans",      "helen",     "helena",    "henry",     "hugo",
    "ines",    "ingrid",    "irina",     "isabella",  "ivan",      "jacob",     "james",
    "jan",     "jane",      "jean",      "jennifer",  "jessica",   "joao",      "johan",
    "john",    "jonas",     "jorge",     "jose",      "joseph",    "joshua",    "juan",
    "julia",   "julie",     "karen",     "karin",     "karl",      "katharina", "kevin",
    "klaus",   "lars",      "laura",     "lea",       "leon",      "liam",      "linda",
    "lisa",    "louis",     "luca",      "lucas",     "lucia",     "luis",      "maria",
    "marie",   "mario",     "marta",     "martin",    "mary",      "matteo",    "matthew",
    "mehmet",  "mia",       "michael",   "michelle",  "miguel",    "mohamed",   "monika",
    "nancy",   "natalia",   "nicolas",   "nils",      "nina",      "noah",      "olga",
    "oliver",  "oscar",     "pablo",     "patricia",  "paul",      "paula",     "pedro",
    "peter",   "petra",     "philip",    "pierre",    "rachel",    "ralf",      "ricardo",
    "richard", "robert",    "roberto",   "rosa",      "samuel",    "sandra",    "sara",
    "sarah",   "sergei",    "simon",     "sofia",     "sophie",    "stefan",    "stephen",
    "steven",  "susan",     "sven",      "tanja",     "tara",      "teresa",    "thomas",
    "tim",     "tobias",    "uwe",       "valentina", "vera",      "victor",    "vladimir",
    "walter",  "wei",       "william",   "yuki",      "yusuf",     "zoe",
};

static size_t letters_at(bytes text, size_t at)
{
    size_t size = 0;
    while (at + size < text.size && isalpha(text.data[at + size]))
        size++;
    return size;
}

static int order_of_names(const void *word, const void *name)
{
    const bytes *left = word;
    const char *right = *(const char *const *)name;
    int order = strncasecmp((const char *)left->data, right, left->size);
    return order != 0 || strlen(right) == left->size ? order : -1;
}

static bool is_given_name(bytes word)
{
    return bsearch(&word, given_names, sizeof given_names / sizeof *given_names,
                   sizeof *given_names, order_of_names) != NULL;
}

/* A given name and a word of letters behind it. */
static struct part name_at(bytes text, size_t at)
{
    enum { LETTERS_LEAST = 2 };
    size_t first = begins_at(text, at) ? letters_at(text, at) : 0, gap = at + first;
    if (first == 0 || gap >= text.size || !is_one_of(text.data[gap], " ._-,") ||
        !is_given_name(bytes_make(text.data + at, first)))
        return (struct part){0};
    gap += text.data[gap] == ',' && gap + 1 < text.size && text.data[gap + 1] == ' ';
    size_t second = letters_at(text, gap + 1);
    if (second < LETTERS_LEAST)
        return (struct part){0};
    return (struct part){at, gap + 1 + second - at, true};
}

bool personal_is_name(bytes text)
{
    static const char *const ats[] = {"-at-", "_at_", ".at."};
    size_t last = text.size;
    while (last > 0 && text.data[last - 1] != '.')
        last--;
    bool is_host = last > 1 && is_top_level_domain(bytes_from(text, last));
    for (size_t i = 0; is_host && i < sizeof ats / sizeof *ats; i++)
        for (size_t at = 1; at + strlen(ats[i]) < text.size; at++)
            if (bytes_start_with(bytes_from(text, at), bytes_of(ats[i])))
                return true;
    return text.size > 0 && name_at(text, 0).size > 0;
}

/* --- all of them --- */

typedef struct part finder(bytes text, size_t at);

static finder *const finders[PERSONAL_KINDS] = {
    [PERSONAL_MAIL] = mail_at,     [PERSONAL_CARD] = card_at,       [PERSONAL_PHONE] = phone_at,
    [PERSONAL_SOCIAL] = social_at, [PERSONAL_ACCOUNT] = account_at, [PERSONAL_TAX] = tax_at,
    [PERSONAL_NAME] = name_at,
};

/* The first part of the kind at or behind `at`. */
static struct part find(bytes text, size_t at, enum personal kind)
{
    struct part part = {0};
    for (; at < text.size && part.size == 0; at++)
        part = finders[kind](text, at);
    return part;
}

/* Whether the text has what the kind cannot be without: most have it not. */
static bool may_have(bytes text, enum personal kind)
{
    static const struct {
        char mark;     /* 0: any */
        size_t digits; /* at least */
    } needs[] = {
        [PERSONAL_MAIL] = {'@', 0},  [PERSONAL_CARD] = {0, CARD_LEAST},
        [PERSONAL_PHONE] = {'+', 8}, [PERSONAL_SOCIAL] = {'-', 9},
        [PERSONAL_ACCOUNT] = {0, 4}, [PERSONAL_TAX] = {'.', 11},
        [PERSONAL_NAME] = {0, 0},
    };
    size_t digits = 0;
    for (size_t i = 0; i < text.size && digits < needs[kind].digits; i++)
        digits += isdigit(text.data[i]) != 0;
    return digits >= needs[kind].digits &&
           (needs[kind].mark == 0 ||
            (text.size > 0 && memchr(text.data, needs[kind].mark, text.size) != NULL));
}

/* The first that is valid; else the first that is alike, if there is one. */
static struct part best_part(bytes text, enum personal kind)
{
    struct part first = {0};
    if (!may_have(text, kind))
        return first;
    first = find(text, 0, kind);
    for (struct part part = first; part.size > 0; part = find(text, part.start + part.size, kind))
        if (part.is_valid)
            return part;
    return first;
}

void personal_count(struct personal_counts *counts, bytes text)
{
    counts->texts++;
    for (enum personal kind = 0; kind < PERSONAL_KINDS; kind++) {
        struct part part = best_part(text, kind);
        counts->alike[kind] += part.size > 0;
        counts->valid[kind] += part.is_valid;
    }
}

bool personal_has(bytes text, unsigned kinds)
{
    for (enum personal kind = 0; kind < PERSONAL_KINDS; kind++)
        if ((kinds & 1U << kind) != 0 && best_part(text, kind).is_valid)
            return true;
    return false;
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

static void append_hidden(bytes text, size_t *at, const struct part *part, enum personal kind,
                          struct buffer *out)
{
    if (part->size == 0) {
        buffer_append_byte(out, text.data[(*at)++]);
        return;
    }
    buffer_append_bytes(out, bytes_of(personal_mark(kind)));
    *at += part->size;
}

/* What may be the beginning of one, as the ends of ranges and what was cut off have: "jo.smith@",
 * "jo.smith@exam". What has a digit there is a version or a size more often. */
static struct part begun_mail_at(bytes text, size_t at)
{
    size_t end = at;
    if (!is_of_local_part(text.data[at]) || (at > 0 && is_of_local_part(text.data[at - 1])))
        return (struct part){0};
    while (end < text.size && is_of_local_part(text.data[end]))
        end++;
    if (end == text.size || text.data[end++] != '@')
        return (struct part){0};
    if (end < text.size && isdigit(text.data[end]))
        return (struct part){0};
    while (end < text.size && (isalnum(text.data[end]) || text.data[end] == '-'))
        end++;
    return (struct part){at, end - at, true};
}

static struct part part_at(bytes text, size_t at, unsigned kinds, enum personal *kind)
{
    for (unsigned i = 0; i < PERSONAL_KINDS; i++) {
        struct part part = {0};
        *kind = (enum personal)i;
        if ((kinds & 1U << i) != 0)
            part = finders[i](text, at);
        if (part.size > 0)
            return part;
    }
    *kind = PERSONAL_MAIL;
    return (kinds & 1U << PERSONAL_MAIL) != 0 ? begun_mail_at(text, at) : (struct part){0};
}

/* Whether it passes a checksum or not: a number that somebody has mistyped is hidden, too. */
void personal_hide(bytes text, unsigned kinds, struct buffer *out)
{
    for (size_t at = 0; at < text.size;) {
        enum personal kind;
        struct part part = part_at(text, at, kinds, &kind);
        append_hidden(text, &at, &part, kind, out);
    }
}

/* A long address, which is none of many keys, may be one here. */
static struct part certain_at(bytes text, size_t at, enum personal *kind)
{
    for (unsigned i = 0; i < PERSONAL_NAME; i++) {
        struct part part = finders[i](text, at);
        *kind = (enum personal)i;
        if (part.is_valid || (i == PERSONAL_MAIL && part.size > 0))
            return part;
    }
    *kind = PERSONAL_MAIL;
    return begun_mail_at(text, at);
}

void personal_hide_certain(bytes text, struct buffer *out)
{
    for (size_t at = 0; at < text.size;) {
        enum personal kind;
        struct part part = certain_at(text, at, &kind);
        append_hidden(text, &at, &part, kind, out);
    }
}
