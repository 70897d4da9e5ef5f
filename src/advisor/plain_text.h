/* A text without the hotspots by which patterns, quotes and addresses escape what is in them:
 * "4111\-1111" is 4111-1111, and "jo%40example.com" jo@example.com. Pure. */
#ifndef TRESTLE_ADVISOR_PLAIN_TEXT_H
#define TRESTLE_ADVISOR_PLAIN_TEXT_H

#include "base/bytes.h"

/* All zeroes is one of nothing. */
struct plain_text {
    struct buffer text;   /* as it is meant */
    struct buffer places; /* size_t: where in the source each of its bytes begins, and its end */
};

/* Whether the source has such hotspots. */
bool plain_text_differs(bytes source);

/* `out->text.failed` without memory. The source is not needed any more. */
void plain_text_make(bytes source, struct plain_text *out);

/* Where the byte, or the end of the text, is in the source. */
size_t plain_text_place(const struct plain_text *plain, size_t at);

void plain_text_free(struct plain_text *plain);

#endif
