/* Fuzzer: paths and row keys. Bytes that can be read are those that would be written; paths order
 * as keys do, and begin as their ancestors' do and no others'.
 *
 * Input: choices (base/testing/fuzzing.h): a row key or path to be read, then two keys. */
#include "base/testing/fuzzing.h"
#include "datastore/model/rows.h"
#include "wire/proto.h"

enum { MOST_TEXT = 6, MOST_ELEMENTS = 4, MOST_BYTES = 80, ARENA_BYTES = 1 << 16 };

static bytes path_of(const Ds__Key *key, struct buffer *out)
{
    buffer_clear(out);
    ds_path_append(out, key);
    CHECK(!out->failed);
    return buffer_bytes(out);
}

static void read_path(bytes path, struct arena *arena)
{
    struct buffer again = {0};
    Ds__Key *key;
    status s = ds_path_decode(path, arena, &key);
    if (status_is_ok(s)) {
        CHECK(ds_path_is_valid(path) && ds_key_is_complete(key));
        CHECK(bytes_equal(path_of(key, &again), path));
    }
    status_free(s);
    buffer_free(&again);
}

/* The parts of a row lie one behind the other, and the last is the path. */
static void read_row(bytes row_key, struct arena *arena)
{
    const enum ds_flip flips[] = {DS_ASCENDING, DS_DESCENDING};
    struct ds_index_shape shape = {.flips = flips,
                                   .values = 2,
                                   .key_flip = row_key.size % 2 == 0 ? DS_ASCENDING : DS_DESCENDING,
                                   .has_ancestors = row_key.size % 4 > 1};
    struct ds_row row;
    bytes path;
    if (!ds_row_parse(row_key, &shape, &row))
        return;
    size_t size = 1 + row.name_space.size + row.kind_name.size + row.property.size +
                  row.values.size + row.path.size;
    if (row.kind == DS_COMPOSITE_ROW || row.kind == DS_INDEX_ROW)
        size += sizeof row.index;
    size += row.ancestor.size > 0 ? row.ancestor.size + 2 : 0;
    CHECK(size == row_key.size);
    if (row.path.size > 0 && status_is_ok(ds_row_path(&row, arena, &path)))
        read_path(path, arena);
}

static const char *choose_text(struct choices *choices, struct arena *arena, bool may_be_empty)
{
    char *text = arena_string(arena, choose_bytes(choices, MOST_TEXT));
    CHECK(text != NULL);
    return text[0] == '\0' && !may_be_empty ? "K" : text;
}

static void choose_element(struct choices *choices, struct arena *arena,
                           Ds__Key__PathElement *element)
{
    *element = (Ds__Key__PathElement)DS__KEY__PATH_ELEMENT__INIT;
    element->kind = choose_text(choices, arena, false);
    if (choose_bool(choices)) {
        element->id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
        element->name = choose_text(choices, arena, true);
    } else {
        element->id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_ID;
        element->id = (int64_t)choose_number(choices, choose_bool(choices) ? 1 : 8);
        element->id += element->id == 0;
    }
}

static Ds__Key *choose_key(struct choices *choices, struct arena *arena)
{
    Ds__Key *key = arena_alloc(arena, sizeof *key);
    CHECK(key != NULL);
    *key = (Ds__Key)DS__KEY__INIT;
    key->n_path = 1 + choose(choices, MOST_ELEMENTS);
    key->path = arena_alloc(arena, key->n_path * sizeof(Ds__Key__PathElement *));
    CHECK(key->path != NULL);
    for (size_t i = 0; i < key->n_path; i++) {
        key->path[i] = arena_alloc(arena, sizeof *key->path[i]);
        CHECK(key->path[i] != NULL);
        choose_element(choices, arena, key->path[i]);
    }
    return key;
}

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

static void compare_keys(const Ds__Key *a, const Ds__Key *b)
{
    struct buffer path_a = {0}, path_b = {0};
    bytes of_a = path_of(a, &path_a), of_b = path_of(b, &path_b);
    CHECK(sign(ds_key_compare(a, b)) == sign(bytes_compare(of_a, of_b)));
    Ds__Key beginning = *b;
    if (a->n_path <= b->n_path) {
        beginning.n_path = a->n_path;
        CHECK(bytes_start_with(of_b, of_a) == (ds_key_compare(a, &beginning) == 0));
    }
    buffer_free(&path_a);
    buffer_free(&path_b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices = choices_of(data, size);
    struct arena *arena = arena_create(ARENA_BYTES);
    CHECK(arena != NULL);
    bytes any = choose_bytes(&choices, MOST_BYTES);
    read_path(any, arena);
    read_row(any, arena);
    Ds__Key *a = choose_key(&choices, arena), *b = choose_key(&choices, arena);
    struct buffer path = {0};
    read_path(path_of(a, &path), arena);
    CHECK(ds_path_is_valid(buffer_bytes(&path)));
    compare_keys(a, b);
    buffer_free(&path);
    arena_destroy(arena);
    return 0;
}
