/* See mutations.h. */
#include "bigtable/mutations.h"

#include <inttypes.h>

#include "base/limits.h"
#include "bigtable/aggregates.h"
#include "bigtable/error_place.h"
#include "bigtable/names.h"
#include "bigtable/row_error.h"
#include "wire/proto.h"

enum { MILLISECOND_US = 1000, SERVER_TIME = -1 };

/* --- by themselves --- */

static bool is_kind(const Bt__Value *value, Bt__Value__KindCase kind)
{
    return value != NULL && value->kind_case == kind;
}

static bool is_kind_or_absent(const Bt__Value *value, Bt__Value__KindCase kind)
{
    return value == NULL || value->kind_case == BT__VALUE__KIND__NOT_SET ||
           value->kind_case == kind;
}

static status must_use(const char *field, const char *kind)
{
    return error_in_field(field, status_make(STATUS_INVALID_ARGUMENT, "must use `%s`", kind));
}

static status check_place(const Bt__Value *qualifier, const Bt__Value *timestamp)
{
    if (!is_kind(qualifier, BT__VALUE__KIND_RAW_VALUE))
        return must_use("column_qualifier", "raw_value");
    if (!is_kind(timestamp, BT__VALUE__KIND_RAW_TIMESTAMP_MICROS))
        return must_use("timestamp", "raw_timestamp_micros");
    return status_ok();
}

/* A name that no family can have is a mistake of the request; one that none of the table's has is
 * not found. */
static status check_family(const char *name)
{
    status s = name_check_family(name);
    return status_is_ok(s) ? s : error_in_field("family_name", s);
}

static status check_one(const Bt__Mutation *mutation)
{
    switch (mutation->mutation_case) {
    case BT__MUTATION__MUTATION_ADD_TO_CELL: {
        const Bt__Mutation__AddToCell *add = mutation->add_to_cell;
        TRY(check_family(add->family_name));
        return check_place(add->column_qualifier, add->timestamp);
    }
    case BT__MUTATION__MUTATION_MERGE_TO_CELL: {
        const Bt__Mutation__MergeToCell *merge = mutation->merge_to_cell;
        TRY(check_family(merge->family_name));
        TRY(check_place(merge->column_qualifier, merge->timestamp));
        bool is_state = is_kind_or_absent(merge->input, BT__VALUE__KIND_BYTES_VALUE);
        return is_state ? status_ok() : must_use("input", "bytes_value");
    }
    case BT__MUTATION__MUTATION_SET_CELL:
        return check_family(mutation->set_cell->family_name);
    case BT__MUTATION__MUTATION_DELETE_FROM_COLUMN:
        return check_family(mutation->delete_from_column->family_name);
    case BT__MUTATION__MUTATION_DELETE_FROM_FAMILY:
        return check_family(mutation->delete_from_family->family_name);
    case BT__MUTATION__MUTATION_DELETE_FROM_ROW:
        return status_ok();
    default:
        return status_make(STATUS_INVALID_ARGUMENT, "Mutation does not say what to do");
    }
}

status mutations_check(const char *list, Bt__Mutation *const *mutations, size_t count)
{
    if (count > LIMIT_MUTATIONS_A_REQUEST)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Request has %zu mutations; at most %d are allowed", count,
                           LIMIT_MUTATIONS_A_REQUEST);
    for (size_t i = 0; i < count; i++) {
        status s = check_one(mutations[i]);
        if (!status_is_ok(s))
            return error_in_list(list, i, s);
    }
    return status_ok();
}

status mutations_check_inputs(const struct schema *schema, const char *list,
                              Bt__Mutation *const *mutations, size_t count)
{
    if (!schema->has_aggregates)
        return status_ok();
    for (size_t i = 0; i < count; i++) {
        if (mutations[i]->mutation_case != BT__MUTATION__MUTATION_ADD_TO_CELL)
            continue;
        const Bt__Mutation__AddToCell *add = mutations[i]->add_to_cell;
        const struct family *family = schema_family_named(schema, bytes_of(add->family_name));
        if (family != NULL && family->aggregate != AGGREGATE_NONE)
            TRY(error_in_list(list, i, aggregate_check_input(family, add->input)));
    }
    return status_ok();
}

/* --- against the table --- */

/* The packing of one row. */
struct packing {
    const struct mutation_context *context;
    bytes row_key;
    struct row_change *change;
    struct change_list list; /* if the context wants one */
};

static void list_mutation(struct packing *packing, const struct list_mutation *mutation)
{
    if (packing->context->wants_list)
        change_list_add(&packing->list, mutation);
}

static void list_cell(struct packing *packing, enum list_kind kind, const struct family *family,
                      bytes qualifier, int64_t timestamp_us, bytes value)
{
    list_mutation(packing, &(struct list_mutation){.kind = kind,
                                                   .family = family->name,
                                                   .qualifier = qualifier,
                                                   .timestamp_us = timestamp_us,
                                                   .value = value});
}

static status refuse(const struct packing *packing, enum status_code code, const char *why)
{
    return row_error(code, "mutating", packing->row_key, packing->context->table_name, why);
}

static status refuse_type(const struct packing *packing)
{
    return refuse(packing, STATUS_INVALID_ARGUMENT, "Column family type mismatch");
}

static status find_family(const struct packing *packing, const char *name,
                          const struct family **out)
{
    *out = schema_family_named(packing->context->schema, bytes_of(name));
    if (*out == NULL)
        return refuse(packing, STATUS_NOT_FOUND, "Requested column family not found.");
    return status_ok();
}

static status check_qualifier(bytes qualifier)
{
    if (qualifier.size > LIMIT_QUALIFIER_BYTES)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Column qualifier is %zu bytes long; at most %d are allowed",
                           qualifier.size, LIMIT_QUALIFIER_BYTES);
    return status_ok();
}

int64_t truncate_timestamp(const struct schema *schema, int64_t timestamp_us)
{
    if (schema->granularity == GRANULARITY_MICROS)
        return timestamp_us;
    return timestamp_us - timestamp_us % MILLISECOND_US;
}

/* Negative ones are refused, and those that are finer than the table keeps. The very last one is,
 * too: ends are exclusive, so no range could hold it. */
static status check_timestamp(const struct schema *schema, int64_t timestamp_us)
{
    if (timestamp_us < 0 || timestamp_us == INT64_MAX)
        return status_make(STATUS_INVALID_ARGUMENT, "Timestamp %" PRId64 " is %s", timestamp_us,
                           timestamp_us < 0 ? "negative" : "too large");
    if (timestamp_us != truncate_timestamp(schema, timestamp_us))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Timestamp granularity mismatch. Expected a multiple of %d (millisecond "
                           "granularity), but got %" PRId64,
                           MILLISECOND_US, timestamp_us);
    return status_ok();
}

/* The time of the cell, as the request has it; truncated if the client's library made it up. */
static status cell_time(const struct packing *packing, const Bt__Mutation *mutation,
                        int64_t given_us, int64_t *timestamp_us)
{
    const struct schema *schema = packing->context->schema;
    bool is_made_up =
        mutation->timestamp_origin == BT__MUTATION__TIMESTAMP_ORIGIN__CLIENT_AUTO_GENERATED;
    *timestamp_us = is_made_up && given_us >= 0 ? truncate_timestamp(schema, given_us) : given_us;
    return check_timestamp(schema, *timestamp_us);
}

static status pack_set(struct packing *packing, const Bt__Mutation *mutation)
{
    const Bt__Mutation__SetCell *set = mutation->set_cell;
    const struct mutation_context *context = packing->context;
    const struct family *family;
    TRY(find_family(packing, set->family_name, &family));
    if (family->aggregate != AGGREGATE_NONE)
        return refuse_type(packing);
    bytes qualifier = proto_bytes(set->column_qualifier);
    bytes value = proto_bytes(set->value);
    TRY(check_qualifier(qualifier));
    if (value.size > LIMIT_CELL_BYTES)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Cell value is %zu bytes long; at most %d are allowed", value.size,
                           LIMIT_CELL_BYTES);
    int64_t timestamp_us = set->timestamp_micros;
    if (timestamp_us == SERVER_TIME)
        timestamp_us = truncate_timestamp(context->schema, context->now_us);
    TRY(cell_time(packing, mutation, timestamp_us, &timestamp_us));
    row_change_set(packing->change, family->id, qualifier, timestamp_us, value);
    list_cell(packing, LIST_SET, family, qualifier, timestamp_us, value);
    return status_ok();
}

static status pack_delete_column(struct packing *packing, const Bt__Mutation *mutation)
{
    const Bt__Mutation__DeleteFromColumn *delete = mutation->delete_from_column;
    const struct schema *schema = packing->context->schema;
    const struct family *family;
    TRY(find_family(packing, delete->family_name, &family));
    bytes qualifier = proto_bytes(delete->column_qualifier);
    TRY(check_qualifier(qualifier));
    int64_t start_us = 0;
    int64_t end_us = 0;
    if (delete->time_range != NULL) {
        start_us = delete->time_range->start_timestamp_micros;
        end_us = delete->time_range->end_timestamp_micros;
    }
    TRY(check_timestamp(schema, start_us));
    TRY(check_timestamp(schema, end_us));
    if (end_us != 0 && start_us >= end_us)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "inverted or invalid timestamp range [%" PRId64 ", %" PRId64 ")",
                           start_us, end_us);
    row_change_delete_column(packing->change, family->id, qualifier, start_us,
                             end_us == 0 ? INT64_MAX : end_us);
    list_mutation(packing, &(struct list_mutation){.kind = LIST_DELETE_COLUMN,
                                                   .family = family->name,
                                                   .qualifier = qualifier,
                                                   .timestamp_us = start_us,
                                                   .end_us = end_us});
    return status_ok();
}

static status pack_delete_family(struct packing *packing, const Bt__Mutation *mutation)
{
    const struct family *family;
    TRY(find_family(packing, mutation->delete_from_family->family_name, &family));
    row_change_delete_family(packing->change, family->id);
    list_mutation(packing,
                  &(struct list_mutation){.kind = LIST_DELETE_FAMILY, .family = family->name});
    return status_ok();
}

/* --- aggregates --- */

static status find_aggregate(const struct packing *packing, const char *name,
                             const struct family **out)
{
    const struct family *family;
    TRY(find_family(packing, name, &family));
    *out = family;
    return family->aggregate == AGGREGATE_NONE ? refuse_type(packing) : status_ok();
}

/* What is added, not what it comes to; a missing number is 0. */
static void list_add(struct packing *packing, const struct family *family,
                     const Bt__Mutation__AddToCell *add, bytes qualifier, int64_t timestamp_us)
{
    const Bt__Value *input = add->input;
    struct list_mutation mutation = {.kind = LIST_ADD_BYTES,
                                     .family = family->name,
                                     .qualifier = qualifier,
                                     .timestamp_us = timestamp_us};
    if (family->input == INPUT_INT64)
        mutation.kind = LIST_ADD_INT;
    if (is_kind(input, BT__VALUE__KIND_INT_VALUE))
        mutation.number = input->int_value;
    else if (is_kind(input, BT__VALUE__KIND_BYTES_VALUE))
        mutation.value = proto_bytes(input->bytes_value);
    else if (is_kind(input, BT__VALUE__KIND_STRING_VALUE))
        mutation.value = bytes_of(input->string_value);
    else if (is_kind(input, BT__VALUE__KIND_RAW_VALUE))
        mutation.value = proto_bytes(input->raw_value);
    list_mutation(packing, &mutation);
}

static status pack_add(struct packing *packing, const Bt__Mutation *mutation)
{
    const Bt__Mutation__AddToCell *add = mutation->add_to_cell;
    const struct family *family;
    enum entry_kind kind;
    bytes state;
    int64_t timestamp_us;
    bytes qualifier = proto_bytes(add->column_qualifier->raw_value);
    TRY(find_aggregate(packing, add->family_name, &family));
    TRY(check_qualifier(qualifier));
    TRY(cell_time(packing, mutation, add->timestamp->raw_timestamp_micros, &timestamp_us));
    TRY(aggregate_add(family, add->input, packing->context->arena, &kind, &state));
    row_change_add(packing->change, kind, family->id, qualifier, timestamp_us, state);
    list_add(packing, family, add, qualifier, timestamp_us);
    return status_ok();
}

/* Absent counts as empty. */
static bytes merge_input(const Bt__Mutation__MergeToCell *merge)
{
    if (!is_kind(merge->input, BT__VALUE__KIND_BYTES_VALUE))
        return bytes_make(NULL, 0);
    return proto_bytes(merge->input->bytes_value);
}

/* The state's fault, as one of the row. */
static status refuse_state(const struct packing *packing, status why)
{
    if (why.code != STATUS_INVALID_ARGUMENT)
        return why;
    status s = refuse(packing, STATUS_INVALID_ARGUMENT, status_message(why));
    status_free(why);
    return s;
}

/* An empty input changes nothing. */
static status pack_merge(struct packing *packing, const Bt__Mutation *mutation)
{
    const Bt__Mutation__MergeToCell *merge = mutation->merge_to_cell;
    const struct family *family;
    enum entry_kind kind;
    bytes state;
    int64_t timestamp_us;
    bytes qualifier = proto_bytes(merge->column_qualifier->raw_value);
    TRY(find_aggregate(packing, merge->family_name, &family));
    status s = aggregate_merge(family, merge_input(merge), packing->context->arena, &kind, &state);
    if (!status_is_ok(s))
        return refuse_state(packing, s);
    TRY(check_qualifier(qualifier));
    TRY(cell_time(packing, mutation, merge->timestamp->raw_timestamp_micros, &timestamp_us));
    if (state.size == 0)
        return status_ok();
    row_change_add(packing->change, kind, family->id, qualifier, timestamp_us, state);
    list_cell(packing, LIST_MERGE, family, qualifier, timestamp_us, merge_input(merge));
    return status_ok();
}

static bool fits(const struct schema *schema, const Bt__Mutation *mutation)
{
    const char *name;
    bytes state = bytes_make(NULL, 0);
    if (mutation->mutation_case == BT__MUTATION__MUTATION_SET_CELL) {
        if (!schema->has_aggregates)
            return true;
        name = mutation->set_cell->family_name;
    } else if (mutation->mutation_case == BT__MUTATION__MUTATION_ADD_TO_CELL) {
        name = mutation->add_to_cell->family_name;
    } else if (mutation->mutation_case == BT__MUTATION__MUTATION_MERGE_TO_CELL) {
        name = mutation->merge_to_cell->family_name;
        state = merge_input(mutation->merge_to_cell);
    } else {
        return true;
    }
    const struct family *family = schema_family_named(schema, bytes_of(name));
    if (family == NULL)
        return true;
    if (mutation->mutation_case == BT__MUTATION__MUTATION_SET_CELL)
        return family->aggregate == AGGREGATE_NONE;
    return family->aggregate != AGGREGATE_NONE && aggregate_takes_state(family, state);
}

bool mutations_fit(const struct schema *schema, Bt__Mutation *const *mutations, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!fits(schema, mutations[i]))
            return false;
    return true;
}

static status pack_one(struct packing *packing, const Bt__Mutation *mutation)
{
    switch (mutation->mutation_case) {
    case BT__MUTATION__MUTATION_SET_CELL:
        return pack_set(packing, mutation);
    case BT__MUTATION__MUTATION_DELETE_FROM_COLUMN:
        return pack_delete_column(packing, mutation);
    case BT__MUTATION__MUTATION_DELETE_FROM_FAMILY:
        return pack_delete_family(packing, mutation);
    case BT__MUTATION__MUTATION_ADD_TO_CELL:
        return pack_add(packing, mutation);
    case BT__MUTATION__MUTATION_MERGE_TO_CELL:
        return pack_merge(packing, mutation);
    default: /* mutations_check has passed no other */
        row_change_delete_row(packing->change);
        list_mutation(packing, &(struct list_mutation){.kind = LIST_DELETE_ROW});
        return status_ok();
    }
}

/* Of cells that are set, which is what there is much of. */
static size_t listed_bytes(const Bt__Mutation *mutation)
{
    if (mutation->mutation_case != BT__MUTATION__MUTATION_SET_CELL)
        return 0;
    const Bt__Mutation__SetCell *set = mutation->set_cell;
    return set->column_qualifier.len + (set->value.len > CHANGE_LIST_INLINE ? 0 : set->value.len);
}

static void reserve_list(struct packing *packing, Bt__Mutation *const *mutations, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += listed_bytes(mutations[i]);
    change_list_reserve(&packing->list, count, size);
}

static status pack_all(struct packing *packing, Bt__Mutation *const *mutations, size_t count,
                       struct packed_change *out)
{
    row_change_reserve(packing->change, count);
    if (packing->context->wants_list)
        reserve_list(packing, mutations, count);
    for (size_t i = 0; i < count; i++)
        TRY(pack_one(packing, mutations[i]));
    if (packing->list.failed)
        return status_out_of_memory();
    TRY(row_change_pack(packing->change, packing->context->big_value, out));
    out->list = packing->list;
    out->is_listed = packing->context->wants_list;
    return status_ok();
}

status mutations_pack(const struct mutation_context *context, bytes row_key,
                      Bt__Mutation *const *mutations, size_t count, struct packed_change *out)
{
    struct packing packing = {
        .context = context, .row_key = row_key, .change = row_change_create(context->arena)};
    if (packing.change == NULL)
        return status_out_of_memory();
    row_change_keep_in(packing.change, context->home);
    status s = pack_all(&packing, mutations, count, out);
    if (!status_is_ok(s))
        change_list_free(&packing.list);
    return s;
}
