/* Personal data in keys and names: addresses, and numbers of people, cards and accounts; and the
 * words that a finding shows instead of them. Pure.
 *
 * Where a number has a checksum, one that fails it counts against all of its form: a tenth of all
 * numbers of a card's length pass the test of cards, and nine tenths do not.
 *
 * A text is looked at as it stands and as it is meant (plain_text.h): in patterns and quotes some
 * of it is escaped. What hides sets `out->failed` without memory, and shows nothing then that it
 * could not look at. */
#ifndef TRESTLE_ADVISOR_PERSONAL_H
#define TRESTLE_ADVISOR_PERSONAL_H

#include "base/bytes.h"

enum personal {
    PERSONAL_MAIL,
    PERSONAL_CARD,
    PERSONAL_PHONE,  /* with a + in front */
    PERSONAL_SOCIAL, /* of the United States: 123-45-6789 */
    PERSONAL_ACCOUNT,
    PERSONAL_TAX, /* of Brazil: 123.456.789-09 */
    PERSONAL_NAME,
    PERSONAL_KINDS
};

/* "<e-mail>", and "e-mail address" for sentences. */
const char *personal_mark(enum personal kind);
const char *personal_name(enum personal kind);

/* Counts of texts that were looked at. */
struct personal_counts {
    size_t texts;
    size_t alike[PERSONAL_KINDS]; /* have something of the form */
    size_t valid[PERSONAL_KINDS]; /* and it passes its checksum, or what else there is to check */
};

void personal_count(struct personal_counts *counts, bytes text);

/* Bits of the kinds that enough of the texts have. */
unsigned personal_kinds(const struct personal_counts *counts);

/* Whether the text has something of these kinds that passes what there is to check. */
bool personal_has(bytes text, unsigned kinds);

/* Appends the text with marks in place of what is of these kinds; of addresses also what is cut off
 * behind the @, as the ends of ranges are. */
void personal_hide(bytes text, unsigned kinds, struct buffer *out);

/* The same without others to compare the text with, for logs: of all kinds but names, and of what
 * has a checksum only what passes it. The beginning of an address is hidden, too: keys are cut off
 * there. */
void personal_hide_certain(bytes text, struct buffer *out);

/* What a name that may have neither "@" nor "+", such as a family's or a table's, says of somebody:
 * a number with a checksum, wherever it stands; or a person's name, or an e-mail address, that it
 * begins with, which says something only if others are named so, too. */
enum personal_naming { PERSONAL_NO_NAME, PERSONAL_PERHAPS, PERSONAL_CERTAINLY };

/* `*kind`: of what, unless it is no name. */
enum personal_naming personal_naming_of(bytes name, enum personal *kind);

#endif
