/* The setting otlp-headers: what a collector wants to be told with each batch.
 *
 *     x-tenant=blue,authorization=@/etc/trestle/collector.token
 *
 * A value that begins with @ is the name of a file, whose text without white space around it is the
 * value: a secret need not stand where settings are shown. Such a file is read for each batch, so
 * it may change. */
#ifndef TRESTLE_SERVER_OTLP_HEADERS_H
#define TRESTLE_SERVER_OTLP_HEADERS_H

#include "base/status.h"

struct curl_slist;

/* Appends the headers to the list, as libcurl wants them; NULL: there are none. The list is the
 * caller's to free, whatever comes. INVALID_ARGUMENT for what is not of that form, and for files
 * without a value; else what reading one failed with. */
status otlp_headers_append(const char *setting, struct curl_slist **list);

/* Checks the setting, which may be NULL. */
status otlp_headers_check(const char *setting);

#endif
