/* See view_query.h. */
#include "bigtable/view_query.h"

#include <strings.h>

/* Past blanks, comments and opening parentheses. */
static const char *skip_to_word(const char *at)
{
    for (;;) {
        at += strspn(at, " \t\r\n(");
        if (at[0] == '#' || (at[0] == '-' && at[1] == '-')) {
            at += strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            at = end == NULL ? at + strlen(at) : end + 2;
        } else {
            return at;
        }
    }
}

static bool begins_with(const char *text, const char *word)
{
    size_t size = strlen(word);
    if (strncasecmp(text, word, size) != 0)
        return false;
    char next = text[size];
    return next == '\0' || strchr(" \t\r\n(/*-#`'\"", next) != NULL;
}

status view_query_check(const char *query)
{
    const char *start = skip_to_word(query);
    if (*start == '\0')
        return status_make(STATUS_INVALID_ARGUMENT, "query must not be empty");
    if (!begins_with(start, "SELECT") && !begins_with(start, "WITH"))
        return status_make(STATUS_INVALID_ARGUMENT, "query must be a SELECT statement");
    return status_ok();
}
