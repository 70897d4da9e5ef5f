/* See sniff.h. */
#include "wire/sniff.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
static_assert(sizeof preface - 1 == SNIFF_SIZE, "all of it");

enum { TLS_HANDSHAKE = 22 };

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
    if (first.size == 1 && first.data[0] == TLS_HANDSHAKE)
        return SNIFFED_NOTHING;
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

/* A record that begins a handshake (RFC 8446, 5.1): its type, and the first byte of its version. */
static bool is_tls(bytes first)
{
    static const uint8_t handshake[] = {TLS_HANDSHAKE, 3};
    return first.size >= sizeof handshake && memcmp(first.data, handshake, sizeof handshake) == 0;
}

enum sniffed sniff(bytes first)
{
    if (is_tls(first))
        return SNIFFED_NEITHER;
    if (first.size > SNIFF_SIZE)
        first.size = SNIFF_SIZE;
    if (memcmp(first.data, preface, first.size) != 0)
        return sniff_request(first);
    return first.size == SNIFF_SIZE ? SNIFFED_HTTP2 : SNIFFED_NOTHING;
}
