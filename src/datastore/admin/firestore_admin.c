/* google.firestore.admin.v1.FirestoreAdmin, as far as it is about the composite indexes of
 * Datastore's databases: the methods of DatastoreAdmin in other words, for any database. gcloud
 * makes and deletes indexes so.
 *
 * __key__ is called __name__ here, and shown as the last field of every index. */
#include "datastore/admin/admin_methods.h"
#include "datastore/database_name.h"
#include "google/datastore/admin/v1/datastore_admin.pb-c.h"
#include "google/firestore/admin/v1/firestore_admin.pb-c.h"
#include "google/protobuf/empty.pb-c.h"
#include "wire/list_filter.h"

#include <stdio.h>

#define KEY  "__key__"
#define NAME "__name__"

/* --- from their words to ours --- */

static status take_field(const FsAdmin__Index__IndexField *field, struct arena *arena,
                         DsAdmin__Index__IndexedProperty **out)
{
    if (field->value_mode_case != FS_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_ORDER)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The field \"%s\" has no order: indexes of Datastore's databases have "
                           "neither vectors nor array_config.",
                           field->field_path);
    PROTO_NEW(arena, *out, DS_ADMIN__INDEX__INDEXED_PROPERTY__INIT);
    (*out)->name = strcmp(field->field_path, NAME) == 0 ? KEY : field->field_path;
    (*out)->direction = field->order == FS_ADMIN__INDEX__INDEX_FIELD__ORDER__DESCENDING
                            ? DS_ADMIN__INDEX__DIRECTION__DESCENDING
                        : field->order == FS_ADMIN__INDEX__INDEX_FIELD__ORDER__ASCENDING
                            ? DS_ADMIN__INDEX__DIRECTION__ASCENDING
                            : DS_ADMIN__INDEX__DIRECTION__DIRECTION_UNSPECIFIED;
    return status_ok();
}

static status take_scope(const FsAdmin__Index *asked, DsAdmin__Index *out)
{
    if (asked->api_scope != FS_ADMIN__INDEX__API_SCOPE__DATASTORE_MODE_API)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The index's api_scope must be DATASTORE_MODE_API.");
    switch (asked->query_scope) {
    case FS_ADMIN__INDEX__QUERY_SCOPE__COLLECTION_GROUP:
        out->ancestor = DS_ADMIN__INDEX__ANCESTOR_MODE__NONE;
        return status_ok();
    case FS_ADMIN__INDEX__QUERY_SCOPE__COLLECTION_RECURSIVE:
        out->ancestor = DS_ADMIN__INDEX__ANCESTOR_MODE__ALL_ANCESTORS;
        return status_ok();
    default:
        return status_make(STATUS_INVALID_ARGUMENT, "The index's query_scope must be "
                                                    "COLLECTION_GROUP or COLLECTION_RECURSIVE.");
    }
}

static status take_index(const FsAdmin__Index *asked, const char *kind, struct arena *arena,
                         DsAdmin__Index **out)
{
    if (asked == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "The request has no index.");
    PROTO_NEW(arena, *out, DS_ADMIN__INDEX__INIT);
    (*out)->kind = kind;
    TRY(take_scope(asked, *out));
    (*out)->properties = arena_alloc(arena, asked->n_fields * sizeof *(*out)->properties);
    if ((*out)->properties == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < asked->n_fields; i++)
        TRY(take_field(asked->fields[i], arena, &(*out)->properties[i]));
    (*out)->n_properties = asked->n_fields;
    return status_ok();
}

/* --- from our words to theirs --- */

static status show_field(const char *name, DsAdmin__Index__Direction direction, struct arena *arena,
                         FsAdmin__Index *out)
{
    FsAdmin__Index__IndexField *field;
    PROTO_NEW(arena, field, FS_ADMIN__INDEX__INDEX_FIELD__INIT);
    field->field_path = strcmp(name, KEY) == 0 ? NAME : name;
    field->value_mode_case = FS_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_ORDER;
    field->order = direction == DS_ADMIN__INDEX__DIRECTION__DESCENDING
                       ? FS_ADMIN__INDEX__INDEX_FIELD__ORDER__DESCENDING
                       : FS_ADMIN__INDEX__INDEX_FIELD__ORDER__ASCENDING;
    out->fields[out->n_fields++] = field;
    return status_ok();
}

static status show_fields(const DsAdmin__Index *index, struct arena *arena, FsAdmin__Index *out)
{
    bool has_key = false;
    out->fields = arena_alloc(arena, (index->n_properties + 1) * sizeof *out->fields);
    if (out->fields == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < index->n_properties; i++) {
        has_key = has_key || strcmp(index->properties[i]->name, KEY) == 0;
        TRY(show_field(index->properties[i]->name, index->properties[i]->direction, arena, out));
    }
    return has_key ? status_ok()
                   : show_field(KEY, DS_ADMIN__INDEX__DIRECTION__ASCENDING, arena, out);
}

static status show_name(const struct ds_call *call, const DsAdmin__Index *index, const char **out)
{
    struct buffer name = {0};
    buffer_append_format(&name, "projects/%s/databases/%s/collectionGroups/%s/indexes/%s",
                         call->project_id,
                         call->database_id[0] == '\0' ? "(default)" : call->database_id,
                         index->kind, index->index_id);
    *out = arena_string(call->arena, buffer_bytes(&name));
    bool failed = name.failed || *out == NULL;
    buffer_free(&name);
    return failed ? status_out_of_memory() : status_ok();
}

static FsAdmin__Index__State state_of(const DsAdmin__Index *index)
{
    switch (index->state) {
    case DS_ADMIN__INDEX__STATE__CREATING:
        return FS_ADMIN__INDEX__STATE__CREATING;
    case DS_ADMIN__INDEX__STATE__READY:
        return FS_ADMIN__INDEX__STATE__READY;
    default:
        return FS_ADMIN__INDEX__STATE__NEEDS_REPAIR;
    }
}

static status show_index(const struct ds_call *call, const DsAdmin__Index *index,
                         FsAdmin__Index **out)
{
    PROTO_NEW(call->arena, *out, FS_ADMIN__INDEX__INIT);
    TRY(show_name(call, index, &(*out)->name));
    (*out)->api_scope = FS_ADMIN__INDEX__API_SCOPE__DATASTORE_MODE_API;
    (*out)->density = FS_ADMIN__INDEX__DENSITY__SPARSE_ALL;
    (*out)->query_scope = index->ancestor == DS_ADMIN__INDEX__ANCESTOR_MODE__ALL_ANCESTORS
                              ? FS_ADMIN__INDEX__QUERY_SCOPE__COLLECTION_RECURSIVE
                              : FS_ADMIN__INDEX__QUERY_SCOPE__COLLECTION_GROUP;
    (*out)->state = state_of(index);
    return show_fields(index, call->arena, *out);
}

/* --- which database --- */

static status locate(struct ds_call *call, const char *name)
{
    struct ds_database_name parsed;
    TRY(ds_database_name_parse(name, call->arena, &parsed));
    call->project_id = parsed.project;
    call->database_id = parsed.database;
    return status_ok();
}

status fs_create_index_locate(struct ds_call *call, const ProtobufCMessage *request)
{
    return locate(call, ((const FsAdmin__CreateIndexRequest *)request)->parent);
}

status fs_list_indexes_locate(struct ds_call *call, const ProtobufCMessage *request)
{
    return locate(call, ((const FsAdmin__ListIndexesRequest *)request)->parent);
}

status fs_get_index_locate(struct ds_call *call, const ProtobufCMessage *request)
{
    return locate(call, ((const FsAdmin__GetIndexRequest *)request)->name);
}

status fs_delete_index_locate(struct ds_call *call, const ProtobufCMessage *request)
{
    return locate(call, ((const FsAdmin__DeleteIndexRequest *)request)->name);
}

/* --- methods --- */

static status parse(struct ds_call *call, const char *name, bool is_index,
                    struct ds_database_name *out)
{
    TRY(ds_database_name_parse(name, call->arena, out));
    if (out->kind != NULL && (out->index != NULL) == is_index)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "The name '%s' is not that of %s.", name,
                       is_index ? "an index" : "a collection group");
}

status fs_create_index(struct ds_call *call, const ProtobufCMessage *message,
                       ProtobufCMessage **response)
{
    const FsAdmin__CreateIndexRequest *request = (const FsAdmin__CreateIndexRequest *)message;
    DsAdmin__CreateIndexRequest ours = DS_ADMIN__CREATE_INDEX_REQUEST__INIT;
    struct ds_database_name parent;
    TRY(parse(call, request->parent, false, &parent));
    TRY(take_index(request->index, parent.kind, call->arena, &ours.index));
    return ds_create_index(call, &ours.base, response);
}

/* NOT_FOUND also for one of another kind than the name says, or one that is being deleted. */
static status find(struct ds_call *call, const char *name, DsAdmin__Index **out)
{
    DsAdmin__GetIndexRequest ours = DS_ADMIN__GET_INDEX_REQUEST__INIT;
    struct ds_database_name parsed;
    ProtobufCMessage *found;
    TRY(parse(call, name, true, &parsed));
    ours.index_id = parsed.index;
    TRY(ds_get_index(call, &ours.base, &found));
    *out = (DsAdmin__Index *)found;
    bool is_of_kind = strcmp(parsed.kind, "-") == 0 || strcmp(parsed.kind, (*out)->kind) == 0;
    if (is_of_kind && (*out)->state != DS_ADMIN__INDEX__STATE__DELETING)
        return status_ok();
    return status_make(STATUS_NOT_FOUND, "The index \"%s\" does not exist.", name);
}

status fs_get_index(struct ds_call *call, const ProtobufCMessage *message,
                    ProtobufCMessage **response)
{
    const FsAdmin__GetIndexRequest *request = (const FsAdmin__GetIndexRequest *)message;
    DsAdmin__Index *index;
    FsAdmin__Index *shown;
    TRY(find(call, request->name, &index));
    TRY(show_index(call, index, &shown));
    *response = &shown->base;
    return status_ok();
}

status fs_delete_index(struct ds_call *call, const ProtobufCMessage *message,
                       ProtobufCMessage **response)
{
    const FsAdmin__DeleteIndexRequest *request = (const FsAdmin__DeleteIndexRequest *)message;
    DsAdmin__DeleteIndexRequest ours = DS_ADMIN__DELETE_INDEX_REQUEST__INIT;
    ProtobufCMessage *operation;
    DsAdmin__Index *index;
    Pb__Empty *empty;
    TRY(find(call, request->name, &index));
    ours.index_id = index->index_id;
    TRY(ds_delete_index(call, &ours.base, &operation));
    PROTO_NEW(call->arena, empty, PB__EMPTY__INIT);
    *response = &empty->base;
    return status_ok();
}

static status add_index(struct ds_call *call, const DsAdmin__Index *index, const char *kind,
                        const char *filter, FsAdmin__ListIndexesResponse *list)
{
    FsAdmin__Index *shown;
    bool fits;
    if (index->state == DS_ADMIN__INDEX__STATE__DELETING ||
        (strcmp(kind, "-") != 0 && strcmp(kind, index->kind) != 0))
        return status_ok();
    TRY(show_index(call, index, &shown));
    TRY(list_filter_fits(filter, &shown->base, call->arena, &fits));
    if (fits)
        list->indexes[list->n_indexes++] = shown;
    return status_ok();
}

/* A page is taken first, and what does not fit left out then: it may be short before the end. */
status fs_list_indexes(struct ds_call *call, const ProtobufCMessage *message,
                       ProtobufCMessage **response)
{
    const FsAdmin__ListIndexesRequest *request = (const FsAdmin__ListIndexesRequest *)message;
    DsAdmin__ListIndexesRequest ours = DS_ADMIN__LIST_INDEXES_REQUEST__INIT;
    struct ds_database_name parent;
    ProtobufCMessage *found;
    FsAdmin__ListIndexesResponse *list;
    TRY(parse(call, request->parent, false, &parent));
    TRY(list_filter_check(&fs_admin__index__descriptor, request->filter, call->arena));
    ours.page_size = request->page_size;
    ours.page_token = request->page_token;
    TRY(ds_list_indexes(call, &ours.base, &found));
    const DsAdmin__ListIndexesResponse *page = (const DsAdmin__ListIndexesResponse *)found;
    PROTO_NEW(call->arena, list, FS_ADMIN__LIST_INDEXES_RESPONSE__INIT);
    list->indexes = arena_alloc(call->arena, page->n_indexes * sizeof *list->indexes);
    if (list->indexes == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < page->n_indexes; i++)
        TRY(add_index(call, page->indexes[i], parent.kind, request->filter, list));
    list->next_page_token = page->next_page_token;
    *response = &list->base;
    return status_ok();
}
