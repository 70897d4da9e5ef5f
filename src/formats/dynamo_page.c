/* See dynamo_page.h. */
#include "formats/dynamo_page.h"

#include "wire/json_text.h"

enum { MOST_DEPTH = 100 /* DynamoDB's items have 32 levels, of two each */ };

static status damaged(const struct json_reader *json, bytes answer, const char *what)
{
    return status_make(STATUS_DATA_LOSS, "the answer cannot be read, byte %zu: %s",
                       (size_t)(json->at - answer.data) + 1, what);
}

/* The text of any value. */
static bool take_value(struct json_reader *json, bytes *out)
{
    json_peek(json); /* over white space */
    const uint8_t *start = json->at;
    if (!json_skip(json, MOST_DEPTH))
        return false;
    *out = bytes_make(start, (size_t)(json->at - start));
    return true;
}

/* Behind the bracket of the list; nothing of an empty one. */
static bytes elements_of(bytes list)
{
    struct json_reader rest = {.at = list.data + 1, .end = list.data + list.size - 1};
    json_peek(&rest);
    return bytes_make(rest.at, (size_t)(rest.end - rest.at));
}

static status take_member(struct json_reader *json, bytes answer, const char *list,
                          const char *next, struct dynamo_page *out)
{
    bytes name, value;
    if (json_peek(json) != JSON_STRING || json_take_scalar(json, &name) != JSON_STRING ||
        !json_take(json, ':'))
        return damaged(json, answer, "a name and ':' are expected");
    if (!take_value(json, &value))
        return damaged(json, answer, "a value of JSON is expected");
    if (bytes_equal(name, bytes_of(next)) && !bytes_equal(value, bytes_of("null")))
        out->next = value;
    if (!bytes_equal(name, bytes_of(list)))
        return status_ok();
    if (value.data[0] != '[')
        return damaged(json, answer, "a list is expected before");
    out->rest = elements_of(value);
    return status_ok();
}

status dynamo_page_open(bytes answer, const char *list, const char *next, struct dynamo_page *out)
{
    struct json_reader json = {.at = answer.data, .end = bytes_from(answer, answer.size).data};
    *out = (struct dynamo_page){0};
    if (!json_take(&json, '{'))
        return damaged(&json, answer, "'{' is expected");
    if (!json_take(&json, '}')) {
        do
            TRY(take_member(&json, answer, list, next, out));
        while (json_take(&json, ','));
        if (!json_take(&json, '}'))
            return damaged(&json, answer, "',' or '}' is expected");
    }
    json_peek(&json);
    return json.at == json.end ? status_ok()
                               : damaged(&json, answer, "something follows the answer");
}

bool dynamo_page_next(struct dynamo_page *page, bytes *out)
{
    struct json_reader rest = {.at = page->rest.data,
                               .end = bytes_from(page->rest, page->rest.size).data};
    if (page->rest.size == 0 || !take_value(&rest, out))
        return false;
    json_take(&rest, ',');
    json_peek(&rest);
    page->rest = bytes_make(rest.at, (size_t)(rest.end - rest.at));
    return true;
}
