/* Statements out of a text that comes line by line: what is between semicolons.
 *
 * The parser's lexer wants a whole query, and refuses what is none. Here a query may have come
 * half, and what is wrong with it is for the server to say: so only what can hide a semicolon is
 * known, quotes and comments. */
#ifndef TRESTLE_CMD_SQL_SQL_SPLIT_H
#define TRESTLE_CMD_SQL_SQL_SPLIT_H

#include "base/bytes.h"

enum sql_split_state {
    SPLIT_PLAIN,
    SPLIT_QUOTED,       /* '…', "…", `…`: at most to the end of the line */
    SPLIT_TRIPLE,       /* '''…''', """…""" */
    SPLIT_LINE_COMMENT, /* -- and # */
    SPLIT_COMMENT,
};

/* All zeroes is one at the beginning. */
struct sql_splitter {
    struct buffer text; /* what has come; owned */
    size_t taken;       /* bytes of it that belong to statements that were given out */
    size_t scanned;
    enum sql_split_state state;
    uint8_t quote;
    bool has_content; /* more than blanks and comments since the last statement */
    size_t start;     /* then: where it begins */
    unsigned start_line;
    unsigned line; /* of `scanned`, from 0 */
};

struct sql_statement {
    bytes text;    /* without the semicolon; the splitter's, until the next line is added */
    unsigned line; /* on which it begins, from 1 */
};

/* Adds a line; its end is added to it. Without memory `text.failed` is set, and nothing comes out
 * any more. */
void sql_splitter_add(struct sql_splitter *splitter, bytes line);

/* The next statement that is whole; false if there is none. */
bool sql_splitter_next(struct sql_splitter *splitter, struct sql_statement *out);

/* The rest after the last semicolon, if it is more than blanks and comments. */
bool sql_splitter_rest(struct sql_splitter *splitter, struct sql_statement *out);

/* Whether nothing has begun: a command, \d, may come instead of a statement. */
bool sql_splitter_is_idle(const struct sql_splitter *splitter);

/* Forgets what has begun. */
void sql_splitter_drop(struct sql_splitter *splitter);

void sql_splitter_free(struct sql_splitter *splitter);

#endif
