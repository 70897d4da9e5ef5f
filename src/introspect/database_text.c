/* See database_text.h. */
#include "introspect/database_text.h"

#include "base/utf8.h"
#include "row/key_text.h"
#include "wire/json.h"

#define SECOND_US INT64_C(1000000)

enum { NS_A_US = 1000, SHOWN_MOST = 60 /* bytes of a string */ };

/* What is left of a row key, and what it says. */
struct wording {
    bytes rest;
    struct arena *arena;
    struct buffer text;
};

static void append(struct wording *w, const char *text)
{
    buffer_append_bytes(&w->text, bytes_of(text));
}

static status finish(struct wording *w, status s, bytes *out)
{
    bool failed = w->text.failed;
    *out = failed ? bytes_make(NULL, 0) : arena_copy(w->arena, buffer_bytes(&w->text));
    buffer_free(&w->text);
    TRY(s);
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

/* The text that comes next; NULL if it is not all there. */
static status take_text(struct wording *w, const char **out)
{
    *out = NULL;
    if (key_text_size(w->rest, DS_ASCENDING) == 0)
        return status_ok();
    return ds_text_read(&w->rest, DS_ASCENDING, w->arena, out);
}

static void append_quoted(struct wording *w, const char *text)
{
    size_t size = strlen(text);
    append(w, "\"");
    buffer_append_bytes(&w->text, utf8_cut(bytes_of(text), SHOWN_MOST));
    append(w, size > SHOWN_MOST ? "...\"" : "\"");
}

/* --- paths --- */

static void append_element(struct wording *w, const Ds__Key__PathElement *element)
{
    buffer_append_format(&w->text, "%s ", element->kind);
    if (element->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_NAME)
        append_quoted(w, element->name);
    else
        buffer_append_format(&w->text, "%lld", (long long)element->id);
}

/* As many elements as are there. */
static status append_path(struct wording *w)
{
    size_t size = 0, more;
    Ds__Key *key;
    while ((more = ds_element_size(bytes_from(w->rest, size), DS_ASCENDING)) > 0)
        size += more;
    if (size == 0)
        return status_ok();
    TRY(ds_path_decode(bytes_make(w->rest.data, size), w->arena, &key));
    for (size_t i = 0; i < key->n_path; i++) {
        append(w, i == 0 ? "" : " / ");
        append_element(w, key->path[i]);
    }
    return status_ok();
}

static void append_namespace(struct wording *w, const char *name_space)
{
    if (name_space != NULL && name_space[0] != '\0')
        buffer_append_format(&w->text, " (namespace %s)", name_space);
}

/* --- values --- */

static void append_time(struct wording *w, int64_t us)
{
    struct buffer quoted = {0};
    int64_t seconds = us / SECOND_US - (us % SECOND_US < 0);
    json_write_timestamp(seconds, (int32_t)((us - seconds * SECOND_US) * NS_A_US), &quoted);
    w->text.failed |= quoted.failed;
    if (!quoted.failed && quoted.size > 2)
        buffer_append(&w->text, quoted.data + 1, quoted.size - 2);
    buffer_free(&quoted);
}

static void append_value(struct wording *w, const Ds__Value *value)
{
    switch (value->value_type_case) {
    case DS__VALUE__VALUE_TYPE_NULL_VALUE:
        append(w, "null");
        break;
    case DS__VALUE__VALUE_TYPE_INTEGER_VALUE:
        if (value->meaning == DS_MEANING_TIMESTAMP)
            append_time(w, value->integer_value);
        else
            buffer_append_format(&w->text, "%lld", (long long)value->integer_value);
        break;
    case DS__VALUE__VALUE_TYPE_BOOLEAN_VALUE:
        append(w, value->boolean_value ? "true" : "false");
        break;
    case DS__VALUE__VALUE_TYPE_DOUBLE_VALUE:
        buffer_append_format(&w->text, "%g", value->double_value);
        break;
    case DS__VALUE__VALUE_TYPE_STRING_VALUE:
        append_quoted(w, value->string_value);
        break;
    default:
        append(w, "...");
    }
}

static status append_encoded(struct wording *w, bytes encoded, uint8_t type)
{
    Ds__Value *value;
    status s = ds_value_decode(encoded, DS_ASCENDING, type, w->arena, &value);
    if (s.code == STATUS_INTERNAL) { /* of another type: it is only shown */
        status_free(s);
        append(w, "...");
        return status_ok();
    }
    TRY(s);
    append_value(w, value);
    return status_ok();
}

/* What the value's first byte says; of integers and timestamps, which look alike, the former. */
static uint8_t likely_type(bytes encoded)
{
    enum { NONE = 0x05, INTEGER = 0x10, BOOLEAN = 0x20, TEXT = 0x30, DOUBLE = 0x40 };
    switch (encoded.data[0]) {
    case NONE:
        return DS__VALUE__VALUE_TYPE_NULL_VALUE;
    case INTEGER:
        return DS__VALUE__VALUE_TYPE_INTEGER_VALUE;
    case BOOLEAN:
        return DS__VALUE__VALUE_TYPE_BOOLEAN_VALUE;
    case TEXT:
        return DS__VALUE__VALUE_TYPE_STRING_VALUE;
    case DOUBLE:
        return DS__VALUE__VALUE_TYPE_DOUBLE_VALUE;
    default:
        return DS__VALUE__VALUE_TYPE_BLOB_VALUE;
    }
}

/* --- rows --- */

static status append_property_row(struct wording *w)
{
    const char *property;
    TRY(take_text(w, &property));
    if (property == NULL)
        return status_ok();
    buffer_append_format(&w->text, ".%s", property);
    size_t size = ds_value_size(w->rest, DS_ASCENDING);
    if (size == 0)
        return status_ok();
    append(w, " = ");
    TRY(append_encoded(w, bytes_make(w->rest.data, size), likely_type(w->rest)));
    w->rest = bytes_from(w->rest, size);
    append(w, w->rest.size > 0 ? ", " : "");
    return append_path(w);
}

static status append_kind_row(struct wording *w)
{
    append(w, w->rest.size > 0 ? ", " : "");
    return append_path(w);
}

static status append_index_row(struct wording *w, uint8_t letter)
{
    const char *kind;
    TRY(take_text(w, &kind));
    if (letter == DS_KIND_ROW)
        append(w, "the index of the kind ");
    if (kind == NULL)
        return status_ok();
    append(w, kind);
    return letter == DS_KIND_ROW ? append_kind_row(w) : append_property_row(w);
}

static status append_row(struct wording *w, uint8_t letter)
{
    const char *name_space;
    TRY(take_text(w, &name_space));
    switch (letter) {
    case DS_ENTITY_ROW:
        TRY(append_path(w));
        break;
    case DS_KIND_ROW:
    case DS_ASCENDING_ROW:
        TRY(append_index_row(w, letter));
        break;
    case DS_COMPOSITE_ROW:
        append(w, "a composite index");
        break;
    default:
        append(w, "the numbers of kinds");
    }
    append_namespace(w, name_space);
    return status_ok();
}

status database_row_text(bytes row_key, struct arena *arena, bytes *out)
{
    struct wording w = {.arena = arena};
    status s = status_ok();
    if (row_key.size > 0) {
        w.rest = bytes_from(row_key, 1);
        s = append_row(&w, row_key.data[0]);
    }
    return finish(&w, s, out);
}

status database_value_text(const char *kind, const char *property, bytes value, uint8_t type,
                           const char *where, struct arena *arena, bytes *out)
{
    struct wording w = {.arena = arena};
    buffer_append_format(&w.text, "%s.%s = ", kind, property);
    status s = append_encoded(&w, value, type);
    append(&w, where);
    return finish(&w, s, out);
}
