/* See key_sample.h. */
#include "tablet/key_sample.h"

#include "base/check.h"

#include <stdlib.h>

void key_sample_init(struct key_sample *sample)
{
    atomic_init(&sample->requests, 0);
    pthread_mutex_init(&sample->lock, NULL);
    sample->keys = NULL;
    sample->noted = 0;
}

void key_sample_free(struct key_sample *sample)
{
    for (size_t i = 0; sample->keys != NULL && i < KEY_SAMPLE_SIZE; i++)
        buffer_free(&sample->keys[i]);
    free(sample->keys);
    pthread_mutex_destroy(&sample->lock);
}

/* Chooses one in KEY_SAMPLE_REQUESTS, at no regular distance: requests may come in a rhythm. */
static bool is_chosen(uint32_t request)
{
    const uint32_t golden_ratio = 0x9e3779b1;
    return request * golden_ratio < UINT32_MAX / KEY_SAMPLE_REQUESTS;
}

static void put(struct key_sample *sample, bytes key)
{
    DCHECK(check_is_held(&sample->lock));
    if (sample->keys == NULL)
        sample->keys = calloc(KEY_SAMPLE_SIZE, sizeof *sample->keys);
    if (sample->keys == NULL)
        return;
    struct buffer copy = {0};
    buffer_append_bytes(&copy, key);
    if (copy.failed) {
        buffer_free(&copy);
        return;
    }
    struct buffer *oldest = &sample->keys[sample->noted++ % KEY_SAMPLE_SIZE];
    buffer_free(oldest);
    *oldest = copy;
}

void key_sample_note(struct key_sample *sample, bytes key)
{
    if (!is_chosen(atomic_fetch_add_explicit(&sample->requests, 1, memory_order_relaxed)))
        return;
    pthread_mutex_lock(&sample->lock);
    put(sample, key);
    pthread_mutex_unlock(&sample->lock);
}

bool key_sample_at(struct key_sample *sample, unsigned index, struct buffer *key)
{
    buffer_clear(key);
    pthread_mutex_lock(&sample->lock);
    bool found = index < sample->noted && index < KEY_SAMPLE_SIZE;
    if (found)
        buffer_append_bytes(key, buffer_bytes(&sample->keys[index]));
    pthread_mutex_unlock(&sample->lock);
    return found && !key->failed;
}

bool key_sample_is_full(struct key_sample *sample)
{
    pthread_mutex_lock(&sample->lock);
    bool is_full = sample->noted >= KEY_SAMPLE_SIZE;
    pthread_mutex_unlock(&sample->lock);
    return is_full;
}

static int compare_keys(const void *a, const void *b)
{
    return bytes_compare(*(const bytes *)a, *(const bytes *)b);
}

/* The median, or the first after the least if that is it: nothing must lie before the least. */
static void find_middle(const struct key_sample *sample, struct buffer *middle, bool *found)
{
    DCHECK(check_is_held(&sample->lock));
    bytes sorted[KEY_SAMPLE_SIZE];
    size_t count = sample->noted < KEY_SAMPLE_SIZE ? sample->noted : KEY_SAMPLE_SIZE;
    for (size_t i = 0; i < count; i++)
        sorted[i] = buffer_bytes(&sample->keys[i]);
    if (count > 0)
        qsort(sorted, count, sizeof sorted[0], compare_keys);
    size_t at = count / 2;
    while (at < count && bytes_equal(sorted[at], sorted[0]))
        at++;
    *found = at < count;
    if (*found)
        buffer_append_bytes(middle, sorted[at]);
}

status key_sample_middle(struct key_sample *sample, struct buffer *middle, bool *found)
{
    buffer_clear(middle);
    pthread_mutex_lock(&sample->lock);
    find_middle(sample, middle, found);
    pthread_mutex_unlock(&sample->lock);
    return middle->failed ? status_out_of_memory() : status_ok();
}
