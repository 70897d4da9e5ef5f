/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF. */
#ifndef TRESTLE_BASE_UTF8_H
#define TRESTLE_BASE_UTF8_H

#include "base/bytes.h"

bool utf8_is_valid(bytes text);

#endif
