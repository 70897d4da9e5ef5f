/* Authorized views of a table: which rows and columns somebody has. How calls go through one is
 * view.h's business. */
#include "base/limits.h"
#include "bigtable/names.h"
#include "bigtable/quick_change.h"
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

/* What is to be all of a family is said by an empty prefix; an empty qualifier is a qualifier. */
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

/* --- create --- */

status create_authorized_view(const struct admin_request *request,
                              const ProtobufCMessage **response)
{
    const BtAdmin__CreateAuthorizedViewRequest *message = (const void *)request->message;
    BtAdmin__CreateAuthorizedViewMetadata metadata =
        BT_ADMIN__CREATE_AUTHORIZED_VIEW_METADATA__INIT;
    BtAdmin__AuthorizedView view = BT_ADMIN__AUTHORIZED_VIEW__INIT;
    if (message->authorized_view != NULL)
        view = *message->authorized_view;
    TRY(name_new_resource(request, RESOURCE_AUTHORIZED_VIEW, message->parent,
                          message->authorized_view_id, &view.name));
    TRY(check_view(&view));
    struct resource_creation creation = {RESOURCE_AUTHORIZED_VIEW, message->parent, &view.base,
                                         &metadata.base};
    return create_quickly(request, &creation, response);
}

/* --- get, list --- */

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

status get_authorized_view(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__GetAuthorizedViewRequest *message = (const void *)request->message;
    ProtobufCMessage *view;
    TRY(get_resource(request, RESOURCE_AUTHORIZED_VIEW, message->name, &view));
    reduce((void *)view,
           or_default(message->view, BT_ADMIN__AUTHORIZED_VIEW__RESPONSE_VIEW__BASIC));
    *response = view;
    return status_ok();
}

status list_authorized_views(const struct admin_request *request, const ProtobufCMessage **response)
{
    const BtAdmin__ListAuthorizedViewsRequest *message = (const void *)request->message;
    struct resource_page page;
    BtAdmin__ListAuthorizedViewsResponse *list;
    TRY(check_table_to_list(request, message->parent));
    TRY(list_resources(request, RESOURCE_AUTHORIZED_VIEW, message->parent, message->page_size,
                       message->page_token, &page));
    for (size_t i = 0; i < page.count; i++)
        reduce((void *)page.messages[i],
               or_default(message->view, BT_ADMIN__AUTHORIZED_VIEW__RESPONSE_VIEW__NAME_ONLY));
    PROTO_NEW(request->arena, list, BT_ADMIN__LIST_AUTHORIZED_VIEWS_RESPONSE__INIT);
    list->authorized_views = (void *)page.messages;
    list->n_authorized_views = page.count;
    list->next_page_token = page.next_token;
    *response = &list->base;
    return status_ok();
}

/* --- update, delete --- */

static status check_change(const struct admin_request *request, const ProtobufCMessage *before,
                           const ProtobufCMessage *after)
{
    (void)request, (void)before;
    return check_view((const void *)after);
}

status update_authorized_view(const struct admin_request *request,
                              const ProtobufCMessage **response)
{
    static const char *const allowed[] = {"subset_view", "deletion_protection", NULL};
    const BtAdmin__UpdateAuthorizedViewRequest *message = (const void *)request->message;
    const BtAdmin__AuthorizedView *wanted = message->authorized_view;
    BtAdmin__UpdateAuthorizedViewMetadata metadata =
        BT_ADMIN__UPDATE_AUTHORIZED_VIEW_METADATA__INIT;
    if (wanted == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "authorized_view must be set");
    struct resource_update update = {.kind = RESOURCE_AUTHORIZED_VIEW,
                                     .name = wanted->name,
                                     .etag = wanted->etag,
                                     .wanted = &wanted->base,
                                     .mask = message->update_mask,
                                     .allowed = allowed,
                                     .check = check_change,
                                     .metadata = &metadata.base};
    return update_quickly(request, &update, response);
}

status delete_authorized_view(const struct admin_request *request,
                              const ProtobufCMessage **response)
{
    const BtAdmin__DeleteAuthorizedViewRequest *message = (const void *)request->message;
    return delete_resource(request, RESOURCE_AUTHORIZED_VIEW, message->name, message->etag,
                           response);
}
