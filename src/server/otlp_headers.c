/* See otlp_headers.h. */
#include "server/otlp_headers.h"

#include "os/file.h"

#include <curl/curl.h>
#include <string.h>

enum { VALUE_MOST = 16 << 10 };

/* What RFC 9110 lets a field's name be made of. */
static bool is_name(bytes text)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool is_digit = c >= '0' && c <= '9';
        if (!is_letter && !is_digit && (c == '\0' || strchr(others, c) == NULL))
            return false;
    }
    return text.size > 0;
}

/* A line's end within it would be another header. */
static bool is_value(bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < ' ' || text.data[i] == 0x7f)
            return false;
    return text.size > 0;
}

static bool is_white(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bytes trim(bytes text)
{
    while (text.size > 0 && is_white(text.data[0]))
        text = bytes_from(text, 1);
    while (text.size > 0 && is_white(text.data[text.size - 1]))
        text.size--;
    return text;
}

static status append(bytes name, bytes value, struct curl_slist **list)
{
    struct buffer line = {0};
    buffer_append_bytes(&line, name);
    buffer_append_bytes(&line, bytes_of(": "));
    buffer_append_bytes(&line, value);
    buffer_append_byte(&line, 0);
    struct curl_slist *longer =
        line.failed ? NULL : curl_slist_append(*list, (const char *)line.data);
    buffer_free(&line);
    if (longer == NULL)
        return status_out_of_memory();
    *list = longer;
    return status_ok();
}

/* `path`: as it stands in the setting, without an end. */
static status append_file(bytes name, bytes path, struct curl_slist **list)
{
    struct buffer text = {0}, file = {0};
    buffer_append_bytes(&file, path);
    buffer_append_byte(&file, 0);
    status s = file.failed ? status_out_of_memory()
                           : file_read((const char *)file.data, VALUE_MOST, 0, &text);
    if (status_is_ok(s)) {
        bytes value = trim(buffer_bytes(&text));
        s = is_value(value) ? append(name, value, list)
                            : status_make(STATUS_INVALID_ARGUMENT, "%s has no value of a header",
                                          (const char *)file.data);
        buffer_free(&text);
    }
    buffer_free(&file);
    return s;
}

/* "NAME=VALUE" */
static status append_pair(bytes pair, struct curl_slist **list)
{
    const uint8_t *equals = pair.size == 0 ? NULL : memchr(pair.data, '=', pair.size);
    size_t size = equals == NULL ? pair.size : (size_t)(equals - pair.data);
    bytes name = trim(bytes_make(pair.data, size));
    if (equals == NULL || !is_name(name))
        return status_make(STATUS_INVALID_ARGUMENT, "a header is NAME=VALUE or NAME=@FILE");
    bytes value = trim(bytes_from(pair, size + 1));
    if (value.size > 1 && value.data[0] == '@')
        return append_file(name, bytes_from(value, 1), list);
    if (!is_value(value))
        return status_make(STATUS_INVALID_ARGUMENT, "the header %.*s has no value", (int)name.size,
                           (const char *)name.data);
    return append(name, value, list);
}

status otlp_headers_append(const char *setting, struct curl_slist **list)
{
    while (setting != NULL) {
        size_t size = strcspn(setting, ",");
        TRY(append_pair(bytes_make(setting, size), list));
        setting = setting[size] == '\0' ? NULL : setting + size + 1;
    }
    return status_ok();
}

status otlp_headers_check(const char *setting)
{
    struct curl_slist *list = NULL;
    status s = otlp_headers_append(setting, &list);
    curl_slist_free_all(list);
    return s;
}
