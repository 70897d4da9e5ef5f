/* See rules.h. */
#include "access/rules.h"

#include "base/check.h"
#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "google/bigtable/v2/session.pb-c.h"
#include "google/cloud/location/locations.pb-c.h"
#include "google/datastore/admin/v1/datastore_admin.pb-c.h"
#include "google/datastore/v1/datastore.pb-c.h"
#include "google/firestore/admin/v1/firestore_admin.pb-c.h"
#include "google/iam/v1/iam_policy.pb-c.h"
#include "google/longrunning/operations.pb-c.h"
#include "google/rpc/error_details.pb-c.h"
#include "trestle/backup/v1/whole_backups.pb-c.h"
#include "trestle/insight/v1/insight.pb-c.h"
#include "trestle/replica/v1/replica.pb-c.h"

#include <stdio.h>
#include <stdlib.h>

#define SERVICE_DATA            "google.bigtable.v2.Bigtable"
#define SERVICE_INSTANCE_ADMIN  "google.bigtable.admin.v2.BigtableInstanceAdmin"
#define SERVICE_TABLE_ADMIN     "google.bigtable.admin.v2.BigtableTableAdmin"
#define SERVICE_OPERATIONS      "google.longrunning.Operations"
#define SERVICE_LOCATIONS       "google.cloud.location.Locations"
#define SERVICE_DATASTORE       "google.datastore.v1.Datastore"
#define SERVICE_DATASTORE_ADMIN "google.datastore.admin.v1.DatastoreAdmin"
#define SERVICE_FIRESTORE_ADMIN "google.firestore.admin.v1.FirestoreAdmin"
#define SERVICE_INSIGHT         "trestle.insight.v1.Insight"
#define SERVICE_WHOLE_BACKUPS   "trestle.backup.v1.WholeBackups"
#define SERVICE_REPLICATION     "trestle.replica.v1.Replication"

static const struct requirement requirements[] = {
#define RPC_IF(service_, method_, request_, field_, kind_, permission_, when_)                     \
    {.service = SERVICE_##service_,                                                                \
     .method = #method_,                                                                           \
     .request = &request_##__descriptor,                                                           \
     .field = field_,                                                                              \
     .kind = KIND_##kind_,                                                                         \
     .permission = PERMISSION_##permission_,                                                       \
     .when = when_},
#define RPC(service, method, request, field, kind, permission)                                     \
    RPC_IF(service, method, request, field, kind, permission, NULL)
#define CREATES(service, method, request, parent, collection, id)
#include "access/rpcs.def"
#undef RPC
#undef RPC_IF
#undef CREATES
};

static const struct rule_creation creations[] = {
#define RPC_IF(service, method, request, field, kind, permission, when)
#define RPC(service, method, request, field, kind, permission)
#define CREATES(service_, method_, request_, parent_, collection_, id_)                            \
    {.service = SERVICE_##service_,                                                                \
     .method = #method_,                                                                           \
     .request = &request_##__descriptor,                                                           \
     .parent = parent_,                                                                            \
     .id = id_,                                                                                    \
     .collection = #collection_},
#include "access/rpcs.def"
#undef RPC
#undef RPC_IF
#undef CREATES
};

enum { REQUIREMENTS = sizeof requirements / sizeof *requirements };

/* Services that tell nothing of any data, and are called before a client shows credentials. */
static const char *const open_services[] = {
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
};

/* What servers ask each other: they are known by how they are connected, which the service sees to
 * itself (replica/service.h). */
static const char *const methods_among_peers[] = {
    "AdmitPeer",        "CopyRows",    "DismissPeer", "ExchangePeers", "HandOver",
    "PreparePromotion", "PullChanges", "PullSchema",  "TellProgress",
};

size_t requirement_count(void)
{
    return REQUIREMENTS;
}

const struct requirement *requirement_at(size_t index)
{
    return &requirements[index];
}

/* --- finding a rule --- */

static bool is_open(const char *service)
{
    for (size_t i = 0; i < sizeof open_services / sizeof *open_services; i++)
        if (strcmp(service, open_services[i]) == 0)
            return true;
    return false;
}

static bool is_among_peers(const char *service, const char *method)
{
    if (strcmp(service, SERVICE_REPLICATION) != 0)
        return false;
    for (size_t i = 0; i < sizeof methods_among_peers / sizeof *methods_among_peers; i++)
        if (strcmp(method, methods_among_peers[i]) == 0)
            return true;
    return false;
}

/* The numbers of a path of at most two names. The table is ours: a wrong one is our mistake. */
static void resolve(const struct requirement *row, uint32_t numbers[RULE_DEPTH_MOST])
{
    const ProtobufCMessageDescriptor *message = row->request;
    const char *name = row->field;
    for (int depth = 0; name != NULL; depth++) {
        CHECK(depth < RULE_DEPTH_MOST);
        char text[64];
        const char *dot = strchr(name, '.');
        size_t size = dot == NULL ? strlen(name) : (size_t)(dot - name);
        CHECK(size < sizeof text);
        snprintf(text, sizeof text, "%.*s", (int)size, name);
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field_by_name(message, text);
        CHECK(field != NULL);
        CHECK(field->type == (dot == NULL ? PROTOBUF_C_TYPE_STRING : PROTOBUF_C_TYPE_MESSAGE));
        numbers[depth] = field->id;
        message = field->descriptor;
        name = dot == NULL ? NULL : dot + 1;
    }
}

static bool is_query(const char *method)
{
    return strcmp(method, "PrepareQuery") == 0 || strcmp(method, "ExecuteQuery") == 0;
}

/* Whether clients poll by this method: until an operation has ended, or `trestle backup create`
 * until the backup is there. */
static bool only_polls(const char *service, const char *method)
{
    if (strcmp(service, SERVICE_WHOLE_BACKUPS) == 0)
        return strcmp(method, "ListWholeBackupRuns") == 0;
    return strcmp(service, SERVICE_OPERATIONS) == 0 &&
           (strcmp(method, "GetOperation") == 0 || strcmp(method, "WaitOperation") == 0);
}

/* The number of the field on which a row depends; 0: on none. */
static uint32_t resolve_when(const struct requirement *row)
{
    if (row->when == NULL)
        return 0;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(row->request, row->when);
    CHECK(field != NULL &&
          (field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_STRING));
    return field->id;
}

static uint32_t number_of_text(const ProtobufCMessageDescriptor *message, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message, name);
    CHECK(field != NULL && field->type == PROTOBUF_C_TYPE_STRING);
    return field->id;
}

static void find_creation(const char *service, const char *method, struct rule *out)
{
    for (size_t i = 0; i < sizeof creations / sizeof *creations; i++) {
        const struct rule_creation *row = &creations[i];
        if (strcmp(row->service, service) != 0 || strcmp(row->method, method) != 0)
            continue;
        out->creates = row;
        out->creates_in = number_of_text(row->request, row->parent);
        out->creates_id = number_of_text(row->request, row->id);
    }
}

status rule_find(const char *service, const char *method, struct rule *out)
{
    bool is_data = strcmp(service, SERVICE_DATA) == 0 || strcmp(service, SERVICE_DATASTORE) == 0;
    *out = (struct rule){.is_administration = !is_open(service) && !is_data};
    out->is_poll = only_polls(service, method);
    out->names_more = strcmp(service, SERVICE_DATA) == 0 && is_query(method);
    find_creation(service, method, out);
    for (size_t i = 0; i < REQUIREMENTS; i++) {
        const struct requirement *row = &requirements[i];
        if (strcmp(row->service, service) != 0 || strcmp(row->method, method) != 0)
            continue;
        CHECK(out->count < RULE_ROWS_MOST);
        if (out->count == 0)
            out->rows = row;
        out->when[out->count] = resolve_when(row);
        resolve(row, out->fields[out->count++]);
    }
    if (out->count == 0 && !is_open(service) && !is_among_peers(service, method))
        return status_make(STATUS_INTERNAL, "access control has no rule for %s/%s", service,
                           method);
    return status_ok();
}

static status find_all(const struct grpc_service *const *services, size_t service_count,
                       struct rule_table *table)
{
    for (size_t i = 0; i < service_count; i++)
        for (size_t j = 0; j < services[i]->method_count; j++)
            TRY(rule_find(services[i]->name, services[i]->methods[j].name,
                          &table->rules[table->count++]));
    return status_ok();
}

status rule_table_create(const struct grpc_service *const *services, size_t service_count,
                         struct rule_table *out)
{
    size_t count = 0;
    for (size_t i = 0; i < service_count; i++)
        count += services[i]->method_count;
    *out = (struct rule_table){.rules = calloc(count + 1, sizeof *out->rules)};
    if (out->rules == NULL)
        return status_out_of_memory();
    status s = find_all(services, service_count, out);
    if (!status_is_ok(s))
        rule_table_free(out);
    return s;
}

void rule_table_free(struct rule_table *table)
{
    free(table->rules);
    *table = (struct rule_table){0};
}

/* --- applying it --- */

static void append_entry(struct buffer *out, const char *key, bytes value)
{
    struct buffer text = {0};
    buffer_append_bytes(&text, value);
    buffer_append_byte(&text, '\0');
    Rpc__ErrorInfo__MetadataEntry entry = RPC__ERROR_INFO__METADATA_ENTRY__INIT;
    entry.key = key;
    entry.value = (const char *)text.data;
    Rpc__ErrorInfo__MetadataEntry *entries[] = {&entry};
    Rpc__ErrorInfo info = RPC__ERROR_INFO__INIT;
    info.n_metadata = 1;
    info.metadata = entries;
    if (!text.failed)
        proto_encode(&info.base, out);
    buffer_free(&text);
}

/* A refusal in production's words, with a detail: the missing permission, and on which resource. */
status rule_deny(enum access_permission permission, bytes resource)
{
    const char *name = permission_name(permission);
    status s =
        status_make(STATUS_PERMISSION_DENIED, "Access denied. Missing IAM permission: %s.", name);
    struct buffer detail = {0};
    Rpc__ErrorInfo info = RPC__ERROR_INFO__INIT;
    info.reason = "IAM_PERMISSION_DENIED";
    info.domain = "iam.googleapis.com";
    proto_encode(&info.base, &detail);
    append_entry(&detail, "permission", bytes_of(name)); /* parts of a message add up */
    append_entry(&detail, "resource", resource);
    if (!detail.failed)
        status_add_detail(&s, "google.rpc.ErrorInfo", buffer_bytes(&detail));
    buffer_free(&detail);
    return s;
}

static status refuse_name(const struct requirement *row, bytes name)
{
    enum { SHOWN = 200 };
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid resource field value in the request: %s '%.*s' should be %s",
                       row->field, name.size > SHOWN ? SHOWN : (int)name.size,
                       (const char *)name.data, kind_form(row->kind));
}

/* Whether a row counts for the request, which has been found to be a message. */
static bool counts(const struct rule *rule, size_t row, bytes request)
{
    bytes value = {0};
    return rule->when[row] == 0 ||
           (proto_peek(request, &rule->when[row], 1, &value) && value.data != NULL);
}

/* The rows from `first` on that are about the same field; `*next` is behind them. */
static status check_field(const struct rule *rule, size_t first, bytes request, bytes name,
                          rule_ask *ask, void *context, size_t *next)
{
    struct granted granted;
    bool has_kind = false;
    bool is_name = name.size > 0 && ask(context, name, &granted);
    size_t i = first;
    for (; i < rule->count && strcmp(rule->rows[i].field, rule->rows[first].field) == 0; i++) {
        if (!is_name || rule->rows[i].kind != granted.kind)
            continue;
        has_kind = true;
        if (!permission_set_has(granted.set, rule->rows[i].permission) && counts(rule, i, request))
            return rule_deny(rule->rows[i].permission, name);
    }
    *next = i;
    if (name.size > 0 && !has_kind)
        return refuse_name(&rule->rows[first], name);
    return status_ok();
}

/* Reads the name in the field of row `index`; false if the request is no message. */
static bool peek_name(const struct rule *rule, size_t index, bytes request, bytes *name)
{
    const uint32_t *numbers = rule->fields[index];
    *name = (bytes){0};
    return proto_peek(request, numbers, numbers[1] == 0 ? 1 : RULE_DEPTH_MOST, name);
}

bytes rule_name(const struct rule *rule, bytes request)
{
    bytes name = {0};
    for (size_t i = 0; i < rule->count && name.size == 0; i++)
        if (!peek_name(rule, i, request, &name))
            break;
    return name;
}

status rule_check(const struct rule *rule, bytes request, rule_ask *ask, void *context,
                  bytes *resource)
{
    bool names_any = rule->count == 0;
    for (size_t i = 0; i < rule->count;) {
        bytes name;
        if (!peek_name(rule, i, request, &name))
            return status_make(STATUS_INVALID_ARGUMENT, "The request is not a valid message");
        if (name.size > 0)
            *resource = name;
        names_any |= name.size > 0;
        TRY(check_field(rule, i, request, name, ask, context, &i));
    }
    if (!names_any)
        return refuse_name(&rule->rows[0], bytes_make("", 0));
    return status_ok();
}

/* --- a request's names, to be shown --- */

static bytes shorten(bytes name)
{
    return bytes_make(name.data, name.size < RULE_NAME_MOST ? name.size : RULE_NAME_MOST);
}

static bool copy_name(struct arena *arena, bytes name, bytes *out)
{
    bytes shown = shorten(name);
    *out = arena_copy(arena, shown);
    return out->size == shown.size;
}

/* False if the request does not say where, or what. */
static bool peek_creation(const struct rule *rule, bytes request, bytes *parent, bytes *id)
{
    *parent = *id = bytes_make(NULL, 0);
    return rule->creates != NULL && proto_peek(request, &rule->creates_in, 1, parent) &&
           proto_peek(request, &rule->creates_id, 1, id) && parent->size > 0 && id->size > 0;
}

static bool join_name(const struct rule *rule, bytes parent, bytes id, struct arena *arena,
                      bytes *out)
{
    struct buffer text = {0};
    buffer_append_bytes(&text, shorten(parent));
    buffer_append_format(&text, "/%s/", rule->creates->collection);
    buffer_append_bytes(&text, shorten(id));
    bool is_whole = !text.failed && copy_name(arena, buffer_bytes(&text), out);
    buffer_free(&text);
    return is_whole;
}

/* The source of what is made: of the names that decide whether it may be done, the one that is not
 * its parent. */
static bytes source_of(const struct rule *rule, bytes request)
{
    for (size_t i = 0; i < rule->count; i++) {
        bytes name;
        bool is_parent = strcmp(rule->rows[i].field, rule->creates->parent) == 0;
        if (!is_parent && peek_name(rule, i, request, &name) && name.size > 0)
            return name;
    }
    return bytes_make(NULL, 0);
}

status rule_subject(const struct rule *rule, bytes request, bytes decided, struct arena *arena,
                    struct rule_subject *out)
{
    bytes parent, id;
    bool is_whole;
    *out = (struct rule_subject){{0}, {0}};
    if (peek_creation(rule, request, &parent, &id))
        is_whole = join_name(rule, parent, id, arena, &out->name) &&
                   copy_name(arena, source_of(rule, request), &out->source);
    else
        is_whole = copy_name(arena, decided, &out->name);
    return is_whole ? status_ok() : status_out_of_memory();
}

bytes rule_name_of(const char *service, const char *method, bytes request)
{
    struct rule rule;
    status s = rule_find(service, method, &rule);
    bytes name = status_is_ok(s) ? rule_name(&rule, request) : bytes_make(NULL, 0);
    status_ignore(s);
    return name;
}
