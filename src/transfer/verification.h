/* Rows of a table, read again and held against what they should be. */
#ifndef TRESTLE_TRANSFER_VERIFICATION_H
#define TRESTLE_TRANSFER_VERIFICATION_H

#include "client/client_session.h"
#include "transfer/seen.h"
#include "transfer/source.h"
#include "transfer/table.h"

struct verification;

/* `is_sample`: of a sample of the rows that come, else of all. The table's full name and the
 * session outlive it. */
status verification_create(struct client_session *session, const char *table, bool is_sample,
                           struct verification **out);
void verification_destroy(struct verification *verification); /* NULL is fine */

bool verification_is_sample(const struct verification *verification);

/* From now on a row that has more cells than it should differs, too. */
void verification_expect_whole_rows(struct verification *verification);

/* The table's schema, which outlives the verification: a cell is not missed that its family's rule
 * takes for the later ones of its column that are there. */
void verification_know_schema(struct verification *verification, const BtAdmin__Table *schema);

/* A record's row as it should be; of several records that replace one row, the last counts. Its
 * place is told if it differs. */
status verification_add(struct verification *verification, const struct transfer_record *record,
                        const struct transfer_place *place);

/* Counts the rows of the table that are not among these, and tells of the first on stderr. */
status verification_find_strays(struct verification *verification, const struct seen *rows,
                                uint64_t *strays);

/* Records whose place another one has taken since do not differ. Before the first is added, if all
 * are compared. */
void verification_forgive(struct verification *verification, const struct seen *seen);

/* Reads what has not been compared yet. Counts of all so far. */
status verification_finish(struct verification *verification, uint64_t *compared,
                           uint64_t *different);

#endif
