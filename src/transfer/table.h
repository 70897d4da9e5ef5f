/* The table that a transfer writes to. */
#ifndef TRESTLE_TRANSFER_TABLE_H
#define TRESTLE_TRANSFER_TABLE_H

#include "client/client_session.h"
#include "formats/family.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"

/* What a table that is missing is made with. */
struct transfer_table {
    const char *id;
    const BtAdmin__Table *schema; /* its families */
    const bytes *splits;          /* row keys */
    size_t split_count;
};

/* Makes the table if it is not there: `*is_made`. FAILED_PRECONDITION if it is and lacks a family.
 * `*schema`: as it is then, the arena's or the table's. */
status transfer_prepare_table(struct client_session *session, const struct transfer_table *table,
                              struct arena *arena, bool *is_made, const BtAdmin__Table **schema);

/* A schema of these families, with their rules. */
status transfer_make_schema(const struct move_family *families, size_t count, struct arena *arena,
                            const BtAdmin__Table **out);

/* How many versions of a column's cells the family's rule keeps at least, when it takes any by
 * their number; 0: it takes none so, or the table has no such family. */
uint32_t transfer_kept_versions(const BtAdmin__Table *schema, const char *family);

/* A table's schema, as the server has it. NOT_FOUND. */
status transfer_get_schema(struct client_session *session, const char *table_id,
                           struct arena *arena, const BtAdmin__Table **out);

/* Switches the table's change stream on, with this retention, and waits until it is, or for half a
 * minute: DEADLINE_EXCEEDED. */
status transfer_switch_stream_on(struct client_session *session, const char *table_id,
                                 int64_t retention_us, struct arena *arena);

#endif
