/* Fuzzer: GQL. Any text is a query or is refused, with a place that lies within it, whatever is
 * bound and whether it may have literals. The result is a message that can be read again, and
 * blanks around the text change nothing.
 *
 * Input: a byte of choices, then the text. */
#include "base/testing/fuzzing.h"
#include "base/utf8.h"
#include "datastore/gql/gql.h"
#include "wire/proto.h"

#include <stdlib.h>

enum { ARENA_BYTES = 1 << 22, MOST_TEXT = 4096 };

static const struct ds_database database = {.project = "p", .id = "d"};

/* The number behind the words; `otherwise` if they are not there. */
static size_t number_behind(const char *words, const char *message, size_t otherwise)
{
    const char *found = strstr(message, words);
    return found == NULL ? otherwise : strtoul(found + strlen(words), NULL, 10);
}

/* Lines and columns are counted from 1, except in an empty text. A quotation from a text may look
 * like a place itself: a text with these words proves nothing. */
static void check_place(const char *message, bytes text)
{
    size_t lines = 1;
    if (strstr((const char *)text.data, " line ") || strstr((const char *)text.data, " column "))
        return;
    for (size_t i = 0; i < text.size; i++)
        lines += text.data[i] == '\n';
    size_t least = text.size > 0;
    size_t line = number_behind(" at line ", message, 1);
    size_t column = number_behind(", column ", message, 1);
    CHECK(line >= least && line <= lines);
    CHECK(column >= least && column <= text.size + 1);
}

static void read_again(const ProtobufCMessage *message, struct buffer *wire, struct arena *arena)
{
    ProtobufCMessage *again;
    proto_encode(message, wire);
    CHECK(!wire->failed);
    CHECK(status_is_ok(proto_decode(message->descriptor, buffer_bytes(wire), arena, &again)));
}

/* Appends what comes out; nothing if the text is refused. */
static void parse(const char *text, uint8_t how, struct buffer *wire, struct arena *arena)
{
    Ds__Value value = DS__VALUE__INIT;
    value.value_type_case = DS__VALUE__VALUE_TYPE_INTEGER_VALUE;
    Ds__GqlQueryParameter integer = DS__GQL_QUERY_PARAMETER__INIT, cursor = integer;
    integer.parameter_type_case = DS__GQL_QUERY_PARAMETER__PARAMETER_TYPE_VALUE;
    integer.value = &value;
    cursor.parameter_type_case = DS__GQL_QUERY_PARAMETER__PARAMETER_TYPE_CURSOR;
    Ds__GqlQuery__NamedBindingsEntry a = DS__GQL_QUERY__NAMED_BINDINGS_ENTRY__INIT, c = a;
    a.key = "a";
    a.value = &integer;
    c.key = "c";
    c.value = &cursor;
    Ds__GqlQuery__NamedBindingsEntry *entries[] = {&c, &a};
    Ds__GqlQuery gql = DS__GQL_QUERY__INIT;
    gql.query_string = text;
    gql.allow_literals = (how & 1) == 0;
    gql.n_named_bindings = (how & 2) == 0 ? 2 : 0;
    gql.named_bindings = entries;
    struct ds_gql out;
    status s = ds_gql_parse(&gql, &database, "", arena, &out);
    if (status_is_ok(s)) {
        CHECK((out.query == NULL) != (out.aggregation == NULL));
        read_again(out.query != NULL ? &out.query->base : &out.aggregation->base, wire, arena);
    } else {
        CHECK(s.code == STATUS_INVALID_ARGUMENT);
        check_place(status_message(s), bytes_of(text));
    }
    status_free(s);
}

/* Blanks around a text change nothing: what has no end must not find one there. */
static void parse_twice(bytes given, uint8_t how, struct arena *arena)
{
    struct buffer first = {0}, second = {0}, padded = {0};
    const char *text = arena_string(arena, given); /* up to its first zero byte */
    CHECK(text != NULL);
    buffer_append_format(&padded, "\n\t%s \r\n", text);
    const char *other = arena_string(arena, buffer_bytes(&padded));
    CHECK(other != NULL);
    parse(text, how, &first, arena);
    parse(other, how, &second, arena);
    CHECK(bytes_equal(buffer_bytes(&first), buffer_bytes(&second)));
    buffer_free(&first);
    buffer_free(&second);
    buffer_free(&padded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices = choices_of(data, size);
    uint8_t how = choose_byte(&choices);
    if (choices.left.size > MOST_TEXT || !utf8_is_valid(choices.left))
        return 0;
    struct arena *arena = arena_create(ARENA_BYTES);
    CHECK(arena != NULL);
    parse_twice(choices.left, how, arena);
    arena_destroy(arena);
    return 0;
}
