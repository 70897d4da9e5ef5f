/* Authorized views of a table, each a set of rows and columns. How calls go through one is view.h's
 * business. */
#include "base/limits.h"
#include "bigtable/children.h"
#include "bigtable/names.h"
#include "bigtable/table_methods.h"

/* --- checks --- */

static status check_sizes(const char *what, const ProtobufCBinaryData *strings, size_t count,
                          size_t most)
{
    for (size_t i = 0; i < count; i++)
        if (strings[i].len > most)
            return status_make(STATUS_INVALID_ARGUMENT, "%s must have at most %zu bytes", what,
                               most);
    return status_ok();
}

/* An empty prefix stands for all of a family; an empty qualifier is a qualifier. */
static status check_family(const BtAdmin__AuthorizedView__SubsetView__FamilySubsetsEntry *entry,
                           size_t *parameters)
{
    const BtAdmin__AuthorizedView__FamilySubsets *family = entry->value;
    TRY(name_check_family(entry->key));
    if (family == NULL)
        return status_ok();
    *parameters += family->n_qualifiers + family->n_qualifier_prefixes;
    TRY(check_sizes("A qualifier", family->qualifiers, family->n_qualifiers,
                    LIMIT_QUALIFIER_BYTES));
    return check_sizes("A prefix of qualifiers", family->qualifier_prefixes,
                       family->n_qualifier_prefixes, LIMIT_QUALIFIER_BYTES);
}

static status check_view(const BtAdmin__AuthorizedView *view)
{
    if (view->authorized_view_case != BT_ADMIN__AUTHORIZED_VIEW__AUTHORIZED_VIEW_SUBSET_VIEW)
        return status_make(STATUS_INVALID_ARGUMENT, "subset_view must be set");
    const BtAdmin__AuthorizedView__SubsetView *subset = view->subset_view;
    size_t parameters = subset->n_row_prefixes;
    TRY(check_sizes("A prefix of row keys", subset->row_prefixes, subset->n_row_prefixes,
                    LIMIT_ROW_KEY_BYTES));
    for (size_t i = 0; i < subset->n_family_subsets; i++)
        TRY(check_family(subset->family_subsets[i], &parameters));
    if (parameters > LIMIT_VIEW_PARAMETERS)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "An authorized view has at most %d prefixes and qualifiers",
                           LIMIT_VIEW_PARAMETERS);
    return status_ok();
}

static status check(const struct admin_request *request, const ProtobufCMessage *before,
                    const ProtobufCMessage *after)
{
    (void)request, (void)before;
    return check_view((const void *)after);
}

/* --- methods --- */

static const char *const allowed[] = {"subset_view", "deletion_protection", NULL};

static const struct child_kind authorized_views = {
    .kind = RESOURCE_AUTHORIZED_VIEW,
    .name = "authorized_view",
    .create_metadata = &bt_admin__create_authorized_view_metadata__descriptor,
    .update_metadata = &bt_admin__update_authorized_view_metadata__descriptor,
    .list_response = &bt_admin__list_authorized_views_response__descriptor,
    .allowed = allowed,
    .check = check,
};

CHILD_METHOD(create, authorized_view, authorized_views)
CHILD_METHOD(update, authorized_view, authorized_views)
CHILD_METHOD(delete, authorized_view, authorized_views)

/* Leaves of the view what the client asked for: all, all but which data it shows, or its name. */
static void reduce(BtAdmin__AuthorizedView *view, BtAdmin__AuthorizedView__ResponseView wanted)
{
    if (wanted == BT_ADMIN__AUTHORIZED_VIEW__RESPONSE_VIEW__FULL)
        return;
    view->authorized_view_case = BT_ADMIN__AUTHORIZED_VIEW__AUTHORIZED_VIEW__NOT_SET;
    if (wanted == BT_ADMIN__AUTHORIZED_VIEW__RESPONSE_VIEW__BASIC)
        return;
    view->etag = protobuf_c_empty_string;
    view->deletion_protection = false;
}

static BtAdmin__AuthorizedView__ResponseView
or_default(BtAdmin__AuthorizedView__ResponseView wanted,
           BtAdmin__AuthorizedView__ResponseView by_default)
{
    bool is_unspecified =
        wanted == BT_ADMIN__AUTHORIZED_VIEW__RESPONSE_VIEW__RESPONSE_VIEW_UNSPECIFIED;
    return is_unspecified ? by_default : wanted;
}

/* GetAuthorizedView shows all if no view is asked for, as in production, though the API's comment
 * says BASIC: the clients for Go and Java ask for no view, and cannot do without the subset. */
status get_authorized_view(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__GetAuthorizedViewRequest *message = (const void *)request->message;
    ProtobufCMessage *view;
    TRY(get_resource(request, RESOURCE_AUTHORIZED_VIEW, message->name, &view));
    reduce((void *)view, or_default(message->view, BT_ADMIN__AUTHORIZED_VIEW__RESPONSE_VIEW__FULL));
    *response = view;
    return status_ok();
}

status list_authorized_views(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__ListAuthorizedViewsRequest *message = (const void *)request->message;
    TRY(child_list(&authorized_views, request, response));
    const BtAdmin__ListAuthorizedViewsResponse *list = (const void *)*response;
    for (size_t i = 0; i < list->n_authorized_views; i++)
        reduce(list->authorized_views[i],
               or_default(message->view, BT_ADMIN__AUTHORIZED_VIEW__RESPONSE_VIEW__NAME_ONLY));
    return status_ok();
}
