/* An answer in gzip, packed as it comes: what has been added can be read at once. */
#ifndef TRESTLE_WIRE_HTTP_PACKER_H
#define TRESTLE_WIRE_HTTP_PACKER_H

#include "base/bytes.h"

struct http_packer;

struct http_packer *http_packer_create(void);         /* NULL without memory */
void http_packer_destroy(struct http_packer *packer); /* NULL is fine */

/* Appends to `out` what `more` becomes. With `is_last` that is the end, which comes once. Failures
 * show in `out`. */
void http_packer_add(struct http_packer *packer, bytes more, bool is_last, struct buffer *out);

#endif
