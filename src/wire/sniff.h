/* Which protocol a client speaks, by its first bytes. */
#ifndef TRESTLE_WIRE_SNIFF_H
#define TRESTLE_WIRE_SNIFF_H

#include "base/bytes.h"

enum { SNIFF_SIZE = 24 }; /* bytes decide it at the latest: HTTP/2's preface has as many */

enum sniffed {
    SNIFFED_NOTHING, /* there must be more bytes */
    SNIFFED_HTTP2,   /* its whole preface */
    SNIFFED_HTTP1,   /* or something else that its server should say what it thinks of */
    /* Words that are no request, as a preface that went wrong is; or a handshake of TLS, whose
     * client waits for an answer that no server of HTTP has. */
    SNIFFED_NEITHER,
};

enum sniffed sniff(bytes first);

#endif
