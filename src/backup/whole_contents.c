/* See whole_contents.h. */
#include "backup/whole_contents.h"

#include <stdio.h>
#include <stdlib.h>

#define MARKS "damaged"

/* --- marks --- */

static void mark_object(const char *content, char out[OBJECT_NAME_SIZE])
{
    snprintf(out, OBJECT_NAME_SIZE, MARKS "/%s", content);
}

status whole_mark_damaged(struct place *place, const char *content)
{
    static const char words[] = "the content of this name is damaged\n";
    char object[OBJECT_NAME_SIZE];
    if (!is_content_name(content))
        return status_make(STATUS_INVALID_ARGUMENT, "\"%s\" is no content's name", content);
    mark_object(content, object);
    TRY(place_make_folder(place, MARKS));
    return place_put(place, object, bytes_of(words));
}

static status unmark(const struct whole_contents *contents, const char *content)
{
    char object[OBJECT_NAME_SIZE];
    mark_object(content, object);
    return place_remove(contents->place, object);
}

/* --- what is there --- */

static status note_content(void *context, const struct place_entry *entry)
{
    struct whole_contents *contents = context;
    struct listed_content listed = {.size = entry->size};
    if (entry->is_folder || !is_content_name(entry->name))
        return status_ok();
    memcpy(listed.name, entry->name, sizeof listed.name);
    buffer_append(&contents->there, &listed, sizeof listed);
    return contents->there.failed ? status_out_of_memory() : status_ok();
}

static int compare_listed(const void *a, const void *b)
{
    const struct listed_content *first = a, *second = b;
    return memcmp(first->name, second->name, sizeof first->name);
}

static size_t count_listed(const struct whole_contents *contents)
{
    return contents->there.size / sizeof(struct listed_content);
}

/* NULL: it is not there. */
static const struct listed_content *find_listed(const struct whole_contents *contents,
                                                const char *name)
{
    struct listed_content wanted = {.size = 0};
    size_t count = count_listed(contents);
    memcpy(wanted.name, name, sizeof wanted.name);
    return count == 0
               ? NULL
               : bsearch(&wanted, contents->there.data, count, sizeof wanted, compare_listed);
}

static status note_mark(void *context, const struct place_entry *entry)
{
    struct whole_contents *contents = context;
    if (entry->is_folder || !is_content_name(entry->name))
        return status_ok();
    return find_listed(contents, entry->name) != NULL
               ? content_set_add(&contents->marked, entry->name)
               : unmark(contents, entry->name);
}

status whole_contents_list(struct whole_contents *contents)
{
    TRY(place_list(contents->place, WHOLE_FILES, note_content, contents));
    size_t count = count_listed(contents);
    if (count > 0)
        qsort(contents->there.data, count, sizeof(struct listed_content), compare_listed);
    status s = place_list(contents->place, MARKS, note_mark, contents);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s); /* nothing was ever marked here */
    return status_ok();
}

/* --- whether it is good --- */

static bool has_turn(const struct whole_contents *contents, const uint8_t sha256[WHOLE_DIGEST_SIZE])
{
    uint64_t number;
    int64_t period = contents->period_us;
    if (period == 0)
        return false;
    memcpy(&number, sha256, sizeof number);
    int64_t phase = (int64_t)((number >> 1) % (uint64_t)period);
    return (contents->to_us - phase) / period > (contents->after_us - phase) / period;
}

/* It is not looked at, nor told, once more. */
static status note_damaged(struct whole_contents *contents, const char *content, const char *wrong)
{
    if (contents->tell != NULL)
        contents->tell(contents->context, content, wrong);
    return content_set_add(&contents->marked, content);
}

/* Reads it: OK, and not good, if it is not what was written. */
static status check(struct whole_contents *contents, const char *content,
                    const uint8_t sha256[WHOLE_DIGEST_SIZE], bool *is_good)
{
    status s = whole_check_content(contents->place, sha256, contents->work, contents->piece);
    *is_good = status_is_ok(s);
    if (*is_good)
        return content_set_add(&contents->good, content);
    if (s.code != STATUS_DATA_LOSS)
        return s;
    status noted = note_damaged(contents, content, status_message(s));
    status_free(s);
    return noted;
}

status whole_contents_find(struct whole_contents *contents, const struct whole_file *file,
                           bool is_trusted, bool *out)
{
    char name[CONTENT_NAME_SIZE];
    *out = false;
    TRY(content_name(contents->place, file->sha256, name));
    *out = content_set_has(&contents->good, name);
    const struct listed_content *listed = find_listed(contents, name);
    if (*out || listed == NULL || content_set_has(&contents->marked, name))
        return status_ok();
    if (listed->size != file->size)
        return note_damaged(contents, name, "it has another size");
    *out = is_trusted && !has_turn(contents, file->sha256);
    return *out ? status_ok() : check(contents, name, file->sha256, out);
}

status whole_contents_note(struct whole_contents *contents, const char *content)
{
    TRY(content_set_add(&contents->good, content));
    return content_set_has(&contents->marked, content) ? unmark(contents, content) : status_ok();
}

void whole_contents_free(struct whole_contents *contents)
{
    buffer_free(&contents->there);
    content_set_free(&contents->good);
    content_set_free(&contents->marked);
}
