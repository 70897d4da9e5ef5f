/* See change_json.h. */
#include "transfer/change_json.h"

#include "formats/row_json.h"
#include "row/regex.h"
#include "wire/json.h"
#include "wire/proto.h"

#include <inttypes.h>

/* --- what mutations have --- */

static void write_column(const char *kind, const char *family, bytes qualifier, struct buffer *out)
{
    buffer_append_format(out, "{\"%s\":{\"family\":", kind);
    json_encode_string(bytes_of(family), out);
    buffer_append_format(out, ",\"qualifier\":");
    row_json_write_bytes(qualifier, out);
}

static void write_number(const char *name, int64_t number, struct buffer *out)
{
    buffer_append_format(out, ",\"%s\":%" PRId64, name, number);
}

static void write_set_cell(const Bt__Mutation__SetCell *cell, struct buffer *out)
{
    write_column("set_cell", cell->family_name, proto_bytes(cell->column_qualifier), out);
    write_number("timestamp", cell->timestamp_micros, out);
    buffer_append_format(out, ",\"value\":");
    row_json_write_bytes(proto_bytes(cell->value), out);
}

/* Servers send raw values; what is of no kind has none. */
static bytes bytes_of_value(const Bt__Value *value)
{
    if (value != NULL && value->kind_case == BT__VALUE__KIND_RAW_VALUE)
        return proto_bytes(value->raw_value);
    if (value != NULL && value->kind_case == BT__VALUE__KIND_BYTES_VALUE)
        return proto_bytes(value->bytes_value);
    return bytes_make(NULL, 0);
}

static int64_t timestamp_of(const Bt__Value *value)
{
    bool has_one = value != NULL && value->kind_case == BT__VALUE__KIND_RAW_TIMESTAMP_MICROS;
    return has_one ? value->raw_timestamp_micros : 0;
}

static void write_input(const Bt__Value *input, struct buffer *out)
{
    if (input != NULL && input->kind_case == BT__VALUE__KIND_INT_VALUE) {
        write_number("input", input->int_value, out);
        return;
    }
    buffer_append_format(out, ",\"input\":");
    row_json_write_bytes(bytes_of_value(input), out);
}

static void write_add(const Bt__Mutation__AddToCell *add, struct buffer *out)
{
    write_column("add_to_cell", add->family_name, bytes_of_value(add->column_qualifier), out);
    write_number("timestamp", timestamp_of(add->timestamp), out);
    write_input(add->input, out);
}

static void write_merge(const Bt__Mutation__MergeToCell *merge, struct buffer *out)
{
    write_column("merge_to_cell", merge->family_name, bytes_of_value(merge->column_qualifier), out);
    write_number("timestamp", timestamp_of(merge->timestamp), out);
    write_input(merge->input, out);
}

static void write_column_deletion(const Bt__Mutation__DeleteFromColumn *deletion,
                                  struct buffer *out)
{
    const Bt__TimestampRange *range = deletion->time_range;
    write_column("delete_from_column", deletion->family_name,
                 proto_bytes(deletion->column_qualifier), out);
    if (range != NULL && range->start_timestamp_micros != 0)
        write_number("start", range->start_timestamp_micros, out);
    if (range != NULL && range->end_timestamp_micros != 0)
        write_number("end", range->end_timestamp_micros, out);
}

static void write_family_deletion(const Bt__Mutation__DeleteFromFamily *deletion,
                                  struct buffer *out)
{
    buffer_append_format(out, "{\"delete_from_family\":{\"family\":");
    json_encode_string(bytes_of(deletion->family_name), out);
}

static void write_mutation(const Bt__Mutation *mutation, struct buffer *out)
{
    switch (mutation->mutation_case) {
    case BT__MUTATION__MUTATION_SET_CELL:
        write_set_cell(mutation->set_cell, out);
        break;
    case BT__MUTATION__MUTATION_ADD_TO_CELL:
        write_add(mutation->add_to_cell, out);
        break;
    case BT__MUTATION__MUTATION_MERGE_TO_CELL:
        write_merge(mutation->merge_to_cell, out);
        break;
    case BT__MUTATION__MUTATION_DELETE_FROM_COLUMN:
        write_column_deletion(mutation->delete_from_column, out);
        break;
    default: /* the assembly lets no others pass */
        write_family_deletion(mutation->delete_from_family, out);
    }
    buffer_append_format(out, "}}");
}

/* --- changes --- */

static const char *family_of(const Bt__Mutation *mutation)
{
    switch (mutation->mutation_case) {
    case BT__MUTATION__MUTATION_SET_CELL:
        return mutation->set_cell->family_name;
    case BT__MUTATION__MUTATION_ADD_TO_CELL:
        return mutation->add_to_cell->family_name;
    case BT__MUTATION__MUTATION_MERGE_TO_CELL:
        return mutation->merge_to_cell->family_name;
    case BT__MUTATION__MUTATION_DELETE_FROM_COLUMN:
        return mutation->delete_from_column->family_name;
    default:
        return mutation->delete_from_family->family_name;
    }
}

static void write_head(const struct feed_change *change, struct buffer *out)
{
    buffer_append_format(out, "{\"key\":");
    row_json_write_bytes(change->row_key, out);
    write_number("commit", change->commit_us, out);
    write_number("tiebreaker", change->tiebreaker, out);
    if (change->is_collection) {
        buffer_append_format(out, ",\"collection\":true");
    } else {
        buffer_append_format(out, ",\"cluster\":");
        json_encode_string(bytes_of(change->source_cluster), out);
    }
    buffer_append_format(out, ",\"mutations\":[");
}

void change_json_write(const struct feed_change *change, const struct regex *families,
                       struct buffer *out)
{
    size_t written = 0;
    for (size_t i = 0; i < change->count; i++) {
        const Bt__Mutation *mutation = change->mutations[i];
        if (families != NULL && !regex_matches(families, bytes_of(family_of(mutation))))
            continue;
        if (written++ == 0)
            write_head(change, out);
        else
            buffer_append_byte(out, ',');
        write_mutation(mutation, out);
    }
    if (written > 0)
        buffer_append_format(out, "]}\n");
}
