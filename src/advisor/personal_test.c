/* Personal data: each kind is told from numbers and words that are like it, and no finding of such
 * a table shows any. */
#include "advisor/personal.h"

#include "advisor/testing/testing.h"
#include "base/testing/failmalloc.h"

#include <ctype.h>

static size_t luhn_digit(const char *digits)
{
    size_t size = strlen(digits), sum = 0;
    for (size_t i = 0; i < size; i++) {
        size_t digit = (size_t)(digits[size - 1 - i] - '0') * (i % 2 == 0 ? 2 : 1);
        sum += digit / 10 + digit % 10;
    }
    return (10 - sum % 10) % 10;
}

typedef int writer(char key[SAMPLE_KEY], size_t n);

#define WRITER(name, ...)                                                                          \
    static int name(char key[SAMPLE_KEY], size_t n)                                                \
    {                                                                                              \
        return snprintf(key, SAMPLE_KEY, __VA_ARGS__);                                             \
    }

static size_t drawn(size_t n)
{
    return (size_t)((n + 1) * 0x9e3779b97f4a7c15 >> 20);
}

WRITER(mail, "t%zu#user#jo.%zu@example%zu.co.uk", n % 7, drawn(n) % 10000, n)
WRITER(ssn, "cust#%03zu-%02zu-%04zu", 100 + drawn(n) % 500, 10 + drawn(n) % 89, 1000 + n)
WRITER(phone, "t%zu#+4930%08zu", n % 7, drawn(n) % 100000000)
WRITER(named, "Maria Weber%zu#19%02zu-03-1%zu", n, 40 + n % 50, n % 10)

static int card(char key[SAMPLE_KEY], size_t n)
{
    char digits[32];
    snprintf(digits, sizeof digits, "4%014zu", drawn(n) % 100000000000000);
    return snprintf(key, SAMPLE_KEY, "s%zu#%.4s-%.4s-%.4s-%s%zu#%zu", n % 7, digits, digits + 4,
                    digits + 8, digits + 12, luhn_digit(digits), n);
}

static int account(char key[SAMPLE_KEY], size_t n)
{
    size_t number = drawn(n) % 1000000000, rest = 0;
    char digits[32];
    snprintf(digits, sizeof digits, "%018zu131400", number); /* DE00 moved to the end */
    for (size_t i = 0; digits[i] != '\0'; i++)
        rest = (rest * 10 + (size_t)(digits[i] - '0')) % 97;
    return snprintf(key, SAMPLE_KEY, "b%zu#DE%02zu%018zu", n % 7, 98 - rest, number);
}

static int taxpayer(char key[SAMPLE_KEY], size_t n)
{
    size_t digits[11], number = drawn(n);
    for (size_t i = 0; i < 11; i++, number /= 10) {
        size_t sum = 0;
        for (size_t j = 0; j < i; j++)
            sum += digits[j] * (i + 1 - j);
        digits[i] = i < 9 ? number % 10 : sum * 10 % 11 % 10;
    }
    return snprintf(key, SAMPLE_KEY, "tax#%zu%zu%zu.%zu%zu%zu.%zu%zu%zu-%zu%zu", digits[0],
                    digits[1], digits[2], digits[3], digits[4], digits[5], digits[6], digits[7],
                    digits[8], digits[9], digits[10]);
}

WRITER(mail_in_url, "t%zu#u=jo.%zu%%40example%zu.com&v=1", n % 7, drawn(n) % 10000, n)
WRITER(mail_abroad, "t%zu#bj\xc3\xb6rn.%zu@example.se", n % 7, drawn(n) % 10000)
WRITER(phone_in_groups, "t%zu#+1 (305) 555-%04zu#%zu", n % 7, drawn(n) % 10000, n)

static int account_in_groups(char key[SAMPLE_KEY], size_t n)
{
    char whole[SAMPLE_KEY];
    int size = account(whole, n), written = 0;
    const char *number = strchr(whole, '#') + 1;
    for (int i = 0; number + i < whole + size; i++)
        written += snprintf(key + written, SAMPLE_KEY - (size_t)written, "%s%c",
                            i > 0 && i % 4 == 0 ? " " : "", number[i]);
    return written;
}

static int account_in_small_letters(char key[SAMPLE_KEY], size_t n)
{
    int size = account(key, n);
    for (int i = 0; i < size; i++)
        key[i] = (char)tolower(key[i]);
    return size;
}

/* what is like it */
WRITER(picture, "img%zu/icon-%zu@2x.png", n % 7, drawn(n))
WRITER(picture_of_a_size, "img%zu/icon-%zu@large.webp", n % 7, drawn(n))
WRITER(remote, "repo%zu#git@git.example%zu.com:acme/r%zu.git", n % 7, n % 9, drawn(n))
WRITER(copied, "from#deploy@web%zu.example.com:/srv/%zu", n % 9, drawn(n))
WRITER(program, "sa%zu#ci-%zu@acme-%zu.iam.gserviceaccount.com", n % 7, drawn(n) % 1000, n % 9)
WRITER(package, "npm#left-pad%zu@%zu.%zu.beta", drawn(n), n % 9, n % 30)
WRITER(place, "%+03zd.%02zu%+04zd.%02zu#%zu", (ssize_t)(drawn(n) % 90), drawn(n + 1) % 100,
       (ssize_t)(drawn(n + 2) % 180), drawn(n + 3) % 100, n)
WRITER(dated_offset, "+%02zu-2026-%02zu-%02zu#%zu", drawn(n) % 60, n % 12 + 1, n % 28 + 1, n)
WRITER(digest, "b%zu#%016zx%016zx", n % 7, drawn(n) * 77, drawn(n + 7) * 99)
WRITER(meter, "g%zu#4%015zu", n % 7, drawn(n) % 1000000000000000)
WRITER(part_number, "p#%03zu-%02zu-%04zu", drawn(n) % 1000, drawn(n + 500) % 100, n)
WRITER(message, "t%zu#%016zX-%04zX-%012zX@mail.example.com", n % 7, drawn(n), drawn(n + 3) % 65536,
       drawn(n + 5))
WRITER(unit, "t%zu#jo-%zu@tty%zu.service", n % 7, drawn(n) % 1000, n % 9)
WRITER(offset, "t%zu#+%zu", n % 7, drawn(n) % 1000)
WRITER(serial, "b%zu#DE%02zu%018zu", n % 7, drawn(n) % 98, drawn(n + 7))
WRITER(version, "tax#%03zu.%03zu.%03zu-%02zu", drawn(n) % 1000, n, drawn(n) / 7 % 1000, n % 100)
WRITER(handle, "t%zu#@jo%zu", n % 7, drawn(n))
WRITER(words, "pearl jade%zu#19%02zu-03-1%zu", n, 40 + n % 50, n % 10)
WRITER(city, "paris-green%zu", drawn(n))

static const struct {
    const char *name;
    writer *write;
    const char *shown; /* NULL: it is none */
} cases[] = {
    {"mail", mail, "<e-mail>"},
    {"card", card, "<card>"},
    {"phone", phone, "<phone>"},
    {"ssn", ssn, "<social-number>"},
    {"account", account, "<iban>"},
    {"taxpayer", taxpayer, "<tax-number>"},
    {"named", named, "<name>"},
    {"mail_in_url", mail_in_url, "<e-mail>"},
    {"mail_abroad", mail_abroad, "<e-mail>"},
    {"phone_in_groups", phone_in_groups, "<phone>"},
    {"account_in_groups", account_in_groups, "<iban>"},
    {"account_in_small_letters", account_in_small_letters, "<iban>"},
    {"picture", picture, NULL},
    {"picture_of_a_size", picture_of_a_size, NULL},
    {"remote", remote, NULL},
    {"copied", copied, NULL},
    {"program", program, NULL},
    {"package", package, NULL},
    {"place", place, NULL},
    {"dated_offset", dated_offset, NULL},
    {"digest", digest, NULL},
    {"message", message, NULL},
    {"unit", unit, NULL},
    {"meter", meter, NULL},
    {"part_number", part_number, NULL},
    {"offset", offset, NULL},
    {"serial", serial, NULL},
    {"version", version, NULL},
    {"handle", handle, NULL},
    {"words", words, NULL},
    {"city", city, NULL},
};

static void fill(struct made_sample *sample, writer *write, size_t count)
{
    sample->seen.row_count = 0;
    for (size_t i = 0; i < count; i++) {
        char key[SAMPLE_KEY];
        int size = write(key, i);
        assert_true(size > 0 && size < SAMPLE_KEY);
        sample_add(sample, bytes_make(key, (size_t)size));
    }
    sample_look(sample);
}

static bool has(bytes text, const char *part)
{
    for (size_t i = 0; i < text.size; i++)
        if (bytes_start_with(bytes_from(text, i), bytes_of(part)))
            return true;
    return false;
}

static void kinds_are_told_from_similar_texts(void **state)
{
    struct made_sample *sample = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("# %s\n", cases[i].name);
        fill(sample, cases[i].write, 200);
        const struct advice_finding *finding = sample_finding(sample, "personal-data");
        assert_true((finding != NULL) == (cases[i].shown != NULL));
        if (finding == NULL)
            continue;
        assert_true(has(finding->keys[0], cases[i].shown));
        assert_true(has(finding->better[0].better, "<id>"));
        fill(sample, cases[i].write, PERSONAL_LEAST - 1);
        assert_null(sample_finding(sample, "personal-data"));
    }
}

static int one_in_twenty(char key[SAMPLE_KEY], size_t n)
{
    return n % 20 == 7 ? mail(key, n) : city(key, n);
}

/* Of few keys that have some those are shown, and not their neighbours. */
static void keys_that_have_some_are_shown(void **state)
{
    struct made_sample *sample = *state;
    fill(sample, one_in_twenty, 800);
    const struct advice_finding *finding = sample_finding(sample, "personal-data");
    assert_non_null(strstr(finding->evidence, "40 of 800"));
    assert_int_equal(finding->key_count, ADVICE_KEYS_SHOWN);
    assert_int_equal(finding->better_count, ADVICE_KEYS_SHOWN);
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN; i++) {
        assert_true(has(finding->keys[i], "<e-mail>"));
        assert_true(has(finding->better[i].key, "<e-mail>"));
        assert_true(has(finding->better[i].better, "<id>"));
        assert_false(has(finding->better[i].better, "<e-mail>"));
    }
    sample->seen.shows_values = true;
    sample_look(sample);
    finding = sample_finding(sample, "personal-data");
    assert_true(has(finding->keys[0], "@example") && has(finding->better[0].better, "<id>"));
}

WRITER(counted_phone, "+1-212-555-%04zu#x", n)

/* Nor what all of them begin with. */
static void no_finding_shows_a_part(void **state)
{
    struct made_sample *sample = *state;
    fill(sample, counted_phone, 600);
    const struct advice_finding *finding = sample_finding(sample, "key-sequential");
    assert_non_null(finding);
    assert_null(strstr(finding->evidence, "212"));
    for (size_t i = 0; i < finding->better_count; i++)
        assert_false(has(finding->better[i].better, "212"));
    assert_false(has(finding->start, "212") || has(finding->end, "212"));
}

/* Another finding of such a table, and what it says. */
static void no_finding_shows_personal_data(void **state)
{
    struct made_sample *sample = *state;
    fill(sample, mail, 200);
    sample->rows[20].size = ROW_BYTES;
    sample_look(sample);
    const struct advice_finding *finding = sample_finding(sample, "row-size");
    assert_true(has(finding->keys[0], "#user#<e-mail>"));
    sample->seen.shows_values = true;
    sample_look(sample);
    finding = sample_finding(sample, "row-size");
    assert_true(has(finding->keys[0], "@example"));
    assert_true(has(sample_finding(sample, "personal-data")->keys[0], "@example"));
}

/* The ends of ranges are cut off where that tells two rows apart: behind the @, too. */
static void what_is_cut_off_is_hidden(void **state)
{
    struct buffer out = {0};
    (void)state;
    personal_hide(bytes_of("t7#jo.smith@exam"), 1U << PERSONAL_MAIL, &out);
    personal_hide(bytes_of(" t7#jo.smith@"), 1U << PERSONAL_MAIL, &out);
    personal_hide(bytes_of(" t7#jo.smith@exam"), 1U << PERSONAL_CARD, &out);
    personal_hide(bytes_of(" a#+1 (212) 5 b#+12"), 1U << PERSONAL_PHONE, &out);
    buffer_append_byte(&out, 0);
    assert_string_equal(out.data, "t7#<e-mail> t7#<e-mail> t7#jo.smith@exam a#<phone> b#+12");
    buffer_free(&out);
}

static void families_of_people(void **state)
{
    static const char *const names[] = {"john.smith_example.com", "anna.weber_example.com",
                                        "wim.x-at-example.com", "main"};
    struct made_sample *sample = *state;
    for (size_t i = 0; i < 4; i++)
        sample->families[i] = (struct advice_family){.name = names[i], .has_rule = true};
    sample->seen.family_count = 4;
    sample_look(sample);
    assert_non_null(sample_finding(sample, "personal-data"));
    assert_null(strstr(sample_finding(sample, "family-name")->evidence, "john"));
    assert_non_null(strstr(sample_finding(sample, "family-name")->evidence, "<name>"));
    sample->families[2].name = "api.example.com"; /* a host, and two are not enough */
    sample_look(sample);
    assert_null(sample_finding(sample, "personal-data"));
}

/* A number with a checksum says it alone. */
static void a_family_with_a_number_of_somebody(void **state)
{
    static const struct {
        const char *name;
        bool is_told;
    } names[] = {
        {"DE89370400440532013000", true},  {"card_4111-1111-1111-1111", true},
        {"529.982.247-25", true},          {"DE88370400440532013000", false},
        {"build_4111111111111112", false}, {"events_2026.11.28-17", false},
    };
    struct made_sample *sample = *state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        sample->families[1] = (struct advice_family){.name = names[i].name, .has_rule = true};
        sample->seen.family_count = 2;
        sample_look(sample);
        assert_int_equal(sample_finding(sample, "personal-data") != NULL, names[i].is_told);
        const struct advice_finding *finding = sample_finding(sample, "family-name");
        if (names[i].is_told && finding != NULL)
            assert_null(strstr(finding->evidence, names[i].name));
    }
}

static void set_tables(struct made_sample *sample, struct advice_sibling *siblings,
                       const char *const *ids, size_t count)
{
    sample->seen.table_id = ids[0];
    for (size_t i = 1; i < count; i++)
        siblings[i - 1] =
            (struct advice_sibling){.id = ids[i], .is_known = true, .has_same_families = true};
    sample->seen.siblings = siblings;
    sample->seen.sibling_count = count - 1;
    sample_look(sample);
}

static void tables_of_people(void **state)
{
    enum { TABLES = 6 };
    static const char *const people[TABLES] = {"orders_john_smith",   "orders_anna_weber",
                                               "orders_anna_lopez",   "orders_peter_jones",
                                               "orders_julia_martin", "orders_thomas_muller"};
    static const char *const products[TABLES] = {"metrics_maria_db", "metrics_victor_ops",
                                                 "metrics_kafka",    "metrics_redis",
                                                 "metrics_nginx",    "metrics_mysql"};
    static const char *const one[1] = {"anna_karenina"};
    static const char *const card[1] = {"orders_4111111111111111"};
    struct made_sample *sample = *state;
    struct advice_sibling siblings[TABLES];
    set_tables(sample, siblings, people, TABLES);
    const struct advice_finding *finding = sample_finding(sample, "personal-data");
    assert_string_equal(finding->evidence,
                        "The table is named after a person, and so are 5 others.");
    finding = sample_finding(sample, "small-tables");
    assert_non_null(strstr(finding->evidence, "orders_<name> and orders_<name>"));
    set_tables(sample, siblings, products, TABLES);
    assert_null(sample_finding(sample, "personal-data"));
    set_tables(sample, siblings, one, 1);
    assert_null(sample_finding(sample, "personal-data"));
    set_tables(sample, siblings, card, 1);
    finding = sample_finding(sample, "personal-data");
    assert_string_equal(finding->evidence, "The table's name has a payment card's number in it.");
}

static void columns_of_people(void **state)
{
    struct made_sample *sample = *state;
    char name[SAMPLE_KEY];
    fill(sample, city, 200);
    assert_null(sample_finding(sample, "personal-data"));
    for (size_t i = 0; i < PERSONAL_LEAST; i++) {
        snprintf(name, sizeof name, "jo.%zu@example.com", i);
        sample->rows[i].cells[0].qualifier = arena_copy(sample->arena, bytes_of(name));
    }
    sample_look(sample);
    assert_non_null(sample_finding(sample, "personal-data"));
}

static const struct {
    const char *text;
    const char *hidden; /* NULL: nothing is */
} certain[] = {
    {"\"t7#jo.smith@example.co.uk#2026\"", "\"t7#<e-mail>#2026\""},
    {"\"t7#jo.smith@exam...\", \"\"", "\"t7#<e-mail>...\", \"\""},
    {"\"jo@...", "\"<e-mail>..."},
    {"from \"jo@\" before \"jo@e\"", "from \"<e-mail>\" before \"<e-mail>\""},
    {"to a.name.that.hardly.anybody.has.chosen@example.com", "to <e-mail>"},
    {"icon@2x", NULL},
    {"s1#4111-1111-1111-1111#x", "s1#<card>#x"},
    {"s1#4111111111111112", NULL},   /* the checksum */
    {"s1#1763800000123456#x", NULL}, /* a time */
    {"a#+493012345678", "a#<phone>"},
    {"cust#123-45-6789", "cust#<social-number>"},
    {"cust#666-45-6789", NULL},
    {"DE89370400440532013000", "<iban>"},
    {"529.982.247-25", "<tax-number>"},
    {"anna-weber#7", NULL}, /* who knows */
    {"LIMIT 20 OFFSET @cursor", NULL},
    /* as patterns, quotes and addresses escape it */
    {"s1#4111\\-1111\\-1111\\-1111#x", "s1#<card>#x"},
    {"\"s1#4111\\\\-1111\\\\-1111\\\\-1111.*\"", "\"s1#<card>.*\""},
    {"^\\Q4111-1111-1111-1111\\E$", "^\\Q<card>\\E$"},
    {"\\b4111[-]1111[-]1111[-]1111", "\\b<card>"},
    {"LIKE '%4111-1111-1111-1111%'", "LIKE '%<card>%'"},
    {"LIKE '%4012-8888-8888-1881'", "LIKE '%<card>'"},
    {"t7#jo\\.smith@example\\.com\\|x", "t7#<e-mail>\\|x"},
    {"t7#jo\\x2esmith\\x40example.com#", "t7#<e-mail>#"},
    {"t7#jo\\x{40}example.com#", "t7#<e-mail>#"},
    {"u=jo.smith%40example.com&x", "u=<e-mail>&x"},
    {"u=jo.smith%2540example.com&x", "u=<e-mail>&x"},
    {"tel=%2B493012345678&x", "tel=<phone>&x"},
    {"\\+1 \\(305\\) 555-0123", "<phone>"},
    {"cust#123\\-45\\-6789", "cust#<social-number>"},
    {"\"J\\xc3\\xb6rg.M\\xc3\\xbcller@example.de\"", "\"<e-mail>\""},
    {"a#J\xc3\xb6rg@b\xc3\xbc"
     "cher.de#",
     "a#<e-mail>#"},
    {"100% of a\\b [x] 5%", NULL},
    /* in groups, and in small letters */
    {"b1#DE89 3704 0044 0532 0130 00#x", "b1#<iban>#x"},
    {"b1#DE89-3704-0044-0532-0130-00", "b1#<iban>"},
    {"b1#de89370400440532013000", "b1#<iban>"},
    {"b1#de89 3704 0044 0532 0130 00 and", "b1#<iban> and"},
    {"gb82west12345698765432", "<iban>"},
    {"be68539007547034-2026", "<iban>-2026"},
    {"DE88 3704 0044 0532 0130 00", NULL}, /* the checksum */
    {"s1#4111.1111-1111 1111", "s1#<card>"},
    {"a#+1 (305) 555-0123#x", "a#<phone>#x"},
    {"a#+1-305-555-0123-17", "a#<phone>-17"},
    {"a#+1.305.555.0123", "a#<phone>"},
    {"a#+49 (0)30 1234567", "a#<phone>"},
    {"a#+33 1 23 45 67 89", "a#<phone>"},
    {"a#+52.52-13.40", NULL}, /* a place */
    {"a#+52.5200066", NULL},
    {"a#+30 2026-11-28 10", NULL}, /* an offset, and a date */
    {"+2026-11-28", NULL},
    /* of nobody */
    {"img/icon@2x.png", NULL},
    {"img/icon@large.png", NULL},
    {"git@github.com:acme/repo.git", NULL},
    {"ssh git@host:path", NULL},
    {"ci-17@acme-prod.iam.gserviceaccount.com", NULL},
    {"left-pad@1.3.beta", NULL},
    {"from \"a\" before \"b\"", NULL},
};

/* Alone, without others to compare it with: what is certain. */
static void certain_personal_data_is_hidden(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof certain / sizeof *certain; i++) {
        struct buffer out = {0};
        personal_hide_certain(bytes_of(certain[i].text), &out);
        buffer_append_byte(&out, 0);
        assert_string_equal(out.data,
                            certain[i].hidden == NULL ? certain[i].text : certain[i].hidden);
        buffer_free(&out);
    }
}

static void hide_in_pattern(void *context)
{
    struct personal_counts counts = {0};
    struct buffer out = {0};
    bytes pattern = bytes_of("t7#jo\\.smith@example\\.com\\|x");
    (void)context;
    personal_count(&counts, pattern);
    personal_hide_certain(pattern, &out);
    assert_int_equal(counts.texts, 1);
    assert_false(has(buffer_bytes(&out), "smith"));
    assert_true(out.failed || has(buffer_bytes(&out), "<e-mail>"));
    buffer_free(&out);
}

/* Nothing is shown that could not be looked at. */
static void without_memory_it_is_hidden(void **state)
{
    (void)state;
    failmalloc_each(hide_in_pattern, NULL);
}

/* Whatever bytes there are, parts are found within them. */
static void all_bytes_are_looked_at(void **state)
{
    (void)state;
    for (size_t seed = 0; seed < 3000; seed++) {
        struct personal_counts counts = {0};
        struct buffer out = {0};
        uint8_t text[40];
        size_t size = drawn(seed) % sizeof text;
        for (size_t i = 0; i < size; i++)
            text[i] = (uint8_t) "0149.-+@ aDE#_\xff\\%x[]{}"[drawn(seed * 41 + i) % 22];
        personal_count(&counts, bytes_make(text, size));
        personal_hide(bytes_make(text, size), (1U << PERSONAL_KINDS) - 1, &out);
        personal_hide_certain(bytes_make(text, size), &out);
        assert_false(out.failed);
        buffer_free(&out);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(kinds_are_told_from_similar_texts),
        TEST(keys_that_have_some_are_shown),
        TEST(no_finding_shows_personal_data),
        TEST(no_finding_shows_a_part),
        TEST(what_is_cut_off_is_hidden),
        TEST(families_of_people),
        TEST(a_family_with_a_number_of_somebody),
        TEST(tables_of_people),
        TEST(columns_of_people),
        TEST(certain_personal_data_is_hidden),
        TEST(without_memory_it_is_hidden),
        TEST(all_bytes_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
