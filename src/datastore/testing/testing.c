/* Keys, values and entities from short texts: see testing.h. */
#include "datastore/testing/testing.h"

#include "base/check.h"
#include "base/testing/testing.h"
#include "wire/json.h"

ProtobufCMessage *test_message(struct arena *arena, const ProtobufCMessageDescriptor *type,
                               const char *json)
{
    struct buffer wire = {0};
    ProtobufCMessage *message = NULL;
    char *text = arena_string(arena, bytes_of(json));
    CHECK(text != NULL);
    for (char *at = text; *at != '\0'; at++)
        if (*at == '\'')
            *at = '"';
    CHECK(status_is_ok(json_decode(type, bytes_of(text), &wire)));
    bytes copy = arena_copy(arena, buffer_bytes(&wire));
    CHECK(status_is_ok(proto_decode(type, copy, arena, &message)));
    buffer_free(&wire);
    return message;
}

Ds__Value *test_value(struct arena *arena, const char *json)
{
    return (Ds__Value *)test_message(arena, &ds__value__descriptor, json);
}

Ds__Entity *test_entity(struct arena *arena, const char *json)
{
    return (Ds__Entity *)test_message(arena, &ds__entity__descriptor, json);
}

Ds__Mutation *test_mutation(struct arena *arena, const char *json)
{
    return (Ds__Mutation *)test_message(arena, &ds__mutation__descriptor, json);
}

Ds__Query *test_query(struct arena *arena, const char *json)
{
    return (Ds__Query *)test_message(arena, &ds__query__descriptor, json);
}

Ds__AggregationQuery *test_aggregation_query(struct arena *arena, const char *json)
{
    return (Ds__AggregationQuery *)test_message(arena, &ds__aggregation_query__descriptor, json);
}

void assert_json(const ProtobufCMessage *message, const char *expected)
{
    const struct json_style style = {.compact = true};
    struct buffer out = {0};
    json_encode(message, &style, &out);
    buffer_append_byte(&out, '\0');
    CHECK(!out.failed);
    for (size_t i = 0; i < out.size; i++)
        if (out.data[i] == '"')
            out.data[i] = '\'';
    assert_string_equal((const char *)out.data, expected);
    buffer_free(&out);
}

/* A part of the path, up to the next slash, as a string of the arena; NULL at the end. */
static char *next_part(struct arena *arena, const char **path)
{
    if (**path == '\0')
        return NULL;
    const char *end = strchrnul(*path, '/');
    char *part = arena_string(arena, bytes_make(*path, (size_t)(end - *path)));
    CHECK(part != NULL);
    *path = *end == '/' ? end + 1 : end;
    return part;
}

static void set_id(Ds__Key__PathElement *element, char *part)
{
    if (part[0] == '\'') {
        CHECK(part[strlen(part) - 1] == '\'');
        part[strlen(part) - 1] = '\0';
        element->id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
        element->name = part + 1;
    } else {
        element->id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_ID;
        element->id = strtoll(part, NULL, 10);
    }
}

Ds__Key *test_key(struct arena *arena, const char *name_space, const char *path)
{
    enum { MOST_ELEMENTS = 128 };
    Ds__Key *key = arena_alloc(arena, sizeof *key);
    Ds__PartitionId *partition = arena_alloc(arena, sizeof *partition);
    CHECK(key != NULL && partition != NULL);
    *partition = (Ds__PartitionId)DS__PARTITION_ID__INIT;
    partition->project_id = "p";
    partition->namespace_id = name_space;
    *key = (Ds__Key)DS__KEY__INIT;
    key->partition_id = partition;
    key->path = arena_alloc(arena, MOST_ELEMENTS * sizeof(Ds__Key__PathElement *));
    CHECK(key->path != NULL);
    for (char *kind; (kind = next_part(arena, &path)) != NULL; key->n_path++) {
        Ds__Key__PathElement *element = arena_alloc(arena, sizeof *element);
        CHECK(element != NULL && key->n_path < MOST_ELEMENTS);
        *element = (Ds__Key__PathElement)DS__KEY__PATH_ELEMENT__INIT;
        element->kind = kind;
        char *id = next_part(arena, &path);
        if (id != NULL)
            set_id(element, id);
        key->path[key->n_path] = element;
    }
    return key;
}
