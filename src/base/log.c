/* Writes log lines: see log.h. */
#include "base/log.h"

#include "base/utf8.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* A line that outgrows this is cut: a log line is for people, and a key may have 4 KiB. */
enum { LINE_SIZE = 4096 };

struct line {
    size_t size;
    bool is_full; /* something had no room: nothing is added any more */
    char text[LINE_SIZE];
};

/* All of it or, if there is no room, nothing: no character is cut. */
static void put_bytes(struct line *line, bytes b)
{
    line->is_full |= b.size > LINE_SIZE - 1 - line->size; /* room for the line end stays */
    if (line->is_full)
        return;
    memcpy(line->text + line->size, b.data, b.size);
    line->size += b.size;
}

static void put(struct line *line, char c)
{
    put_bytes(line, bytes_make(&c, 1));
}

static void put_string(struct line *line, const char *string)
{
    while (*string != '\0')
        put(line, *string++);
}

static void put_int(struct line *line, int64_t number)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)number);
    put_string(line, digits);
}

static void put_escaped(struct line *line, uint32_t code)
{
    char escaped[12];
    snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)code);
    put_string(line, escaped);
}

static void put_byte(struct line *line, uint8_t c)
{
    if (c == '"' || c == '\\')
        put(line, '\\');
    if (c >= 0x20 && c < 0x7f)
        put(line, (char)c);
    else
        put_escaped(line, c);
}

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

static void put_character(struct line *line, bytes text, size_t *at)
{
    size_t begin = *at;
    uint32_t code = utf8_next(text, at);
    if (code < 0x80)
        put_byte(line, (uint8_t)code);
    else if (is_control(code))
        put_escaped(line, code);
    else
        put_bytes(line, bytes_make(text.data + begin, *at - begin));
}

/* Both formats escape the same way, as JSON strings. In text \u00xx names a character; of bytes,
 * which keys are, the byte. */
static void put_quoted(struct line *line, bytes b, bool is_text)
{
    put(line, '"');
    if (is_text && utf8_is_valid(b))
        for (size_t i = 0; i < b.size;)
            put_character(line, b, &i);
    else
        for (size_t i = 0; i < b.size; i++)
            put_byte(line, b.data[i]);
    put(line, '"');
}

static bool is_plain(bytes b)
{
    for (size_t i = 0; i < b.size; i++)
        if (b.data[i] <= ' ' || b.data[i] >= 0x7f || b.data[i] == '"' || b.data[i] == '=' ||
            b.data[i] == '\\')
            return false;
    return b.size > 0;
}

static void put_name(struct line *line, enum log_format format, const char *name)
{
    if (format == LOG_JSON) {
        put(line, line->size == 0 ? '{' : ',');
        put_quoted(line, bytes_of(name), false);
        put(line, ':');
        return;
    }
    if (line->size > 0)
        put(line, ' ');
    put_string(line, name);
    put(line, '=');
}

static void put_plain(struct line *line, bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        put(line, (char)text.data[i]);
}

static void put_text(struct line *line, enum log_format format, bytes text, bool is_text)
{
    if (format == LOG_JSON || !is_plain(text))
        put_quoted(line, text, is_text);
    else
        put_plain(line, text);
}

static void put_time(struct line *line, const struct log *log)
{
    int64_t now = clock_wall_us(log->clock);
    time_t seconds = (time_t)(now / 1000000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    char text[40];
    size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + length, sizeof text - length, ".%06dZ", (int)(now % 1000000));
    put_name(line, log->format, "time");
    put_text(line, log->format, bytes_of(text), false);
}

static void put_field(struct line *line, enum log_format format, const struct log_field *field)
{
    put_name(line, format, field->name);
    if (field->kind == LOG_FIELD_INT)
        put_int(line, field->number);
    else
        put_text(line, format, field->text, field->kind == LOG_FIELD_TEXT);
}

const char *log_level_name(enum log_level level)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    return names[level];
}

/* The level is set by one thread and read by others: C++ knows no _Atomic, and includes the struct.
 */
enum log_level log_set_level(struct log *log, enum log_level level)
{
    return __atomic_exchange_n(&log->level, level, __ATOMIC_RELAXED);
}

enum log_level log_level_now(const struct log *log)
{
    return __atomic_load_n(&log->level, __ATOMIC_RELAXED);
}

void log_write(const struct log *log, enum log_level level, const char *message,
               const struct log_field *fields)
{
    if (level < log_level_now(log))
        return;
    struct line line = {.size = 0};
    put_time(&line, log);
    put_field(&line, log->format, &LOG_STR("level", log_level_name(level)));
    put_field(&line, log->format, &LOG_STR("msg", message));
    for (; fields->kind != LOG_FIELD_END; fields++)
        put_field(&line, log->format, fields);
    if (log->format == LOG_JSON)
        put(&line, '}');
    line.text[line.size++] = '\n';
    ssize_t written = write(log->fd, line.text, line.size);
    (void)written;
}
