/* Structured logs: one line an event, logfmt or JSON.
 *
 *     log_info(log, "table created", LOG_STR("table", name), LOG_INT("tablets", 3));
 *     time=2026-11-20T10:15:30.123456Z level=info msg="table created" table=projects/… tablets=3
 *
 * Any thread may log; a line is one write(2), so lines of different threads do not mix. A line that
 * cannot be written is dropped: logging never fails its caller. */
#ifndef TRESTLE_BASE_LOG_H
#define TRESTLE_BASE_LOG_H

#include "base/bytes.h"
#include "base/clock.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_LOGFMT, LOG_JSON };

struct log {
    int fd;
    enum log_level level; /* what is less is not written; see log_set_level */
    enum log_format format;
    struct clock *clock;
};

struct log_field {
    const char *name;
    enum { LOG_FIELD_END, LOG_FIELD_BYTES, LOG_FIELD_INT, LOG_FIELD_TEXT } kind;
    bytes text;
    int64_t number;
};

/* Words and names, for people: UTF-8 stays as it is, except control characters. Text that is not
 * valid UTF-8 is told as bytes. */
#define LOG_STR(name_, string_) LOG_TEXT(name_, bytes_of(string_))
#define LOG_TEXT(name_, text_)                                                                     \
    ((struct log_field){.name = name_, .kind = LOG_FIELD_TEXT, .text = text_})
/* Keys and values: each byte outside printable ASCII is \u00xx, which names the byte. */
#define LOG_BYTES(name_, bytes_)                                                                   \
    ((struct log_field){.name = name_, .kind = LOG_FIELD_BYTES, .text = bytes_})
#define LOG_INT(name_, number_)                                                                    \
    ((struct log_field){.name = name_, .kind = LOG_FIELD_INT, .number = (int64_t)(number_)})

/* "warn". */
const char *log_level_name(enum log_level level);

/* Lines of a lower level are not written from now on. Returns the level that it was. Any thread. */
enum log_level log_set_level(struct log *log, enum log_level level);

/* The level as it is now. Any thread. */
enum log_level log_level_now(const struct log *log);

/* `fields` ends with an entry of kind LOG_FIELD_END. Use the macros below. */
void log_write(const struct log *log, enum log_level level, const char *message,
               const struct log_field *fields);

#define LOG_FIELDS_(...) ((const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){.name = NULL}})

#define log_debug(log, message, ...) log_write(log, LOG_DEBUG, message, LOG_FIELDS_(__VA_ARGS__))
#define log_info(log, message, ...)  log_write(log, LOG_INFO, message, LOG_FIELDS_(__VA_ARGS__))
#define log_warn(log, message, ...)  log_write(log, LOG_WARN, message, LOG_FIELDS_(__VA_ARGS__))
#define log_error(log, message, ...) log_write(log, LOG_ERROR, message, LOG_FIELDS_(__VA_ARGS__))

#endif
