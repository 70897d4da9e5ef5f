/* Structured row keys: vectors, that what is written is read again, and that spans of keys miss
 * nothing. */
#include "base/testing/testing.h"
#include "google/bigtable/admin/v2/types.pb-c.h"
#include "sql/plan/key_schema.h"
#include "sql/plan/ordered_code.h"
#include "sql/testing/testing.h"
#include "wire/proto.h"

enum { ARENA = 8 << 20, FIELDS = 3 };

/* A string, a number, and bytes. */
struct schema_fixture {
    struct arena *arena;
    BtAdmin__Type__String string;
    BtAdmin__Type__Int64 number;
    BtAdmin__Type__Int64__Encoding number_encoding;
    BtAdmin__Type__Int64__Encoding__OrderedCodeBytes ordered_number;
    BtAdmin__Type__Bytes bytes_;
    BtAdmin__Type types[FIELDS];
    BtAdmin__Type__Struct__Field fields[FIELDS];
    BtAdmin__Type__Struct__Field *list[FIELDS];
    BtAdmin__Type__Struct__Encoding encoding;
    BtAdmin__Type__Struct__Encoding__DelimitedBytes delimited;
    BtAdmin__Type__Struct__Encoding__OrderedCodeBytes ordered;
    BtAdmin__Type__Struct__Encoding__Singleton singleton;
    BtAdmin__Type__Struct structure;
    struct buffer encoded;
    const struct sql_key_schema *schema;
};

static void set_types(struct schema_fixture *f, bool is_ordered)
{
    static const char *const names[] = {"name", "number", "rest"};
    f->string = (BtAdmin__Type__String)BT_ADMIN__TYPE__STRING__INIT;
    f->number = (BtAdmin__Type__Int64)BT_ADMIN__TYPE__INT64__INIT;
    f->bytes_ = (BtAdmin__Type__Bytes)BT_ADMIN__TYPE__BYTES__INIT;
    f->number_encoding = (BtAdmin__Type__Int64__Encoding)BT_ADMIN__TYPE__INT64__ENCODING__INIT;
    f->ordered_number = (BtAdmin__Type__Int64__Encoding__OrderedCodeBytes)
        BT_ADMIN__TYPE__INT64__ENCODING__ORDERED_CODE_BYTES__INIT;
    if (is_ordered) {
        f->number_encoding.encoding_case =
            BT_ADMIN__TYPE__INT64__ENCODING__ENCODING_ORDERED_CODE_BYTES;
        f->number_encoding.ordered_code_bytes = &f->ordered_number;
        f->number.encoding = &f->number_encoding;
    }
    for (size_t i = 0; i < FIELDS; i++) {
        f->types[i] = (BtAdmin__Type)BT_ADMIN__TYPE__INIT;
        f->fields[i] = (BtAdmin__Type__Struct__Field)BT_ADMIN__TYPE__STRUCT__FIELD__INIT;
        f->fields[i].field_name = names[i];
        f->fields[i].type = &f->types[i];
        f->list[i] = &f->fields[i];
    }
    f->types[0].kind_case = BT_ADMIN__TYPE__KIND_STRING_TYPE;
    f->types[0].string_type = &f->string;
    f->types[1].kind_case = BT_ADMIN__TYPE__KIND_INT64_TYPE;
    f->types[1].int64_type = &f->number;
    f->types[2].kind_case = BT_ADMIN__TYPE__KIND_BYTES_TYPE;
    f->types[2].bytes_type = &f->bytes_;
}

static void read_structure(struct schema_fixture *f, size_t count)
{
    f->structure = (BtAdmin__Type__Struct)BT_ADMIN__TYPE__STRUCT__INIT;
    f->structure.fields = f->list;
    f->structure.n_fields = count;
    f->structure.encoding = &f->encoding;
    proto_encode(&f->structure.base, &f->encoded);
    assert_ok(sql_key_schema_read(buffer_bytes(&f->encoded), f->arena, &f->schema));
    assert_int_equal(sql_key_schema_count(f->schema), count);
}

/* One field of that type, as it is. */
static void read_singleton(struct schema_fixture *f, size_t field, bool is_ordered)
{
    *f = (struct schema_fixture){.arena = arena_create(ARENA)};
    set_types(f, is_ordered);
    f->list[0] = &f->fields[field];
    f->encoding = (BtAdmin__Type__Struct__Encoding)BT_ADMIN__TYPE__STRUCT__ENCODING__INIT;
    f->singleton = (BtAdmin__Type__Struct__Encoding__Singleton)
        BT_ADMIN__TYPE__STRUCT__ENCODING__SINGLETON__INIT;
    f->encoding.encoding_case = BT_ADMIN__TYPE__STRUCT__ENCODING__ENCODING_SINGLETON;
    f->encoding.singleton = &f->singleton;
    read_structure(f, 1);
}

/* With a delimiter, or in the ordered code. */
static void read_schema(struct schema_fixture *f, const char *delimiter)
{
    *f = (struct schema_fixture){.arena = arena_create(ARENA)};
    set_types(f, delimiter == NULL);
    f->encoding = (BtAdmin__Type__Struct__Encoding)BT_ADMIN__TYPE__STRUCT__ENCODING__INIT;
    f->delimited = (BtAdmin__Type__Struct__Encoding__DelimitedBytes)
        BT_ADMIN__TYPE__STRUCT__ENCODING__DELIMITED_BYTES__INIT;
    f->ordered = (BtAdmin__Type__Struct__Encoding__OrderedCodeBytes)
        BT_ADMIN__TYPE__STRUCT__ENCODING__ORDERED_CODE_BYTES__INIT;
    if (delimiter != NULL) {
        f->delimited.delimiter = proto_data(bytes_of(delimiter));
        f->encoding.encoding_case = BT_ADMIN__TYPE__STRUCT__ENCODING__ENCODING_DELIMITED_BYTES;
        f->encoding.delimited_bytes = &f->delimited;
    } else {
        f->encoding.encoding_case = BT_ADMIN__TYPE__STRUCT__ENCODING__ENCODING_ORDERED_CODE_BYTES;
        f->encoding.ordered_code_bytes = &f->ordered;
    }
    read_structure(f, FIELDS);
}

static void free_schema(struct schema_fixture *f)
{
    buffer_free(&f->encoded);
    arena_destroy(f->arena);
}

static void span(struct schema_fixture *f, const struct sql_value *parts, size_t count,
                 struct sql_part_bound lower, struct sql_part_bound upper, bytes *first, bytes *end)
{
    struct buffer from = {0}, to = {0};
    bool is_empty;
    assert_ok(sql_key_span(f->schema, parts, count, &lower, &upper, &from, &to, &is_empty));
    assert_false(is_empty);
    *first = arena_copy(f->arena, buffer_bytes(&from));
    *end = arena_copy(f->arena, buffer_bytes(&to));
    buffer_free(&from);
    buffer_free(&to);
}

/* The key, or with fewer parts where those begin that have them. */
static bytes encode(struct schema_fixture *f, const struct sql_value *parts, size_t count)
{
    const struct sql_part_bound none = {0};
    bytes first, end;
    span(f, parts, count, none, none, &first, &end);
    return first;
}

static void check_there_and_back(struct schema_fixture *f, const char *name, int64_t number,
                                 const char *rest)
{
    const struct sql_value parts[FIELDS] = {sql_of_text(bytes_of(name)), sql_of_int64(number),
                                            sql_of_text(bytes_of(rest))};
    struct sql_value read[FIELDS];
    bytes key = encode(f, parts, FIELDS);
    assert_ok(sql_key_decode(f->schema, key, f->arena, read));
    assert_true(bytes_equal(read[0].text, parts[0].text));
    assert_int_equal(read[1].int64, number);
    assert_true(bytes_equal(read[2].text, parts[2].text));
}

static void delimited_keys(void **state)
{
    (void)state;
    struct schema_fixture f;
    read_schema(&f, "#");
    check_there_and_back(&f, "user1", 1, "x");
    check_there_and_back(&f, "", INT64_MAX, "");
    const struct sql_value parts[] = {sql_of_text(bytes_of("user1")), sql_of_int64(258)};
    bytes key = encode(&f, parts, 2);
    assert_true(bytes_equal(key, bytes_make("user1#\0\0\0\0\0\0\1\2#", 15)));
    struct sql_value read[FIELDS];
    assert_status(sql_key_decode(f.schema, bytes_of("user1"), f.arena, read),
                  STATUS_INVALID_ARGUMENT);
    assert_status(sql_key_decode(f.schema, bytes_of("user1#short#x"), f.arena, read),
                  STATUS_INVALID_ARGUMENT);
    free_schema(&f);
}

/* What begins with other parts does not begin with these bytes, and what has these parts does. */
static void ordered_keys(void **state)
{
    (void)state;
    struct schema_fixture f;
    read_schema(&f, NULL);
    check_there_and_back(&f, "user1", -70000, "x");
    check_there_and_back(&f, "", 0, "");
    check_there_and_back(&f, "user1", 5, "");
    const struct sql_value parts[] = {sql_of_text(bytes_of("ab")), sql_of_int64(5),
                                      sql_of_text(bytes_of("c"))};
    bytes key = encode(&f, parts, FIELDS);
    assert_true(bytes_equal(key, bytes_make("ab\0\1\x85\0\1c", 8)));
    assert_true(bytes_start_with(key, encode(&f, parts, 1)));
    assert_true(bytes_start_with(key, encode(&f, parts, 2)));
    const struct sql_value no_rest[] = {parts[0], parts[1], sql_of_text(bytes_make(NULL, 0))};
    assert_true(bytes_equal(encode(&f, no_rest, FIELDS), bytes_make("ab\0\1\x85", 5)));
    const struct sql_value no_name[] = {no_rest[2], parts[1], parts[2]};
    assert_true(bytes_equal(encode(&f, no_name, FIELDS), bytes_make("\0\0\0\1\x85\0\1c", 8)));
    free_schema(&f);
}

/* A bug's: a key that ended before a number was read, and the number was anything. */
static void keys_that_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *delimiter;
        const char *key;
        size_t size;
        const char *why;
    } cases[] = {
        {NULL, "ab", 2, "a number is none in the ordered code"},
        {NULL, "ab\0\1\xc0\x05\0\1c", 9, "a number is none in the ordered code"},
        {NULL, "\0\1\x85\0\1c", 6, "an empty part is not written as 00 00"},
        {NULL, "\0\0x\0\1\x85\0\1c", 9, "a zero byte is not escaped"},
        {NULL, "a\0x\0\1\x85", 6, "a zero byte is not escaped"},
        {NULL, "\xff\0\1\x85\0\1c", 7, "a string is no UTF-8"},
        {NULL, "a\0\1\x85\0\1c\0\1d", 10, "it has more parts"},
        {"#", "a#\xff\xff\xff\xff\xff\xff\xff\xff#c", 12, "a big-endian number is negative"},
        {"#", "a#12345678", 10, "it has not as many delimiters"},
        {"#", "a#12345678#c#d", 14, "it has not as many delimiters"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct schema_fixture f;
        struct sql_value read[FIELDS];
        read_schema(&f, cases[i].delimiter);
        bytes key = bytes_make(cases[i].key, cases[i].size);
        status s = sql_key_decode(f.schema, key, f.arena, read);
        assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
        if (strstr(status_message(s), cases[i].why) == NULL)
            fail_msg("%zu: %s", i, status_message(s));
        status_free(s);
        free_schema(&f);
    }
}

/* --- spans --- */

enum { TEXTS = 7, NUMBERS = 6, MOST_VALUES = TEXTS };

/* Of each part; those of a delimited key may have none that come before the delimiter. */
struct grid {
    struct sql_value values[FIELDS][MOST_VALUES];
    size_t counts[FIELDS];
};

static struct grid make_grid(const char *const *texts, const size_t *sizes, size_t text_count,
                             bool has_negative)
{
    static const int64_t numbers[NUMBERS] = {INT64_MIN, -70000, -1, 0, 300, INT64_MAX};
    struct grid grid = {.counts = {text_count, 0, text_count}};
    for (size_t i = 0; i < text_count; i++)
        grid.values[0][i] = grid.values[2][i] = sql_of_text(bytes_make(texts[i], sizes[i]));
    for (size_t i = 0; i < NUMBERS; i++)
        if (has_negative || numbers[i] >= 0)
            grid.values[1][grid.counts[1]++] = sql_of_int64(numbers[i]);
    return grid;
}

static bool is_within(const struct sql_type *type, const struct sql_value *value,
                      struct sql_part_bound lower, struct sql_part_bound upper)
{
    int above = lower.value == NULL ? 1 : sql_value_compare(type, value, lower.value);
    int below = upper.value == NULL ? -1 : sql_value_compare(type, value, upper.value);
    return (above > 0 || (above == 0 && !lower.is_open)) &&
           (below < 0 || (below == 0 && !upper.is_open));
}

struct written_key {
    struct sql_value parts[FIELDS];
    bytes key;
};

/* What a span may have beside the keys that are wanted. */
enum exactness {
    EXACT,      /* nothing */
    WITH_EQUAL, /* those whose next part is the lower bound, if that is outside */
    WIDE,       /* anything */
};

struct span_check {
    struct schema_fixture *f;
    const struct grid *grid;
    size_t part_count;
    enum exactness exactness;
    struct written_key *keys;
    size_t key_count;
};

/* All keys that the grid has. */
static void write_keys(struct span_check *check)
{
    check->key_count = 1;
    for (size_t i = 0; i < check->part_count; i++)
        check->key_count *= check->grid->counts[i];
    check->keys = arena_zalloc(check->f->arena, check->key_count * sizeof *check->keys);
    assert_non_null(check->keys);
    for (size_t at = 0; at < check->key_count; at++) {
        struct written_key *written = &check->keys[at];
        size_t rest = at;
        for (size_t i = 0; i < check->part_count; i++) {
            written->parts[i] = check->grid->values[i][rest % check->grid->counts[i]];
            rest /= check->grid->counts[i];
        }
        written->key = encode(check->f, written->parts, check->part_count);
    }
}

/* Whether the key has the known parts, and the next is within the bounds. */
static bool is_wanted(const struct span_check *check, const struct written_key *written,
                      const struct sql_value *known, size_t count, struct sql_part_bound lower,
                      struct sql_part_bound upper)
{
    const struct sql_key_schema *schema = check->f->schema;
    for (size_t i = 0; i < count; i++)
        if (sql_value_compare(sql_key_schema_part(schema, i).type, &written->parts[i], &known[i]) !=
            0)
            return false;
    return count == check->part_count ||
           is_within(sql_key_schema_part(schema, count).type, &written->parts[count], lower, upper);
}

static void check_span(const struct span_check *check, const struct sql_value *known, size_t count,
                       struct sql_part_bound lower, struct sql_part_bound upper)
{
    struct buffer from = {0}, to = {0};
    bool is_empty;
    assert_ok(sql_key_span(check->f->schema, known, count, &lower, &upper, &from, &to, &is_empty));
    for (size_t at = 0; at < check->key_count; at++) {
        const struct written_key *written = &check->keys[at];
        bool wanted = is_wanted(check, written, known, count, lower, upper);
        struct sql_part_bound least = {lower.value, lower.is_open && check->exactness == EXACT};
        bool allowed =
            check->exactness == WIDE || is_wanted(check, written, known, count, least, upper);
        bool is_in = !is_empty && bytes_compare(written->key, buffer_bytes(&from)) >= 0 &&
                     (to.size == 0 || bytes_compare(written->key, buffer_bytes(&to)) < 0);
        if (wanted ? !is_in : is_in && !allowed)
            fail_msg("%zu known parts, key %zu: wanted %d, within %d", count, at, wanted, is_in);
    }
    buffer_free(&from);
    buffer_free(&to);
}

static void check_bounds(const struct span_check *check, const struct sql_value *known,
                         size_t count)
{
    const struct sql_part_bound none = {0};
    check_span(check, known, count, none, none);
    if (count == check->part_count)
        return;
    const struct sql_value *values = check->grid->values[count];
    for (size_t i = 0; i < check->grid->counts[count]; i++)
        for (int open = 0; open <= 1; open++) {
            const struct sql_part_bound bound = {&values[i], open};
            check_span(check, known, count, bound, none);
            check_span(check, known, count, none, bound);
            for (size_t k = 0; k < check->grid->counts[count]; k++)
                check_span(check, known, count, bound, (struct sql_part_bound){&values[k], !open});
        }
}

/* Every beginning of a key of the grid. */
static void check_spans(const struct span_check *check, struct sql_value *known, size_t count)
{
    check_bounds(check, known, count);
    for (size_t i = 0; count < check->part_count && i < check->grid->counts[count]; i++) {
        known[count] = check->grid->values[count][i];
        check_spans(check, known, count + 1);
    }
}

static void check_grid(struct schema_fixture *f, const struct grid *grid, size_t part_count,
                       enum exactness exactness)
{
    struct sql_value known[FIELDS];
    struct span_check check = {f, grid, part_count, exactness, NULL, 0};
    write_keys(&check);
    check_spans(&check, known, 0);
    free_schema(f);
}

static const char *const any_texts[TEXTS] = {"", "\0", "\0\0", "a", "a\0", "a!", "b\x7f"};
static const size_t any_sizes[TEXTS] = {0, 1, 2, 1, 2, 2, 2};

/* The ordered code takes any text, and its spans have nothing else in them. */
static void spans_of_ordered_keys(void **state)
{
    (void)state;
    struct schema_fixture f;
    const struct grid grid = make_grid(any_texts, any_sizes, TEXTS, true);
    read_schema(&f, NULL);
    check_grid(&f, &grid, FIELDS, EXACT);
}

static void spans_of_delimited_keys(void **state)
{
    (void)state;
    struct schema_fixture f;
    static const char *const texts[] = {"", "a", "a-", "ab", "b", "z\x7f"};
    static const size_t sizes[] = {0, 1, 2, 2, 1, 2};
    const struct grid grid = make_grid(texts, sizes, sizeof sizes / sizeof *sizes, false);
    read_schema(&f, "#");
    check_grid(&f, &grid, FIELDS, WITH_EQUAL);
    read_schema(&f, "##");
    check_grid(&f, &grid, FIELDS, WITH_EQUAL);
}

/* With bytes before the delimiter the order of keys is not that of their parts: spans are wider,
 * and miss nothing. */
static void spans_of_keys_out_of_order(void **state)
{
    (void)state;
    struct schema_fixture f;
    const struct grid grid = make_grid(any_texts, any_sizes, TEXTS, false);
    read_schema(&f, "#");
    check_grid(&f, &grid, FIELDS, WIDE);
    read_schema(&f, "|");
    check_grid(&f, &grid, FIELDS, WIDE);
}

static void spans_of_singletons(void **state)
{
    (void)state;
    for (size_t field = 0; field < FIELDS; field++)
        for (int is_ordered = 0; is_ordered <= 1; is_ordered++) {
            struct schema_fixture f;
            struct grid grid = make_grid(any_texts, any_sizes, TEXTS, is_ordered);
            read_singleton(&f, field, is_ordered);
            memmove(grid.values[0], grid.values[field], sizeof grid.values[0]);
            grid.counts[0] = grid.counts[field];
            check_grid(&f, &grid, 1, EXACT);
        }
}

static void numbers_in_the_ordered_code(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        const char *code;
        size_t size;
    } vectors[] = {
        {0, "\x80", 1},
        {1, "\x81", 1},
        {63, "\xbf", 1},
        {64, "\xc0\x40", 2},
        {-1, "\x7f", 1},
        {-64, "\x40", 1},
        {-65, "\x3f\xbf", 2},
        {8191, "\xdf\xff", 2},
        {8192, "\xe0\x20\x00", 3},
        {-8192, "\x20\x00", 2},
        {-8193, "\x1f\xdf\xff", 3},
        {INT64_MAX, "\xff\xc0\x7f\xff\xff\xff\xff\xff\xff\xff", 10},
        {INT64_MIN, "\x00\x3f\x80\x00\x00\x00\x00\x00\x00\x00", 10},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        struct buffer code = {0};
        int64_t value;
        ordered_code_append(&code, vectors[i].value);
        assert_true(bytes_equal(buffer_bytes(&code), bytes_make(vectors[i].code, vectors[i].size)));
        assert_int_equal(ordered_code_read(buffer_bytes(&code), &value), vectors[i].size);
        assert_true(value == vectors[i].value);
        buffer_free(&code);
    }
}

/* Of all sizes: the order of the codes is that of the numbers. */
static void the_order_of_numbers(void **state)
{
    (void)state;
    struct buffer last = {0};
    for (int exponent = -63; exponent <= 63; exponent++) {
        uint64_t power = UINT64_C(1) << abs(exponent);
        int64_t value = (int64_t)(exponent < 0 ? 0 - power : exponent == 63 ? power - 1 : power);
        struct buffer code = {0};
        int64_t read;
        ordered_code_append(&code, value);
        assert_int_equal(ordered_code_read(buffer_bytes(&code), &read), code.size);
        assert_true(read == value);
        assert_true(bytes_compare(buffer_bytes(&last), buffer_bytes(&code)) < 0);
        buffer_free(&last);
        last = code;
    }
    buffer_free(&last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delimited_keys),          cmocka_unit_test(ordered_keys),
        cmocka_unit_test(keys_that_are_none),      cmocka_unit_test(spans_of_ordered_keys),
        cmocka_unit_test(spans_of_delimited_keys), cmocka_unit_test(spans_of_keys_out_of_order),
        cmocka_unit_test(spans_of_singletons),     cmocka_unit_test(numbers_in_the_ordered_code),
        cmocka_unit_test(the_order_of_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
