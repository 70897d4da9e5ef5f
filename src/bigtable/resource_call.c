/* See resource_call.h. */
#include "bigtable/resource_call.h"

#include "base/big_endian.h"
#include "bigtable/names.h"
#include "wire/timestamps.h"

#include <inttypes.h>
#include <stdio.h>

/* --- fields by name: every resource's message has a name, some have an etag --- */

void *resource_field(const ProtobufCMessage *message, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    union {
        const void *given;
        void *wanted;
    } pointer = {.given = message};
    return field == NULL ? NULL : (uint8_t *)pointer.wanted + field->offset;
}

static const char *name_of(const ProtobufCMessage *message)
{
    return *(const char *const *)resource_field(message, "name");
}

static bool is_protected(const ProtobufCMessage *message)
{
    const protobuf_c_boolean *flag = resource_field(message, "deletion_protection");
    return flag != NULL && *flag;
}

/* --- etags --- */

enum { ETAG_SIZE = 17 };

static void write_etag(char *out, uint64_t version)
{
    snprintf(out, ETAG_SIZE, "%" PRIx64, version);
}

/* App profiles have the field and get none, as in production, whose clients compare what they get
 * with what they sent. A policy's is bytes, and policies.c's. */
static bool has_etag(const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    return type != resource_type(RESOURCE_POLICY)->message &&
           type != resource_type(RESOURCE_APP_PROFILE)->message;
}

static status set_etag(ProtobufCMessage *message, uint64_t version, struct arena *arena)
{
    const char **field = resource_field(message, "etag");
    if (field == NULL || !has_etag(message))
        return status_ok();
    char *etag = arena_alloc(arena, ETAG_SIZE);
    if (etag == NULL)
        return status_out_of_memory();
    write_etag(etag, version);
    *field = etag;
    return status_ok();
}

static void clear_etag(ProtobufCMessage *message)
{
    const char **field = resource_field(message, "etag");
    if (field != NULL)
        *field = protobuf_c_empty_string;
}

static status check_etag(const struct resource *resource, const char *etag)
{
    char standing[ETAG_SIZE];
    write_etag(standing, resource->version);
    if (*etag == '\0' || strcmp(etag, standing) == 0)
        return status_ok();
    return status_make(STATUS_ABORTED, "The etag '%s' of %s is not its present one", etag,
                       resource->name);
}

/* --- names --- */

static const char *form_of(const struct resource_type *type, char *out, size_t size)
{
    if (type->kind == RESOURCE_INSTANCE)
        return "projects/{project}/instances/{instance}";
    bool is_in_table = (int)type->parent == RESOURCE_TABLE_PARENT;
    snprintf(out, size, "projects/{project}/instances/{instance}%s/%s/{id}",
             is_in_table ? "/tables/{table}" : "", type->collection);
    return out;
}

status check_resource_name(enum resource_kind kind, const char *name)
{
    const struct resource_type *type = resource_type(kind);
    char form[128];
    return name_check_form(type->label, name, form_of(type, form, sizeof form));
}

/* --- reading --- */

status resource_message(const struct resource *resource, struct arena *arena,
                        ProtobufCMessage **out)
{
    TRY(resource_decode(resource, arena, out));
    return set_etag(*out, resource->version, arena);
}

status get_resource(const struct admin_request *request, enum resource_kind kind, const char *name,
                    ProtobufCMessage **out)
{
    struct resource *resource;
    TRY(check_resource_name(kind, name));
    TRY(control_find(request->bigtable->control, kind, name, &resource));
    status s = resource_message(resource, request->arena, out);
    resource_release(resource);
    return s;
}

/* --- pages --- */

enum { FIRST_ROOM = 64 };

struct listing {
    struct arena *arena;
    struct resource_page *page;
    size_t limit;
    size_t room;
    bool has_more;
    status failure;
};

static status make_room(struct listing *listing)
{
    struct resource_page *page = listing->page;
    if (page->count < listing->room)
        return status_ok();
    listing->room = listing->room == 0 ? FIRST_ROOM : 2 * listing->room;
    ProtobufCMessage **larger = arena_alloc(listing->arena, listing->room * sizeof(*larger));
    if (larger == NULL)
        return status_out_of_memory();
    if (page->count > 0)
        memcpy(larger, page->messages, page->count * sizeof(*larger));
    page->messages = larger;
    return status_ok();
}

static status add_to_page(struct listing *listing, const struct resource *resource)
{
    TRY(make_room(listing));
    TRY(resource_message(resource, listing->arena, &listing->page->messages[listing->page->count]));
    listing->page->count++;
    return status_ok();
}

static bool visit_resource(void *context, struct resource *resource)
{
    struct listing *listing = context;
    listing->has_more = listing->page->count == listing->limit;
    if (listing->has_more)
        return false;
    listing->failure = add_to_page(listing, resource);
    return status_is_ok(listing->failure);
}

status page_limit(int32_t page_size, size_t *limit)
{
    enum { LARGEST_PAGE = 10000 };
    bool by_default = page_size == 0 || page_size > LARGEST_PAGE;
    *limit = by_default ? LARGEST_PAGE : (size_t)page_size;
    if (page_size < 0)
        return status_make(STATUS_INVALID_ARGUMENT, "page_size must not be negative");
    return status_ok();
}

/* A page token is the name of the last resource of the page before. */
status list_resources(const struct admin_request *request, enum resource_kind kind,
                      const char *parent, int32_t page_size, const char *page_token,
                      struct resource_page *out)
{
    *out = (struct resource_page){.next_token = protobuf_c_empty_string};
    struct listing listing = {.arena = request->arena, .page = out, .failure = status_ok()};
    TRY(page_limit(page_size, &listing.limit));
    TRY(control_list(request->bigtable->control, kind, parent, page_token, visit_resource,
                     &listing));
    TRY(listing.failure);
    if (listing.has_more)
        out->next_token = name_of(out->messages[out->count - 1]);
    return status_ok();
}

/* --- changing --- */

status create_resource(struct edit *edit, struct arena *arena, enum resource_kind kind,
                       ProtobufCMessage *message)
{
    clear_etag(message);
    TRY(edit_create(edit, kind, name_of(message), message, bytes_of("")));
    return set_etag(message, edit_version(edit), arena);
}

status find_for_change(struct edit *edit, struct arena *arena, enum resource_kind kind,
                       const char *name, const char *etag, ProtobufCMessage **out)
{
    const struct resource *standing = edit_find(edit, kind, name);
    if (standing == NULL)
        return status_make(STATUS_NOT_FOUND, "Not found: %s", name);
    TRY(check_etag(standing, etag));
    return resource_decode(standing, arena, out);
}

status put_resource(struct edit *edit, struct arena *arena, enum resource_kind kind,
                    ProtobufCMessage *message)
{
    const struct resource *standing = edit_find(edit, kind, name_of(message));
    uint8_t made_in[BIG_ENDIAN_SIZE];
    big_endian_write(made_in, standing == NULL ? edit_version(edit) : resource_made_in(standing));
    clear_etag(message);
    TRY(edit_put(edit, kind, name_of(message), message, bytes_make(made_in, sizeof made_in)));
    return set_etag(message, edit_version(edit), arena);
}

struct deletion {
    struct arena *arena;
    enum resource_kind kind;
    const char *name;
    const char *etag;
};

static status check_protection(const ProtobufCMessage *message, enum resource_kind kind)
{
    if (!is_protected(message))
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION, "%s \"%s\" is protected from deletion",
                       resource_type(kind)->label, name_of(message));
}

static status stage_deletion(void *context, struct edit *edit)
{
    const struct deletion *deletion = context;
    ProtobufCMessage *message;
    TRY(find_for_change(edit, deletion->arena, deletion->kind, deletion->name, deletion->etag,
                        &message));
    TRY(check_protection(message, deletion->kind));
    return edit_delete(edit, deletion->kind, deletion->name);
}

status delete_resource(const struct admin_request *request, enum resource_kind kind,
                       const char *name, const char *etag, const ProtobufCMessage **response)
{
    struct deletion deletion = {request->arena, kind, name, etag};
    TRY(check_resource_name(kind, name));
    TRY(control_edit(request->bigtable->control, stage_deletion, &deletion));
    *response = admin_empty_response();
    return status_ok();
}

struct protection_check {
    struct arena *arena;
    status found;
};

static bool visit_for_protection(void *context, struct resource *resource)
{
    struct protection_check *check = context;
    ProtobufCMessage *message;
    check->found = resource_decode(resource, check->arena, &message);
    if (status_is_ok(check->found))
        check->found = check_protection(message, resource->kind);
    return status_is_ok(check->found);
}

status check_none_protected(struct control *control, struct arena *arena, enum resource_kind kind,
                            const char *parent)
{
    struct protection_check check = {.arena = arena, .found = status_ok()};
    TRY(control_list(control, kind, parent, "", visit_for_protection, &check));
    return check.found;
}

/* --- operations --- */

status edit_time(const struct edit *edit, struct arena *arena, Pb__Timestamp **out)
{
    return timestamp_message((int64_t)edit_version(edit), arena, out);
}

static status set_times(const struct edit *edit, struct arena *arena, ProtobufCMessage *metadata)
{
    static const char *const names[] = {"request_time", "finish_time", "start_time", "end_time"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Pb__Timestamp **field = resource_field(metadata, names[i]);
        if (field != NULL)
            TRY(edit_time(edit, arena, field));
    }
    return status_ok();
}

/* operations/<instance>/locations/<zone>: operations are this server's. */
static status operation_parent(const struct edit *edit, const char *name, struct arena *arena,
                               char **out)
{
    const char *zone = control_location(edit_control(edit));
    size_t size = 0;
    for (unsigned segments = 0; segments < 4; segments++) {
        size += strcspn(name + size, "/");
        size += segments < 3 && name[size] == '/';
    }
    char *instance = arena_string(arena, bytes_make(name, size));
    char *location = instance == NULL ? NULL : name_join(arena, instance, "locations", zone);
    *out = location == NULL ? NULL : name_under(arena, "operations", location);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static void set_original(ProtobufCMessage *metadata, const ProtobufCMessage *request)
{
    const ProtobufCMessage **field = resource_field(metadata, "original_request");
    if (field != NULL)
        *field = request;
}

status begin_operation(struct edit *edit, struct arena *arena, const char *name,
                       const struct operation_spec *spec, const ProtobufCMessage **out)
{
    struct operation_spec whole = *spec;
    char *parent;
    TRY(operation_parent(edit, name, arena, &parent));
    whole.parent = parent;
    return operation_begin(edit, &whole, arena, out);
}

status stage_finished_operation(struct edit *edit, struct arena *arena, const char *name,
                                const ProtobufCMessage *metadata, const ProtobufCMessage *response,
                                const ProtobufCMessage **out)
{
    char *parent;
    TRY(operation_parent(edit, name, arena, &parent));
    struct operation_spec spec = {.parent = parent, .metadata = metadata, .response = response};
    return operation_done(edit, &spec, arena, out);
}

status finish_operation(struct edit *edit, const struct admin_request *request, const char *name,
                        ProtobufCMessage *metadata, const ProtobufCMessage *response,
                        const ProtobufCMessage **out)
{
    TRY(set_times(edit, request->arena, metadata));
    set_original(metadata, request->message);
    return stage_finished_operation(edit, request->arena, name, metadata, response, out);
}
