/* See sql_split.h. A line is added whole, so no sign of several bytes is ever cut in two. */
#include "cmd/sql/sql_split.h"

void sql_splitter_add(struct sql_splitter *splitter, bytes line)
{
    struct buffer *text = &splitter->text;
    if (splitter->taken > 0 && !text->failed) {
        size_t rest = text->size - splitter->taken;
        memmove(text->data, text->data + splitter->taken, rest);
        text->size = rest;
        splitter->scanned -= splitter->taken;
        splitter->start -= splitter->has_content ? splitter->taken : 0;
        splitter->taken = 0;
    }
    buffer_append_bytes(text, line);
    buffer_append_byte(text, '\n');
}

static bool is_at(const struct sql_splitter *splitter, const char *sign)
{
    bytes rest = bytes_from(buffer_bytes(&splitter->text), splitter->scanned);
    return bytes_start_with(rest, bytes_of(sign));
}

static bool is_triple(const struct sql_splitter *splitter, uint8_t quote)
{
    const char sign[] = {(char)quote, (char)quote, (char)quote, '\0'};
    return quote != '`' && is_at(splitter, sign);
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void begin_content(struct sql_splitter *splitter)
{
    if (splitter->has_content)
        return;
    splitter->has_content = true;
    splitter->start = splitter->scanned;
    splitter->start_line = splitter->line;
}

/* How many bytes the step takes. */
static size_t step_plain(struct sql_splitter *splitter, uint8_t c)
{
    if (c == '#' || is_at(splitter, "--")) {
        splitter->state = SPLIT_LINE_COMMENT;
        return 1;
    }
    if (is_at(splitter, "/*")) {
        splitter->state = SPLIT_COMMENT;
        return 2;
    }
    if (!is_blank(c))
        begin_content(splitter);
    if (c != '\'' && c != '"' && c != '`')
        return 1;
    splitter->quote = c;
    splitter->state = is_triple(splitter, c) ? SPLIT_TRIPLE : SPLIT_QUOTED;
    return splitter->state == SPLIT_TRIPLE ? 3 : 1;
}

/* In raw strings, too, a quote behind a backslash does not end them. */
static size_t step_quoted(struct sql_splitter *splitter, uint8_t c)
{
    bool is_short = splitter->state == SPLIT_QUOTED;
    bool has_next = splitter->scanned + 1 < splitter->text.size;
    if (c == '\\' && has_next && (!is_short || splitter->text.data[splitter->scanned + 1] != '\n'))
        return 2;
    if (is_short ? c == splitter->quote || c == '\n' : is_triple(splitter, splitter->quote)) {
        splitter->state = SPLIT_PLAIN;
        return is_short ? 1 : 3;
    }
    return 1;
}

static size_t step(struct sql_splitter *splitter, uint8_t c)
{
    switch (splitter->state) {
    case SPLIT_PLAIN:
        return step_plain(splitter, c);
    case SPLIT_QUOTED:
    case SPLIT_TRIPLE:
        return step_quoted(splitter, c);
    case SPLIT_LINE_COMMENT:
        if (c == '\n')
            splitter->state = SPLIT_PLAIN;
        return 1;
    case SPLIT_COMMENT:
        break;
    }
    if (!is_at(splitter, "*/"))
        return 1;
    splitter->state = SPLIT_PLAIN;
    return 2;
}

static void advance(struct sql_splitter *splitter, size_t size)
{
    for (; size > 0; size--)
        splitter->line += splitter->text.data[splitter->scanned++] == '\n';
}

static bool take(struct sql_splitter *splitter, size_t end, struct sql_statement *out)
{
    bool has_content = splitter->has_content;
    splitter->has_content = false;
    if (has_content)
        *out = (struct sql_statement){
            .text = bytes_make(splitter->text.data + splitter->start, end - splitter->start),
            .line = splitter->start_line + 1,
        };
    return has_content;
}

bool sql_splitter_next(struct sql_splitter *splitter, struct sql_statement *out)
{
    while (!splitter->text.failed && splitter->scanned < splitter->text.size) {
        uint8_t c = splitter->text.data[splitter->scanned];
        if (c != ';' || splitter->state != SPLIT_PLAIN) {
            advance(splitter, step(splitter, c));
            continue;
        }
        size_t end = splitter->scanned;
        advance(splitter, 1);
        splitter->taken = splitter->scanned;
        if (take(splitter, end, out))
            return true;
    }
    return false;
}

bool sql_splitter_rest(struct sql_splitter *splitter, struct sql_statement *out)
{
    size_t end = splitter->text.size;
    while (end > splitter->start && is_blank(splitter->text.data[end - 1]))
        end--;
    return !splitter->text.failed && take(splitter, end, out);
}

bool sql_splitter_is_idle(const struct sql_splitter *splitter)
{
    return !splitter->has_content && splitter->state == SPLIT_PLAIN;
}

void sql_splitter_drop(struct sql_splitter *splitter)
{
    buffer_clear(&splitter->text);
    splitter->taken = splitter->scanned = 0;
    splitter->state = SPLIT_PLAIN;
    splitter->has_content = false;
}

void sql_splitter_free(struct sql_splitter *splitter)
{
    buffer_free(&splitter->text);
}
