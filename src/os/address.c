/* See address.h. */
#include "os/address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>

enum { LONGEST_HOST = 255 };

/* The C library takes numbers of any size, and cuts them. */
static bool is_port(const char *text)
{
    unsigned long number = 0;
    for (; *text >= '0' && *text <= '9' && number <= UINT16_MAX; text++)
        number = number * 10 + (unsigned long)(*text - '0');
    return *text == '\0' && number <= UINT16_MAX;
}

/* Cuts "host:port" at its last colon, and an IPv6 host out of its brackets. */
static bool cut(const char *text, char host[LONGEST_HOST + 1], const char **port)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL || colon == text || colon[1] == '\0')
        return false;
    size_t size = (size_t)(colon - text);
    if (text[0] == '[') {
        if (colon[-1] != ']')
            return false;
        text++;
        size -= 2;
    } else if (memchr(text, ':', size) != NULL) {
        return false; /* IPv6 without brackets: its end cannot be told from a port */
    }
    if (size == 0 || size > LONGEST_HOST)
        return false;
    memcpy(host, text, size);
    host[size] = '\0';
    *port = colon + 1;
    return is_port(*port);
}

status address_parse_all(const char *text, struct address *out, size_t most, size_t *count)
{
    char host[LONGEST_HOST + 1];
    const char *port;
    *count = 0;
    if (!cut(text, host, &port))
        return status_make(STATUS_INVALID_ARGUMENT, "\"%s\" is not ADDR:PORT", text);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int error = getaddrinfo(host, port, &hints, &found);
    if (error != 0)
        return status_make(STATUS_INVALID_ARGUMENT, "\"%s\" is no address: %s", text,
                           gai_strerror(error));
    for (struct addrinfo *at = found; at != NULL && *count < most; at = at->ai_next) {
        struct address *address = &out[(*count)++];
        *address = (struct address){.size = at->ai_addrlen};
        memcpy(&address->storage, at->ai_addr, at->ai_addrlen);
    }
    freeaddrinfo(found);
    return status_ok();
}

status address_parse(const char *text, struct address *out)
{
    size_t count;
    *out = (struct address){0};
    return address_parse_all(text, out, 1, &count);
}

void address_format(const struct address *address, char text[ADDRESS_TEXT_SIZE])
{
    char host[ADDRESS_TEXT_SIZE - sizeof "[]:65535"], port[sizeof "65535"];
    int error = getnameinfo((const struct sockaddr *)&address->storage, address->size, host,
                            sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    if (error != 0 || address->storage.ss_family == AF_UNIX)
        snprintf(text, ADDRESS_TEXT_SIZE, "local");
    else if (address->storage.ss_family == AF_INET6)
        snprintf(text, ADDRESS_TEXT_SIZE, "[%s]:%s", host, port);
    else
        snprintf(text, ADDRESS_TEXT_SIZE, "%s:%s", host, port);
}

bool address_is_loopback(const struct address *address)
{
    if (address->storage.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&address->storage;
        return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (address->storage.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->storage;
        return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
    }
    return false;
}
