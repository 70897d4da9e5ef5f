/* A table's schema as the advisor sees it, from the administrative API. */
#ifndef TRESTLE_ADVISOR_SCHEMA_H
#define TRESTLE_ADVISOR_SCHEMA_H

#include "advisor/advice.h"
#include "google/bigtable/admin/v2/table.pb-c.h"

/* Sets the families, in the arena; their names are the message's. */
status advice_set_families(const BtAdmin__Table *schema, struct arena *arena,
                           struct advice_observations *out);

/* Whether both have families of the same names. */
bool advice_has_same_families(const BtAdmin__Table *one, const BtAdmin__Table *other);

#endif
