/* Statements that are no queries, which the shell carries out by the admin API:
 *
 *     CREATE MATERIALIZED VIEW [IF NOT EXISTS] name [OPTIONS (deletion_protection = TRUE)] AS query
 *     DROP MATERIALIZED VIEW [IF EXISTS] name
 *
 * Only the words before the query are looked at here; what is wrong with the query the server says.
 */
#ifndef TRESTLE_CMD_SQL_SQL_STATEMENTS_H
#define TRESTLE_CMD_SQL_SQL_STATEMENTS_H

#include "base/arena.h"
#include "base/status.h"

enum statement_kind {
    STATEMENT_QUERY, /* whatever is none of the others */
    STATEMENT_CREATE_VIEW,
    STATEMENT_DROP_VIEW,
};

struct sql_words {
    enum statement_kind kind;
    const char *name;
    const char *query; /* of CREATE */
    size_t query_at;   /* where it begins in the statement */
    bool is_protected;
    bool is_lenient; /* IF NOT EXISTS, IF EXISTS */
};

/* INVALID_ARGUMENT: it begins as one of them and goes on otherwise. Memory from the arena. */
status sql_words_read(bytes text, struct arena *arena, struct sql_words *out);

/* "… [at 1:8]", as the server says of the query, with the place in the statement. Takes the status.
 * As it is, if it has none. */
status sql_words_place_error(bytes text, size_t query_at, status error);

#endif
