/* Fuzzer: any bytes as a change list. Reading it never goes wrong in memory; what parses as a whole
 * is written and read again as the same, and so is what it comes to when its deletions of the row
 * are expanded, which then has none. */
#include "row/change_list.h"

#include "base/check.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_APART = 8 };

static bool is_same(const struct list_mutation *a, const struct list_mutation *b)
{
    return a->kind == b->kind && bytes_equal(a->family, b->family) &&
           bytes_equal(a->qualifier, b->qualifier) && a->timestamp_us == b->timestamp_us &&
           a->end_us == b->end_us && a->number == b->number && a->size == b->size &&
           a->is_apart == b->is_apart && bytes_equal(a->value, b->value);
}

/* False if it does not parse, or has so many large values that they would take long. */
static bool copy(bytes input, bytes large, struct change_list *out)
{
    struct list_reader reader;
    struct list_mutation mutation;
    size_t apart = 0;
    list_reader_start(&reader, input);
    while (list_reader_next(&reader, &mutation) && apart <= MOST_APART) {
        if (mutation.is_apart && mutation.size > large.size)
            return false;
        if (mutation.is_apart) {
            mutation.value = bytes_make(large.data, mutation.size);
            apart++;
        }
        change_list_add(out, &mutation);
    }
    CHECK(!out->failed);
    return !reader.is_bad && apart <= MOST_APART;
}

static void compare(bytes input, bytes copied)
{
    struct list_reader reader, again;
    struct list_mutation mutation, same;
    list_reader_start(&reader, input);
    list_reader_start(&again, copied);
    while (list_reader_next(&reader, &mutation)) {
        CHECK(list_reader_next(&again, &same));
        CHECK(is_same(&mutation, &same));
    }
    CHECK(!list_reader_next(&again, &same) && !again.is_bad);
}

static void expand(struct change_list *list)
{
    const bytes families[] = {bytes_of("a"), bytes_of("b")};
    struct list_reader reader;
    struct list_mutation mutation;
    CHECK(change_list_expand(list, families, sizeof families / sizeof *families));
    list_reader_start(&reader, buffer_bytes(&list->list));
    while (list_reader_next(&reader, &mutation))
        CHECK(mutation.kind != LIST_DELETE_ROW);
    CHECK(!reader.is_bad && !list->deletes_row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t zeroes[2 * CHANGE_LIST_INLINE];
    struct change_list list = {0};
    bytes input = bytes_make(data, size);
    if (copy(input, bytes_make(zeroes, sizeof zeroes), &list)) {
        compare(input, buffer_bytes(&list.list));
        expand(&list);
    }
    change_list_free(&list);
    return 0;
}
