/* Datastore's API: entities of ten properties, in groups of twenty.
 *
 * Entity `index` is item `index % 20 + 1` of the group `index / 20`, whose id is no sequence. Of
 * its properties eight are indexed; `set` has each value twenty times, of entities from all over;
 * `brand` has each 200 times, and `brand` and `stock` together twenty times. So every query has
 * twenty results, however many entities there are. */
#include "cmd/bench/bench_parts.h"
#include "google/datastore/v1/datastore.pb-c.h"
#include "wire/grpc_client.h"

#include <stdio.h>

#define DATASTORE    "/google.datastore.v1.Datastore/"
#define PROJECT      "bench"
#define KIND         "Item"
#define GROUP_KIND   "Group"
#define WRITTEN_KIND "Put" /* of what `put` and `batchput` write */

enum {
    GROUP = 20,   /* entities of a group, and of a set */
    BRAND = 200,  /* entities of a brand */
    STOCKS = 10,  /* different stocks of a brand */
    TOGETHER = 5, /* entities of a transaction */
    NAME_SIZE = 24,
    TEXT_SIZE = 100,
    PICTURE_SIZE = 50,
    PROPERTIES = 10,
};

/* Clients say it in each request. */
static const struct client_metadata routing = {
    .name = "x-goog-request-params",
    .value = {.data = (const uint8_t *)"project_id=" PROJECT,
              .size = sizeof "project_id=" PROJECT - 1},
};

/* --- what the entities are --- */

/* A permutation of the entities' indexes, for a prime that does not divide their number. */
static uint64_t shuffled(const struct bench_context *context, uint64_t index, uint64_t prime)
{
    return index * prime % context->options->rows;
}

static uint64_t set_place(const struct bench_context *context, uint64_t index)
{
    return shuffled(context, index, 2654435761);
}

static uint64_t brand_place(const struct bench_context *context, uint64_t index)
{
    return shuffled(context, index, 2246822519);
}

static uint64_t random_below(struct bench_context *context, uint64_t end)
{
    return bench_random(&context->random) % (end == 0 ? 1 : end);
}

static int64_t group_id(uint64_t group)
{
    return (int64_t)(bench_key_number(group) >> 2) + 1;
}

/* --- keys --- */

static status add_element(struct arena *arena, const char *kind, int64_t id, const char *name,
                          Ds__Key *key)
{
    Ds__Key__PathElement *element;
    PROTO_NEW(arena, element, DS__KEY__PATH_ELEMENT__INIT);
    element->kind = kind;
    element->id_type_case =
        name == NULL ? DS__KEY__PATH_ELEMENT__ID_TYPE_ID : DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
    if (name == NULL)
        element->id = id;
    else
        element->name = name;
    key->path[key->n_path++] = element;
    return status_ok();
}

static status new_key(struct arena *arena, Ds__Key **out)
{
    enum { MOST_ELEMENTS = 2 };
    PROTO_NEW(arena, *out, DS__KEY__INIT);
    PROTO_NEW(arena, (*out)->partition_id, DS__PARTITION_ID__INIT);
    (*out)->partition_id->project_id = PROJECT;
    (*out)->path = arena_alloc(arena, MOST_ELEMENTS * sizeof(Ds__Key__PathElement *));
    return (*out)->path == NULL ? status_out_of_memory() : status_ok();
}

static status group_key(uint64_t group, struct arena *arena, Ds__Key **out)
{
    TRY(new_key(arena, out));
    return add_element(arena, GROUP_KIND, group_id(group), NULL, *out);
}

static status item_key(uint64_t index, struct arena *arena, Ds__Key **out)
{
    TRY(group_key(index / GROUP, arena, out));
    return add_element(arena, KIND, (int64_t)(index % GROUP + 1), NULL, *out);
}

static status written_key(struct bench_context *context, struct arena *arena, Ds__Key **out)
{
    char *name = arena_alloc(arena, NAME_SIZE);
    if (name == NULL)
        return status_out_of_memory();
    snprintf(name, NAME_SIZE, "%016llx", (unsigned long long)bench_random(&context->random));
    TRY(new_key(arena, out));
    return add_element(arena, WRITTEN_KIND, 0, name, *out);
}

/* --- entities --- */

static status add_property(struct arena *arena, Ds__Entity *entity, const char *name,
                           Ds__Value__ValueTypeCase type, Ds__Value **out)
{
    Ds__Entity__PropertiesEntry *property;
    PROTO_NEW(arena, property, DS__ENTITY__PROPERTIES_ENTRY__INIT);
    PROTO_NEW(arena, property->value, DS__VALUE__INIT);
    property->key = name;
    property->value->value_type_case = type;
    *out = property->value;
    entity->properties[entity->n_properties++] = property;
    return status_ok();
}

static status add_integer(struct arena *arena, Ds__Entity *entity, const char *name, uint64_t value)
{
    Ds__Value *property;
    TRY(add_property(arena, entity, name, DS__VALUE__VALUE_TYPE_INTEGER_VALUE, &property));
    property->integer_value = (int64_t)value;
    return status_ok();
}

/* `size` random hexadecimal digits. */
static status add_text(struct bench_context *context, struct arena *arena, Ds__Entity *entity,
                       const char *name, size_t size, bool is_indexed)
{
    Ds__Value *property;
    char *text = arena_alloc(arena, size + 1);
    if (text == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < size; i++)
        text[i] = "0123456789abcdef"[bench_random(&context->random) % 16];
    text[size] = '\0';
    TRY(add_property(arena, entity, name, DS__VALUE__VALUE_TYPE_STRING_VALUE, &property));
    property->string_value = text;
    property->exclude_from_indexes = !is_indexed;
    return status_ok();
}

static status add_picture(struct bench_context *context, struct arena *arena, Ds__Entity *entity)
{
    Ds__Value *property;
    TRY(add_property(arena, entity, "picture", DS__VALUE__VALUE_TYPE_BLOB_VALUE, &property));
    property->blob_value = bench_random_value(context);
    property->blob_value.len = PICTURE_SIZE;
    property->exclude_from_indexes = 1;
    return status_ok();
}

static status add_numbers(struct bench_context *context, uint64_t index, struct arena *arena,
                          Ds__Entity *entity)
{
    enum { YEAR_2024 = 1704067200 };
    Ds__Value *property;
    TRY(add_integer(arena, entity, "number", index));
    TRY(add_integer(arena, entity, "set", set_place(context, index) / GROUP));
    TRY(add_integer(arena, entity, "brand", brand_place(context, index) / BRAND));
    TRY(add_integer(arena, entity, "stock", brand_place(context, index) % STOCKS));
    TRY(add_property(arena, entity, "price", DS__VALUE__VALUE_TYPE_DOUBLE_VALUE, &property));
    property->double_value = (double)random_below(context, 1000000) / 100;
    TRY(add_property(arena, entity, "available", DS__VALUE__VALUE_TYPE_BOOLEAN_VALUE, &property));
    property->boolean_value = random_below(context, 2) != 0;
    TRY(add_property(arena, entity, "made", DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE, &property));
    PROTO_NEW(arena, property->timestamp_value, PB__TIMESTAMP__INIT);
    property->timestamp_value->seconds = YEAR_2024 + (int64_t)random_below(context, 50000000);
    return status_ok();
}

static status entity_of(struct bench_context *context, Ds__Key *key, uint64_t index,
                        struct arena *arena, Ds__Entity **out)
{
    PROTO_NEW(arena, *out, DS__ENTITY__INIT);
    (*out)->key = key;
    (*out)->properties = arena_alloc(arena, PROPERTIES * sizeof(void *));
    if ((*out)->properties == NULL)
        return status_out_of_memory();
    TRY(add_numbers(context, index, arena, *out));
    TRY(add_text(context, arena, *out, "name", NAME_SIZE, true));
    TRY(add_text(context, arena, *out, "text", TEXT_SIZE, false));
    return add_picture(context, arena, *out);
}

/* --- Commit --- */

static status upsert(struct arena *arena, Ds__Entity *entity, Ds__CommitRequest *request)
{
    Ds__Mutation *mutation;
    PROTO_NEW(arena, mutation, DS__MUTATION__INIT);
    mutation->operation_case = DS__MUTATION__OPERATION_UPSERT;
    mutation->upsert = entity;
    request->mutations[request->n_mutations++] = mutation;
    return status_ok();
}

static status begin_commit(size_t count, struct arena *arena, Ds__CommitRequest *request)
{
    request->project_id = PROJECT;
    request->mode = DS__COMMIT_REQUEST__MODE__NON_TRANSACTIONAL;
    request->mutations = arena_alloc(arena, count * sizeof(void *));
    return request->mutations == NULL ? status_out_of_memory() : status_ok();
}

static status upsert_item(struct bench_context *context, uint64_t index, struct arena *arena,
                          Ds__CommitRequest *request)
{
    Ds__Key *key;
    Ds__Entity *entity;
    TRY(item_key(index, arena, &key));
    TRY(entity_of(context, key, index, arena, &entity));
    return upsert(arena, entity, request);
}

/* The next batch of all entities. */
static status load_request(struct bench_context *context, uint64_t number, struct arena *arena,
                           struct buffer *message, struct bench_answer *answer)
{
    Ds__CommitRequest request = DS__COMMIT_REQUEST__INIT;
    uint64_t first = number * context->options->batch;
    uint64_t left = context->options->rows - first;
    uint64_t count = left < context->options->batch ? left : context->options->batch;
    TRY(begin_commit(count, arena, &request));
    for (uint64_t i = 0; i < count; i++)
        TRY(upsert_item(context, first + i, arena, &request));
    proto_encode(&request.base, message);
    answer->rows = count;
    return status_ok();
}

/* New entities, of no group. */
static status write_new(struct bench_context *context, uint64_t count, struct arena *arena,
                        struct buffer *message, struct bench_answer *answer)
{
    Ds__CommitRequest request = DS__COMMIT_REQUEST__INIT;
    TRY(begin_commit(count, arena, &request));
    for (uint64_t i = 0; i < count; i++) {
        Ds__Key *key;
        Ds__Entity *entity;
        TRY(written_key(context, arena, &key));
        TRY(entity_of(context, key, random_below(context, context->options->rows), arena, &entity));
        TRY(upsert(arena, entity, &request));
    }
    proto_encode(&request.base, message);
    answer->rows = count;
    return status_ok();
}

static status put_request(struct bench_context *context, uint64_t number, struct arena *arena,
                          struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    return write_new(context, 1, arena, message, answer);
}

static status batch_request(struct bench_context *context, uint64_t number, struct arena *arena,
                            struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    return write_new(context, context->options->batch, arena, message, answer);
}

/* An entity that is there, with new values of four properties. */
static status update_request(struct bench_context *context, uint64_t number, struct arena *arena,
                             struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    Ds__CommitRequest request = DS__COMMIT_REQUEST__INIT;
    TRY(begin_commit(1, arena, &request));
    TRY(upsert_item(context, random_below(context, context->options->rows), arena, &request));
    proto_encode(&request.base, message);
    answer->rows = 1;
    return status_ok();
}

static status commit_response(bytes message, struct arena *arena, struct bench_answer *answer)
{
    ProtobufCMessage *decoded;
    TRY(proto_decode(&ds__commit_response__descriptor, message, arena, &decoded));
    answer->rows_answered += ((const Ds__CommitResponse *)decoded)->n_mutation_results;
    return status_ok();
}

/* --- Lookup --- */

static status get_request(struct bench_context *context, uint64_t number, struct arena *arena,
                          struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    Ds__LookupRequest request = DS__LOOKUP_REQUEST__INIT;
    Ds__Key *key;
    TRY(item_key(random_below(context, context->options->rows), arena, &key));
    request.project_id = PROJECT;
    request.keys = &key;
    request.n_keys = 1;
    proto_encode(&request.base, message);
    answer->rows = 1;
    return status_ok();
}

static status lookup_response(bytes message, struct arena *arena, struct bench_answer *answer)
{
    ProtobufCMessage *decoded;
    TRY(proto_decode(&ds__lookup_response__descriptor, message, arena, &decoded));
    answer->rows_answered += ((const Ds__LookupResponse *)decoded)->n_found;
    return status_ok();
}

/* --- RunQuery --- */

/* `order` may be NULL; with it the first GROUP results are asked for, without it there are no
 * more. */
static void encode_query(Ds__Filter *filter, Ds__PropertyOrder *order, struct buffer *message,
                         struct bench_answer *answer)
{
    Ds__KindExpression kind = DS__KIND_EXPRESSION__INIT;
    Ds__KindExpression *kinds[] = {&kind};
    Ds__PartitionId partition = DS__PARTITION_ID__INIT;
    Ds__Query query = DS__QUERY__INIT;
    Ds__RunQueryRequest request = DS__RUN_QUERY_REQUEST__INIT;
    Pb__Int32Value limit = PB__INT32_VALUE__INIT;
    limit.value = GROUP;
    kind.name = KIND;
    partition.project_id = PROJECT;
    query.kind = kinds;
    query.n_kind = 1;
    query.filter = filter;
    query.order = &order;
    query.n_order = order != NULL;
    query.limit = order != NULL ? &limit : NULL;
    request.project_id = PROJECT;
    request.partition_id = &partition;
    request.query_type_case = DS__RUN_QUERY_REQUEST__QUERY_TYPE_QUERY;
    request.query = &query;
    proto_encode(&request.base, message);
    answer->rows = GROUP;
}

/* A filter on one property, with what it is made of. */
struct condition {
    Ds__PropertyReference property;
    Ds__Value value;
    Ds__PropertyFilter part;
    Ds__Filter filter;
};

/* `condition` points into itself afterwards. */
static void make_condition(struct condition *condition, const char *property,
                           Ds__PropertyFilter__Operator op)
{
    *condition = (struct condition){.property = DS__PROPERTY_REFERENCE__INIT,
                                    .value = DS__VALUE__INIT,
                                    .part = DS__PROPERTY_FILTER__INIT,
                                    .filter = DS__FILTER__INIT};
    condition->property.name = property;
    condition->part.property = &condition->property;
    condition->part.op = op;
    condition->part.value = &condition->value;
    condition->filter.filter_type_case = DS__FILTER__FILTER_TYPE_PROPERTY_FILTER;
    condition->filter.property_filter = &condition->part;
}

static void make_comparison(struct condition *condition, const char *property,
                            Ds__PropertyFilter__Operator op, uint64_t value)
{
    make_condition(condition, property, op);
    condition->value.value_type_case = DS__VALUE__VALUE_TYPE_INTEGER_VALUE;
    condition->value.integer_value = (int64_t)value;
}

static void make_equality(struct condition *condition, const char *property, uint64_t value)
{
    make_comparison(condition, property, DS__PROPERTY_FILTER__OPERATOR__EQUAL, value);
}

static status ancestor_request(struct bench_context *context, uint64_t number, struct arena *arena,
                               struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    struct condition group;
    make_condition(&group, "__key__", DS__PROPERTY_FILTER__OPERATOR__HAS_ANCESTOR);
    group.value.value_type_case = DS__VALUE__VALUE_TYPE_KEY_VALUE;
    TRY(group_key(random_below(context, context->options->rows / GROUP), arena,
                  &group.value.key_value));
    encode_query(&group.filter, NULL, message, answer);
    return status_ok();
}

static status find_request(struct bench_context *context, uint64_t number, struct arena *arena,
                           struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    (void)arena;
    struct condition set;
    make_equality(&set, "set", random_below(context, context->options->rows / GROUP));
    encode_query(&set.filter, NULL, message, answer);
    return status_ok();
}

/* Entities whose number is beyond any one, with GROUP of them behind it at least. */
static void encode_walk(struct bench_context *context, bool is_up, struct buffer *message,
                        struct bench_answer *answer)
{
    uint64_t rows = context->options->rows;
    uint64_t number = random_below(context, rows < GROUP ? 0 : rows - GROUP + 1);
    struct condition from;
    Ds__PropertyOrder order = DS__PROPERTY_ORDER__INIT;
    make_comparison(&from, "number",
                    is_up ? DS__PROPERTY_FILTER__OPERATOR__GREATER_THAN_OR_EQUAL
                          : DS__PROPERTY_FILTER__OPERATOR__LESS_THAN,
                    is_up ? number : number + GROUP);
    order.property = &from.property;
    order.direction = is_up ? DS__PROPERTY_ORDER__DIRECTION__ASCENDING
                            : DS__PROPERTY_ORDER__DIRECTION__DESCENDING;
    encode_query(&from.filter, &order, message, answer);
}

static status up_request(struct bench_context *context, uint64_t number, struct arena *arena,
                         struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    (void)arena;
    encode_walk(context, true, message, answer);
    return status_ok();
}

static status down_request(struct bench_context *context, uint64_t number, struct arena *arena,
                           struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    (void)arena;
    encode_walk(context, false, message, answer);
    return status_ok();
}

static status merge_request(struct bench_context *context, uint64_t number, struct arena *arena,
                            struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    (void)arena;
    struct condition brand, stock;
    make_equality(&brand, "brand", random_below(context, context->options->rows / BRAND));
    make_equality(&stock, "stock", random_below(context, STOCKS));
    Ds__Filter *both[] = {&brand.filter, &stock.filter};
    Ds__CompositeFilter composite = DS__COMPOSITE_FILTER__INIT;
    Ds__Filter filter = DS__FILTER__INIT;
    composite.op = DS__COMPOSITE_FILTER__OPERATOR__AND;
    composite.filters = both;
    composite.n_filters = 2;
    filter.filter_type_case = DS__FILTER__FILTER_TYPE_COMPOSITE_FILTER;
    filter.composite_filter = &composite;
    encode_query(&filter, NULL, message, answer);
    return status_ok();
}

static status query_response(bytes message, struct arena *arena, struct bench_answer *answer)
{
    ProtobufCMessage *decoded;
    TRY(proto_decode(&ds__run_query_response__descriptor, message, arena, &decoded));
    const Ds__RunQueryResponse *response = (const Ds__RunQueryResponse *)decoded;
    if (response->batch != NULL)
        answer->rows_answered += response->batch->n_entity_results;
    return status_ok();
}

/* --- a transaction: five entities of as many groups are read and written --- */

/* The item of a transaction: no two at the same time have a group in common. */
static uint64_t item_of(const struct bench_context *context, uint64_t number, uint64_t which)
{
    uint64_t groups = context->options->rows / GROUP;
    uint64_t group = (number * TOGETHER + which) * 2654435761 % (groups == 0 ? 1 : groups);
    return group * GROUP + number % GROUP;
}

static status begin_request(struct bench_context *context, uint64_t number, struct arena *arena,
                            struct buffer *message, struct bench_answer *answer)
{
    (void)context;
    (void)number;
    (void)arena;
    (void)answer;
    Ds__BeginTransactionRequest request = DS__BEGIN_TRANSACTION_REQUEST__INIT;
    request.project_id = PROJECT;
    proto_encode(&request.base, message);
    return status_ok();
}

static status begin_response(bytes message, struct arena *arena, struct bench_answer *answer)
{
    ProtobufCMessage *decoded;
    TRY(proto_decode(&ds__begin_transaction_response__descriptor, message, arena, &decoded));
    bytes token = proto_bytes(((const Ds__BeginTransactionResponse *)decoded)->transaction);
    if (token.size == 0 || token.size > sizeof answer->token)
        return status_make(STATUS_UNIMPLEMENTED, "a transaction's id of %zu bytes", token.size);
    memcpy(answer->token, token.data, token.size);
    answer->token_size = token.size;
    return status_ok();
}

static status read_request(struct bench_context *context, uint64_t number, struct arena *arena,
                           struct buffer *message, struct bench_answer *answer)
{
    Ds__Key *keys[TOGETHER];
    Ds__ReadOptions options = DS__READ_OPTIONS__INIT;
    Ds__LookupRequest request = DS__LOOKUP_REQUEST__INIT;
    for (uint64_t i = 0; i < TOGETHER; i++)
        TRY(item_key(item_of(context, number, i), arena, &keys[i]));
    options.consistency_type_case = DS__READ_OPTIONS__CONSISTENCY_TYPE_TRANSACTION;
    options.transaction = proto_data(bytes_make(answer->token, answer->token_size));
    request.project_id = PROJECT;
    request.read_options = &options;
    request.keys = keys;
    request.n_keys = TOGETHER;
    proto_encode(&request.base, message);
    answer->rows += TOGETHER;
    return status_ok();
}

static status end_request(struct bench_context *context, uint64_t number, struct arena *arena,
                          struct buffer *message, struct bench_answer *answer)
{
    Ds__CommitRequest request = DS__COMMIT_REQUEST__INIT;
    TRY(begin_commit(TOGETHER, arena, &request));
    for (uint64_t i = 0; i < TOGETHER; i++)
        TRY(upsert_item(context, item_of(context, number, i), arena, &request));
    request.mode = DS__COMMIT_REQUEST__MODE__TRANSACTIONAL;
    request.transaction_selector_case = DS__COMMIT_REQUEST__TRANSACTION_SELECTOR_TRANSACTION;
    request.transaction = proto_data(bytes_make(answer->token, answer->token_size));
    proto_encode(&request.base, message);
    answer->rows += TOGETHER;
    return status_ok();
}

/* --- all of them --- */

#define LOOKUP .method = DATASTORE "Lookup", .response = lookup_response, .header = &routing
#define COMMIT .method = DATASTORE "Commit", .response = commit_response, .header = &routing
#define QUERY  .method = DATASTORE "RunQuery", .response = query_response, .header = &routing

static const struct bench_workload end = {.name = "end", .request = end_request, COMMIT};
static const struct bench_workload read_five = {
    .name = "read five", .request = read_request, LOOKUP, .then = &end};

const struct bench_workload bench_entities = {.name = "entities", .request = load_request, COMMIT};
const struct bench_workload bench_put = {.name = "put", .request = put_request, COMMIT};
const struct bench_workload bench_batchput = {.name = "batchput", .request = batch_request, COMMIT};
const struct bench_workload bench_update = {.name = "update", .request = update_request, COMMIT};
const struct bench_workload bench_get = {.name = "get", .request = get_request, LOOKUP};
const struct bench_workload bench_ancestor = {
    .name = "ancestor", .request = ancestor_request, QUERY};
const struct bench_workload bench_find = {.name = "find", .request = find_request, QUERY};
const struct bench_workload bench_up = {.name = "up", .request = up_request, QUERY};
const struct bench_workload bench_down = {.name = "down", .request = down_request, QUERY};
const struct bench_workload bench_merge = {.name = "merge", .request = merge_request, QUERY};
const struct bench_workload bench_transaction = {.name = "transaction",
                                                 .method = DATASTORE "BeginTransaction",
                                                 .request = begin_request,
                                                 .response = begin_response,
                                                 .header = &routing,
                                                 .then = &read_five};
