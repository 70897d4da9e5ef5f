/* See personal_forms.h. A part begins where no letter or digit stands before it. */
#include "advisor/personal_forms.h"

#include "advisor/key_start.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

static const struct personal_part no_part = {0};

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

static bool is_one_of_words(bytes word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i]) == word.size &&
            strncasecmp(words[i], (const char *)word.data, word.size) == 0)
            return true;
    return false;
}

/* --- addresses --- */

/* Of another alphabet, as UTF-8. */
static bool is_of_letter(uint8_t c)
{
    return c >= 0x80;
}

static bool is_of_local_part(uint8_t c)
{
    return isalnum(c) || is_of_letter(c) || is_one_of(c, "._%+-");
}

static bool is_of_host(uint8_t c)
{
    return isalnum(c) || is_of_letter(c) || is_one_of(c, ".-");
}

/* The size of a host's name with a dot in it and letters at its end. */
static size_t host_size(bytes text, size_t at)
{
    size_t end = at, dot = 0;
    for (; end < text.size && is_of_host(text.data[end]); end++)
        if (text.data[end] == '.')
            dot = end;
    while (end > at && is_one_of(text.data[end - 1], ".-"))
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

/* Endings of files in which nobody has mail. */
static bool is_ending_of_file(bytes label)
{
    static const char *const endings[] = {
        "avi",  "avif", "bak",  "beta", "bin",  "bmp", "conf", "cpp",  "css", "csv",  "doc",
        "docx", "exe",  "gif",  "gz",   "heic", "htm", "html", "ico",  "ini", "iso",  "jar",
        "java", "jpeg", "jpg",  "js",   "json", "jsx", "lock", "log",  "mkv", "mp3",  "mp4",
        "otf",  "pdf",  "png",  "pptx", "scss", "sql", "svg",  "tar",  "tgz", "tif",  "tiff",
        "tmp",  "toml", "ts",   "tsv",  "tsx",  "ttf", "txt",  "wasm", "wav", "webm", "webp",
        "woff", "xls",  "xlsx", "xml",  "yaml", "yml", "zip",
    };
    return is_one_of_words(label, endings, sizeof endings / sizeof *endings);
}

/* One or two digits, and an x behind them or not: how much larger a picture is, or a version. */
static bool is_factor(bytes label)
{
    enum { DIGITS_MOST = 2 };
    size_t digits = digits_at(label, 0);
    return digits > 0 && digits <= DIGITS_MOST &&
           (digits == label.size || (digits + 1 == label.size && label.data[digits] == 'x'));
}

/* As in icon@2x.png and left-pad@1.3.beta. */
static bool is_of_file(bytes host)
{
    size_t first = 0, last = host.size;
    while (first < host.size && host.data[first] != '.')
        first++;
    while (last > 0 && host.data[last - 1] != '.')
        last--;
    return is_factor(bytes_make(host.data, first)) || is_ending_of_file(bytes_from(host, last));
}

/* Accounts of programs, which are nobody's. */
static bool is_of_machine(bytes local, bytes host)
{
    static const char *const accounts[] = {"git", "hg", "svn", "noreply", "no-reply", "postmaster"};
    static const char services[] = ".gserviceaccount.com";
    size_t size = strlen(services);
    return is_one_of_words(local, accounts, sizeof accounts / sizeof *accounts) ||
           (host.size > size &&
            strncasecmp((const char *)host.data + host.size - size, services, size) == 0);
}

/* The size of what may stand before an @, where one follows. */
static size_t local_part_size(bytes text, size_t at)
{
    size_t end = at;
    if (at > 0 && is_of_local_part(text.data[at - 1]))
        return 0;
    while (end < text.size && is_of_local_part(text.data[end]))
        end++;
    return end < text.size && text.data[end] == '@' ? end - at : 0;
}

/* What stands before the @ of a message's id is longer than what people choose; and behind the host
 * of what ssh copies comes a path. */
static struct personal_part mail_at(bytes text, size_t at)
{
    enum { LOCAL_PART_MOST = 30 };
    size_t local = local_part_size(text, at);
    size_t start = at + local + 1;
    size_t size = local > 0 ? host_size(text, start) : 0;
    if (size == 0)
        return no_part;
    bytes host = bytes_make(text.data + start, size), rest = bytes_from(text, start + size);
    if (is_of_file(host) || is_of_machine(bytes_make(text.data + at, local), host))
        return no_part;
    bool is_path = rest.size > 1 && rest.data[0] == ':' && is_one_of(rest.data[1], "/~");
    return (struct personal_part){at, local + 1 + size,
                                  local <= LOCAL_PART_MOST && may_have_mail(host) && !is_path};
}

/* What has a digit there is a version or a size more often. */
struct personal_part personal_begun_mail_at(bytes text, size_t at)
{
    size_t local = local_part_size(text, at);
    size_t start = at + local + 1, end = start;
    if (local == 0 || (start < text.size && isdigit(text.data[start])) ||
        is_of_machine(bytes_make(text.data + at, local), bytes_make(NULL, 0)))
        return no_part;
    while (end < text.size && is_of_host(text.data[end]) && text.data[end] != '.')
        end++;
    return host_size(text, start) > 0 ? no_part : (struct personal_part){at, end - at, true};
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

/* Digits alone, or in groups of three to six with a mark between, the first of four. */
static struct personal_part card_at(bytes text, size_t at)
{
    enum { FIRST = 4, GROUP_LEAST = 3, GROUP_MOST = 6 };
    uint8_t digits[CARD_MOST];
    size_t count = 0, end = at, run = digits_at(text, at);
    if (!begins_at(text, at) || run < FIRST || run > CARD_MOST)
        return no_part;
    while (run > 0 && count + run <= CARD_MOST) {
        memcpy(digits + count, text.data + end, run);
        count += run;
        end += run;
        bool is_grouped = end > at + count || count == FIRST;
        bool has_mark = is_grouped && end + 1 < text.size && is_one_of(text.data[end], "- ._");
        run = has_mark ? digits_at(text, end + 1) : 0;
        if (run < GROUP_LEAST || run > GROUP_MOST)
            break;
        end++;
    }
    if (count < CARD_LEAST || !ends_at(text, end))
        return no_part;
    return (struct personal_part){at, end - at,
                                  is_issuer(digits, count) && passes_luhn(digits, count)};
}

/* --- telephones --- */

enum { PHONE_LEAST = 8, PHONE_MOST = 15 };

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

/* A number as people write it, with its country's first: 1 (305) 555-0123. */
struct groups {
    uint8_t digits[PHONE_MOST];
    size_t count; /* of digits */
    size_t sizes[PHONE_MOST];
    size_t number; /* of groups */
    size_t dots;   /* gaps between them that are one */
};

/* The size of what stands between two groups; 0: none follows. */
static size_t gap_at(bytes text, size_t at)
{
    static const char *const gaps[] = {" (", "-(", ") ", ")-", "(", ")", " ", "-", "."};
    for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++) {
        bytes rest = bytes_from(text, at);
        size_t size = strlen(gaps[i]);
        if (bytes_start_with(rest, bytes_of(gaps[i])))
            return digits_at(rest, size) > 0 ? size : 0;
    }
    return 0;
}

/* False if there is no room. */
static bool add_group(struct groups *groups, bytes rest)
{
    size_t size = digits_at(rest, 0);
    if (size == 0 || groups->count + size > PHONE_MOST)
        return false;
    memcpy(groups->digits + groups->count, rest.data, size);
    groups->count += size;
    groups->sizes[groups->number++] = size;
    return true;
}

/* One dot is that of a fraction; a year and a month behind it are a date behind an offset; and a
 * country of one digit has numbers of eleven. */
static bool is_phone(const struct groups *groups)
{
    enum { COUNTRY_MOST = 3, DOTS_LEAST = 3, OF_SHORT = 11, YEAR = 4, MONTH = 2 };
    if (groups->number == 1)
        return groups->count >= PHONE_LEAST;
    bool is_date = groups->number > 2 && groups->sizes[1] == YEAR && groups->sizes[2] == MONTH;
    bool is_short = groups->digits[0] == '1' || groups->digits[0] == '7';
    bool has_gaps =
        groups->dots == 0 || (groups->dots == groups->number - 1 && groups->dots >= DOTS_LEAST);
    return groups->count >= PHONE_LEAST && groups->sizes[0] <= COUNTRY_MOST && !is_date &&
           has_gaps && (!is_short || groups->count == OF_SHORT);
}

/* As many groups as fit; what has none ends with its digits. */
static struct personal_part phone_at(bytes text, size_t at)
{
    struct groups groups = {0};
    struct personal_part part = no_part;
    size_t end = at + 1, gap = 0;
    if (text.data[at] != '+' || !begins_at(text, at))
        return no_part;
    do {
        groups.dots += gap > 0 && text.data[end] == '.';
        end += gap;
        if (!add_group(&groups, bytes_from(text, end)))
            break;
        end += groups.sizes[groups.number - 1];
        if (ends_at(text, end) && is_phone(&groups))
            part = (struct personal_part){at, end - at, is_country(groups.digits)};
        gap = part.size > 0 && groups.number == 1 ? 0 : gap_at(text, end);
    } while (gap > 0);
    return part;
}

struct personal_part personal_begun_phone_at(bytes text, size_t at)
{
    enum { DIGITS_LEAST = 3 };
    struct groups groups = {0};
    size_t end = at + 1, gap = 0;
    if (text.data[at] != '+' || !begins_at(text, at))
        return no_part;
    do {
        end += gap;
        if (!add_group(&groups, bytes_from(text, end)))
            break;
        end += groups.sizes[groups.number - 1];
        gap = gap_at(text, end);
    } while (gap > 0);
    return groups.count < DIGITS_LEAST ? no_part : (struct personal_part){at, end - at, true};
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

/* There is no checksum; but some numbers are nobody's, a tenth of all. */
static struct personal_part social_at(bytes text, size_t at)
{
    static const char form[] = "999-99-9999";
    if (!has_form(text, at, form))
        return no_part;
    const char *digits = (const char *)text.data + at;
    bool is_nobodys = digits[0] == '9' || memcmp(digits, "000", 3) == 0 ||
                      memcmp(digits, "666", 3) == 0 || memcmp(digits + 4, "00", 2) == 0 ||
                      memcmp(digits + 7, "0000", 4) == 0;
    return (struct personal_part){at, strlen(form), !is_nobodys};
}

static struct personal_part tax_at(bytes text, size_t at)
{
    static const char form[] = "999.999.999-99";
    enum { DIGITS = 11, FIRST_CHECK = 9 };
    unsigned digits[DIGITS];
    size_t count = 0;
    bool is_valid = true;
    if (!has_form(text, at, form))
        return no_part;
    for (size_t i = 0; form[i] != '\0'; i++)
        if (form[i] == '9')
            digits[count++] = text.data[at + i] - '0';
    for (size_t check = FIRST_CHECK; check < DIGITS; check++) {
        unsigned sum = 0;
        for (size_t i = 0; i < check; i++)
            sum += digits[i] * (unsigned)(check + 1 - i);
        is_valid &= digits[check] == sum * 10 % 11 % 10;
    }
    return (struct personal_part){at, strlen(form), is_valid};
}

/* --- bank accounts --- */

enum { ACCOUNT_LEAST = 15, ACCOUNT_MOST = 34, ACCOUNT_GROUP = 4 };

/* How long an account of the country is, of which the text has the two letters in capitals; 0: it
 * has none. From the registry of ISO 13616. */
static size_t account_size(const uint8_t *country)
{
    static const char sizes[] =
        "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29"
        "ES24FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28"
        "LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25"
        "QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20YE30";
    for (const char *at = sizes; *at != '\0'; at += 4)
        if (memcmp(at, country, 2) == 0)
            return 10 * (size_t)(at[2] - '0') + (size_t)(at[3] - '0');
    return 0;
}

/* An account in capitals, without what stands between its groups. */
struct account {
    uint8_t text[ACCOUNT_MOST];
    size_t size;
    size_t wanted; /* what its country has; 0: that is none */
    uint8_t mark;  /* between groups of four; 0: there are no groups */
};

static bool is_of_account(uint8_t c, bool is_capital)
{
    return isdigit(c) || (is_capital ? isupper(c) : islower(c));
}

/* Whether the next group begins behind the byte there. */
static bool is_between(const struct account *account, bytes text, size_t at)
{
    bool is_first = account->size == ACCOUNT_GROUP && account->mark == 0;
    return account->size < account->wanted && account->size % ACCOUNT_GROUP == 0 &&
           (is_first ? is_one_of(text.data[at], " -") : text.data[at] == account->mark) &&
           at + 1 < text.size && isalnum(text.data[at + 1]);
}

/* Where it ends. */
static size_t read_account(bytes text, size_t at, struct account *out)
{
    bool is_capital = isupper(text.data[at]) != 0;
    for (; at < text.size && out->size < ACCOUNT_MOST; at++) {
        uint8_t c = text.data[at];
        if (out->size > 0 && is_between(out, text, at)) {
            out->mark = c;
            continue;
        }
        if (!is_of_account(c, is_capital))
            break;
        out->text[out->size++] = (uint8_t)toupper(c);
        if (out->size == 2)
            out->wanted = account_size(out->text);
    }
    return at;
}

static bool passes_97(const struct account *account)
{
    enum { MOVED = 4, MODULUS = 97 };
    unsigned rest = 0;
    for (size_t i = 0; i < account->size; i++) {
        uint8_t c = account->text[(i + MOVED) % account->size];
        rest = isdigit(c) ? (rest * 10 + (c - '0')) % MODULUS
                          : (rest * 100 + (unsigned)(c - 'A' + 10)) % MODULUS;
    }
    return rest == 1;
}

/* Two letters, two digits, then digits and letters of the same case, as ISO 13616 has it; together
 * or in groups of four. */
static struct personal_part account_at(bytes text, size_t at)
{
    struct account account = {.size = 0};
    bool has_start = begins_at(text, at) && text.size - at >= ACCOUNT_LEAST &&
                     isalpha(text.data[at]) && isalpha(text.data[at + 1]) &&
                     isdigit(text.data[at + 2]) && isdigit(text.data[at + 3]);
    if (!has_start)
        return no_part;
    size_t end = read_account(text, at, &account);
    if (account.size < ACCOUNT_LEAST || !ends_at(text, end))
        return no_part;
    return (struct personal_part){at, end - at,
                                  account.size == account.wanted && passes_97(&account)};
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
static struct personal_part name_at(bytes text, size_t at)
{
    enum { LETTERS_LEAST = 2 };
    size_t first = begins_at(text, at) ? letters_at(text, at) : 0, gap = at + first;
    if (first == 0 || gap >= text.size || !is_one_of(text.data[gap], " ._-,") ||
        !is_given_name(bytes_make(text.data + at, first)))
        return no_part;
    gap += text.data[gap] == ',' && gap + 1 < text.size && text.data[gap + 1] == ' ';
    size_t second = letters_at(text, gap + 1);
    if (second < LETTERS_LEAST)
        return no_part;
    return (struct personal_part){at, gap + 1 + second - at, true};
}

/* --- all of them --- */

struct personal_part personal_part_at(bytes text, size_t at, enum personal kind)
{
    typedef struct personal_part finder(bytes text, size_t at);
    static finder *const finders[PERSONAL_KINDS] = {
        [PERSONAL_MAIL] = mail_at,     [PERSONAL_CARD] = card_at,       [PERSONAL_PHONE] = phone_at,
        [PERSONAL_SOCIAL] = social_at, [PERSONAL_ACCOUNT] = account_at, [PERSONAL_TAX] = tax_at,
        [PERSONAL_NAME] = name_at,
    };
    return finders[kind](text, at);
}

struct personal_part personal_part_from(bytes text, size_t at, enum personal kind)
{
    struct personal_part part = no_part;
    for (; at < text.size && part.size == 0; at++)
        part = personal_part_at(text, at, kind);
    return part;
}

bool personal_may_be_in(bytes text, enum personal kind)
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
