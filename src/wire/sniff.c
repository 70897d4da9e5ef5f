/* See sniff.h. */
#include "wire/sniff.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
static_assert(sizeof preface - 1 == SNIFF_SIZE, "all of it");

static bool is_visible(uint8_t byte)
{
    return byte > ' ' && byte < 0x7f;
}

static size_t word_size(bytes text)
{
    size_t size = 0;
    while (size < text.size && is_visible(text.data[size]))
        size++;
    return size;
}

/* What HTTP/1.1 asks for is a path, "*", a URL, or a host and port. */
static bool is_target(bytes word)
{
    return word.data[0] == '/' || word.data[0] == '*' || memchr(word.data, ':', word.size) != NULL;
}

static enum sniffed sniff_request(bytes first)
{
    enum sniffed undecided = first.size < SNIFF_SIZE ? SNIFFED_NOTHING : SNIFFED_HTTP1;
    size_t method = word_size(first);
    if (method == first.size)
        return undecided;
    if (method == 0 || first.data[method] != ' ')
        return SNIFFED_HTTP1;
    bytes rest = bytes_from(first, method + 1);
    bytes target = bytes_make(rest.data, word_size(rest));
    if (target.size > 0 && is_target(target))
        return SNIFFED_HTTP1;
    if (target.size == rest.size)
        return undecided;
    return target.size > 0 ? SNIFFED_NEITHER : SNIFFED_HTTP1;
}

enum sniffed sniff(bytes first)
{
    if (first.size > SNIFF_SIZE)
        first.size = SNIFF_SIZE;
    if (memcmp(first.data, preface, first.size) != 0)
        return sniff_request(first);
    return first.size == SNIFF_SIZE ? SNIFFED_HTTP2 : SNIFFED_NOTHING;
}
