/* See credentials.h. */
#include "aws/credentials.h"

#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>

enum { FILE_MOST = 1 << 20 };

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value == NULL || *value == '\0' ? NULL : value;
}

static const char *profile_name(void)
{
    const char *profile = variable("AWS_PROFILE");
    return profile == NULL ? "default" : profile;
}

/* --- files of profiles: [name], and below it lines "key = value" --- */

static bytes trim(bytes text)
{
    while (text.size > 0 && strchr(" \t\r", text.data[0]) != NULL && text.data[0] != '\0')
        text = bytes_from(text, 1);
    while (text.size > 0 && strchr(" \t\r", text.data[text.size - 1]) != NULL &&
           text.data[text.size - 1] != '\0')
        text.size--;
    return text;
}

static bytes take_line(bytes *rest)
{
    const uint8_t *end = rest->size == 0 ? NULL : memchr(rest->data, '\n', rest->size);
    bytes line = end == NULL ? *rest : bytes_make(rest->data, (size_t)(end - rest->data));
    *rest = bytes_from(*rest, line.size + (end != NULL));
    return trim(line);
}

/* "[profile work]" and "[work]" are both of work. */
static bool is_section_of(bytes line, const char *profile)
{
    static const char prefix[] = "profile ";
    bytes name = trim(bytes_make(line.data + 1, line.size - 2));
    if (bytes_start_with(name, bytes_of(prefix)))
        name = trim(bytes_from(name, sizeof prefix - 1));
    return bytes_equal(name, bytes_of(profile));
}

/* Whether the line is "key = value"; both are parts of it. */
static bool split(bytes line, bytes *key, bytes *value)
{
    const uint8_t *equals = line.size == 0 ? NULL : memchr(line.data, '=', line.size);
    if (equals == NULL || line.data[0] == '#' || line.data[0] == ';')
        return false;
    *key = trim(bytes_make(line.data, (size_t)(equals - line.data)));
    *value = trim(bytes_from(line, (size_t)(equals - line.data) + 1));
    return true;
}

/* An empty slice if the profile does not say it. */
static bytes find_value(bytes text, const char *profile, const char *wanted)
{
    bool is_within = false;
    while (text.size > 0) {
        bytes line = take_line(&text), key, value;
        if (line.size >= 2 && line.data[0] == '[' && line.data[line.size - 1] == ']')
            is_within = is_section_of(line, profile);
        else if (is_within && split(line, &key, &value) && bytes_equal(key, bytes_of(wanted)))
            return value;
    }
    return bytes_make(NULL, 0);
}

/* --- what the files say --- */

/* The file that the variable names, else the one of that name in ~/.aws. */
static status read_file(const char *name_variable, const char *name, struct buffer *out)
{
    const char *path = variable(name_variable), *home = variable("HOME");
    struct buffer made = {0};
    if (path == NULL && home == NULL)
        return status_ok();
    if (path != NULL)
        buffer_append_format(&made, "%s%c", path, 0);
    else
        buffer_append_format(&made, "%s/.aws/%s%c", home, name, 0);
    status s = made.failed ? status_out_of_memory()
                           : file_read((const char *)made.data, FILE_MOST, 0, out);
    buffer_free(&made);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_ok();
}

/* NULL if the profile does not say it. */
static status copy_value(const struct buffer *text, const char *key, struct arena *arena,
                         const char **out)
{
    bytes value = find_value(buffer_bytes(text), profile_name(), key);
    *out = value.size == 0 ? NULL : arena_string(arena, value);
    return value.size > 0 && *out == NULL ? status_out_of_memory() : status_ok();
}

static status take_keys(const struct buffer *text, struct arena *arena, struct aws_credentials *out)
{
    TRY(copy_value(text, "aws_access_key_id", arena, &out->access_key));
    TRY(copy_value(text, "aws_secret_access_key", arena, &out->secret_key));
    return copy_value(text, "aws_session_token", arena, &out->session_token);
}

static status find_keys(struct arena *arena, struct aws_credentials *out)
{
    struct buffer text = {0};
    out->access_key = variable("AWS_ACCESS_KEY_ID");
    out->secret_key = variable("AWS_SECRET_ACCESS_KEY");
    out->session_token = variable("AWS_SESSION_TOKEN");
    if (out->access_key != NULL && out->secret_key != NULL)
        return status_ok();
    TRY(read_file("AWS_SHARED_CREDENTIALS_FILE", "credentials", &text));
    status s = take_keys(&text, arena, out);
    buffer_free(&text);
    TRY(s);
    if (out->access_key != NULL && out->secret_key != NULL)
        return status_ok();
    return status_make(STATUS_UNAUTHENTICATED,
                       "no credentials for AWS: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                       "or have the profile %s in ~/.aws/credentials",
                       profile_name());
}

static status find_region(const char *region, struct arena *arena, struct aws_credentials *out)
{
    struct buffer text = {0};
    out->region = region != NULL ? region : variable("AWS_REGION");
    if (out->region == NULL)
        out->region = variable("AWS_DEFAULT_REGION");
    if (out->region != NULL)
        return status_ok();
    TRY(read_file("AWS_CONFIG_FILE", "config", &text));
    status s = copy_value(&text, "region", arena, &out->region);
    buffer_free(&text);
    TRY(s);
    return out->region != NULL
               ? status_ok()
               : status_make(STATUS_INVALID_ARGUMENT,
                             "which region of AWS? Set AWS_REGION, or name it by an option");
}

/* Variables may change; what was found does not. */
static status copy_text(struct arena *arena, const char **text)
{
    if (*text == NULL)
        return status_ok();
    *text = arena_string(arena, bytes_of(*text));
    return *text == NULL ? status_out_of_memory() : status_ok();
}

status aws_credentials_find(const char *region, struct arena *arena, struct aws_credentials *out)
{
    *out = (struct aws_credentials){0};
    TRY(find_keys(arena, out));
    TRY(find_region(region, arena, out));
    TRY(copy_text(arena, &out->access_key));
    TRY(copy_text(arena, &out->secret_key));
    TRY(copy_text(arena, &out->session_token));
    return copy_text(arena, &out->region);
}
