/* See key_order.h. */
#include "base/key_order.h"

#include "base/big_endian.h"

#include <stdlib.h>

/* How many bytes all of them begin with alike. */
static size_t common_size(const struct key_order *keys, size_t count)
{
    size_t size = keys[0].key.size;
    for (size_t i = 1; i < count && size > 0; i++) {
        bytes key = keys[i].key;
        size = key.size < size ? key.size : size;
        while (size > 0 && memcmp(key.data, keys[0].key.data, size) != 0)
            size--;
    }
    return size;
}

/* Its bytes from there on, as a number; behind the key's end zeros, so equal heads say nothing. */
static uint64_t head_of(bytes key, size_t from)
{
    uint8_t head[BIG_ENDIAN_SIZE] = {0};
    size_t size = key.size - from < sizeof head ? key.size - from : sizeof head;
    if (size > 0)
        memcpy(head, key.data + from, size);
    return big_endian_read(head);
}

static int compare(const void *a, const void *b)
{
    const struct key_order *x = a, *y = b;
    if (x->head != y->head)
        return x->head < y->head ? -1 : 1;
    int order = bytes_compare(x->key, y->key);
    return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

void key_order_sort(struct key_order *keys, size_t count)
{
    if (count < 2)
        return;
    size_t common = common_size(keys, count);
    for (size_t i = 0; i < count; i++)
        keys[i].head = head_of(keys[i].key, common);
    qsort(keys, count, sizeof *keys, compare);
}
