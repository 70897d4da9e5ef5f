/* Status values: see status.h. */
#include "base/status.h"

#include "base/varint.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct status_detail {
    struct buffer details; /* repeated field 3 of google.rpc.Status */
    char message[];
};

static struct status_detail *detail_of(const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    size_t size = length < 0 ? 1 : (size_t)length + 1;
    struct status_detail *detail = malloc(sizeof *detail + size);
    if (detail == NULL)
        return NULL;
    detail->details = (struct buffer){0};
    detail->message[0] = '\0';
    if (length >= 0)
        vsnprintf(detail->message, size, format, arguments);
    return detail;
}

struct status_detail *status_detail_make(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct status_detail *detail = detail_of(format, arguments);
    va_end(arguments);
    return detail;
}

static enum status_code code_of_errno(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return STATUS_RESOURCE_EXHAUSTED;
    case ENOENT:
        return STATUS_NOT_FOUND;
    case EEXIST:
        return STATUS_ALREADY_EXISTS;
    case EACCES:
    case EPERM:
        return STATUS_PERMISSION_DENIED;
    default:
        return STATUS_UNAVAILABLE;
    }
}

status status_from_errno(int error, const char *format, ...)
{
    char tried[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(tried, sizeof tried, format, arguments);
    va_end(arguments);
    char words[128];
    /* The GNU form of strerror_r: the result may or may not lie in the buffer. */
    return status_make(code_of_errno(error), "%s: %s", tried,
                       strerror_r(error, words, sizeof words));
}

const char *status_message(status s)
{
    if (s.detail != NULL)
        return s.detail->message;
    return s.code == STATUS_RESOURCE_EXHAUSTED ? "out of memory" : "";
}

const char *status_code_name(enum status_code code)
{
    static const char *const names[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };
    return (size_t)code < sizeof names / sizeof *names ? names[code] : "UNKNOWN";
}

static void append_field(struct buffer *to, uint32_t number, bytes value)
{
    enum { LENGTH_DELIMITED = 2 };
    buffer_append_varint(to, number << 3 | LENGTH_DELIMITED);
    buffer_append_varint(to, value.size);
    buffer_append_bytes(to, value);
}

void status_add_detail(status *s, const char *type, bytes value)
{
    if (s->detail == NULL)
        return;
    struct buffer any = {0};
    struct buffer url = {0};
    buffer_append_bytes(&url, bytes_of("type.googleapis.com/"));
    buffer_append_bytes(&url, bytes_of(type));
    append_field(&any, 1, buffer_bytes(&url));
    append_field(&any, 2, value);
    struct buffer *details = &s->detail->details;
    size_t before = details->size;
    if (!url.failed && !any.failed && buffer_reserve(details, any.size + 1 + varint_size(any.size)))
        append_field(details, 3, buffer_bytes(&any));
    if (details->failed) { /* keep what was whole */
        details->size = before;
        details->failed = false;
    }
    buffer_free(&any);
    buffer_free(&url);
}

/* RetryInfo { Duration retry_delay = 1 }; Duration { int64 seconds = 1; int32 nanos = 2 }. */
void status_add_retry_info(status *s, int64_t delay_ms)
{
    uint8_t delay[2 * (1 + VARINT_MAX_SIZE)], info[2 + sizeof delay];
    uint8_t *at = delay;
    *at++ = 0x08;
    at = varint_write(at, (uint64_t)delay_ms / 1000);
    *at++ = 0x10;
    at = varint_write(at, (uint64_t)delay_ms % 1000 * 1000000);
    size_t size = (size_t)(at - delay);
    info[0] = 0x0a;
    info[1] = (uint8_t)size;
    memcpy(info + 2, delay, size);
    status_add_detail(s, "google.rpc.RetryInfo", bytes_make(info, size + 2));
}

bytes status_details(status s)
{
    return s.detail == NULL ? bytes_make(NULL, 0) : buffer_bytes(&s.detail->details);
}

status status_copy(status s)
{
    if (s.detail == NULL)
        return s;
    status copy = status_make(s.code, "%s", s.detail->message);
    if (copy.detail != NULL)
        buffer_append_bytes(&copy.detail->details, status_details(s));
    return copy;
}

void status_free(status s)
{
    if (s.detail == NULL)
        return;
    buffer_free(&s.detail->details);
    free(s.detail);
}
