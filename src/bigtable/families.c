/* ModifyColumnFamilies: a list of changes, in order, all of them or none. */
#include "bigtable/error_place.h"
#include "bigtable/field_mask.h"
#include "bigtable/names.h"
#include "bigtable/replicated.h"
#include "bigtable/row_key_schema.h"
#include "bigtable/schema_message.h"
#include "bigtable/table_extra.h"
#include "bigtable/table_methods.h"
#include "bigtable/value_type.h"
#include "bigtable/view_guard.h"

typedef BtAdmin__ModifyColumnFamiliesRequest__Modification Modification;

/* The families as they come to be, in a growing array of the arena. */
struct draft {
    struct arena *arena;
    struct family *families;
    size_t count;
    bool deletion_protection;
    bool keeps_ages; /* rules of ages alone do not become laxer */
    const struct admin_request *request;
    const char *table;
};

static struct family *find(const struct draft *draft, const char *name)
{
    for (size_t i = 0; i < draft->count; i++)
        if (bytes_equal(draft->families[i].name, bytes_of(name)))
            return &draft->families[i];
    return NULL;
}

static status create_family(struct draft *draft, const Modification *change)
{
    if (find(draft, change->id) != NULL)
        return status_make(STATUS_ALREADY_EXISTS, "Column family '%s' already exists", change->id);
    TRY(family_from_message(change->id, change->create, draft->arena,
                            &draft->families[draft->count]));
    draft->count++;
    return status_ok();
}

static status update_value_type(struct draft *draft, const BtAdmin__ColumnFamily *wanted,
                                struct family *family)
{
    struct family typed = *family;
    TRY(value_type_from_message(wanted->value_type, draft->arena, &typed));
    if (family->aggregate != typed.aggregate || family->input != typed.input)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Immutable fields 'value_type.aggregate_type' cannot be updated");
    if (family->aggregate == AGGREGATE_NONE)
        *family = typed;
    return status_ok();
}

static status update_rule(const struct draft *draft, const BtAdmin__ColumnFamily *wanted,
                          struct family *family)
{
    const struct gc_rule *before = family->gc;
    TRY(gc_rule_from_message(wanted->gc_rule, draft->arena, &family->gc));
    return draft->keeps_ages ? check_age_is_not_relaxed(family->name, before, family->gc)
                             : status_ok();
}

/* An empty mask means the rule alone. */
static status update_family(struct draft *draft, const Modification *change)
{
    struct family *family = find(draft, change->id);
    if (family == NULL)
        return status_make(STATUS_NOT_FOUND, "Column family '%s' not found", change->id);
    const Pb__FieldMask *mask = change->update_mask;
    if (mask == NULL || mask->n_paths == 0)
        return update_rule(draft, change->update, family);
    for (size_t i = 0; i < mask->n_paths; i++) {
        if (field_path_is(mask->paths[i], "gc_rule"))
            TRY(update_rule(draft, change->update, family));
        else if (field_path_is(mask->paths[i], "value_type"))
            TRY(update_value_type(draft, change->update, family));
        else
            return status_make(STATUS_INVALID_ARGUMENT, "Invalid path '%s' in update_mask",
                               mask->paths[i]);
    }
    return status_ok();
}

static status drop_family(struct draft *draft, const Modification *change)
{
    struct family *family = find(draft, change->id);
    if (!change->drop)
        return status_make(STATUS_INVALID_ARGUMENT, "drop must be true if set");
    if (family == NULL)
        return status_make(STATUS_NOT_FOUND, "Column family '%s' not found", change->id);
    if (draft->deletion_protection)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "Column family '%s' cannot be dropped: its table is protected from "
                           "deletion",
                           change->id);
    TRY(check_no_view_reads_family(draft->request, draft->table, bytes_of(change->id)));
    *family = draft->families[--draft->count];
    return status_ok();
}

static status apply(struct draft *draft, const Modification *change)
{
    switch (change->mod_case) {
    case BT_ADMIN__MODIFY_COLUMN_FAMILIES_REQUEST__MODIFICATION__MOD_CREATE:
        return create_family(draft, change);
    case BT_ADMIN__MODIFY_COLUMN_FAMILIES_REQUEST__MODIFICATION__MOD_UPDATE:
        return update_family(draft, change);
    case BT_ADMIN__MODIFY_COLUMN_FAMILIES_REQUEST__MODIFICATION__MOD_DROP:
        return drop_family(draft, change);
    default:
        return status_make(STATUS_INVALID_ARGUMENT,
                           "A modification of '%s' must create, update or drop", change->id);
    }
}

/* SQL has them and the fields of the table's keys as columns side by side. */
static status check_key_fields(const struct draft *draft, bytes extra)
{
    BtAdmin__Table *kept;
    TRY(table_extra_decode(extra, draft->arena, &kept));
    return row_key_schema_check_families(kept->row_key_schema, draft->families, draft->count);
}

struct modification {
    const struct admin_request *request;
    bool keeps_ages;
};

static status modify(void *context, const struct table_info *now, struct arena *arena,
                     struct table_change *next)
{
    const struct modification *modification = context;
    const struct admin_request *request = modification->request;
    const BtAdmin__ModifyColumnFamiliesRequest *message = (const void *)request->message;
    size_t standing = now->schema->family_count;
    struct draft draft = {.arena = arena,
                          .count = standing,
                          .deletion_protection = now->deletion_protection,
                          .keeps_ages = modification->keeps_ages,
                          .request = request,
                          .table = message->name};
    draft.families =
        arena_alloc(arena, (standing + message->n_modifications) * sizeof *draft.families);
    if (draft.families == NULL)
        return status_out_of_memory();
    if (standing > 0)
        memcpy(draft.families, now->schema->families, standing * sizeof *draft.families);
    for (size_t i = 0; i < message->n_modifications; i++)
        TRY(error_in_list("Modifications list", i, apply(&draft, message->modifications[i])));
    TRY(check_key_fields(&draft, now->extra));
    *next = (struct table_change){.families = draft.families,
                                  .family_count = draft.count,
                                  .deletion_protection = now->deletion_protection,
                                  .extra = now->extra,
                                  .stream_retention_us = now->stream_retention_us};
    return status_ok();
}

static status find_whether_ages_are_kept(struct modification *modification)
{
    const struct admin_request *request = modification->request;
    const BtAdmin__ModifyColumnFamiliesRequest *message = (const void *)request->message;
    const char *instance = name_parent(request->arena, message->name);
    if (message->ignore_warnings)
        return status_ok();
    if (instance == NULL)
        return status_out_of_memory();
    return instance_is_replicated(request->bigtable->control, instance, &modification->keeps_ages);
}

/* Within an edit, so that no view begins to read a family while it is dropped, and no cluster comes
 * while a rule is relaxed. */
static status modify_table(void *context, struct edit *edit)
{
    struct modification *modification = context;
    const struct admin_request *request = modification->request;
    const BtAdmin__ModifyColumnFamiliesRequest *message = (const void *)request->message;
    struct table *table;
    (void)edit;
    TRY(find_whether_ages_are_kept(modification));
    TRY(cluster_table(request->bigtable->cluster, bytes_of(message->name), &table));
    status s = table_change_schema(table, request->arena, modify, modification);
    table_release(table);
    return s;
}

status modify_column_families(const struct admin_request *request,
                              const ProtobufCMessage **response)
{
    const BtAdmin__ModifyColumnFamiliesRequest *message = (const void *)request->message;
    struct modification modification = {.request = request};
    TRY(name_check_table(message->name));
    if (message->n_modifications == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "No modifications provided");
    TRY(control_edit(request->bigtable->control, modify_table, &modification));
    BtAdmin__Table *changed = NULL;
    TRY(describe_table(request, message->name, BT_ADMIN__TABLE__VIEW__SCHEMA_VIEW, &changed));
    *response = &changed->base;
    return status_ok();
}
