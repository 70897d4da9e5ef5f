/* See change_list.h.
 *
 *     mutation   tag [family] [qualifier] [time] [end] [value]
 *     tag        1 byte: kind, IN_SAME_FAMILY, IS_APART
 *     family, qualifier, value   varint size, bytes; of a value apart the size alone
 *     time, number               varint, zigzag; end: varint */
#include "row/change_list.h"

#include "base/check.h"
#include "base/varint.h"

#include <stdlib.h>

enum {
    KIND_MASK = 0x07,
    IN_SAME_FAMILY = 0x08,
    IS_APART = 0x10,
    KNOWN_BITS = KIND_MASK | IN_SAME_FAMILY | IS_APART,
    FIRST_APART = 4,
};

static bool has_family(enum list_kind kind)
{
    return kind != LIST_DELETE_ROW;
}

static bool has_qualifier(enum list_kind kind)
{
    return kind != LIST_DELETE_FAMILY && kind != LIST_DELETE_ROW;
}

static bool has_value(enum list_kind kind)
{
    return kind == LIST_SET || kind == LIST_ADD_BYTES || kind == LIST_MERGE;
}

/* --- writing --- */

void change_list_reserve(struct change_list *list, size_t count, size_t slice_bytes)
{
    enum { TAG_SIZES_TIME = 16 };
    (void)buffer_reserve(&list->list, count * TAG_SIZES_TIME + slice_bytes);
    list->list.failed = false;
}

static bool make_room(struct change_list *list)
{
    if (list->apart_count < list->apart_capacity)
        return true;
    size_t capacity = list->apart_capacity == 0 ? FIRST_APART : 2 * list->apart_capacity;
    bytes *apart = realloc(list->apart, capacity * sizeof *apart);
    if (apart == NULL)
        return false;
    list->apart = apart;
    list->apart_capacity = capacity;
    return true;
}

static void append_slice(struct buffer *out, bytes slice)
{
    buffer_append_varint(out, slice.size);
    buffer_append_bytes(out, slice);
}

static void append_value(struct change_list *list, bytes value, bool is_apart)
{
    if (!is_apart) {
        append_slice(&list->list, value);
        return;
    }
    buffer_append_varint(&list->list, value.size);
    if (make_room(list))
        list->apart[list->apart_count++] = value;
    else
        list->failed = true;
}

static void append_place(struct buffer *out, const struct list_mutation *mutation)
{
    if (!has_qualifier(mutation->kind))
        return;
    append_slice(out, mutation->qualifier);
    buffer_append_varint(out, zigzag_encode(mutation->timestamp_us));
    if (mutation->kind == LIST_DELETE_COLUMN)
        buffer_append_varint(out, (uint64_t)mutation->end_us);
    if (mutation->kind == LIST_ADD_INT)
        buffer_append_varint(out, zigzag_encode(mutation->number));
}

void change_list_add(struct change_list *list, const struct list_mutation *mutation)
{
    enum list_kind kind = mutation->kind;
    DCHECK(kind >= LIST_SET && kind <= LIST_DELETE_ROW);
    bool is_same = has_family(kind) && list->family.data != NULL &&
                   bytes_equal(mutation->family, list->family);
    bool is_apart = kind == LIST_SET && mutation->value.size > CHANGE_LIST_INLINE;
    unsigned tag = kind | (is_same ? IN_SAME_FAMILY : 0U) | (is_apart ? IS_APART : 0U);
    buffer_append_byte(&list->list, (uint8_t)tag);
    if (has_family(kind) && !is_same)
        append_slice(&list->list, mutation->family);
    if (has_family(kind))
        list->family = mutation->family;
    else
        list->deletes_row = true;
    append_place(&list->list, mutation);
    if (has_value(kind))
        append_value(list, mutation->value, is_apart);
    list->failed |= list->list.failed;
}

size_t change_list_size(const struct change_list *list)
{
    size_t size = list->list.size;
    for (size_t i = 0; i < list->apart_count; i++)
        size += list->apart[i].size;
    return size;
}

void change_list_free(struct change_list *list)
{
    buffer_free(&list->list);
    free(list->apart);
    *list = (struct change_list){0};
}

/* --- reading --- */

void list_reader_start(struct list_reader *reader, bytes list)
{
    *reader = (struct list_reader){.at = NULL};
    if (list.size == 0)
        return;
    reader->at = list.data;
    reader->end = list.data + list.size;
}

static bool take_number(struct list_reader *reader, uint64_t *out)
{
    const uint8_t *at = reader->at == NULL ? NULL : varint_read(reader->at, reader->end, out);
    if (at != NULL)
        reader->at = at;
    return at != NULL;
}

static bool take_signed(struct list_reader *reader, int64_t *out)
{
    uint64_t value;
    if (!take_number(reader, &value))
        return false;
    *out = zigzag_decode(value);
    return true;
}

static bool take_slice(struct list_reader *reader, bytes *out)
{
    uint64_t size;
    if (!take_number(reader, &size) || size > (uint64_t)(reader->end - reader->at))
        return false;
    *out = bytes_make(reader->at, (size_t)size);
    reader->at += size;
    return true;
}

static bool take_family(struct list_reader *reader, unsigned tag, struct list_mutation *mutation)
{
    if (!has_family(mutation->kind))
        return (tag & IN_SAME_FAMILY) == 0;
    if ((tag & IN_SAME_FAMILY) == 0 && !take_slice(reader, &reader->family))
        return false;
    mutation->family = reader->family;
    return reader->family.data != NULL;
}

static bool take_place(struct list_reader *reader, struct list_mutation *mutation)
{
    uint64_t end = 0;
    if (!has_qualifier(mutation->kind))
        return true;
    if (!take_slice(reader, &mutation->qualifier) || !take_signed(reader, &mutation->timestamp_us))
        return false;
    if (mutation->kind == LIST_DELETE_COLUMN && !take_number(reader, &end))
        return false;
    mutation->end_us = (int64_t)end;
    return mutation->kind != LIST_ADD_INT || take_signed(reader, &mutation->number);
}

static bool take_value(struct list_reader *reader, unsigned tag, struct list_mutation *mutation)
{
    uint64_t size;
    mutation->is_apart = (tag & IS_APART) != 0;
    if (mutation->is_apart && mutation->kind != LIST_SET)
        return false;
    if (!has_value(mutation->kind))
        return true;
    if (!mutation->is_apart) {
        bool is_whole = take_slice(reader, &mutation->value);
        mutation->size = mutation->value.size;
        return is_whole;
    }
    if (!take_number(reader, &size) || size <= CHANGE_LIST_INLINE || size > INT32_MAX)
        return false;
    mutation->size = (size_t)size;
    return true;
}

static bool take_mutation(struct list_reader *reader, struct list_mutation *mutation)
{
    unsigned tag = *reader->at++;
    *mutation = (struct list_mutation){.kind = (enum list_kind)(tag & KIND_MASK)};
    if ((tag & ~(unsigned)KNOWN_BITS) != 0 || mutation->kind < LIST_SET)
        return false;
    return take_family(reader, tag, mutation) && take_place(reader, mutation) &&
           take_value(reader, tag, mutation);
}

bool list_reader_next(struct list_reader *reader, struct list_mutation *mutation)
{
    if (reader->is_bad || reader->at == reader->end)
        return false;
    reader->is_bad = !take_mutation(reader, mutation);
    return !reader->is_bad;
}

/* --- deletions of the row --- */

/* What is there to delete: the row's families, and those that the request has set. */
struct found_families {
    bytes *names; /* the row's come first, by rising name */
    size_t count;
    size_t capacity;
};

static bool has_name(const struct found_families *found, bytes name)
{
    for (size_t i = 0; i < found->count; i++)
        if (bytes_equal(found->names[i], name))
            return true;
    return false;
}

static bool add_name(struct found_families *found, bytes name)
{
    if (has_name(found, name))
        return true;
    if (found->count == found->capacity) {
        size_t capacity = 2 * found->capacity + FIRST_APART;
        bytes *names = realloc(found->names, capacity * sizeof *names);
        if (names == NULL)
            return false;
        found->names = names;
        found->capacity = capacity;
    }
    found->names[found->count++] = name;
    return true;
}

static bool sets_something(enum list_kind kind)
{
    return has_value(kind) || kind == LIST_ADD_INT;
}

/* Nothing of the row is left behind it. */
static void delete_families(struct change_list *out, struct found_families *found)
{
    for (size_t i = 0; i < found->count; i++)
        change_list_add(
            out, &(struct list_mutation){.kind = LIST_DELETE_FAMILY, .family = found->names[i]});
    found->count = 0;
}

/* Values that lie apart keep their order. */
static bool copy_expanded(const struct change_list *list, struct found_families *found,
                          struct change_list *out)
{
    struct list_reader reader;
    struct list_mutation mutation;
    size_t apart = 0;
    list_reader_start(&reader, buffer_bytes(&list->list));
    while (list_reader_next(&reader, &mutation)) {
        if (mutation.kind == LIST_DELETE_ROW) {
            delete_families(out, found);
            continue;
        }
        if (sets_something(mutation.kind) && !add_name(found, mutation.family))
            return false;
        if (mutation.is_apart)
            mutation.value = list->apart[apart++];
        change_list_add(out, &mutation);
    }
    DCHECK(!reader.is_bad && apart == list->apart_count);
    return !out->failed;
}

bool change_list_expand(struct change_list *list, const bytes *families, size_t count)
{
    struct found_families found = {0};
    struct change_list expanded = {0};
    bool is_done = true;
    if (!list->deletes_row)
        return true;
    for (size_t i = 0; i < count && is_done; i++)
        is_done = add_name(&found, families[i]);
    is_done = is_done && copy_expanded(list, &found, &expanded);
    free(found.names);
    if (!is_done) {
        change_list_free(&expanded);
        return false;
    }
    change_list_free(list);
    *list = expanded;
    list->family = bytes_make(NULL, 0); /* it may be a slice of what was freed */
    return true;
}
