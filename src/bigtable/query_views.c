/* Logical and materialized views: kept, with queries that are looked at no closer than to see that
 * they are some. */
#include "bigtable/children.h"
#include "bigtable/instance_methods.h"

#include <strings.h>

/* --- queries --- */

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

/* Whether the text begins as a query does: INVALID_ARGUMENT. */
static status check_query(const char *query)
{
    const char *start = skip_to_word(query);
    if (*start == '\0')
        return status_make(STATUS_INVALID_ARGUMENT, "query must not be empty");
    if (!begins_with(start, "SELECT") && !begins_with(start, "WITH"))
        return status_make(STATUS_INVALID_ARGUMENT, "query must be a SELECT statement");
    return status_ok();
}

static const char *const allowed[] = {"query", "deletion_protection", NULL};

/* --- logical views --- */

static status check_logical(const struct admin_request *request, const ProtobufCMessage *before,
                            const ProtobufCMessage *after)
{
    (void)request, (void)before;
    return check_query(((const BtAdmin__LogicalView *)(const void *)after)->query);
}

static const struct child_kind logical_views = {
    .kind = RESOURCE_LOGICAL_VIEW,
    .name = "logical_view",
    .create_metadata = &bt_admin__create_logical_view_metadata__descriptor,
    .update_metadata = &bt_admin__update_logical_view_metadata__descriptor,
    .list_response = &bt_admin__list_logical_views_response__descriptor,
    .allowed = allowed,
    .check = check_logical,
};

CHILD_METHOD(create, logical_view, logical_views)
CHILD_METHOD(get, logical_view, logical_views)
CHILD_METHOD(list, logical_views, logical_views)
CHILD_METHOD(update, logical_view, logical_views)
CHILD_METHOD(delete, logical_view, logical_views)

/* --- materialized views --- */

/* What the view holds was made by its query. */
static status check_materialized(const struct admin_request *request,
                                 const ProtobufCMessage *before, const ProtobufCMessage *after)
{
    const BtAdmin__MaterializedView *was = (const void *)before, *is = (const void *)after;
    (void)request;
    if (was != NULL && strcmp(was->query, is->query) != 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The query of a materialized view cannot be changed");
    return check_query(is->query);
}

static const struct child_kind materialized_views = {
    .kind = RESOURCE_MATERIALIZED_VIEW,
    .name = "materialized_view",
    .create_metadata = &bt_admin__create_materialized_view_metadata__descriptor,
    .update_metadata = &bt_admin__update_materialized_view_metadata__descriptor,
    .list_response = &bt_admin__list_materialized_views_response__descriptor,
    .allowed = allowed,
    .check = check_materialized,
};

CHILD_METHOD(create, materialized_view, materialized_views)
CHILD_METHOD(get, materialized_view, materialized_views)
CHILD_METHOD(list, materialized_views, materialized_views)
CHILD_METHOD(update, materialized_view, materialized_views)
CHILD_METHOD(delete, materialized_view, materialized_views)
