/* The shim over RE2: see regex.h.
 *
 * An expression without operators, which is what clients send most (an escaped name), is kept as
 * the bytes it stands for and compared. Exceptions do not leave this file. */
#include "row/regex.h"

#include <re2/re2.h>

#include <new>
#include <string>

struct regex {
    bool is_literal;
    std::string literal;
    RE2 *compiled; /* NULL for a literal */
};

namespace {

/* Memory of one compiled expression and its automata; RE2's own default is 8 MB. */
constexpr int64_t memory_limit = 2 << 20;

RE2::Options options()
{
    RE2::Options options(RE2::Latin1);
    options.set_log_errors(false);
    options.set_max_mem(memory_limit);
    options.set_never_capture(true);
    return options;
}

bool is_operator(char c)
{
    return c == '\0' || std::string("\\^$.|?*+()[]{}").find(c) != std::string::npos;
}

bool is_punctuation(char c)
{
    return c > ' ' && c < 0x7f && !isalnum(static_cast<unsigned char>(c));
}

/* Takes escapes of punctuation away; false if there is anything that is not a literal byte. */
bool unescape(bytes pattern, std::string *literal)
{
    const char *at = reinterpret_cast<const char *>(pattern.data);
    const char *end = at + pattern.size;
    for (; at < end; at++) {
        bool is_escape = *at == '\\' && at + 1 < end && is_punctuation(at[1]);
        if (is_escape)
            at++;
        else if (is_operator(*at))
            return false;
        literal->push_back(*at);
    }
    return true;
}

status compile(bytes pattern, struct regex *regex)
{
    regex->is_literal = unescape(pattern, &regex->literal);
    if (regex->is_literal)
        return status_ok();
    re2::StringPiece piece(reinterpret_cast<const char *>(pattern.data), pattern.size);
    regex->compiled = new RE2(piece, options());
    if (regex->compiled->ok())
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "%s", regex->compiled->error().c_str());
}

} // namespace

status regex_compile(bytes pattern, struct regex **out)
{
    *out = nullptr;
    auto *regex = new (std::nothrow) struct regex();
    if (regex == nullptr)
        return status_out_of_memory();
    status s;
    try {
        s = compile(pattern, regex);
    } catch (const std::bad_alloc &) {
        s = status_out_of_memory();
    }
    if (status_is_ok(s))
        *out = regex;
    else
        regex_destroy(regex);
    return s;
}

void regex_destroy(struct regex *regex)
{
    if (regex == nullptr)
        return;
    delete regex->compiled;
    delete regex;
}

bool regex_matches(const struct regex *regex, bytes text)
{
    re2::StringPiece piece(reinterpret_cast<const char *>(text.data), text.size);
    if (regex->is_literal)
        return piece == re2::StringPiece(regex->literal);
    return RE2::FullMatch(piece, *regex->compiled);
}

bool regex_literal(const struct regex *regex, bytes *text)
{
    if (regex->is_literal)
        *text = bytes_make(regex->literal.data(), regex->literal.size());
    return regex->is_literal;
}

/* --- searching --- */

struct regex_search {
    explicit regex_search(const re2::StringPiece &pattern, const RE2::Options &options)
        : compiled(pattern, options)
    {
    }
    RE2 compiled;
};

status regex_search_compile(bytes pattern, bool is_utf8, struct regex_search **out)
{
    *out = nullptr;
    RE2::Options search_options = options();
    search_options.set_never_capture(false);
    search_options.set_encoding(is_utf8 ? RE2::Options::EncodingUTF8
                                        : RE2::Options::EncodingLatin1);
    re2::StringPiece piece(reinterpret_cast<const char *>(pattern.data), pattern.size);
    struct regex_search *search;
    try {
        search = new struct regex_search(piece, search_options);
    } catch (const std::bad_alloc &) {
        return status_out_of_memory();
    }
    if (search->compiled.ok()) {
        *out = search;
        return status_ok();
    }
    status s = status_make(STATUS_INVALID_ARGUMENT, "%s", search->compiled.error().c_str());
    regex_search_destroy(search);
    return s;
}

void regex_search_destroy(struct regex_search *search)
{
    delete search;
}

size_t regex_search_groups(const struct regex_search *search)
{
    return static_cast<size_t>(search->compiled.NumberOfCapturingGroups());
}

size_t regex_search_size(const struct regex_search *search)
{
    return static_cast<size_t>(search->compiled.ProgramSize());
}

bool regex_search_find(const struct regex_search *search, bytes text, size_t from,
                       struct regex_span *spans, size_t count)
{
    /* RE2 says "took no part" by a null pointer, which the text's must not be. */
    const char *start = text.size == 0 ? "" : reinterpret_cast<const char *>(text.data);
    re2::StringPiece found[REGEX_MOST_SPANS];
    if (!search->compiled.Match(re2::StringPiece(start, text.size), from, text.size,
                                RE2::UNANCHORED, found, static_cast<int>(count)))
        return false;
    for (size_t i = 0; i < count; i++) {
        bool has_part = found[i].data() != nullptr;
        spans[i].from = has_part ? static_cast<size_t>(found[i].data() - start) : SIZE_MAX;
        spans[i].to = has_part ? spans[i].from + found[i].size() : SIZE_MAX;
    }
    return true;
}
