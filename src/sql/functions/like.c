/* LIKE: see like.h. */
#include "sql/functions/like.h"

#include "base/utf8.h"
#include "sql/work.h"

static bool ends_with_escape(bytes pattern)
{
    bool is_escaped = false;
    for (size_t i = 0; i < pattern.size; i++)
        is_escaped = !is_escaped && pattern.data[i] == '\\';
    return is_escaped;
}

/* How much of the text the pattern's element at `*at` takes, and moves behind the element; 0 if it
 * does not match there. Not for `%`. */
static size_t match_one(bytes text, size_t from, bytes pattern, size_t *at, bool by_character)
{
    uint8_t element = pattern.data[(*at)++];
    if (from >= text.size)
        return 0;
    if (element == '_')
        return by_character ? utf8_size(text.data[from]) : 1;
    if (element == '\\')
        element = pattern.data[(*at)++];
    return text.data[from] == element;
}

/* At a mismatch, the last `%` takes one character more: nothing before it has to be tried again. */
status like_matches(struct sql_session *session, bytes text, bytes pattern, bool by_character,
                    bool *out)
{
    if (ends_with_escape(pattern))
        return status_make(STATUS_OUT_OF_RANGE, "LIKE pattern ends with a backslash");
    size_t from = 0, at = 0;
    size_t resume_at = SIZE_MAX, resume_from = 0;
    *out = false;
    while (from < text.size || at < pattern.size) {
        if (at < pattern.size && pattern.data[at] == '%') {
            resume_at = ++at;
            resume_from = from;
            continue;
        }
        size_t taken = at < pattern.size ? match_one(text, from, pattern, &at, by_character) : 0;
        if (taken > 0) {
            from += taken;
            continue;
        }
        if (resume_at == SIZE_MAX || resume_from >= text.size)
            return status_ok();
        TRY(sql_count(session, sql_steps_of_bytes(at - resume_at)));
        resume_from += by_character ? utf8_size(text.data[resume_from]) : 1;
        from = resume_from;
        at = resume_at;
    }
    *out = true;
    return status_ok();
}

void like_prefix(bytes pattern, struct buffer *out, bool *is_whole)
{
    *is_whole = false;
    for (size_t i = 0; i < pattern.size; i++) {
        if (pattern.data[i] == '%' || pattern.data[i] == '_')
            return;
        if (pattern.data[i] == '\\' && ++i == pattern.size)
            return;
        buffer_append_byte(out, pattern.data[i]);
    }
    *is_whole = true;
}
