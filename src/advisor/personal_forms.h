/* The forms that personal data has: parts of a text, each with where it begins. Pure. */
#ifndef TRESTLE_ADVISOR_PERSONAL_FORMS_H
#define TRESTLE_ADVISOR_PERSONAL_FORMS_H

#include "advisor/personal.h"

struct personal_part {
    size_t start;
    size_t size;   /* 0: there is none */
    bool is_valid; /* it passes its checksum, or what else there is to check */
};

/* Whether the text has what the kind cannot be without: most have it not. */
bool personal_may_be_in(bytes text, enum personal kind);

/* What begins there. */
struct personal_part personal_part_at(bytes text, size_t at, enum personal kind);

/* The first at or behind `at`. */
struct personal_part personal_part_from(bytes text, size_t at, enum personal kind);

/* What begins there and may be the beginning of an address, as the ends of ranges and what was cut
 * off have it: "jo.smith@", "jo.smith@exam". */
struct personal_part personal_begun_mail_at(bytes text, size_t at);

/* The same of a telephone: "+1-212-555". */
struct personal_part personal_begun_phone_at(bytes text, size_t at);

#endif
