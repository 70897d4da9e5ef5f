/* The small text formats of gRPC's headers: timeouts, percent-encoded messages, base64. */
#ifndef TRESTLE_WIRE_GRPC_TEXT_H
#define TRESTLE_WIRE_GRPC_TEXT_H

#include "base/bytes.h"

/* "250m" and the like: one to eight digits and a unit of H, M, S, m, u, n. Nanoseconds are rounded
 * up, so that only a timeout of 0 gives 0. False if it is anything else. */
__attribute__((warn_unused_result)) bool grpc_timeout_parse(bytes text, int64_t *timeout_us);

/* The shortest form that is not earlier; `timeout_us` at least 0. */
enum { GRPC_TIMEOUT_TEXT_SIZE = 12 };
void grpc_timeout_format(int64_t timeout_us, char text[GRPC_TIMEOUT_TEXT_SIZE]);

/* grpc-message: bytes outside of printable ASCII, '%', and a blank at either end become %XX.
 * Decoding leaves a '%' that no two hex digits follow as it is, as the protocol asks. */
void grpc_percent_encode(bytes message, struct buffer *out);
void grpc_percent_decode(bytes text, struct buffer *out);

/* Takes "key=value" off the front of parameters that '&' joins, as `x-goog-request-params` has
 * them; both stay percent-encoded. False, and nothing is set, if there is none left. */
bool grpc_parameter_next(bytes *rest, bytes *key, bytes *value);

/* Base64, without padding: in the standard alphabet, and in the URL-safe one. Decoding takes both,
 * with or without padding. */
void base64_encode(bytes b, struct buffer *out);
void base64url_encode(bytes b, struct buffer *out);
static inline size_t base64_decoded_most(size_t text_size)
{
    return text_size / 4 * 3 + 3;
}
/* `to` has room for base64_decoded_most(text.size) bytes. False if `text` is not base64. */
__attribute__((warn_unused_result)) bool base64_decode(bytes text, uint8_t *to, size_t *size);

#endif
