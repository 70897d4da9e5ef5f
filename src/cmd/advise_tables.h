/* What the advisor asks of the administrative API, and of SampleRowKeys. */
#ifndef TRESTLE_CMD_ADVISE_TABLES_H
#define TRESTLE_CMD_ADVISE_TABLES_H

#include "advice/advice.h"
#include "client/client_session.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"

struct table_sample {
    bytes key;       /* behind the rows; empty: the end of the table */
    uint64_t offset; /* bytes of the table before it */
};

struct table_samples {
    struct table_sample *all; /* the arena's */
    size_t count;
    size_t capacity;
    struct arena *arena;
};

status table_samples_read(struct client_session *session, const char *table, struct arena *arena,
                          struct table_samples *out);

/* Bytes of the whole table. */
uint64_t table_samples_size(const struct table_samples *samples);

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
