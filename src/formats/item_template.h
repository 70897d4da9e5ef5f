/* Text with attributes of an item in it, as a user writes down what row keys and qualifiers are
 * made of:
 *
 *     {PK}#{SK}            the attributes: strings and bytes as they are, numbers as "1500",
 *                          "-0.25"
 *     {PK:escaped}/{SK}    with each byte but letters, digits and "-_.~" as "%XX", as in a URL
 *     {Rank:ordered}       numbers as item_number_append_ordered has them
 *     {PK:hash}-{PK}       the first eight hexadecimal digits of the SHA-256 of the text
 *     {{  }}               braces
 *
 * A name that has a colon in it is followed by one more: {a:b:plain}. */
#ifndef TRESTLE_FORMATS_ITEM_TEMPLATE_H
#define TRESTLE_FORMATS_ITEM_TEMPLATE_H

#include "formats/item.h"

enum item_part_form {
    ITEM_PART_TEXT, /* what stands there itself */
    ITEM_PART_PLAIN,
    ITEM_PART_ESCAPED,
    ITEM_PART_ORDERED,
    ITEM_PART_HASH,
};

struct item_part {
    enum item_part_form form;
    bytes text; /* or the attribute's name */
};

struct item_template {
    struct item_part *parts;
    size_t count;
};

/* What attributes lose where their values begin with it, before they are put in. */
struct item_prefix {
    bytes attribute;
    bytes prefix;
};

struct item_prefixes {
    struct item_prefix *all;
    size_t count;
};

/* INVALID_ARGUMENT says what is wrong with the text, and at which byte. All is the arena's. */
status item_template_parse(bytes text, struct arena *arena, struct item_template *out);

bool item_template_names(const struct item_template *template, bytes attribute);

/* Appends the text for this item. INVALID_ARGUMENT for an attribute that is not there, is empty, or
 * of another type than S, N and B. */
status item_template_append(const struct item_template *template,
                            const struct item_prefixes *prefixes, const struct item_value *item,
                            struct buffer *out);

/* The value of the attribute without its prefix. */
bytes item_without_prefix(const struct item_prefixes *prefixes, bytes attribute, bytes text);

#endif
