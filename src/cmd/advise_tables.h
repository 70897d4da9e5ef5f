/* What the advisor asks of the administrative API. */
#ifndef TRESTLE_CMD_ADVISE_TABLES_H
#define TRESTLE_CMD_ADVISE_TABLES_H

#include "advice/advice.h"
#include "client/client_session.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"

/* What ListHotTablets tells of the table, in each cluster. `*is_answered`: the server has it, and
 * lets the caller have it; if not, there is none. */
status hot_tablets_list(struct client_session *session, const char *table, struct arena *arena,
                        struct advice_heat **out, size_t *count, bool *is_answered);

/* Sets `out->siblings`: tables whose names differ in numbers only. At most SIBLINGS_KNOWN of them
 * are looked at. */
enum { SIBLINGS_KNOWN = 20 };
status siblings_list(struct client_session *session, const BtAdmin__Table *schema,
                     const char *table_id, struct arena *arena, struct advice_observations *out);

#endif
