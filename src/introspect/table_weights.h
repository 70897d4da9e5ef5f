/* The largest rows and values of a table of this process, wherever they are: those that the store
 * notes (cluster/weights.h), looked at. */
#ifndef TRESTLE_INTROSPECT_TABLE_WEIGHTS_H
#define TRESTLE_INTROSPECT_TABLE_WEIGHTS_H

#include "introspect/table_source.h"

/* As advice_source_calls has it. */
status table_read_weights(struct advice_source *source, struct advice_observations *out);

#endif
