/* See key_parts.h. */
#include "advisor/key_parts.h"

#include <stdlib.h>

enum { DELIMITED_PERCENT = 90, PARTS_MOST = 16 };

static uint8_t delimiter_of(const struct advice_observations *seen)
{
    for (const char *c = KEY_DELIMITERS; *c != '\0'; c++) {
        size_t count = 0;
        for (size_t i = 0; i < seen->row_count; i++) {
            bytes key = seen->rows[i].key;
            count += key.size > 0 && memchr(key.data, *c, key.size) != NULL;
        }
        if (count > 0 && count * 100 >= seen->row_count * DELIMITED_PERCENT)
            return (uint8_t)*c;
    }
    return 0;
}

size_t key_parts_of(const struct key_parts *parts, bytes key)
{
    size_t count = 1;
    for (size_t i = 0; i < key.size && parts->delimiter != 0; i++)
        count += key.data[i] == parts->delimiter;
    return count;
}

void key_parts_find(const struct advice_observations *seen, struct key_parts *out)
{
    size_t counts[PARTS_MOST + 1] = {0};
    *out = (struct key_parts){.seen = seen, .delimiter = delimiter_of(seen)};
    for (size_t i = 0; i < seen->row_count; i++) {
        size_t count = key_parts_of(out, seen->rows[i].key);
        counts[count < PARTS_MOST ? count : PARTS_MOST]++;
    }
    for (size_t count = 1; count < PARTS_MOST; count++)
        if (counts[count] > out->fitting) {
            out->count = count;
            out->fitting = counts[count];
        }
}

bool key_parts_fit(const struct key_parts *parts, size_t row)
{
    return key_parts_of(parts, parts->seen->rows[row].key) == parts->count;
}

bytes key_part(const struct key_parts *parts, bytes key, size_t part)
{
    size_t start = 0, end;
    for (size_t at = 0; part > 0; part--) {
        while (at < key.size && key.data[at] != parts->delimiter)
            at++;
        if (at == key.size)
            return bytes_make(NULL, 0);
        start = ++at;
    }
    for (end = start; end < key.size; end++)
        if (parts->delimiter != 0 && key.data[end] == parts->delimiter)
            break;
    return bytes_make(key.data + start, end - start);
}

static int order_of_values(const void *a, const void *b)
{
    return bytes_compare(*(const bytes *)a, *(const bytes *)b);
}

status key_part_values(struct advisor *advisor, const struct key_parts *parts, size_t part,
                       bytes **out, size_t *distinct)
{
    const struct advice_observations *seen = parts->seen;
    size_t count = 0;
    *distinct = 0;
    *out = arena_alloc(advisor->arena, seen->row_count * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < seen->row_count; i++)
        if (key_parts_fit(parts, i))
            (*out)[count++] = key_part(parts, seen->rows[i].key, part);
    qsort(*out, count, sizeof **out, order_of_values);
    for (size_t i = 0; i < count; i++)
        *distinct += i == 0 || !bytes_equal((*out)[i], (*out)[i - 1]);
    return status_ok();
}
