/* The files of the console's pages, which are in the program: src/console/assets, as they are and
 * packed. embed_assets.py writes the table of them.
 *
 *     /console/                  the page; asked for again each time, and told by its ETag
 *     /console/assets/HASH/NAME  the others, under a hash of them all: kept for ever
 *
 * Constant; any thread. */
#ifndef TRESTLE_CONSOLE_ASSETS_H
#define TRESTLE_CONSOLE_ASSETS_H

#include "wire/http.h"

struct asset {
    const char *path; /* below /console/; the page's is empty */
    const char *type;
    bool is_page;
    bytes plain;
    bytes packed; /* by gzip */
};

/* The ETag of the page, in quotes as in a header. */
extern const char assets_tag[];

/* NULL if there is none. */
const struct asset *asset_find(bytes path);

/* Answers GET and HEAD. The headers that say what a page may do are the caller's. */
void asset_answer(const struct asset *asset, struct http_request *request);

#endif
