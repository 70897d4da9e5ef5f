/* Fuzzer: any pattern on any text. What we compare as a literal is what RE2 makes of it; an
 * alternative more never makes a text fail, and a pattern matches its own literal. A search finds
 * what is in the text, and all of a text that matches.
 *
 * Input: choices (base/testing/fuzzing.h): the pattern, then texts. */
#include "base/testing/fuzzing.h"
#include "row/regex.h"

enum { MOST_PATTERN = 200, MOST_TEXT = 64 };

/* NULL if the expression is refused, with words. */
static struct regex *compile(bytes pattern)
{
    struct regex *regex;
    status s = regex_compile(pattern, &regex);
    CHECK(status_is_ok(s) == (regex != NULL));
    CHECK(status_is_ok(s) || s.code == STATUS_INVALID_ARGUMENT);
    CHECK(status_is_ok(s) || status_message(s)[0] != '\0');
    status_free(s);
    return regex;
}

static struct regex *compile_after(const char *prefix, bytes pattern)
{
    struct buffer text = {0};
    buffer_append_bytes(&text, bytes_of(prefix));
    buffer_append_bytes(&text, pattern);
    CHECK(!text.failed);
    struct regex *regex = compile(buffer_bytes(&text));
    buffer_free(&text);
    return regex;
}

static void check_literal(const struct regex *regex, const struct regex *grouped)
{
    bytes literal;
    if (regex_literal(regex, &literal)) {
        CHECK(regex_matches(regex, literal));
        CHECK(grouped == NULL || regex_matches(grouped, literal));
    }
}

static void check_search(const struct regex_search *search, bytes text, bool matches)
{
    struct regex_span spans[REGEX_MOST_SPANS];
    size_t groups = regex_search_groups(search);
    size_t count = groups < REGEX_MOST_SPANS - 1 ? groups + 1 : REGEX_MOST_SPANS;
    bool found = regex_search_find(search, text, 0, spans, count);
    CHECK(found || !matches);
    for (size_t i = 0; found && i < count; i++) {
        bool has_part = spans[i].from != SIZE_MAX;
        CHECK(has_part || (i > 0 && spans[i].to == SIZE_MAX));
        CHECK(!has_part || (spans[i].from <= spans[i].to && spans[i].to <= text.size));
    }
}

/* In bytes, and in characters, for which the text need not be valid here. */
static void check_searches(bytes pattern, bytes text, bool matches)
{
    for (int is_utf8 = 0; is_utf8 <= 1; is_utf8++) {
        struct regex_search *search;
        status s = regex_search_compile(pattern, is_utf8, &search);
        CHECK(status_is_ok(s) == (search != NULL));
        CHECK(status_is_ok(s) || s.code == STATUS_INVALID_ARGUMENT);
        status_free(s);
        if (search != NULL)
            check_search(search, text, matches && !is_utf8);
        regex_search_destroy(search);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices = choices_of(data, size);
    bytes pattern = choose_bytes(&choices, MOST_PATTERN);
    struct regex *regex = compile(pattern);
    if (regex == NULL)
        return 0;
    /* The empty group changes nothing but that it is no literal: RE2 does the work. The size may be
     * what is too much. */
    struct regex *grouped = compile_after("(?:)", pattern);
    struct regex *wider = compile_after("\\C*|", pattern);
    check_literal(regex, grouped);
    do {
        bytes text = choose_bytes(&choices, MOST_TEXT);
        bool matches = regex_matches(regex, text);
        CHECK(grouped == NULL || regex_matches(grouped, text) == matches);
        CHECK(wider == NULL || regex_matches(wider, text));
        check_searches(pattern, text, matches);
    } while (choices.left.size > 0);
    regex_destroy(regex);
    regex_destroy(grouped);
    regex_destroy(wider);
    return 0;
}
