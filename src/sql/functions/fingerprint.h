/* FarmHash's Fingerprint64: what FARM_FINGERPRINT is. It never changes. */
#ifndef TRESTLE_SQL_FUNCTIONS_FINGERPRINT_H
#define TRESTLE_SQL_FUNCTIONS_FINGERPRINT_H

#include "base/bytes.h"

uint64_t farm_fingerprint(bytes text);

#endif
