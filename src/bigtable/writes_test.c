/* The methods that write, against rows that do what the test says. */
#include "bigtable/data_methods.h"
#include "bigtable/filter_message.h"
#include "bigtable/testing/data_testing.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "wire/request_room.h"

#include <stdio.h>

enum { MOST_WRITES = 1000, MOST_CELLS = 8, NOW_US = 5000000 };

static const struct family families[] = {
    {.id = 2, .name = {(const uint8_t *)"f", 1}},
    {.id = 1, .name = {(const uint8_t *)"g", 1}},
    {.id = 3, .name = {(const uint8_t *)"sum", 3}, .aggregate = AGGREGATE_SUM},
};

/* --- the rows --- */

static struct rows {
    struct schema *schema;
    struct row_write *waiting[MOST_WRITES]; /* in the order they came */
    size_t write_count;
    /* what an update finds, and what it came to */
    struct cell cells[MOST_CELLS];
    size_t cell_count;
    bool writes;
    struct buffer written;
    uint64_t values_size; /* of what it is to get of the row; 0: it does not ask for room */
    struct row_update *update;
} rows;

size_t rows_big_value(const struct table *table)
{
    (void)table;
    return 1 << 20;
}

void rows_write(struct row_write *write)
{
    assert_true(rows.write_count < MOST_WRITES);
    rows.waiting[rows.write_count++] = write;
}

void rows_write_all(struct list *writes)
{
    struct link *link;
    while ((link = list_take(writes)) != NULL)
        rows_write(LIST_ENTRY(link, struct row_write, link));
}

static void complete(size_t index, enum status_code code)
{
    struct row_write *write = rows.waiting[index];
    buffer_free(&write->change.fragment);
    write->done(write, code == STATUS_OK ? status_ok() : status_make(code, "not written"));
}

void rows_update_go_on(struct row_update *update, status s)
{
    struct packed_change change = {.big_count = 0};
    struct cell_list cells = {
        .arena = update->arena, .items = rows.cells, .count = rows.cell_count};
    assert_ptr_equal(update->schema, rows.schema);
    if (status_is_ok(s))
        s = update->decide(update, &cells, &change, &rows.writes);
    buffer_clear(&rows.written);
    buffer_append_bytes(&rows.written, buffer_bytes(&change.fragment)); /* gone with the call */
    buffer_free(&change.fragment);
    update->done(update, s);
}

void rows_update(struct row_update *update)
{
    rows.update = update;
    if (rows.values_size == 0 || update->ask_room(update, rows.values_size))
        rows_update_go_on(update, status_ok());
}

status filter_message_compile(const Bt__RowFilter *message, struct arena *arena,
                              struct filter **out)
{
    (void)arena;
    assert_null(message);
    *out = NULL;
    return status_ok();
}

void filter_destroy(struct filter *filter)
{
    assert_null(filter);
}

status filter_scope(const struct filter *filter, const struct schema *schema, struct arena *arena,
                    struct read_scope *out)
{
    (void)filter;
    (void)schema;
    (void)arena;
    (void)out;
    fail();
    return status_ok();
}

status filter_apply(const struct filter *filter, bytes row_key, const struct cell_list *in,
                    uint64_t random, struct value_source *left, struct cell_list *out)
{
    (void)filter;
    (void)row_key;
    (void)in;
    (void)random;
    (void)left;
    (void)out;
    fail();
    return status_ok();
}

/* --- requests and answers --- */

static struct answers {
    enum status_code codes[MOST_WRITES];
    bool is_answered[MOST_WRITES];
    size_t count;
    char first_message[256];
    double rate_factor; /* 0: none was told */
    const ProtobufCMessage *unary;
    const ProtobufCMessageDescriptor *type; /* of unary answers */
} answers;

static void receive_entries(struct grpc_call *call, bytes wire)
{
    ProtobufCMessage *message;
    assert_ok(proto_decode(&bt__mutate_rows_response__descriptor, wire, call->arena, &message));
    const Bt__MutateRowsResponse *response = (const void *)message;
    if (response->rate_limit_info != NULL) {
        assert_int_equal(response->rate_limit_info->period->seconds, 10);
        answers.rate_factor = response->rate_limit_info->factor;
    }
    for (size_t i = 0; i < response->n_entries; i++) {
        const Bt__MutateRowsResponse__Entry *entry = response->entries[i];
        assert_in_range(entry->index, 0, MOST_WRITES - 1);
        assert_false(answers.is_answered[entry->index]);
        answers.is_answered[entry->index] = true;
        answers.codes[entry->index] = (enum status_code)entry->status->code;
        if (answers.count++ == 0)
            snprintf(answers.first_message, sizeof answers.first_message, "%s",
                     entry->status->message);
    }
}

static void receive_unary(struct grpc_call *call, bytes wire)
{
    ProtobufCMessage *message;
    assert_ok(proto_decode(answers.type, wire, call->arena, &message));
    answers.unary = message;
}

static int setup(void **state)
{
    rows = (struct rows){.write_count = 0};
    answers = (struct answers){.count = 0};
    assert_ok(schema_create(GRANULARITY_MILLIS, families, 3, 4, &rows.schema));
    fake_reset(rows.schema);
    fake.now_us = NOW_US;
    fake.tick_us = 0;
    *state = &rows;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    buffer_free(&rows.written);
    fake_free();
    schema_destroy(rows.schema);
    return 0;
}

static Bt__Mutation *make_set(const char *family, int64_t timestamp_us)
{
    Bt__Mutation *mutation = arena_alloc(fake.call.arena, sizeof *mutation);
    Bt__Mutation__SetCell *set = arena_alloc(fake.call.arena, sizeof *set);
    bt__mutation__init(mutation);
    bt__mutation__set_cell__init(set);
    mutation->mutation_case = BT__MUTATION__MUTATION_SET_CELL;
    mutation->set_cell = set;
    set->family_name = family;
    set->column_qualifier = proto_data(bytes_of("q"));
    set->timestamp_micros = timestamp_us;
    return mutation;
}

/* --- MutateRow --- */

static void mutate(const char *key, Bt__Mutation *mutation)
{
    Bt__MutateRowRequest request = BT__MUTATE_ROW_REQUEST__INIT;
    request.table_name = TABLE_NAME;
    request.row_key = proto_data(bytes_of(key));
    request.n_mutations = mutation == NULL ? 0 : 1;
    request.mutations = &mutation;
    answers.type = &bt__mutate_row_response__descriptor;
    fake.call.receive = receive_unary;
    fake_call(mutate_row, &request.base);
}

static void a_row_is_answered_when_it_is_written(void **state)
{
    (void)state;
    mutate("k", make_set("f", 1000));
    assert_int_equal(rows.write_count, 1);
    assert_false(fake.call.is_finished);
    complete(0, STATUS_OK);
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, STATUS_OK);
    assert_non_null(answers.unary);
}

static void a_failed_write_is_the_answer(void **state)
{
    (void)state;
    mutate("k", make_set("f", 1000));
    complete(0, STATUS_UNAVAILABLE);
    assert_int_equal(fake.call.code, STATUS_UNAVAILABLE);
    assert_null(answers.unary);
}

static void refused_mutations_are_never_written(void **state)
{
    (void)state;
    mutate("k", make_set("nope", 1000));
    assert_int_equal(fake.call.code, STATUS_NOT_FOUND);
    mutate("", make_set("f", 1000));
    assert_int_equal(fake.call.code, STATUS_INVALID_ARGUMENT);
    mutate("k", NULL);
    assert_int_equal(fake.call.code, STATUS_INVALID_ARGUMENT);
    assert_int_equal(rows.write_count, 0);
}

/* --- MutateRows --- */

static Bt__MutateRowsRequest__Entry *make_entry(const char *key, Bt__Mutation *mutation)
{
    struct arena *arena = fake.call.arena;
    Bt__MutateRowsRequest__Entry *entry = arena_alloc(arena, sizeof *entry);
    Bt__Mutation **mutations = arena_alloc(arena, sizeof *mutations);
    bt__mutate_rows_request__entry__init(entry);
    mutations[0] = mutation;
    entry->row_key = proto_data(bytes_of(key));
    entry->n_mutations = 1;
    entry->mutations = mutations;
    return entry;
}

static void mutate_many(Bt__MutateRowsRequest__Entry **entries, size_t count)
{
    Bt__MutateRowsRequest request = BT__MUTATE_ROWS_REQUEST__INIT;
    request.table_name = TABLE_NAME;
    request.n_entries = count;
    request.entries = entries;
    fake.call.receive = receive_entries;
    fake_call(mutate_rows, &request.base);
    fake_run();
}

static void entries_are_answered_as_they_are_written(void **state)
{
    (void)state;
    Bt__MutateRowsRequest__Entry *entries[] = {make_entry("a", make_set("f", 1000)),
                                               make_entry("b", make_set("f", 1000)),
                                               make_entry("c", make_set("f", 1000))};
    mutate_many(entries, 3);
    assert_int_equal(rows.write_count, 3);
    assert_true(bytes_equal(rows.waiting[1]->row_key, bytes_of("b")));
    complete(2, STATUS_OK);
    complete(0, STATUS_UNAVAILABLE);
    assert_false(fake.call.is_finished);
    complete(1, STATUS_OK);
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, STATUS_OK);
    assert_int_equal(answers.count, 3);
    assert_int_equal(answers.codes[0], STATUS_UNAVAILABLE);
    assert_int_equal(answers.codes[1], STATUS_OK);
    assert_int_equal(answers.codes[2], STATUS_OK);
}

static void a_bad_entry_fails_alone(void **state)
{
    (void)state;
    Bt__MutateRowsRequest__Entry *entries[] = {
        make_entry("a", make_set("nope", 1000)), make_entry("b", make_set("f", 1000)),
        make_entry("c", make_set("f", 1001)), make_entry("", make_set("f", 1000))};
    mutate_many(entries, 4);
    assert_int_equal(rows.write_count, 1);
    complete(0, STATUS_OK);
    assert_true(fake.call.is_finished);
    assert_int_equal(answers.codes[0], STATUS_NOT_FOUND);
    assert_int_equal(answers.codes[1], STATUS_OK);
    assert_int_equal(answers.codes[2], STATUS_INVALID_ARGUMENT);
    assert_int_equal(answers.codes[3], STATUS_INVALID_ARGUMENT);
}

static void only_bad_entries_end_the_call_at_once(void **state)
{
    (void)state;
    Bt__MutateRowsRequest__Entry *entries[] = {make_entry("a", make_set("nope", 1000)),
                                               make_entry("b", make_set("nope", 1000))};
    mutate_many(entries, 2);
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, STATUS_OK);
    assert_int_equal(answers.count, 2);
}

/* As production was recorded to do. */
static void a_type_mismatch_fails_every_entry(void **state)
{
    (void)state;
    Bt__MutateRowsRequest__Entry *entries[] = {make_entry("a", make_set("f", 1000)),
                                               make_entry("b", make_set("sum", 1000)),
                                               make_entry("c", make_set("nope", 1000))};
    mutate_many(entries, 3);
    assert_int_equal(rows.write_count, 0);
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, STATUS_OK);
    assert_int_equal(answers.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(answers.codes[i], STATUS_INVALID_ARGUMENT);
    assert_string_equal(answers.first_message, "Error while mutating the row 'a' (" TABLE_NAME
                                               ") : Column family type mismatch");
}

static void many_entries_go_in_slices(void **state)
{
    (void)state;
    static Bt__MutateRowsRequest__Entry *entries[MOST_WRITES];
    for (size_t i = 0; i < MOST_WRITES; i++)
        entries[i] = make_entry("k", make_set(i % 3 == 1 ? "nope" : "f", 1000));
    mutate_many(entries, MOST_WRITES);
    for (size_t i = rows.write_count; i-- > 0;)
        complete(i, STATUS_OK);
    assert_true(fake.call.is_finished);
    assert_int_equal(answers.count, MOST_WRITES);
    for (size_t i = 0; i < MOST_WRITES; i++)
        assert_int_equal(answers.codes[i], i % 3 == 1 ? STATUS_NOT_FOUND : STATUS_OK);
}

static void a_request_without_mutations_is_refused(void **state)
{
    (void)state;
    Bt__MutateRowsRequest__Entry *entries[] = {make_entry("a", make_set("f", 1000)),
                                               make_entry("b", make_set("f", 1000))};
    entries[1]->n_mutations = 0;
    mutate_many(entries, 2);
    assert_int_equal(fake.call.code, STATUS_INVALID_ARGUMENT);
    mutate_many(entries, 0);
    assert_int_equal(fake.call.code, STATUS_INVALID_ARGUMENT);
    assert_int_equal(rows.write_count, 0);
}

/* --- what goes beside the messages --- */

/* FeatureFlags with one flag each, in base64. */
static const char FLAGS_RATE_LIMIT[] = "GAE";
static const char FLAGS_RATE_LIMIT_2[] = "KAE";
static const char FLAGS_ROUTING_COOKIE[] = "MAE=";

/* The factor that a client is told; 0: none. */
static double rate_factor_at(double load, const char *features)
{
    Bt__MutateRowsRequest__Entry *entry = make_entry("a", make_set("nope", 1000));
    fake.call.features = features;
    fake.write_load = load;
    answers = (struct answers){.count = 0};
    mutate_many(&entry, 1);
    assert_true(fake.call.is_finished);
    assert_int_equal(answers.count, 1);
    return answers.rate_factor;
}

static void a_busy_server_asks_for_less(void **state)
{
    (void)state;
    assert_true(rate_factor_at(0.4, FLAGS_RATE_LIMIT_2) == 0);
    double some = rate_factor_at(0.75, FLAGS_RATE_LIMIT_2);
    double most = rate_factor_at(1, FLAGS_RATE_LIMIT);
    assert_true(some > 0.84 && some < 0.86);
    assert_true(most > 0.69 && most < 0.71);
    assert_true(rate_factor_at(1, NULL) == 0);
    assert_true(rate_factor_at(1, FLAGS_ROUTING_COOKIE) == 0);
}

static enum status_code end_of_write(const char *features, enum status_code code)
{
    fake.call.features = features;
    rows.write_count = 0;
    mutate("k", make_set("f", 1000));
    complete(0, code);
    assert_int_equal(fake.call.headers, 2); /* the cluster, and how long */
    return fake.call.code;
}

static void a_client_that_shall_retry_gets_a_cookie(void **state)
{
    (void)state;
    assert_int_equal(end_of_write(FLAGS_ROUTING_COOKIE, STATUS_UNAVAILABLE), STATUS_UNAVAILABLE);
    assert_non_null(fake.call.cookie);
    end_of_write(FLAGS_ROUTING_COOKIE, STATUS_RESOURCE_EXHAUSTED);
    assert_non_null(fake.call.cookie);
    end_of_write(FLAGS_ROUTING_COOKIE, STATUS_NOT_FOUND);
    assert_null(fake.call.cookie);
    end_of_write(FLAGS_ROUTING_COOKIE, STATUS_OK);
    assert_null(fake.call.cookie);
    end_of_write(FLAGS_RATE_LIMIT, STATUS_UNAVAILABLE);
    assert_null(fake.call.cookie);
}

static bool is_routed(const char *header)
{
    fake.call.routing = header;
    rows.write_count = 0;
    mutate("k", make_set("f", 1000));
    if (rows.write_count > 0)
        complete(0, STATUS_OK);
    else
        assert_int_equal(fake.call.code, STATUS_INVALID_ARGUMENT);
    return rows.write_count > 0;
}

static void a_request_is_for_what_it_was_routed_by(void **state)
{
    (void)state;
    static const char *const right[] = {
        "",
        ("table_name=" TABLE_NAME),
        "table_name=projects%2Fp%2Finstances%2Fi%2Ftables%2Ft&app_profile_id=x",
        "app_profile_id=x&table_name=projects%2fp%2finstances%2fi%2ftables%2ft",
        "name=projects/p/instances/i",
        "table_name=&name",
        "what=ever&&=",
    };
    static const char *const wrong[] = {
        ("table_name=" TABLE_NAME "t"),
        "table_name=projects/p/instances/i/tables/",
        "table_name=projects/p/instances/i2",
        "app_profile_id=x&table_name=other",
        "table_name=%",
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        assert_true(is_routed(right[i]));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(is_routed(wrong[i]));
}

/* --- CheckAndMutateRow --- */

static void check_and_mutate(Bt__Mutation *if_true, Bt__Mutation *if_false)
{
    Bt__CheckAndMutateRowRequest request = BT__CHECK_AND_MUTATE_ROW_REQUEST__INIT;
    request.table_name = TABLE_NAME;
    request.row_key = proto_data(bytes_of("k"));
    request.n_true_mutations = if_true != NULL;
    request.true_mutations = &if_true;
    request.n_false_mutations = if_false != NULL;
    request.false_mutations = &if_false;
    answers.type = &bt__check_and_mutate_row_response__descriptor;
    fake.call.receive = receive_unary;
    fake_call(check_and_mutate_row, &request.base);
}

static uint32_t written_family(void)
{
    struct fragment_reader reader;
    struct entry entry;
    assert_true(fragment_reader_start(&reader, buffer_bytes(&rows.written)));
    assert_true(fragment_reader_next(&reader, &entry));
    return entry.family;
}

static bool predicate_matched(void)
{
    assert_int_equal(fake.call.code, STATUS_OK);
    return ((const Bt__CheckAndMutateRowResponse *)answers.unary)->predicate_matched;
}

static void an_empty_row_takes_the_false_branch(void **state)
{
    (void)state;
    check_and_mutate(make_set("f", 0), make_set("g", 0));
    assert_false(predicate_matched());
    assert_true(rows.writes);
    assert_int_equal(written_family(), 1);
}

static void a_row_with_a_cell_takes_the_true_branch(void **state)
{
    (void)state;
    rows.cell_count = 1;
    check_and_mutate(make_set("f", 0), make_set("g", 0));
    assert_true(predicate_matched());
    assert_int_equal(written_family(), 2);
}

static void a_branch_without_mutations_writes_nothing(void **state)
{
    (void)state;
    check_and_mutate(make_set("f", 0), NULL);
    assert_false(predicate_matched());
    assert_false(rows.writes);
}

static void families_are_looked_at_in_the_branch_taken_only(void **state)
{
    (void)state;
    check_and_mutate(make_set("nope", 0), make_set("g", 0));
    assert_false(predicate_matched());
    buffer_free(&rows.written);
    rows.cell_count = 1;
    check_and_mutate(make_set("nope", 0), make_set("g", 0));
    assert_int_equal(fake.call.code, STATUS_NOT_FOUND);
}

/* --- room for large values --- */

enum { MIB = 1 << 20 };

static struct request_room room;

static int setup_room(void **state)
{
    setup(state);
    request_room_init(&room, 8 * MIB);
    fake.values = &room;
    fake.largest_cell = 8 * MIB;
    rows.values_size = 3 * MIB;
    rows.cell_count = 1;
    return 0;
}

static int teardown_room(void **state)
{
    assert_int_equal(room.held.long_bytes, 0);
    assert_true(list_is_empty(&room.waiting));
    request_room_destroy(&room);
    return teardown(state);
}

static const struct request_share others = {.long_bytes = 6 * MIB};

static void an_update_of_large_values_waits_for_room(void **state)
{
    (void)state;
    request_room_take_anyway(&room, others);
    check_and_mutate(make_set("f", 0), make_set("g", 0));
    fake_run();
    assert_false(fake.call.is_finished);
    request_room_give_back(&room, others);
    fake_run();
    assert_true(predicate_matched());
    assert_null(fake.timer);
}

static void an_update_has_room_at_once_if_there_is(void **state)
{
    (void)state;
    check_and_mutate(make_set("f", 0), make_set("g", 0));
    assert_true(predicate_matched());
}

static void no_update_waits_for_room_for_ever(void **state)
{
    (void)state;
    request_room_take_anyway(&room, others);
    check_and_mutate(make_set("f", 0), make_set("g", 0));
    fake_time_is_over();
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, STATUS_RESOURCE_EXHAUSTED);
    assert_true(fake.call.has_details);
    request_room_give_back(&room, others);
}

static void without_memory_for_a_timer_no_update_waits_for_room(void **state)
{
    (void)state;
    fake.timers_fail = true;
    check_and_mutate(make_set("f", 0), make_set("g", 0));
    fake_run();
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, STATUS_RESOURCE_EXHAUSTED);
}

/* --- ReadModifyWriteRow --- */

static Bt__ReadModifyWriteRule *make_rule(const char *family, const char *qualifier)
{
    Bt__ReadModifyWriteRule *rule = arena_alloc(fake.call.arena, sizeof *rule);
    bt__read_modify_write_rule__init(rule);
    rule->family_name = family;
    rule->column_qualifier = proto_data(bytes_of(qualifier));
    return rule;
}

static Bt__ReadModifyWriteRule *append(const char *family, const char *qualifier, const char *text)
{
    Bt__ReadModifyWriteRule *rule = make_rule(family, qualifier);
    rule->rule_case = BT__READ_MODIFY_WRITE_RULE__RULE_APPEND_VALUE;
    rule->append_value = proto_data(bytes_of(text));
    return rule;
}

static Bt__ReadModifyWriteRule *increment(const char *family, const char *qualifier, int64_t amount)
{
    Bt__ReadModifyWriteRule *rule = make_rule(family, qualifier);
    rule->rule_case = BT__READ_MODIFY_WRITE_RULE__RULE_INCREMENT_AMOUNT;
    rule->increment_amount = amount;
    return rule;
}

static void begin_read_modify_write(Bt__ReadModifyWriteRule **rules, size_t count)
{
    Bt__ReadModifyWriteRowRequest request = BT__READ_MODIFY_WRITE_ROW_REQUEST__INIT;
    request.table_name = TABLE_NAME;
    request.row_key = proto_data(bytes_of("k"));
    request.n_rules = count;
    request.rules = rules;
    answers.type = &bt__read_modify_write_row_response__descriptor;
    answers.unary = NULL;
    fake.call.receive = receive_unary;
    fake_call(read_modify_write_row, &request.base);
}

static const Bt__Row *read_modify_write(Bt__ReadModifyWriteRule **rules, size_t count)
{
    begin_read_modify_write(rules, count);
    assert_true(fake.call.is_finished);
    if (answers.unary == NULL)
        return NULL;
    return ((const Bt__ReadModifyWriteRowResponse *)answers.unary)->row;
}

static void has(size_t family, const char *qualifier, int64_t timestamp_us, bytes value)
{
    rows.cells[rows.cell_count++] = (struct cell){.family = &rows.schema->families[family],
                                                  .qualifier = bytes_of(qualifier),
                                                  .timestamp_us = timestamp_us,
                                                  .value = value};
}

static void assert_cell(const Bt__Row *row, size_t family, size_t column, int64_t timestamp_us,
                        bytes value)
{
    const Bt__Cell *cell = row->families[family]->columns[column]->cells[0];
    assert_int_equal(row->families[family]->columns[column]->n_cells, 1);
    assert_int_equal(cell->timestamp_micros, timestamp_us);
    assert_true(bytes_equal(proto_bytes(cell->value), value));
}

/* Rules in any order, cells of other columns between those that are asked for. */
static void rules_find_their_cells(void **state)
{
    (void)state;
    has(0, "a", 1000, bytes_of("other"));
    has(0, "b", 1000, bytes_of("x"));
    has(0, "c", 1000, bytes_of("other"));
    has(1, "a", 1000, bytes_make("\0\0\0\0\0\0\0\5", 8));
    Bt__ReadModifyWriteRule *rules[] = {increment("g", "a", 2), append("f", "d", "new"),
                                        append("f", "b", "1"), append("f", "b", "2")};
    const Bt__Row *row = read_modify_write(rules, 4);
    assert_non_null(row);
    assert_int_equal(row->n_families, 2);
    assert_string_equal(row->families[0]->name, "f");
    assert_int_equal(row->families[0]->n_columns, 2);
    assert_int_equal(row->families[1]->n_columns, 1);
    assert_cell(row, 0, 0, NOW_US, bytes_of("x12"));
    assert_cell(row, 0, 1, NOW_US, bytes_of("new"));
    assert_cell(row, 1, 0, NOW_US, bytes_make("\0\0\0\0\0\0\0\7", 8));
}

static void results_are_never_older_than_the_cell(void **state)
{
    (void)state;
    has(0, "a", NOW_US + 7000, bytes_of("x"));
    Bt__ReadModifyWriteRule *rules[] = {append("f", "a", "y")};
    const Bt__Row *row = read_modify_write(rules, 1);
    assert_non_null(row);
    assert_cell(row, 0, 0, NOW_US + 7000, bytes_of("xy"));
}

static void the_integer_may_come_of_an_append(void **state)
{
    (void)state;
    Bt__ReadModifyWriteRule *rules[] = {append("f", "a", "12345678"), increment("f", "a", 1)};
    const Bt__Row *row = read_modify_write(rules, 2);
    assert_non_null(row);
    assert_cell(row, 0, 0, NOW_US, bytes_of("12345679"));
}

static void increments_wrap(void **state)
{
    (void)state;
    has(0, "a", 0, bytes_make("\x7f\xff\xff\xff\xff\xff\xff\xff", 8));
    Bt__ReadModifyWriteRule *rules[] = {increment("f", "a", 1)};
    const Bt__Row *row = read_modify_write(rules, 1);
    assert_non_null(row);
    assert_cell(row, 0, 0, NOW_US, bytes_make("\x80\0\0\0\0\0\0\0", 8));
}

static void a_value_that_is_no_integer_is_not_incremented(void **state)
{
    (void)state;
    static const char *const values[] = {"", "1234567", "123456789"};
    Bt__ReadModifyWriteRule *rules[] = {increment("f", "a", 1)};
    for (size_t i = 0; i < 3; i++) {
        rows.cell_count = 0;
        has(0, "a", 0, bytes_of(values[i]));
        assert_null(read_modify_write(rules, 1));
        assert_int_equal(fake.call.code, STATUS_FAILED_PRECONDITION);
    }
}

static void rules_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    Bt__ReadModifyWriteRule *no_kind[] = {make_rule("f", "a")};
    assert_null(read_modify_write(no_kind, 1));
    assert_int_equal(fake.call.code, STATUS_INVALID_ARGUMENT);
    Bt__ReadModifyWriteRule *no_family[] = {append("f", "a", "x"), append("nope", "a", "x")};
    assert_null(read_modify_write(no_family, 2));
    assert_int_equal(fake.call.code, STATUS_NOT_FOUND);
    Bt__ReadModifyWriteRule *aggregate[] = {increment("sum", "a", 1)};
    assert_null(read_modify_write(aggregate, 1));
    assert_int_equal(fake.call.code, STATUS_INVALID_ARGUMENT);
    assert_null(read_modify_write(NULL, 0));
    assert_int_equal(fake.call.code, STATUS_INVALID_ARGUMENT);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

/* Its result counts as well. */
static void an_append_to_a_large_value_waits_for_room(void **state)
{
    (void)state;
    const struct request_share one = {.long_bytes = MIB};
    Bt__ReadModifyWriteRule *rules[] = {append("f", "a", "y")};
    rows.cell_count = 0;
    rows.values_size = 2 * MIB;
    request_room_take_anyway(&room, one);
    begin_read_modify_write(rules, 1);
    assert_false(fake.call.is_finished);
    request_room_give_back(&room, one);
    fake_run();
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, STATUS_OK);
}

static void begin_large_append(void)
{
    Bt__ReadModifyWriteRule *rules[] = {append("f", "a", "y")};
    rows.cell_count = 0;
    rows.values_size = MIB;
    fake.call.congests_after = 1;
    begin_read_modify_write(rules, 1);
    assert_int_equal(fake.call.messages, 1);
    assert_false(fake.call.is_finished);
    assert_true(room.held.long_bytes >= 3 * MIB); /* the value, what came of it, the answer */
}

/* The answers of calls before it, which were not read yet, stood beside what the next one took. */
static void an_append_has_room_until_its_answer_is_taken(void **state)
{
    (void)state;
    begin_large_append();
    fake.call.on_writable(fake.call.context);
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, STATUS_OK);
}

static void an_append_has_room_until_its_client_goes(void **state)
{
    (void)state;
    begin_large_append();
    fake.call.on_cancel(fake.call.context);
    assert_true(fake.call.is_finished);
}

/* No request could have written it. */
static void an_append_makes_no_cell_larger_than_there_is_memory_for(void **state)
{
    (void)state;
    Bt__ReadModifyWriteRule *rules[] = {append("f", "a", "four")};
    rows.cell_count = 0;
    rows.values_size = 0;
    has(0, "a", 0, bytes_of("four"));
    fake.largest_cell = 7;
    assert_null(read_modify_write(rules, 1));
    assert_int_equal(fake.call.code, STATUS_RESOURCE_EXHAUSTED);
    fake.largest_cell = 8;
    assert_non_null(read_modify_write(rules, 1));
    assert_int_equal(fake.call.code, STATUS_OK);
}

/* An update has room when no other call does, but not more than there is. */
static void an_update_that_could_never_have_room_is_refused(void **state)
{
    (void)state;
    request_room_bound(&room, 5 * MIB);
    check_and_mutate(make_set("f", 0), make_set("g", 0));
    fake_run();
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, STATUS_RESOURCE_EXHAUSTED);
    request_room_bound(&room, 6 * MIB);
    check_and_mutate(make_set("f", 0), make_set("g", 0));
    assert_true(predicate_matched());
}

#define ROOM_TEST(function) cmocka_unit_test_setup_teardown(function, setup_room, teardown_room)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_row_is_answered_when_it_is_written),
        TEST(a_failed_write_is_the_answer),
        TEST(refused_mutations_are_never_written),
        TEST(entries_are_answered_as_they_are_written),
        TEST(a_bad_entry_fails_alone),
        TEST(only_bad_entries_end_the_call_at_once),
        TEST(a_type_mismatch_fails_every_entry),
        TEST(many_entries_go_in_slices),
        TEST(a_request_without_mutations_is_refused),
        TEST(a_busy_server_asks_for_less),
        TEST(a_client_that_shall_retry_gets_a_cookie),
        TEST(a_request_is_for_what_it_was_routed_by),
        TEST(an_empty_row_takes_the_false_branch),
        TEST(a_row_with_a_cell_takes_the_true_branch),
        TEST(a_branch_without_mutations_writes_nothing),
        TEST(families_are_looked_at_in_the_branch_taken_only),
        ROOM_TEST(an_update_of_large_values_waits_for_room),
        ROOM_TEST(an_update_has_room_at_once_if_there_is),
        ROOM_TEST(no_update_waits_for_room_for_ever),
        ROOM_TEST(without_memory_for_a_timer_no_update_waits_for_room),
        ROOM_TEST(an_append_to_a_large_value_waits_for_room),
        ROOM_TEST(an_append_has_room_until_its_answer_is_taken),
        ROOM_TEST(an_append_has_room_until_its_client_goes),
        ROOM_TEST(an_append_makes_no_cell_larger_than_there_is_memory_for),
        ROOM_TEST(an_update_that_could_never_have_room_is_refused),
        TEST(rules_find_their_cells),
        TEST(results_are_never_older_than_the_cell),
        TEST(the_integer_may_come_of_an_append),
        TEST(increments_wrap),
        TEST(a_value_that_is_no_integer_is_not_incremented),
        TEST(rules_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests_name("writes", tests, NULL, NULL);
}
