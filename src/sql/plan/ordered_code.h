/* OrderedCode of signed integers, as Google's library has it: 1 to 10 bytes whose order is that of
 * the numbers.
 *
 * The number of bytes n is said by the first bits: of a number that is not negative n ones and a
 * zero, after the sign bit's inverse; negative numbers are the complement of their complement:
 *
 *     n = 1    1xxxxxxx' … for 0 to 63: 80 + x           n = 2    110xxxxx xxxxxxxx …
 *
 * so 0 is 80, 63 is bf, 64 is c0 40, -1 is 7f, -64 is 40, -65 is 3f bf. */
#ifndef TRESTLE_SQL_PLAN_ORDERED_CODE_H
#define TRESTLE_SQL_PLAN_ORDERED_CODE_H

#include "base/bytes.h"

void ordered_code_append(struct buffer *out, int64_t value);

/* The bytes that a number takes at the start of the text; 0 if there is none. A number has one
 * code: a longer one is none. */
size_t ordered_code_read(bytes text, int64_t *out);

#endif
