/* A Bigtable endpoint as a source of what the advisor looks at (advisor/gather.h). A call that a
 * server does not answer (UNIMPLEMENTED, PERMISSION_DENIED) gives no evidence. */
#ifndef TRESTLE_CMD_ADVISE_ADVISE_SOURCE_H
#define TRESTLE_CMD_ADVISE_ADVISE_SOURCE_H

#include "advisor/gather.h"
#include "client/client_session.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"

/* Bytes that the server may send ahead: as many as HTTP/2 has by default. */
enum { CLIENT_SOURCE_WINDOW = 64 << 10 };

struct client_source {
    struct client_session *session;
    const char *table_id;
    const char *table;            /* its full name */
    const BtAdmin__Table *schema; /* once it was read */
    uint64_t received_before;     /* bytes, as client_session_received */
    size_t searched;              /* large rows whose largest values were looked for */
};

/* Both outlive `*out`. */
status client_source_init(struct client_source *client, struct client_session *session,
                          const char *table_id, struct arena *arena, struct advice_source *out);

static inline struct client_source *client_source_of(const struct advice_source *source)
{
    return source->context;
}

#endif
