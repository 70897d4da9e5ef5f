/* XML as S3 answers with it: elements and text, read strictly. An answer that is cut, or is not of
 * the kind that was asked for, says nothing, rather than what can be made out of it: what a listing
 * does not show is taken to be gone.
 *
 * Understood are elements, attributes (which are skipped), text, the five entities with a name and
 * those with a number, comments, and one <?xml …?> before all. Not understood, so refused: DOCTYPE,
 * CDATA, and elements more than XML_MOST_DEPTH deep.
 *
 * Pure. Parts that are taken out point into the text. */
#ifndef TRESTLE_AWS_XML_H
#define TRESTLE_AWS_XML_H

#include "base/bytes.h"

enum { XML_MOST_DEPTH = 16 };

/* The root element's content, if the text is that element from begin to end: each element in it
 * ends, none within another, and nothing but space and comments comes behind it. False: it is not.
 */
bool xml_root(bytes text, const char *name, bytes *content);

/* The content of the next element of that name, `content` going on behind it; elements within
 * others are none of these. False if there is none. */
bool xml_child(bytes *content, const char *name, bytes *inner);

/* The content of the first child of that name. False if there is none. */
bool xml_first(bytes content, const char *name, bytes *inner);

/* Appends an element's text. False if it has elements, or an entity that is not known; or without
 * memory, which the buffer says. */
bool xml_text(bytes inner, struct buffer *out);

#endif
