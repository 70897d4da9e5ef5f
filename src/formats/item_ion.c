/* Items from Ion text (Amazon Ion 1.0), as exports have it: one line an item,
 *
 *     $ion_1_0 {Item:{Id:103.,Title:"Book",Authors:$dynamodb_SS::["a"],Price:2d1,Cover:{{aGk=}}}}
 *
 * Of Ion what stands for a value of DynamoDB: strings, symbols as names, decimals and integers,
 * blobs, booleans, null, lists, structs, sets by their annotation. What else it has (timestamps,
 * floats, clobs, S-expressions, comments) DynamoDB never writes, and is refused. */
#include "formats/item_private.h"

#include "base/utf8.h"
#include "wire/grpc_text.h"

#include <ctype.h>

struct ion_reader {
    const uint8_t *at;
    const uint8_t *end;
    const uint8_t *start;
    struct arena *arena;
    unsigned depth;
};

static status refuse(const struct ion_reader *reader, const char *what)
{
    return status_make(STATUS_INVALID_ARGUMENT, "byte %zu: %s",
                       (size_t)(reader->at - reader->start) + 1, what);
}

/* --- tokens --- */

static void skip_space(struct ion_reader *reader)
{
    while (reader->at < reader->end && isspace(*reader->at))
        reader->at++;
}

static bool take(struct ion_reader *reader, const char *text)
{
    skip_space(reader);
    bytes left = bytes_make(reader->at, (size_t)(reader->end - reader->at));
    if (!bytes_start_with(left, bytes_of(text)))
        return false;
    reader->at += strlen(text);
    return true;
}

/* The byte that comes next, after white space; 0 at the end. */
static uint8_t peek(struct ion_reader *reader)
{
    skip_space(reader);
    return reader->at < reader->end ? *reader->at : 0;
}

static bool is_symbol_byte(uint8_t c)
{
    return isalnum(c) || c == '_' || c == '$';
}

static bytes take_word(struct ion_reader *reader)
{
    skip_space(reader);
    const uint8_t *start = reader->at;
    while (reader->at < reader->end && is_symbol_byte(*reader->at))
        reader->at++;
    return bytes_make(start, (size_t)(reader->at - start));
}

/* --- strings --- */

static int hex_value(uint8_t c)
{
    return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : -1;
}

/* The code of `digits` hex digits; -1 if they are none. */
static int64_t take_hex(struct ion_reader *reader, int digits)
{
    int64_t code = 0;
    for (int i = 0; i < digits; i++, reader->at++) {
        int value = reader->at < reader->end ? hex_value(*reader->at) : -1;
        if (value < 0)
            return -1;
        code = code << 4 | value;
    }
    return code;
}

enum { FIRST_SURROGATE = 0xd800, FIRST_LOW = 0xdc00, AFTER_SURROGATES = 0xe000 };

/* The second half of a pair, \uDC00 to \uDFFF, makes the code whole; -1 if it is not there. */
static int64_t join_pair(struct ion_reader *reader, int64_t high)
{
    bytes left = bytes_make(reader->at, (size_t)(reader->end - reader->at));
    if (!bytes_start_with(left, bytes_of("\\u")))
        return -1;
    reader->at += 2;
    int64_t low = take_hex(reader, 4);
    if (low < FIRST_LOW || low >= AFTER_SURROGATES)
        return -1;
    return 0x10000 + ((high - FIRST_SURROGATE) << 10) + (low - FIRST_LOW);
}

static bool append_code(struct ion_reader *reader, int digits, struct buffer *out)
{
    int64_t code = take_hex(reader, digits);
    if (code >= FIRST_SURROGATE && code < FIRST_LOW)
        code = join_pair(reader, code);
    if (code < 0 || code > UTF8_LAST || (code >= FIRST_SURROGATE && code < AFTER_SURROGATES))
        return false;
    utf8_append(out, (uint32_t)code);
    return true;
}

/* Reads what follows a backslash. */
static bool unescape_one(struct ion_reader *reader, struct buffer *out)
{
    static const char letters[] = "0abtnfrv\"'/?\\", meant[] = "\0\a\b\t\n\f\r\v\"'/?\\";
    if (reader->at == reader->end)
        return false;
    uint8_t letter = *reader->at++;
    if (letter == 'x' || letter == 'u' || letter == 'U')
        return append_code(reader, letter == 'x' ? 2 : letter == 'u' ? 4 : 8, out);
    const char *place = letter == 0 ? NULL : strchr(letters, letter);
    if (place != NULL)
        buffer_append_byte(out, (uint8_t)meant[place - letters]);
    return place != NULL;
}

static bool unescape(struct ion_reader *reader, uint8_t quote, struct buffer *out)
{
    while (reader->at < reader->end && *reader->at != quote) {
        uint8_t byte = *reader->at++;
        if (byte != '\\')
            buffer_append_byte(out, byte);
        else if (!unescape_one(reader, out))
            return false;
    }
    return reader->at < reader->end && utf8_is_valid(buffer_bytes(out));
}

/* Behind the first quote. */
static status take_quoted(struct ion_reader *reader, uint8_t quote, bytes *out)
{
    struct buffer text = {0};
    status s = status_ok();
    if (!unescape(reader, quote, &text))
        s = refuse(reader, "the text ends within quotes, is not UTF-8 or has a bad escape");
    else
        *out = arena_copy(reader->arena, buffer_bytes(&text));
    if (status_is_ok(s) && (text.failed || out->data == NULL))
        s = status_out_of_memory();
    reader->at += status_is_ok(s);
    buffer_free(&text);
    return s;
}

static status take_name(struct ion_reader *reader, bytes *out)
{
    uint8_t next = peek(reader);
    if (next == '"' || next == '\'') {
        reader->at++;
        TRY(take_quoted(reader, next, out));
    } else {
        *out = take_word(reader);
        if (out->size == 0)
            return refuse(reader, "a name is expected");
    }
    return take(reader, ":") ? status_ok() : refuse(reader, "':' is expected");
}

/* --- scalars --- */

/* Ion's "6d2", "103." and "-1.5d-3" are 6e2, 103 and -1.5e-3. */
static status read_number(struct ion_reader *reader, struct item_value *out)
{
    const uint8_t *start = reader->at;
    while (reader->at < reader->end &&
           (isalnum(*reader->at) || strchr("+-._", *reader->at) != NULL))
        reader->at++;
    size_t size = (size_t)(reader->at - start);
    uint8_t *text = arena_alloc(reader->arena, size);
    if (text == NULL)
        return status_out_of_memory();
    out->type = ITEM_NUMBER;
    out->text = bytes_make(text, 0);
    for (size_t i = 0; i < size; i++) {
        bool ends_whole = start[i] == '.' && (i + 1 == size || !isdigit(start[i + 1]));
        if (!ends_whole)
            text[out->text.size++] = start[i] == 'd' || start[i] == 'D' ? 'E' : start[i];
    }
    struct item_number number;
    status s = item_number_parse(out->text, &number);
    if (status_is_ok(s))
        return s;
    status placed = refuse(reader, status_message(s));
    status_free(s);
    return placed;
}

static status read_blob(struct ion_reader *reader, struct item_value *out)
{
    struct buffer text = {0};
    size_t size = 0;
    while (reader->at < reader->end && *reader->at != '}') {
        if (!isspace(*reader->at))
            buffer_append_byte(&text, *reader->at);
        reader->at++;
    }
    uint8_t *to = arena_alloc(reader->arena, base64_decoded_most(text.size));
    status s = text.failed || to == NULL ? status_out_of_memory() : status_ok();
    if (status_is_ok(s) && (!take(reader, "}}") || !base64_decode(buffer_bytes(&text), to, &size)))
        s = refuse(reader, "what is between {{ and }} is not base64");
    buffer_free(&text);
    out->type = ITEM_BINARY;
    out->text = bytes_make(to, size);
    return s;
}

/* true, false, null and null.string: which type a null has makes no difference. */
static status read_word(struct ion_reader *reader, struct item_value *out)
{
    bytes word = take_word(reader);
    out->boolean = bytes_equal(word, bytes_of("true"));
    out->type = out->boolean || bytes_equal(word, bytes_of("false")) ? ITEM_BOOL : ITEM_NULL;
    if (out->type == ITEM_BOOL)
        return status_ok();
    if (!bytes_equal(word, bytes_of("null")))
        return refuse(reader, "a value of DynamoDB is expected before");
    if (reader->at < reader->end && *reader->at == '.') {
        reader->at++;
        take_word(reader);
    }
    return status_ok();
}

/* --- what has elements --- */

static status read_value(struct ion_reader *reader, struct item_value *out);

/* Behind the opening bracket. */
static status read_elements(struct ion_reader *reader, const char *close, struct item_value *out)
{
    size_t capacity = 0;
    bool is_map = out->type == ITEM_MAP;
    while (!take(reader, close)) {
        bytes name = {0};
        if (!item_make_room(out, &capacity, reader->arena))
            return status_out_of_memory();
        if (is_map)
            TRY(take_name(reader, &name));
        TRY(read_value(reader, &out->elements[out->count]));
        out->elements[out->count++].name = name;
        if (!take(reader, ",") && peek(reader) != (uint8_t)*close)
            return refuse(reader, "',' or the closing bracket is expected");
    }
    return is_map && !item_sort_members(out)
               ? refuse(reader, "a name is twice in the struct before")
               : status_ok();
}

/* `$dynamodb_SS::[…]`: the elements are all of one type. */
static status read_set(struct ion_reader *reader, struct item_value *out)
{
    static const struct {
        const char *annotation;
        enum item_type set, element;
    } kinds[] = {{"$dynamodb_SS::", ITEM_STRING_SET, ITEM_STRING},
                 {"$dynamodb_NS::", ITEM_NUMBER_SET, ITEM_NUMBER},
                 {"$dynamodb_BS::", ITEM_BINARY_SET, ITEM_BINARY}};
    size_t kind = 0;
    while (kind < sizeof kinds / sizeof *kinds && !take(reader, kinds[kind].annotation))
        kind++;
    if (kind == sizeof kinds / sizeof *kinds || !take(reader, "["))
        return refuse(reader, "an annotation that DynamoDB does not write");
    out->type = kinds[kind].set;
    TRY(read_elements(reader, "]", out));
    for (size_t i = 0; i < out->count; i++)
        if (out->elements[i].type != kinds[kind].element)
            return refuse(reader, "the set before has elements of another type");
    return status_ok();
}

static status read_list_or_struct(struct ion_reader *reader, const char *close,
                                  struct item_value *out)
{
    out->type = *close == '}' ? ITEM_MAP : ITEM_LIST;
    if (reader->depth == ITEM_MOST_DEPTH)
        return refuse(reader, "more than 32 levels of lists and structs");
    reader->depth++;
    TRY(read_elements(reader, close, out));
    reader->depth--;
    return status_ok();
}

static status read_value(struct ion_reader *reader, struct item_value *out)
{
    *out = (struct item_value){0};
    uint8_t next = peek(reader);
    if (next == '"') {
        reader->at++;
        out->type = ITEM_STRING;
        return take_quoted(reader, '"', &out->text);
    }
    if (next == '-' || next == '+' || isdigit(next))
        return read_number(reader, out);
    if (next == '$')
        return read_set(reader, out);
    if (take(reader, "{{"))
        return read_blob(reader, out);
    if (take(reader, "{"))
        return read_list_or_struct(reader, "}", out);
    if (take(reader, "["))
        return read_list_or_struct(reader, "]", out);
    return read_word(reader, out);
}

status item_read_ion(bytes text, struct arena *arena, struct item_value *out)
{
    struct ion_reader reader = {.at = text.data,
                                .end = bytes_from(text, text.size).data,
                                .start = text.data,
                                .arena = arena};
    take(&reader, "$ion_1_0");
    if (!take(&reader, "{"))
        return refuse(&reader, "a struct is expected");
    *out = (struct item_value){.type = ITEM_MAP};
    TRY(read_elements(&reader, "}", out));
    return peek(&reader) == 0 && reader.at == reader.end
               ? status_ok()
               : refuse(&reader, "something follows the struct");
}
