/* Long-running operations, as far as there are any: UpdateTable's, which is finished when it is
 * returned. Its name says all there is to know of it, so nothing is stored:
 *
 *     operations/<table name>/updates/<generation of the table>
 *
 * and GetOperation answers for it as long as the table stands. */
#ifndef TRESTLE_BIGTABLE_OPERATIONS_H
#define TRESTLE_BIGTABLE_OPERATIONS_H

#include "bigtable/admin_call.h"

/* The finished operation for an update of the table that has just been made. */
status operation_of_update(const struct admin_request *request, const char *table_name,
                           const ProtobufCMessage **response);

#endif
