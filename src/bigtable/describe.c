/* Requests of the data API in words: see describe.h. */
#include "bigtable/describe.h"

#include "base/utf8.h"
#include "bigtable/query.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "wire/proto.h"

enum { SHOWN_MOST = 3, QUERY_MOST = 4000 };

static void append(struct buffer *out, const char *words)
{
    buffer_append_bytes(out, bytes_of(words));
}

static void append_key(struct buffer *out, bytes key)
{
    buffer_append_quoted(out, key, DESCRIBE_BYTES_MOST);
}

/* "3 rows", "1 row" */
static void append_count(struct buffer *out, size_t count, const char *what)
{
    buffer_append_format(out, "%zu %s%s", count, what, count == 1 ? "" : "s");
}

/* " and 7 more" */
static void append_rest(struct buffer *out, size_t count)
{
    if (count > SHOWN_MOST)
        buffer_append_format(out, " and %zu more", count - SHOWN_MOST);
    append(out, "\n");
}

/* --- rows --- */

static void append_keys(const Bt__RowSet *rows, struct buffer *out)
{
    if (rows->n_row_keys == 0)
        return;
    append_count(out, rows->n_row_keys, "key");
    for (size_t i = 0; i < rows->n_row_keys && i < SHOWN_MOST; i++) {
        append(out, i == 0 ? ": " : ", ");
        append_key(out, proto_bytes(rows->row_keys[i]));
    }
    append_rest(out, rows->n_row_keys);
}

static void append_range_start(const Bt__RowRange *range, struct buffer *out)
{
    if (range->start_key_case == BT__ROW_RANGE__START_KEY__NOT_SET) {
        append(out, "from the start");
        return;
    }
    bool is_open = range->start_key_case == BT__ROW_RANGE__START_KEY_START_KEY_OPEN;
    append(out, is_open ? "behind " : "from ");
    append_key(out, proto_bytes(is_open ? range->start_key_open : range->start_key_closed));
}

static void append_range_end(const Bt__RowRange *range, struct buffer *out)
{
    if (range->end_key_case == BT__ROW_RANGE__END_KEY__NOT_SET) {
        append(out, " to the end");
        return;
    }
    bool is_open = range->end_key_case == BT__ROW_RANGE__END_KEY_END_KEY_OPEN;
    append(out, is_open ? " before " : " up to ");
    append_key(out, proto_bytes(is_open ? range->end_key_open : range->end_key_closed));
}

static void append_ranges(const Bt__RowSet *rows, struct buffer *out)
{
    if (rows->n_row_ranges == 0)
        return;
    append_count(out, rows->n_row_ranges, "range");
    for (size_t i = 0; i < rows->n_row_ranges && i < SHOWN_MOST; i++) {
        append(out, i == 0 ? ": " : ", ");
        append_range_start(rows->row_ranges[i], out);
        append_range_end(rows->row_ranges[i], out);
    }
    append_rest(out, rows->n_row_ranges);
}

static void append_rows(const Bt__RowSet *rows, struct buffer *out)
{
    if (rows == NULL || (rows->n_row_keys == 0 && rows->n_row_ranges == 0)) {
        append(out, "the whole table\n");
        return;
    }
    append_keys(rows, out);
    append_ranges(rows, out);
}

static void describe_read(const ProtobufCMessage *message, struct arena *arena, struct buffer *out)
{
    const Bt__ReadRowsRequest *request = (const void *)message;
    (void)arena;
    append_rows(request->rows, out);
    describe_filter(request->filter, out);
    if (request->rows_limit > 0)
        buffer_append_format(out, "limit: %lld rows\n", (long long)request->rows_limit);
    if (request->reversed)
        append(out, "reversed\n");
}

static void describe_samples(const ProtobufCMessage *message, struct arena *arena,
                             struct buffer *out)
{
    (void)message;
    (void)arena;
    append(out, "samples of keys\n");
}

/* --- writes --- */

static void append_row(bytes key, struct buffer *out)
{
    append(out, "1 key: ");
    append_key(out, key);
    append(out, "\n");
}

static void describe_write(const ProtobufCMessage *message, struct arena *arena, struct buffer *out)
{
    const Bt__MutateRowRequest *request = (const void *)message;
    (void)arena;
    append_row(proto_bytes(request->row_key), out);
    append_count(out, request->n_mutations, "mutation");
    append(out, "\n");
}

static void describe_writes(const ProtobufCMessage *message, struct arena *arena,
                            struct buffer *out)
{
    const Bt__MutateRowsRequest *request = (const void *)message;
    size_t mutations = 0;
    (void)arena;
    for (size_t i = 0; i < request->n_entries; i++)
        mutations += request->entries[i]->n_mutations;
    buffer_append_format(out, "%zu %s", request->n_entries,
                         request->n_entries == 1 ? "entry" : "entries");
    for (size_t i = 0; i < request->n_entries && i < SHOWN_MOST; i++) {
        append(out, i == 0 ? ": " : ", ");
        append_key(out, proto_bytes(request->entries[i]->row_key));
    }
    append_rest(out, request->n_entries);
    append_count(out, mutations, "mutation");
    append(out, "\n");
}

static void describe_check(const ProtobufCMessage *message, struct arena *arena, struct buffer *out)
{
    const Bt__CheckAndMutateRowRequest *request = (const void *)message;
    (void)arena;
    append_row(proto_bytes(request->row_key), out);
    describe_filter(request->predicate_filter, out);
    append_count(out, request->n_true_mutations, "mutation");
    buffer_append_format(out, " if it passes, else %zu\n", request->n_false_mutations);
}

static void describe_modify(const ProtobufCMessage *message, struct arena *arena,
                            struct buffer *out)
{
    const Bt__ReadModifyWriteRowRequest *request = (const void *)message;
    (void)arena;
    append_row(proto_bytes(request->row_key), out);
    append_count(out, request->n_rules, "rule");
    append(out, "\n");
}

/* --- queries --- */

static void append_query(const char *text, struct buffer *out)
{
    bytes shown = utf8_cut(bytes_of(text), QUERY_MOST);
    buffer_append_bytes(out, shown);
    append(out, text[shown.size] == '\0' ? "\n" : "...\n");
}

static void describe_prepare(const ProtobufCMessage *message, struct arena *arena,
                             struct buffer *out)
{
    const Bt__PrepareQueryRequest *request = (const void *)message;
    (void)arena;
    append_query(request->query, out);
}

static void describe_query(const ProtobufCMessage *message, struct arena *arena, struct buffer *out)
{
    const Bt__ExecuteQueryRequest *request = (const void *)message;
    if (request->prepared_query.len > 0)
        append_query(query_token_text(proto_bytes(request->prepared_query), arena), out);
    else
        append_query(request->query, out);
}

/* --- all of them --- */

struct describer {
    const char *method;
    const ProtobufCMessageDescriptor *request;
    void (*describe)(const ProtobufCMessage *message, struct arena *arena, struct buffer *out);
};

static const struct describer *find(const char *method)
{
    static const struct describer describers[] = {
        {"ReadRows", &bt__read_rows_request__descriptor, describe_read},
        {"SampleRowKeys", &bt__sample_row_keys_request__descriptor, describe_samples},
        {"MutateRow", &bt__mutate_row_request__descriptor, describe_write},
        {"MutateRows", &bt__mutate_rows_request__descriptor, describe_writes},
        {"CheckAndMutateRow", &bt__check_and_mutate_row_request__descriptor, describe_check},
        {"ReadModifyWriteRow", &bt__read_modify_write_row_request__descriptor, describe_modify},
        {"PrepareQuery", &bt__prepare_query_request__descriptor, describe_prepare},
        {"ExecuteQuery", &bt__execute_query_request__descriptor, describe_query},
    };
    for (size_t i = 0; i < sizeof describers / sizeof *describers; i++)
        if (strcmp(describers[i].method, method) == 0)
            return &describers[i];
    return NULL;
}

/* All these requests have a field of that name. */
static const char *app_profile_of(const ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, "app_profile_id");
    const char *text;
    if (field == NULL)
        return "";
    memcpy(&text, (const uint8_t *)message + field->offset, sizeof text);
    return text;
}

void bigtable_describe(const char *method, bytes request, struct arena *arena, struct buffer *out,
                       const char **app_profile)
{
    const struct describer *describer = find(method);
    ProtobufCMessage *message;
    *app_profile = "";
    if (describer == NULL)
        return;
    status s = proto_decode(describer->request, request, arena, &message);
    if (status_is_ok(s)) {
        *app_profile = app_profile_of(message);
        describer->describe(message, arena, out);
    }
    status_ignore(s);
}
