/* Keys of entities: see key.h. */
#include "datastore/model/key.h"

#include "base/big_endian.h"
#include "base/check.h"
#include "row/key_text.h"
#include "wire/proto.h"

/* Tags behind an element's kind. */
enum { ELEMENT_NUMBER = 0x01, ELEMENT_NAME = 0x02 };
enum { NUMBER_SIZE = 8, MARK_SIZE = 2 };

static const uint64_t SIGN = (uint64_t)1 << 63;

bool ds_element_is_complete(const Ds__Key__PathElement *element)
{
    switch (element->id_type_case) {
    case DS__KEY__PATH_ELEMENT__ID_TYPE_NAME:
        return true;
    case DS__KEY__PATH_ELEMENT__ID_TYPE_ID:
        return element->id != 0;
    default:
        return false;
    }
}

bool ds_key_is_complete(const Ds__Key *key)
{
    for (size_t i = 0; i < key->n_path; i++)
        if (!ds_element_is_complete(key->path[i]))
            return false;
    return key->n_path > 0;
}

bytes ds_key_namespace(const Ds__Key *key)
{
    return key->partition_id == NULL ? bytes_of("") : bytes_of(key->partition_id->namespace_id);
}

bytes ds_key_kind(const Ds__Key *key)
{
    return key->n_path == 0 ? bytes_of("") : bytes_of(key->path[key->n_path - 1]->kind);
}

status ds_key_fill(Ds__Key *key, const struct ds_database *database, struct arena *arena)
{
    if (key->partition_id == NULL)
        PROTO_NEW(arena, key->partition_id, DS__PARTITION_ID__INIT);
    if (key->partition_id->project_id[0] != '\0')
        return status_ok();
    key->partition_id->project_id = database->project;
    if (key->partition_id->database_id[0] == '\0')
        key->partition_id->database_id = database->id;
    return status_ok();
}

void ds_key_move(Ds__Key *key, const struct ds_database *database)
{
    if (key == NULL || key->partition_id == NULL || database->project == NULL)
        return;
    key->partition_id->project_id = database->project;
    key->partition_id->database_id = database->id;
}

/* --- writing --- */

void ds_number_append(struct buffer *out, uint64_t number)
{
    big_endian_append(out, number);
}

void ds_bytes_append(struct buffer *out, bytes b, enum ds_flip flip)
{
    size_t start = out->size;
    buffer_append_bytes(out, b);
    ds_flip_from(out, start, flip);
}

void ds_flip_from(struct buffer *out, size_t start, enum ds_flip flip)
{
    for (size_t at = start; flip != DS_ASCENDING && !out->failed && at < out->size; at++)
        out->data[at] ^= (uint8_t)flip;
}

static void append_element(struct buffer *out, const Ds__Key__PathElement *element)
{
    CHECK(ds_element_is_complete(element) && element->kind[0] != '\0');
    key_text_append(out, bytes_of(element->kind));
    if (element->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_NAME) {
        buffer_append_byte(out, ELEMENT_NAME);
        key_text_append(out, bytes_of(element->name));
    } else {
        buffer_append_byte(out, ELEMENT_NUMBER);
        ds_number_append(out, (uint64_t)element->id ^ SIGN);
    }
}

void ds_path_append(struct buffer *out, const Ds__Key *key)
{
    for (size_t i = 0; i < key->n_path; i++)
        append_element(out, key->path[i]);
}

void ds_ancestor_append(struct buffer *out, bytes path)
{
    buffer_append_bytes(out, path);
    buffer_append(out, (const uint8_t[]){KEY_TEXT_ZERO, KEY_TEXT_END}, MARK_SIZE);
}

/* --- reading --- */

status ds_damaged(const char *what)
{
    return status_make(STATUS_INTERNAL, "The datastore is damaged: %s", what);
}

uint64_t ds_number_read(const uint8_t *encoded, enum ds_flip flip)
{
    uint64_t number = big_endian_read(encoded);
    return flip == DS_DESCENDING ? ~number : number;
}

size_t ds_element_size(bytes encoded, enum ds_flip flip)
{
    size_t kind = key_text_size(encoded, (uint8_t)flip);
    if (kind <= MARK_SIZE || kind == encoded.size)
        return 0;
    bytes rest = bytes_from(encoded, kind + 1);
    switch (encoded.data[kind] ^ flip) {
    case ELEMENT_NUMBER:
        return rest.size < NUMBER_SIZE ? 0 : kind + 1 + NUMBER_SIZE;
    case ELEMENT_NAME: {
        size_t name = key_text_size(rest, (uint8_t)flip);
        return name == 0 ? 0 : kind + 1 + name;
    }
    default:
        return 0;
    }
}

static bool has_mark(bytes encoded, enum ds_flip flip)
{
    return encoded.size >= MARK_SIZE && (encoded.data[0] ^ flip) == KEY_TEXT_ZERO &&
           (encoded.data[1] ^ flip) == KEY_TEXT_END;
}

size_t ds_ancestor_size(bytes encoded, enum ds_flip flip)
{
    size_t at = 0;
    for (;;) {
        bytes rest = bytes_from(encoded, at);
        size_t element = ds_element_size(rest, flip);
        if (element == 0)
            return at > 0 && has_mark(rest, flip) ? at + MARK_SIZE : 0;
        at += element;
    }
}

static size_t count_elements(bytes path)
{
    size_t count = 0;
    while (path.size > 0) {
        size_t size = ds_element_size(path, DS_ASCENDING);
        if (size == 0)
            return 0;
        path = bytes_from(path, size);
        count++;
    }
    return count;
}

bool ds_path_is_valid(bytes path)
{
    return count_elements(path) > 0;
}

status ds_text_read(bytes *encoded, enum ds_flip flip, struct arena *arena, const char **out)
{
    size_t size = key_text_size(*encoded, (uint8_t)flip);
    if (size == 0)
        return ds_damaged("a text without an end");
    char *text = arena_alloc(arena, size);
    if (text == NULL)
        return status_out_of_memory();
    bytes read = key_text_read(bytes_make(encoded->data, size), (uint8_t)flip, (uint8_t *)text);
    if (memchr(text, '\0', read.size) != NULL)
        return ds_damaged("a zero byte in a text");
    text[read.size] = '\0';
    *out = text;
    *encoded = bytes_from(*encoded, size);
    return status_ok();
}

/* The element at the start of `*path`, which has one, and moves behind it. */
static status decode_element(bytes *path, struct arena *arena, Ds__Key__PathElement **out)
{
    Ds__Key__PathElement *element;
    PROTO_NEW(arena, element, DS__KEY__PATH_ELEMENT__INIT);
    TRY(ds_text_read(path, DS_ASCENDING, arena, &element->kind));
    bool has_name = path->data[0] == ELEMENT_NAME;
    *path = bytes_from(*path, 1);
    *out = element;
    if (has_name) {
        element->id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
        return ds_text_read(path, DS_ASCENDING, arena, &element->name);
    }
    element->id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_ID;
    element->id = (int64_t)(ds_number_read(path->data, DS_ASCENDING) ^ SIGN);
    *path = bytes_from(*path, NUMBER_SIZE);
    return element->id == 0 ? ds_damaged("an id of 0") : status_ok();
}

status ds_path_decode(bytes path, struct arena *arena, Ds__Key **out)
{
    Ds__Key *key;
    size_t count = count_elements(path);
    if (count == 0)
        return ds_damaged("no path of a key");
    PROTO_NEW(arena, key, DS__KEY__INIT);
    key->path = arena_alloc(arena, count * sizeof(Ds__Key__PathElement *));
    if (key->path == NULL)
        return status_out_of_memory();
    for (; key->n_path < count; key->n_path++)
        TRY(decode_element(&path, arena, &key->path[key->n_path]));
    *out = key;
    return status_ok();
}

/* --- order --- */

static int compare_elements(const Ds__Key__PathElement *a, const Ds__Key__PathElement *b)
{
    int order = strcmp(a->kind, b->kind);
    if (order != 0)
        return order;
    bool a_has_name = a->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
    bool b_has_name = b->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
    if (a_has_name != b_has_name)
        return a_has_name ? 1 : -1;
    if (a_has_name)
        return strcmp(a->name, b->name);
    return (a->id > b->id) - (a->id < b->id);
}

int ds_key_compare(const Ds__Key *a, const Ds__Key *b)
{
    for (size_t i = 0; i < a->n_path && i < b->n_path; i++) {
        int order = compare_elements(a->path[i], b->path[i]);
        if (order != 0)
            return order;
    }
    return (a->n_path > b->n_path) - (a->n_path < b->n_path);
}

int ds_key_value_compare(const Ds__Key *a, const Ds__Key *b)
{
    static const Ds__PartitionId none = DS__PARTITION_ID__INIT;
    const Ds__PartitionId *of_a = a->partition_id == NULL ? &none : a->partition_id;
    const Ds__PartitionId *of_b = b->partition_id == NULL ? &none : b->partition_id;
    int order = strcmp(of_a->project_id, of_b->project_id);
    if (order == 0)
        order = strcmp(of_a->database_id, of_b->database_id);
    if (order == 0)
        order = strcmp(of_a->namespace_id, of_b->namespace_id);
    return order == 0 ? ds_key_compare(a, b) : order;
}
