/* `trestle sql`: GoogleSQL over the data API of any Bigtable endpoint.
 *
 *     sql.c             the command: where statements come from, and how it ends
 *     sql_options.c     its options
 *     sql_input.c       lines that a person types, with history
 *     sql_split.c       statements out of lines
 *     sql_commands.c    \d and its like
 *     sql_describe.c    what there is to be queried
 *     sql_parameters.c  @name
 *     sql_query.c       PrepareQuery and ExecuteQuery, again when they may be made again
 *     sql_statements.c  the words of statements that are no queries
 *     sql_views.c       materialized views made and dropped
 *     sql_batches.c     rows out of the messages of ExecuteQuery
 *     sql_values.c      values in words
 *     sql_print.c       results as tables, CSV, JSON
 *     client_session.c     calls
 *
 * It knows nothing of the server but the public interface, and one header of Trestle's: explain. */
#ifndef TRESTLE_CMD_SQL_SQL_SHELL_H
#define TRESTLE_CMD_SQL_SQL_SHELL_H

#include "client/client_session.h"
#include "cmd/sql/sql_parameters.h"
#include "cmd/sql/sql_print.h"
#include "cmd/sql/sql_split.h"

#include <stdio.h>

/* --- options --- */

enum shell_explain { EXPLAIN_NONE, EXPLAIN_PLAN, EXPLAIN_ANALYZE };

/* A source of statements, in the order of the flags. */
struct shell_input {
    bool is_file;
    const char *text; /* statements, or a file's name */
};

struct shell_options {
    struct target_options target;
    int format; /* enum shell_format */
    bool no_header;
    bool explain;
    bool analyze;
    struct shell_input *inputs; /* owned */
    size_t input_count;
    struct shell_parameters parameters;
};

/* INVALID_ARGUMENT. The options are to be freed after a failure, too. */
status shell_options_read(const char *const *arguments, struct shell_options *out);
void shell_options_free(struct shell_options *options);
void shell_options_write_help(struct buffer *out);

/* --- the shell --- */

struct shell {
    struct client_session *session;
    struct shell_parameters parameters;
    struct shell_style style;
    enum shell_explain explain; /* of all queries */
    bool has_timing;
    bool is_over;       /* \q */
    bool has_no_reader; /* the output's reader has gone: no reason to complain */
    unsigned depth;     /* of \i in one another */
    struct buffer out;
    FILE *to;
};

/* Writes what is in `out`. ABORTED if that fails. */
status shell_flush(struct shell *shell);

/* Runs a statement: a query, or one that makes or drops a view (sql_statements.h). */
status shell_statement(struct shell *shell, bytes text);

/* Runs a query, and prints what it gives. */
status shell_query(struct shell *shell, bytes text, enum shell_explain explain);

/* Prepares a query: its columns, in the arena. */
status shell_columns(struct shell *shell, const char *query, struct arena *arena,
                     const Bt__ProtoSchema **out);

/* Runs a command, a line that begins with a backslash. */
status shell_command(struct shell *shell, bytes line);

/* The tables and views there are; one of them. */
status shell_list(struct shell *shell);
status shell_describe(struct shell *shell, const char *name);

/* Runs all statements of a file. An error ends it, and says where: "FILE:LINE: …". */
status shell_run_file(struct shell *shell, const char *path);

/* Runs what the line completes: statements, or a command. `*line_of_error` gets the line on which
 * the statement that failed began, from 1. */
status shell_feed(struct shell *shell, struct sql_splitter *splitter, bytes line,
                  unsigned *line_of_error);

/* --- what a person types --- */

enum shell_line { LINE_TYPED, LINE_ABANDONED, LINE_END };

struct shell_reader;

/* `history`: the file that remembers; NULL: none does. UNAVAILABLE without a terminal. */
status shell_reader_create(const char *history, struct shell_reader **out);
void shell_reader_destroy(struct shell_reader *reader); /* NULL is fine */

/* Shows the prompt, or that of what has begun, and waits for a line, which is valid until the
 * next, and has no newline. */
enum shell_line shell_reader_next(struct shell_reader *reader, bool has_begun, bytes *line);

/* Puts a statement or a command into the history, and that into its file. */
void shell_reader_remember(struct shell_reader *reader, bytes text);

/* --- the command --- */

/* `arguments`: those after "sql", ended by NULL. Returns the process's exit status. */
int sql_command(const char *const *arguments);

#endif
