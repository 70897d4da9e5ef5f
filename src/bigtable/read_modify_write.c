/* ReadModifyWriteRow.
 *
 * Rules are sorted by column, keeping their order within one, so that one walk over them and over
 * the row's cells, which come in the same order, finds the cell that each column has now. The
 * answer's cells then come sorted, too. */
#include <stdlib.h>

#include "base/limits.h"
#include "bigtable/data_call.h"
#include "bigtable/data_methods.h"
#include "bigtable/mutations.h"
#include "bigtable/request_usage.h"
#include "bigtable/row_error.h"
#include "bigtable/update_room.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "row/row_key.h"
#include "wire/proto_call.h"

enum { INTEGER_SIZE = 8 };

struct rule {
    const Bt__ReadModifyWriteRule *given;
    const struct family *family;
    bytes qualifier;
    size_t index; /* in the request */
};

/* A column after its rules have been applied. */
struct result {
    const struct family *family;
    bytes qualifier;
    int64_t timestamp_us;
    bytes value;
};

struct read_modify_write {
    struct data_call data;
    const Bt__ReadModifyWriteRowRequest *request;
    const struct schema *schema;
    struct rule *rules;
    struct result *results;
    size_t result_count;
    struct read_scope scope;
    struct update_room room;
};

static int compare_columns(const struct family *family_a, bytes qualifier_a,
                           const struct family *family_b, bytes qualifier_b)
{
    if (family_a != family_b)
        return bytes_compare(family_a->name, family_b->name);
    return bytes_compare(qualifier_a, qualifier_b);
}

static int compare_rules(const void *a, const void *b)
{
    const struct rule *x = a;
    const struct rule *y = b;
    int order = compare_columns(x->family, x->qualifier, y->family, y->qualifier);
    if (order != 0)
        return order;
    return x->index < y->index ? -1 : 1;
}

/* --- applying the rules --- */

static uint64_t read_integer(const uint8_t *from)
{
    uint64_t value = 0;
    for (int i = 0; i < INTEGER_SIZE; i++)
        value = value << 8 | from[i];
    return value;
}

/* Sums wrap, as two's complement does. */
static status increment(struct buffer *value, int64_t amount)
{
    if (value->size != 0 && value->size != INTEGER_SIZE)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "Cannot increment a value of %zu bytes: it must be a 64-bit big-endian "
                           "integer",
                           value->size);
    uint64_t sum = (value->size == 0 ? 0 : read_integer(value->data)) + (uint64_t)amount;
    buffer_clear(value);
    for (int i = INTEGER_SIZE - 1; i >= 0; i--)
        buffer_append_byte(value, (uint8_t)(sum >> (8 * i)));
    return status_ok();
}

static status append(struct buffer *value, bytes more)
{
    if (value->size + more.size > LIMIT_CELL_BYTES)
        return status_make(STATUS_INVALID_ARGUMENT, "Cell value would be over %d bytes long",
                           LIMIT_CELL_BYTES);
    buffer_append_bytes(value, more);
    return status_ok();
}

/* An absent cell counts as an empty string or as zero; a present but empty one is no integer. */
static status apply_rule(const struct rule *rule, bool is_present, struct buffer *value)
{
    if (rule->given->rule_case == BT__READ_MODIFY_WRITE_RULE__RULE_APPEND_VALUE)
        return append(value, proto_bytes(rule->given->append_value));
    if (is_present && value->size == 0)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "Cannot increment an empty value: it must be a 64-bit big-endian "
                           "integer");
    return increment(value, rule->given->increment_amount);
}

static bool is_same_column(const struct rule *a, const struct rule *b)
{
    return a->family == b->family && bytes_equal(a->qualifier, b->qualifier);
}

/* The rules of one column, `count` of them, on the cell it has now; NULL if none. */
static status apply_rules(const struct rule *rules, size_t count, const struct cell *cell,
                          struct buffer *value)
{
    bool is_present = cell != NULL;
    if (is_present)
        buffer_append_bytes(value, cell->value);
    for (size_t i = 0; i < count; i++) {
        TRY(apply_rule(&rules[i], is_present, value));
        is_present = true;
    }
    return value->failed ? status_out_of_memory() : status_ok();
}

/* Refuses a value that no request could write, with so little memory. */
static status check_memory(const struct bigtable *bigtable, size_t size)
{
    if (bigtable->values == NULL || size <= bigtable->largest_cell)
        return status_ok();
    return status_make(STATUS_RESOURCE_EXHAUSTED,
                       "Cell value would be over %zu bytes long, for which there is not enough "
                       "memory (--memory)",
                       bigtable->largest_cell);
}

static status set_result(struct read_modify_write *self, const struct rule *rules, size_t count,
                         const struct cell *cell, int64_t now_us)
{
    struct buffer value = {0};
    status s = apply_rules(rules, count, cell, &value);
    bytes copy = bytes_make(NULL, 0);
    if (status_is_ok(s))
        s = check_memory(self->data.bigtable, value.size);
    if (status_is_ok(s)) {
        copy = arena_copy(self->data.arena, buffer_bytes(&value));
        if (copy.data == NULL)
            s = status_out_of_memory();
    }
    buffer_free(&value);
    TRY(s);
    self->results[self->result_count++] = (struct result){
        .family = rules->family,
        .qualifier = rules->qualifier,
        .timestamp_us = cell != NULL && cell->timestamp_us > now_us ? cell->timestamp_us : now_us,
        .value = copy,
    };
    return status_ok();
}

/* The newest cell of the rule's column, or NULL. `*next` walks over the row's cells. */
static const struct cell *find_cell(const struct cell_list *cells, size_t *next,
                                    const struct rule *rule)
{
    for (; *next < cells->count; ++*next) {
        const struct cell *cell = &cells->items[*next];
        int order = compare_columns(cell->family, cell->qualifier, rule->family, rule->qualifier);
        if (order >= 0)
            return order == 0 ? cell : NULL;
    }
    return NULL;
}

static status compute_results(struct read_modify_write *self, const struct cell_list *cells)
{
    int64_t now_us =
        truncate_timestamp(self->schema, cluster_version_us(self->data.bigtable->cluster));
    size_t next_cell = 0;
    size_t rule_count = self->request->n_rules;
    self->result_count = 0;
    for (size_t i = 0; i < rule_count;) {
        const struct rule *first = &self->rules[i];
        size_t count = 1;
        while (i + count < rule_count && is_same_column(first, &self->rules[i + count]))
            count++;
        TRY(set_result(self, first, count, find_cell(cells, &next_cell, first), now_us));
        i += count;
    }
    return status_ok();
}

static status decide(struct row_update *update, const struct cell_list *cells,
                     struct packed_change *change, bool *writes)
{
    struct read_modify_write *self = LIST_ENTRY(update, struct read_modify_write, room.update);
    data_call_tell_read(&self->data, update->locked_us);
    TRY(compute_results(self, cells));
    struct row_change *building = row_change_create(self->data.arena);
    if (building == NULL)
        return status_out_of_memory();
    row_change_keep_in(building, self->data.arena);
    row_change_reserve(building, self->result_count);
    for (size_t i = 0; i < self->result_count; i++) {
        const struct result *result = &self->results[i];
        row_change_set(building, result->family->id, result->qualifier, result->timestamp_us,
                       result->value);
    }
    *writes = true;
    return row_change_pack(building, rows_big_value(self->data.table), change);
}

/* --- the answer: the row's changed cells, one a column --- */

/* Everything that the answer consists of, as many as there are results at most. */
struct answer {
    Bt__Cell *cells;
    Bt__Cell **cell_list; /* each column's list is one of these */
    Bt__Column *columns;
    Bt__Column **column_list; /* each family's list is a part of this */
    Bt__Family *families;
    Bt__Family **family_list;
    size_t family_count;
};

static bool allocate_answer(struct arena *arena, size_t count, struct answer *answer)
{
    answer->cells = arena_alloc(arena, count * sizeof *answer->cells);
    answer->cell_list = arena_alloc(arena, count * sizeof *answer->cell_list);
    answer->columns = arena_alloc(arena, count * sizeof *answer->columns);
    answer->column_list = arena_alloc(arena, count * sizeof *answer->column_list);
    answer->families = arena_alloc(arena, count * sizeof *answer->families);
    answer->family_list = arena_alloc(arena, count * sizeof *answer->family_list);
    return answer->cells != NULL && answer->cell_list != NULL && answer->columns != NULL &&
           answer->column_list != NULL && answer->families != NULL && answer->family_list != NULL;
}

static void add_column(struct answer *answer, size_t i, const struct result *result)
{
    bt__cell__init(&answer->cells[i]);
    answer->cells[i].timestamp_micros = result->timestamp_us;
    answer->cells[i].value = proto_data(result->value);
    answer->cell_list[i] = &answer->cells[i];
    bt__column__init(&answer->columns[i]);
    answer->columns[i].qualifier = proto_data(result->qualifier);
    answer->columns[i].n_cells = 1;
    answer->columns[i].cells = &answer->cell_list[i];
    answer->column_list[i] = &answer->columns[i];
}

/* Opens the family whose columns begin at `i`. */
static bool add_family(struct arena *arena, struct answer *answer, size_t i,
                       const struct result *result)
{
    Bt__Family *family = &answer->families[answer->family_count];
    bt__family__init(family);
    family->name = arena_string(arena, result->family->name);
    family->columns = &answer->column_list[i];
    answer->family_list[answer->family_count++] = family;
    return family->name != NULL;
}

static status make_answer(const struct read_modify_write *self, Bt__Row *row)
{
    struct arena *arena = self->data.arena;
    struct answer answer = {.family_count = 0};
    if (!allocate_answer(arena, self->result_count, &answer))
        return status_out_of_memory();
    for (size_t i = 0; i < self->result_count; i++) {
        const struct result *result = &self->results[i];
        bool is_new = i == 0 || result->family != self->results[i - 1].family;
        if (is_new && !add_family(arena, &answer, i, result))
            return status_out_of_memory();
        add_column(&answer, i, result);
        answer.families[answer.family_count - 1].n_columns++;
    }
    row->key = proto_data(self->room.update.row_key);
    row->n_families = answer.family_count;
    row->families = answer.family_list;
    return status_ok();
}

static void end(struct read_modify_write *self, status s)
{
    update_room_end(&self->room);
    data_call_finish(&self->data, s);
}

static void answer_is_taken(void *context)
{
    end(context, status_ok());
}

/* The values' room is the call's until its client has taken the answer, or has gone. */
static void respond(struct read_modify_write *self, const ProtobufCMessage *response)
{
    struct grpc_call *call = self->data.call;
    data_call_add_headers(&self->data);
    grpc_call_send_proto(call, response);
    if (self->room.turn.held > 0 && grpc_call_is_congested(call))
        grpc_call_set_callbacks(call, self, answer_is_taken, answer_is_taken);
    else
        end(self, status_ok());
}

static void finish(struct row_update *update, status result)
{
    struct read_modify_write *self = LIST_ENTRY(update, struct read_modify_write, room.update);
    Bt__Row row = BT__ROW__INIT;
    Bt__ReadModifyWriteRowResponse response = BT__READ_MODIFY_WRITE_ROW_RESPONSE__INIT;
    response.row = &row;
    if (status_is_ok(result))
        result = make_answer(self, &row);
    data_call_tell_commit(&self->data, update->locked_us, &update->commit.times);
    grpc_call_count(self->data.call, status_is_ok(result), 1);
    if (status_is_ok(result))
        request_usage_update(&self->data, self->request);
    if (status_is_ok(result))
        respond(self, &response.base);
    else
        end(self, result);
}

/* --- the request --- */

static status check_rule(const struct read_modify_write *self, const struct rule *rule)
{
    bytes row_key = self->room.update.row_key;
    const char *table = table_name(self->data.table);
    if (rule->given->rule_case == BT__READ_MODIFY_WRITE_RULE__RULE__NOT_SET)
        return status_make(STATUS_INVALID_ARGUMENT, "Rule does not say what to do");
    if (rule->family == NULL)
        return row_error(STATUS_NOT_FOUND, "mutating", row_key, table,
                         "Requested column family not found.");
    if (rule->family->aggregate != AGGREGATE_NONE)
        return row_error(STATUS_INVALID_ARGUMENT, "mutating", row_key, table,
                         "Column family type mismatch");
    if (rule->qualifier.size > LIMIT_QUALIFIER_BYTES)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Column qualifier is %zu bytes long; at most %d are allowed",
                           rule->qualifier.size, LIMIT_QUALIFIER_BYTES);
    return status_ok();
}

static status prepare_rules(struct read_modify_write *self)
{
    size_t count = self->request->n_rules;
    self->rules = arena_alloc(self->data.arena, count * sizeof *self->rules);
    self->results = arena_alloc(self->data.arena, count * sizeof *self->results);
    if (self->rules == NULL || self->results == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        const Bt__ReadModifyWriteRule *given = self->request->rules[i];
        self->rules[i] = (struct rule){
            .given = given,
            .family = schema_family_named(self->schema, bytes_of(given->family_name)),
            .qualifier = proto_bytes(given->column_qualifier),
            .index = i,
        };
        TRY(check_rule(self, &self->rules[i]));
    }
    qsort(self->rules, count, sizeof *self->rules, compare_rules);
    return status_ok();
}

/* The newest cell of each column from a family's first to its last in the rules. */
static status set_scope(struct read_modify_write *self)
{
    const struct schema *schema = self->schema;
    struct family_scope *families =
        arena_zalloc(self->data.arena, schema->family_count * sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < self->request->n_rules; i++) {
        const struct rule *rule = &self->rules[i];
        struct family_scope *scope = &families[rule->family - schema->families];
        if (!scope->is_wanted)
            scope->from = rule->qualifier;
        scope->is_wanted = true;
        scope->has_to = true;
        scope->to = rule->qualifier;
    }
    for (size_t i = 0; i < schema->family_count; i++)
        if (families[i].is_wanted &&
            !key_successor(self->data.arena, families[i].to, &families[i].to))
            return status_out_of_memory();
    self->scope = (struct read_scope){.families = families,
                                      .cells_per_column = 1,
                                      .cells_per_row = INT32_MAX,
                                      .wants_values = true};
    return status_ok();
}

static status check_request(const Bt__ReadModifyWriteRowRequest *request)
{
    TRY(row_key_check(proto_bytes(request->row_key)));
    if (request->n_rules == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "No rules provided");
    if (request->n_rules > LIMIT_MUTATIONS_A_REQUEST)
        return status_make(STATUS_INVALID_ARGUMENT, "Request has %zu rules; at most %d are allowed",
                           request->n_rules, LIMIT_MUTATIONS_A_REQUEST);
    return status_ok();
}

static void locked(struct row_update *update)
{
    struct read_modify_write *self = LIST_ENTRY(update, struct read_modify_write, room.update);
    grpc_call_is_at(self->data.call, CALL_READS);
}

static status start(struct read_modify_write *self, bytes wire)
{
    struct data_call *data = &self->data;
    ProtobufCMessage *message;
    TRY(proto_decode(&bt__read_modify_write_row_request__descriptor, wire, data->arena, &message));
    const Bt__ReadModifyWriteRowRequest *request = (const void *)message;
    self->request = request;
    TRY(check_request(request));
    TRY(data_call_open(
        data, &(struct data_target){.table_name = request->table_name,
                                    .app_profile_id = request->app_profile_id,
                                    .authorized_view_name = request->authorized_view_name}));
    TRY(data_call_check_transaction(data));
    TRY(view_check_rules(data->view, proto_bytes(request->row_key), request->rules,
                         request->n_rules));
    self->schema = table_schema(data->table);
    self->room.update = (struct row_update){
        .table = data->table,
        .schema = self->schema,
        .row_key = proto_bytes(request->row_key),
        .scope = &self->scope,
        .arena = data->arena,
        .loop = grpc_call_loop(data->call),
        .decide = decide,
        .done = finish,
        .locked = locked,
    };
    TRY(prepare_rules(self));
    TRY(set_scope(self));
    self->room.times = 3; /* the result, and what is committed of it, or the answer */
    update_room_begin(&self->room, data);
    return status_ok();
}

void read_modify_write_row(void *context, struct grpc_call *call, bytes request)
{
    struct read_modify_write *self = data_call_create(context, call, sizeof *self);
    if (self == NULL)
        return;
    status s = start(self, request);
    if (!status_is_ok(s))
        data_call_finish(&self->data, s);
}
