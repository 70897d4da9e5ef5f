/* Growable buffers and hashing: see bytes.h. */
#include "base/bytes.h"

#include "base/budget.h"
#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { SMALLEST_CAPACITY = 64 };

static inline uint64_t load64(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* The finaliser of MurmurHash3 (public domain, A. Appleby): each input bit changes each output bit
 * with a probability close to one half. */
static inline uint64_t mix(uint64_t h)
{
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ULL;
    return h ^ (h >> 33);
}

uint64_t bytes_hash(bytes b)
{
    uint64_t h = mix(b.size + 0x9e3779b97f4a7c15ULL);
    size_t at = 0;
    for (; b.size - at >= sizeof(uint64_t); at += sizeof(uint64_t))
        h = mix(h ^ load64(b.data + at)) + 0x9e3779b97f4a7c15ULL;
    uint64_t tail = 0;
    if (at < b.size)
        memcpy(&tail, b.data + at, b.size - at);
    return mix(h ^ tail);
}

char *bytes_to_string(bytes b)
{
    char *string = b.size == SIZE_MAX ? NULL : malloc(b.size + 1);
    if (string == NULL)
        return NULL;
    if (b.size > 0)
        memcpy(string, b.data, b.size);
    string[b.size] = '\0';
    return string;
}

void buffer_start_in(struct buffer *buffer, void *memory, size_t size)
{
    *buffer = (struct buffer){.data = memory, .capacity = size, .is_lent = true};
}

void buffer_free(struct buffer *buffer)
{
    if (!buffer->is_lent) {
        free(buffer->data);
        budget_give_back(buffer->budget, buffer->capacity);
    }
    *buffer = (struct buffer){0};
}

static size_t grown_capacity(size_t capacity, size_t needed)
{
    if (capacity < SMALLEST_CAPACITY)
        capacity = SMALLEST_CAPACITY;
    while (capacity < needed)
        capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    return capacity;
}

/* Out of memory that is not the buffer's. */
static uint8_t *move_out(struct buffer *buffer, size_t capacity)
{
    uint8_t *data = budget_take(buffer->budget, capacity) ? malloc(capacity) : NULL;
    if (data == NULL)
        return NULL;
    DCHECK(buffer->data != NULL);
    memcpy(data, buffer->data, buffer->size);
    buffer->is_lent = false;
    return data;
}

static uint8_t *grow(struct buffer *buffer, size_t capacity)
{
    if (buffer->is_lent)
        return move_out(buffer, capacity);
    size_t more = capacity - buffer->capacity;
    if (!budget_take(buffer->budget, more))
        return NULL;
    uint8_t *data = realloc(buffer->data, capacity);
    if (data == NULL)
        budget_give_back(buffer->budget, more);
    return data;
}

/* The rare part of buffer_reserve, out of its way: each byte of an answer passes through that. */
static __attribute__((noinline)) uint8_t *make_room(struct buffer *buffer, size_t extra)
{
    if (!buffer->failed && extra <= SIZE_MAX - buffer->size) {
        size_t capacity = grown_capacity(buffer->capacity, buffer->size + extra);
        uint8_t *data = grow(buffer, capacity);
        if (data != NULL) {
            buffer->data = data;
            buffer->capacity = capacity;
            return data + buffer->size;
        }
    }
    buffer->failed = true;
    return NULL;
}

uint8_t *buffer_reserve(struct buffer *buffer, size_t extra)
{
    bool fits = extra <= buffer->capacity - buffer->size && buffer->data != NULL;
    return fits && !buffer->failed ? buffer->data + buffer->size : make_room(buffer, extra);
}

void buffer_append(struct buffer *buffer, const void *data, size_t size)
{
    uint8_t *to = buffer_reserve(buffer, size);
    if (to == NULL || size == 0)
        return;
    memcpy(to, data, size);
    buffer->size += size;
}

void buffer_append_bytes(struct buffer *buffer, bytes b)
{
    buffer_append(buffer, b.data, b.size);
}

void buffer_append_byte(struct buffer *buffer, uint8_t byte)
{
    buffer_append(buffer, &byte, 1);
}

void buffer_append_format(struct buffer *buffer, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    uint8_t *to = length < 0 ? NULL : buffer_reserve(buffer, (size_t)length + 1);
    if (to != NULL) {
        vsnprintf((char *)to, (size_t)length + 1, format, arguments);
        buffer->size += (size_t)length;
    }
    va_end(arguments);
}

/* `special` has a backslash before it. */
static void append_readable_byte(struct buffer *buffer, uint8_t byte, uint8_t special)
{
    if (byte < 0x20 || byte > 0x7e) {
        buffer_append_format(buffer, "\\x%02x", byte);
        return;
    }
    if (byte == '\\' || byte == special)
        buffer_append_byte(buffer, '\\');
    buffer_append_byte(buffer, byte);
}

static void append_readable(struct buffer *buffer, bytes b, size_t most, uint8_t special)
{
    for (size_t i = 0; i < b.size && i < most; i++)
        append_readable_byte(buffer, b.data[i], special);
    if (b.size > most)
        buffer_append(buffer, "...", 3);
}

void buffer_append_readable(struct buffer *buffer, bytes b, size_t most)
{
    append_readable(buffer, b, most, '\\');
}

void buffer_append_quoted(struct buffer *buffer, bytes b, size_t most)
{
    buffer_append_byte(buffer, '"');
    append_readable(buffer, b, most, '"');
    buffer_append_byte(buffer, '"');
}

void buffer_clear(struct buffer *buffer)
{
    buffer->size = 0;
    buffer->failed = false;
}
