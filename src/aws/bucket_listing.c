/* Lists of a bucket's objects, page by page: see bucket_private.h. */
#include "aws/bucket_calls.h"
#include "aws/bucket_private.h"
#include "aws/xml.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LIST_MEMORY = 1 << 30 };

/* False: it is no time. */
static bool parse_time(bytes b, int64_t *us)
{
    struct tm parts = {0};
    char copy[32];
    snprintf(copy, sizeof copy, "%.*s", (int)b.size, (const char *)b.data);
    bool is_one = strptime(copy, "%Y-%m-%dT%H:%M:%S", &parts) != NULL;
    *us = is_one ? (int64_t)timegm(&parts) * 1000000 : 0;
    return is_one;
}

static bool parse_size(bytes b, uint64_t *size)
{
    char copy[24], *end;
    snprintf(copy, sizeof copy, "%.*s", (int)b.size, (const char *)b.data);
    *size = strtoull(copy, &end, 10);
    return b.size > 0 && b.size < sizeof copy && copy[0] >= '0' && copy[0] <= '9' && *end == '\0';
}

/* An answer that is no listing must not pass for one: what it does not show would count as gone. */
status bucket_listing_refuse(const struct bucket_listing *l, const char *why)
{
    return status_make(STATUS_UNAVAILABLE, "the bucket's answer is no listing of %s: %s",
                       text(&l->prefix), why);
}

/* In the arena, with a NUL behind it. */
status bucket_listing_take_text(struct bucket_listing *l, bytes inner, bytes *out)
{
    struct buffer decoded = {0};
    bool is_fine = xml_text(inner, &decoded);
    const char *copy = is_fine ? arena_string(l->arena, buffer_bytes(&decoded)) : NULL;
    bool is_short = decoded.failed || (is_fine && copy == NULL);
    *out = bytes_make(copy, decoded.size);
    buffer_free(&decoded);
    if (is_short)
        return status_out_of_memory();
    return is_fine ? status_ok() : bucket_listing_refuse(l, "a name in it cannot be read");
}

/* The part of the key behind the folder's; empty: it is the folder itself. */
status bucket_listing_take_key(struct bucket_listing *l, bytes inner, bytes *out)
{
    bytes prefix = bytes_make(l->prefix.data, l->prefix.size - 1);
    TRY(bucket_listing_take_text(l, inner, out));
    if (!bytes_start_with(*out, prefix))
        return bucket_listing_refuse(l, "it has what is elsewhere");
    *out = bytes_from(*out, prefix.size);
    return status_ok();
}

/* A name that is none of ours is not in the place. */
static status note(struct bucket_listing *l, bytes name, const struct bucket_found *found)
{
    struct bucket_found noted = *found;
    char *copy = arena_string(l->arena, name);
    if (copy == NULL)
        return status_out_of_memory();
    if (strchr(copy, '/') != NULL || !place_name_is_sound(copy))
        return status_ok();
    noted.entry.name = copy;
    buffer_append(&l->found, &noted, sizeof noted);
    return l->found.failed ? status_out_of_memory() : status_ok();
}

static status take_object(struct bucket_listing *l, bytes object)
{
    struct bucket_found found = {.entry = {.is_folder = false}};
    bytes key, size, modified;
    if (!xml_first(object, "Key", &key) || !xml_first(object, "Size", &size) ||
        !xml_first(object, "LastModified", &modified) || !parse_size(size, &found.entry.size) ||
        !parse_time(modified, &found.modified_us))
        return bucket_listing_refuse(l, "it does not say of an object what there is to say");
    TRY(bucket_listing_take_key(l, key, &key));
    return note(l, key, &found);
}

static status take_folder(struct bucket_listing *l, bytes folder)
{
    const struct bucket_found found = {.entry = {.is_folder = true}};
    bytes key;
    if (!xml_first(folder, "Prefix", &key))
        return bucket_listing_refuse(l, "a folder in it has no name");
    TRY(bucket_listing_take_key(l, key, &key));
    key.size -= key.size > 0; /* its slash */
    return note(l, key, &found);
}

/* Of another folder, or another bucket, a listing may come that shows nothing. */
static status check_prefix(struct bucket_listing *l, bytes page)
{
    bytes inner, prefix;
    if (!xml_first(page, "Prefix", &inner))
        return status_ok();
    TRY(bucket_listing_take_text(l, inner, &prefix));
    return bytes_equal(prefix, bytes_of(text(&l->prefix)))
               ? status_ok()
               : bucket_listing_refuse(l, "it is one of elsewhere");
}

/* The token of the next page; empty: this is the last one. */
static status take_token(struct bucket_listing *l, bytes page)
{
    bytes truncated, inner, token = bytes_of("");
    if (!xml_first(page, "IsTruncated", &truncated))
        return bucket_listing_refuse(l, "it does not say whether it goes on");
    bool goes_on = bytes_equal(truncated, bytes_of("true"));
    if (!goes_on && !bytes_equal(truncated, bytes_of("false")))
        return bucket_listing_refuse(l, "it does not say whether it goes on");
    if (goes_on && xml_first(page, "NextContinuationToken", &inner))
        TRY(bucket_listing_take_text(l, inner, &token));
    if (goes_on && (token.size == 0 ||
                    (l->token.size > 0 && strcmp(text(&l->token), (const char *)token.data) == 0)))
        return bucket_listing_refuse(l, "it goes on, and does not say where");
    buffer_clear(&l->token);
    if (goes_on)
        buffer_append(&l->token, token.data, token.size + 1);
    return l->token.failed ? status_out_of_memory() : status_ok();
}

static status take_page(struct bucket_listing *l, bytes page)
{
    bytes each;
    TRY(check_prefix(l, page));
    for (bytes rest = page; xml_child(&rest, "Contents", &each);)
        TRY(take_object(l, each));
    for (bytes rest = page; xml_child(&rest, "CommonPrefixes", &each);)
        TRY(take_folder(l, each));
    return take_token(l, page);
}

static status get_page(struct bucket_listing *l)
{
    struct bucket_answer answer = {0};
    struct buffer query = {0};
    if (l->token.size > 0) {
        buffer_append_format(&query, "continuation-token=");
        bucket_append_escaped(&query, text(&l->token));
        buffer_append_byte(&query, '&');
    }
    buffer_append_format(&query, "delimiter=%%2F&list-type=2&prefix=");
    bucket_append_escaped(&query, text(&l->prefix));
    buffer_append_byte(&query, '\0');
    const struct bucket_request request = {.method = "GET",
                                           .key = "",
                                           .query = text(&query),
                                           .answer_most = PAGE_MOST,
                                           .root = "ListBucketResult"};
    status s =
        query.failed ? status_out_of_memory() : bucket_call(l->place->bucket, &request, &answer);
    l->server_us = answer.server_us;
    if (status_is_ok(s))
        s = take_page(l, answer.content);
    bucket_answer_clear(&answer);
    buffer_free(&query);
    return s;
}

static int compare_found(const void *a, const void *b)
{
    return strcmp(((const struct bucket_found *)a)->entry.name,
                  ((const struct bucket_found *)b)->entry.name);
}

status bucket_listing_begin(struct bucket_listing *l, struct place *place, const char *folder)
{
    l->place = own(place);
    l->arena = arena_create(LIST_MEMORY);
    buffer_append_format(&l->prefix, "%s%s%s%c", l->place->prefix, folder,
                         folder[0] != '\0' ? "/" : "", 0);
    return l->arena == NULL || l->prefix.failed ? status_out_of_memory() : status_ok();
}

status bucket_listing_gather(struct bucket_listing *l, struct place *place, const char *folder)
{
    TRY(bucket_listing_begin(l, place, folder));
    do
        TRY(get_page(l));
    while (l->token.size > 0);
    if (l->found.size > 0)
        qsort(l->found.data, l->found.size / sizeof(struct bucket_found),
              sizeof(struct bucket_found), compare_found);
    return status_ok();
}

void bucket_listing_end(struct bucket_listing *l)
{
    arena_destroy(l->arena);
    buffer_free(&l->prefix);
    buffer_free(&l->found);
    buffer_free(&l->token);
}
