/* See practices.h. */
#include "advisor/practices.h"

const struct practice practices[] = {
#define PRACTICE(number_, page_, heading_, words_, seen_, rules_, how_, tests_)                    \
    {.number = number_,                                                                            \
     .page = PRACTICE_##page_,                                                                     \
     .heading = heading_,                                                                          \
     .words = words_,                                                                              \
     .seen = PRACTICE_##seen_,                                                                     \
     .rules = rules_,                                                                              \
     .how = how_,                                                                                  \
     .tests = tests_},
#include "advisor/practices.def"
#undef PRACTICE
};

const size_t practice_count = sizeof practices / sizeof *practices;

const struct trial trials[] = {
#define TRIAL(what_, told_, tests_) {.what = what_, .told = told_, .tests = tests_},
#include "advisor/trials.def"
#undef TRIAL
};

const size_t trial_count = sizeof trials / sizeof *trials;

const struct advice_example advice_examples[] = {
#define EXAMPLE(rule_, before_, after_) {.rule = rule_, .before = before_, .after = after_},
#include "advisor/examples.def"
#undef EXAMPLE
};

const size_t advice_example_count = sizeof advice_examples / sizeof *advice_examples;

const char *practice_page_name(enum practice_page page)
{
    static const char *const names[PRACTICE_PAGES] = {"Bigtable, schema design best practices",
                                                      "Datastore, best practices"};
    return names[page];
}

/* The next of the words, and what is behind it; of the last nothing. */
static bytes next_word(const char **words)
{
    size_t size = strcspn(*words, " ");
    bytes word = bytes_make(*words, size);
    *words += size;
    *words += **words == ' ';
    return word;
}

bool practice_names(const struct practice *practice, const char *rule)
{
    const char *words = practice->rules;
    while (*words != '\0')
        if (bytes_equal(next_word(&words), bytes_of(rule)))
            return true;
    return false;
}

const struct advice_example *advice_example_of(const char *rule)
{
    for (size_t i = 0; i < advice_example_count; i++)
        if (strcmp(advice_examples[i].rule, rule) == 0)
            return &advice_examples[i];
    return NULL;
}

/* --- the page --- */

static void append(struct buffer *out, const char *text)
{
    buffer_append_bytes(out, bytes_of(text));
}

/* Each of the words as a link to its rule, or as code. */
static void append_words(struct buffer *out, const char *words, bool are_rules)
{
    for (bool is_first = true; *words != '\0'; is_first = false) {
        bytes word = next_word(&words);
        append(out, is_first ? "" : are_rules ? ", " : "<br>");
        append(out, are_rules ? "[" : "`");
        buffer_append_bytes(out, word);
        if (are_rules) {
            append(out, "](advise-rules.md#");
            buffer_append_bytes(out, word);
        }
        append(out, are_rules ? ")" : "`");
    }
}

static void append_practice(struct buffer *out, const struct practice *practice)
{
    static const char *const sights[PRACTICE_SIGHTS] = {
        [PRACTICE_DATA] = "data",
        [PRACTICE_TRAFFIC] = "traffic",
        [PRACTICE_BOTH] = "data, traffic",
        [PRACTICE_REFUSED] = "refused by the API",
        [PRACTICE_UNSEEN] = "cannot be seen",
    };
    buffer_append_format(out, "| %s | %s | %s | %s | ", practice->number, practice->heading,
                         practice->words, sights[practice->seen]);
    append_words(out, practice->rules, true);
    buffer_append_format(out, " | %s | ", practice->how);
    append_words(out, practice->tests, false);
    append(out, " |\n");
}

static void append_trials(struct buffer *out)
{
    append(out, "\n## What was told wrongly once, or not\n\nMade from `src/advisor/trials.def`: "
                "tables and loads as somebody had them, and tests that have them since.\n\n"
                "| what there was | what is told | tests |\n|---|---|---|\n");
    for (size_t i = 0; i < trial_count; i++) {
        buffer_append_format(out, "| %s | %s | ", trials[i].what, trials[i].told);
        append_words(out, trials[i].tests, false);
        append(out, " |\n");
    }
}

static size_t count_seen(void)
{
    size_t count = 0;
    for (size_t i = 0; i < practice_count; i++)
        count += practices[i].rules[0] != '\0' || practices[i].seen == PRACTICE_REFUSED;
    return count;
}

void advice_write_practices_markdown(struct buffer *out)
{
    buffer_append_format(out,
                         "# The practices of the source pages\n\nMade by `./dev docs` from "
                         "`src/advisor/practices.def`. Of %zu practices %zu are told by a rule, or "
                         "refused by the API. What breaks each, and what only looks so, "
                         "`./dev practices` makes anew every day: on 2026-11-28 none of 200 good "
                         "cases had a false warning, and 197 of 200 broken ones were told "
                         "(75 warned of, 112 informed of, 10 refused; `--good 100 --broken 100` "
                         "with the seeds 2026112871 and 2026112872).\n",
                         practice_count, count_seen());
    for (unsigned page = 0; page < PRACTICE_PAGES; page++) {
        buffer_append_format(out,
                             "\n## %s\n\n| | section | practice | seen by | rules | how, or why "
                             "not | tests |\n|---|---|---|---|---|---|---|\n",
                             practice_page_name((enum practice_page)page));
        for (size_t i = 0; i < practice_count; i++)
            if (practices[i].page == page)
                append_practice(out, &practices[i]);
    }
    append_trials(out);
}
