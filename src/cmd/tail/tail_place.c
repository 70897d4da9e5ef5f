/* See tail_place.h. */
#include "cmd/tail/tail_place.h"

#include "transfer/change_position.h"
#include "transfer/text_file.h"
#include "wire/json.h"

static void append_filter(struct buffer *out, const char *name, const char *text)
{
    buffer_append_format(out, "\"%s\":", name);
    if (text == NULL)
        buffer_append_format(out, "null,");
    else
        json_encode_string(bytes_of(text), out);
    if (text != NULL)
        buffer_append_byte(out, ',');
}

static void append_filters(struct buffer *out, const struct tail_options *options)
{
    buffer_append_byte(out, '{');
    append_filter(out, "prefix", options->prefix);
    append_filter(out, "families", options->families);
    buffer_append_format(out, "\"with_gc\":%s}", options->with_gc ? "true" : "false");
}

static status lock(struct tail_place *place)
{
    struct buffer name = {0};
    buffer_append_format(&name, "%s.lock%c", place->file, 0);
    status s = name.failed ? status_out_of_memory()
                           : file_lock_take((const char *)name.data, &place->lock);
    buffer_free(&name);
    return s;
}

/* Without a line end. */
static bytes take_line(bytes *rest)
{
    const uint8_t *end = rest->size == 0 ? NULL : memchr(rest->data, '\n', rest->size);
    size_t size = end == NULL ? rest->size : (size_t)(end - rest->data);
    bytes line = bytes_make(rest->data, size);
    *rest = bytes_from(*rest, end == NULL ? size : size + 1);
    return line;
}

static status check_filters(const struct tail_place *place, bytes kept)
{
    if (kept.size == 0 || bytes_equal(kept, buffer_bytes(&place->filters)))
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "%s was kept with %.*s, and not with %.*s: what was left out until then "
                       "would be missing. Name another file",
                       place->file, (int)kept.size, (const char *)kept.data,
                       (int)place->filters.size, (const char *)place->filters.data);
}

status tail_place_open(const struct tail_options *options, struct tail_place *place,
                       struct buffer *state)
{
    *place = (struct tail_place){.file = options->token_file};
    if (place->file == NULL)
        return status_ok();
    append_filters(&place->filters, options);
    if (place->filters.failed)
        return status_out_of_memory();
    TRY(lock(place));
    TRY(change_position_read(place->file, state));
    bytes rest = buffer_bytes(state);
    size_t size = take_line(&rest).size;
    TRY(check_filters(place, take_line(&rest)));
    state->size = size;
    return status_ok();
}

void tail_place_close(struct tail_place *place)
{
    file_lock_release(place->lock);
    buffer_free(&place->filters);
}

static status keep(const struct tail_place *place, const struct change_feed *feed,
                   status (*save)(const struct change_feed *feed, struct buffer *out))
{
    struct buffer text = {0};
    if (place->file == NULL)
        return status_ok();
    status s = save(feed, &text);
    buffer_append_byte(&text, '\n');
    buffer_append_bytes(&text, buffer_bytes(&place->filters));
    buffer_append_format(&text, "\n%c", 0);
    if (status_is_ok(s))
        s = text.failed ? status_out_of_memory()
                        : text_file_replace(place->file, (const char *)text.data);
    buffer_free(&text);
    return s;
}

status tail_place_keep(const struct tail_place *place, const struct change_feed *feed)
{
    return keep(place, feed, change_feed_save);
}

status tail_place_keep_start(const struct tail_place *place, const struct change_feed *feed)
{
    return keep(place, feed, change_feed_save_start);
}
