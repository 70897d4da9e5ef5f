/* Personal data: each kind is told from numbers and words that are like it, and no finding of such
 * a table shows any. */
#include "advisor/personal.h"

#include "advisor/testing/testing.h"

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

/* what is like it */
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
    buffer_append_byte(&out, 0);
    assert_string_equal(out.data, "t7#<e-mail> t7#<e-mail> t7#jo.smith@exam");
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

/* Alone, without others to compare it with: what is certain. */
static void certain_personal_data_is_hidden(void **state)
{
    static const struct {
        const char *text;
        const char *hidden; /* NULL: nothing is */
    } texts[] = {
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
        {"anna-weber#7", NULL}, /* might be anything */
        {"LIMIT 20 OFFSET @cursor", NULL},
        {"from \"a\" before \"b\"", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct buffer out = {0};
        personal_hide_certain(bytes_of(texts[i].text), &out);
        buffer_append_byte(&out, 0);
        assert_string_equal(out.data, texts[i].hidden == NULL ? texts[i].text : texts[i].hidden);
        buffer_free(&out);
    }
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
            text[i] = (uint8_t) "0149.-+@ aDE#_\xff"[drawn(seed * 41 + i) % 15];
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
        TEST(what_is_cut_off_is_hidden),
        TEST(families_of_people),
        TEST(columns_of_people),
        TEST(certain_personal_data_is_hidden),
        TEST(all_bytes_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
