/* google.longrunning.Operations: what control/operations.h keeps.
 *
 * Operations are asked for by the names that were handed out. Lists are asked for by the start of
 * such names: operations/projects/P or operations/projects/P/instances/I, as gcloud does, and
 * projects/P or projects/P/databases/D for those of Datastore. */
#include "control/operations.h"

#include "bigtable/resource_call.h"
#include "google/longrunning/operations.pb-c.h"
#include "wire/list_filter.h"

static status not_found(const char *name)
{
    return status_make(STATUS_NOT_FOUND, "Operation not found: %s", name);
}

static status find_operation(const struct admin_request *request, const char *name,
                             const ProtobufCMessage **response)
{
    struct resource *resource;
    ProtobufCMessage *message = NULL;
    status s = control_find(request->bigtable->control, RESOURCE_OPERATION, name, &resource);
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return not_found(name);
    }
    TRY(s);
    s = resource_decode(resource, request->arena, &message);
    resource_release(resource);
    *response = message;
    return s;
}

static status get_operation(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Lro__GetOperationRequest *message = (const void *)request->message;
    return find_operation(request, message->name, response);
}

/* --- list --- */

/* The page is taken first and filtered then, so that it may be short, or empty, before the end. */
static status keep_those(struct resource_page *page, const char *filter, struct arena *arena)
{
    size_t kept = 0;
    for (size_t i = 0; i < page->count; i++) {
        bool fits;
        TRY(list_filter_fits(filter, page->messages[i], arena, &fits));
        if (fits)
            page->messages[kept++] = page->messages[i];
    }
    page->count = kept;
    return status_ok();
}

/* projects/P, or projects/P/databases/D */
static bool is_of_datastore(const char *name)
{
    static const char projects[] = "projects/", databases[] = "databases/";
    if (strncmp(name, projects, strlen(projects)) != 0)
        return false;
    const char *rest = name + strlen(projects), *slash = strchr(rest, '/');
    if (slash == NULL)
        return *rest != '\0';
    rest = slash + 1 + strlen(databases);
    return strncmp(slash + 1, databases, strlen(databases)) == 0 && *rest != '\0' &&
           strchr(rest, '/') == NULL;
}

/* Whether operations may be listed under the name. */
static status check_parent(const char *name)
{
    if (strncmp(name, "operations/projects/", strlen("operations/projects/")) == 0 ||
        is_of_datastore(name))
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid name '%s': expected operations/projects/{project}, "
                       "operations/projects/{project}/instances/{instance}, projects/{project}, or "
                       "projects/{project}/databases/{database}",
                       name);
}

static status list_operations(const struct admin_request *request,
                              const ProtobufCMessage **response)
{
    const Lro__ListOperationsRequest *message = (const void *)request->message;
    struct resource_page page;
    Lro__ListOperationsResponse *list;
    TRY(list_filter_check(&lro__operation__descriptor, message->filter, request->arena));
    TRY(check_parent(message->name));
    TRY(list_resources(request, RESOURCE_OPERATION, message->name, message->page_size,
                       message->page_token, &page));
    TRY(keep_those(&page, message->filter, request->arena));
    PROTO_NEW(request->arena, list, LRO__LIST_OPERATIONS_RESPONSE__INIT);
    list->operations = (void *)page.messages;
    list->n_operations = page.count;
    list->next_page_token = page.next_token;
    *response = &list->base;
    return status_ok();
}

/* --- wait, cancel, delete --- */

/* The shorter of what the request and the call allow; a second is left to answer. */
static int64_t wait_until(const struct admin_request *request,
                          const Lro__WaitOperationRequest *message)
{
    enum { MOST_SECONDS = 30, LEFT_US = 1000000 };
    const Pb__Duration *timeout = message->timeout;
    int64_t seconds = timeout == NULL ? MOST_SECONDS : timeout->seconds;
    if (seconds > MOST_SECONDS)
        seconds = MOST_SECONDS;
    int64_t now_us = clock_steady_us(cluster_clock(request->bigtable->cluster));
    int64_t until_us = now_us + seconds * 1000000;
    int64_t last_us = request->deadline_us - LEFT_US;
    return until_us < last_us ? until_us : last_us;
}

static status wait_operation(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Lro__WaitOperationRequest *message = (const void *)request->message;
    if (message->timeout != NULL && (message->timeout->seconds < 0 || message->timeout->nanos < 0))
        return status_make(STATUS_INVALID_ARGUMENT, "timeout must not be negative");
    operation_wait(request->bigtable->control, message->name, wait_until(request, message));
    return find_operation(request, message->name, response);
}

static status cancel_operation(const struct admin_request *request,
                               const ProtobufCMessage **response)
{
    const Lro__CancelOperationRequest *message = (const void *)request->message;
    TRY(operation_cancel(request->bigtable->control, message->name));
    *response = admin_empty_response();
    return status_ok();
}

static status delete_operation(const struct admin_request *request,
                               const ProtobufCMessage **response)
{
    const Lro__DeleteOperationRequest *message = (const void *)request->message;
    TRY(operation_forget(request->bigtable->control, message->name));
    *response = admin_empty_response();
    return status_ok();
}

ADMIN_HANDLER(get_operation, lro__get_operation_request)
ADMIN_HANDLER(list_operations, lro__list_operations_request)
ADMIN_HANDLER(wait_operation, lro__wait_operation_request)
ADMIN_HANDLER(cancel_operation, lro__cancel_operation_request)
ADMIN_HANDLER(delete_operation, lro__delete_operation_request)

struct grpc_service bigtable_operations_service(struct bigtable *bigtable)
{
    static const struct grpc_method methods[] = {
        {"GetOperation", GRPC_UNARY, handle_get_operation},
        {"ListOperations", GRPC_UNARY, handle_list_operations},
        {"WaitOperation", GRPC_UNARY, handle_wait_operation},
        {"CancelOperation", GRPC_UNARY, handle_cancel_operation},
        {"DeleteOperation", GRPC_UNARY, handle_delete_operation},
    };
    return (struct grpc_service){.name = "google.longrunning.Operations",
                                 .methods = methods,
                                 .method_count = sizeof methods / sizeof *methods,
                                 .context = bigtable,
                                 .rest = &lro__operations__descriptor};
}
