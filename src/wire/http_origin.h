/* The header `origin` that browsers add to requests: where the page is from that makes them. */
#ifndef TRESTLE_WIRE_HTTP_ORIGIN_H
#define TRESTLE_WIRE_HTTP_ORIGIN_H

#include "base/bytes.h"

/* Whether the origin, "https://name:port", is of the host that was asked, "name:port", in any case
 * of letters. An origin that is none, such as the word null, is of no host. */
bool http_origin_is_of(bytes origin, bytes host);

#endif
