/* The place of a mistake in a request, in production's words, which are put before what is wrong:
 *
 *     Error in field 'Mutation list' : Error in element #0 : Error in field 'input' : must use …
 *
 * Each takes the status, and gives it back as it is unless it is INVALID_ARGUMENT: what else fails
 * is no mistake of a place. */
#ifndef TRESTLE_BIGTABLE_ERROR_PLACE_H
#define TRESTLE_BIGTABLE_ERROR_PLACE_H

#include "base/status.h"

status error_in_field(const char *field, status s);
status error_in_element(size_t index, status s); /* of a list, from 0 */

/* Of a list that is a field. */
status error_in_list(const char *field, size_t index, status s);

#endif
