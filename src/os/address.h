/* Addresses of sockets: ADDR:PORT in words and in the system's form. */
#ifndef TRESTLE_OS_ADDRESS_H
#define TRESTLE_OS_ADDRESS_H

#include "base/status.h"

#include <sys/socket.h>

struct address {
    struct sockaddr_storage storage;
    socklen_t size;
};

enum { ADDRESS_TEXT_SIZE = 64 };

/* "127.0.0.1:8086", "[::1]:0", "localhost:8086": the first of the addresses that a name has. May
 * block for a name that is not local. INVALID_ARGUMENT. */
status address_parse(const char *text, struct address *out);

/* The same, of all addresses that a name has, the best first: `*count` of them, at least one and
 * `most` at most. */
status address_parse_all(const char *text, struct address *out, size_t most, size_t *count);

/* Numbers only, IPv6 in brackets. "local" for a socket without one (a socketpair). */
void address_format(const struct address *address, char text[ADDRESS_TEXT_SIZE]);

bool address_is_loopback(const struct address *address);

#endif
