/* Writes log lines: see log.h. */
#include "base/log.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* A line that outgrows this is cut: a log line is for people, and a key may have 4 KiB. */
enum { LINE_SIZE = 4096 };

struct line {
    size_t size;
    char text[LINE_SIZE];
};

static void put(struct line *line, char c)
{
    if (line->size < LINE_SIZE - 1) /* room for the line end stays */
        line->text[line->size++] = c;
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

/* Both formats escape the same way, as JSON strings; bytes outside ASCII become \u00xx, which
 * names the byte, not a character: keys are bytes. */
static void put_quoted(struct line *line, bytes b)
{
    put(line, '"');
    for (size_t i = 0; i < b.size; i++) {
        uint8_t c = b.data[i];
        if (c == '"' || c == '\\')
            put(line, '\\');
        if (c >= 0x20 && c < 0x7f) {
            put(line, (char)c);
            continue;
        }
        char escaped[8];
        snprintf(escaped, sizeof escaped, "\\u%04x", c);
        put_string(line, escaped);
    }
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
        put_quoted(line, bytes_of(name));
        put(line, ':');
        return;
    }
    if (line->size > 0)
        put(line, ' ');
    put_string(line, name);
    put(line, '=');
}

static void put_text(struct line *line, enum log_format format, bytes text)
{
    if (format == LOG_JSON || !is_plain(text)) {
        put_quoted(line, text);
        return;
    }
    for (size_t i = 0; i < text.size; i++)
        put(line, (char)text.data[i]);
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
    put_text(line, log->format, bytes_of(text));
}

static void put_field(struct line *line, enum log_format format, const struct log_field *field)
{
    put_name(line, format, field->name);
    if (field->kind == LOG_FIELD_INT)
        put_int(line, field->number);
    else
        put_text(line, format, field->text);
}

const char *log_level_name(enum log_level level)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    return names[level];
}

/* One thread sets what others read: C++ knows no _Atomic, and includes the struct. */
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
