/* Byte slices and growable byte buffers.
 *
 * A `bytes` is a borrowed view: it owns nothing, and its lifetime is that of what it points into.
 * Keys, qualifiers and values are bytes, never C strings: they may hold NUL and need no
 * terminator. An empty slice may have a NULL pointer. */
#ifndef TRESTLE_BASE_BYTES_H
#define TRESTLE_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct budget;

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bytes {
    const uint8_t *data;
    size_t size;
} bytes;

static inline bytes bytes_make(const void *data, size_t size)
{
    return (bytes){.data = (const uint8_t *)data, .size = size};
}

/* The bytes of a NUL-terminated string, without its NUL. */
static inline bytes bytes_of(const char *string)
{
    return bytes_make(string, strlen(string));
}

/* `offset` may be 0 for an empty slice with a NULL pointer, to which C lets nothing be added. */
static inline bytes bytes_from(bytes b, size_t offset)
{
    return bytes_make(offset == 0 ? b.data : b.data + offset, b.size - offset);
}

static inline bool bytes_equal(bytes a, bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline bool bytes_start_with(bytes b, bytes prefix)
{
    return b.size >= prefix.size &&
           (prefix.size == 0 || memcmp(b.data, prefix.data, prefix.size) == 0);
}

/* Order of unsigned bytes, a proper prefix first: the order of row keys and qualifiers.
 * Negative, zero or positive, as memcmp. */
static inline int bytes_compare(bytes a, bytes b)
{
    size_t shared = a.size < b.size ? a.size : b.size;
    int order = shared == 0 ? 0 : memcmp(a.data, b.data, shared);
    if (order != 0)
        return order;
    return a.size < b.size ? -1 : a.size > b.size;
}

/* A 64-bit hash, the same in every process and release. Not for defence against an attacker who
 * picks colliding keys: use it where a collision costs time, never correctness. */
uint64_t bytes_hash(bytes b);

/* A copy that ends with a zero byte, for malloc's free; NULL without memory. (strndup would want
 * one to be there already, if it is asked under the address sanitizer's strict rules.) */
char *bytes_to_string(bytes b);

/* A growable buffer. Appending never reports its own failure: the first failed allocation sets
 * `failed`, after which appends do nothing, and the caller checks once at the end.
 * All zeroes is a valid empty buffer. */
struct buffer {
    uint8_t *data;
    size_t size;
    size_t capacity;
    struct budget *budget; /* bounds its memory, and outlives it; NULL: nothing does */
    bool failed;
    bool is_lent; /* `data` is not the buffer's own */
};

/* Begins an empty buffer in memory of somebody else's, which outlives it. What does not fit in
 * there takes memory of its own. */
void buffer_start_in(struct buffer *buffer, void *memory, size_t size);

void buffer_free(struct buffer *buffer);

/* Makes room for `extra` more bytes and returns where they go, or NULL after a failed allocation.
 * The size does not change: the caller adds what it wrote to `buffer->size`. */
uint8_t *buffer_reserve(struct buffer *buffer, size_t extra);
void buffer_append(struct buffer *buffer, const void *data, size_t size);
void buffer_append_bytes(struct buffer *buffer, bytes b);
void buffer_append_byte(struct buffer *buffer, uint8_t byte);
/* Appends as printf does; without a NUL at the end. */
__attribute__((format(printf, 2, 3))) void buffer_append_format(struct buffer *buffer,
                                                                const char *format, ...);

/* Appends bytes as text: what is no printable ASCII as \xNN, and a backslash twice; "..." in place
 * of what is beyond `most` bytes. */
void buffer_append_readable(struct buffer *buffer, bytes b, size_t most);
/* The same between quotes; a quote inside has a backslash before it. */
void buffer_append_quoted(struct buffer *buffer, bytes b, size_t most);

/* Empties the buffer and clears `failed`; keeps the memory for the next use. */
void buffer_clear(struct buffer *buffer);

static inline bytes buffer_bytes(const struct buffer *buffer)
{
    return bytes_make(buffer->data, buffer->size);
}

#ifdef __cplusplus
}
#endif

#endif
