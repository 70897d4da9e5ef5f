/* Advise: what the schema advisor says of tables, as documents (docs/reference/advise.md).
 *
 * What it takes is bounded: of a table some hundred short reads, TABLE_US and TABLE_BYTES; of all
 * of them ALL_US, after which the tables that are left are only named. */
#include "base/clock.h"
#include "bigtable/default_instance.h"
#include "bigtable/names.h"
#include "datastore/index_check.h"
#include "insight/database_advice.h"
#include "insight/methods.h"
#include "insight/table_source.h"
#include "wire/json.h"

enum {
    PLACES = 100,
    ROWS = 10,
    TABLE_BYTES = 8 * 1000 * 1000,
    TABLE_MEMORY = 64 << 20,
};

#define TABLE_US (INT64_C(5) * 1000000)
#define ALL_US   (INT64_C(20) * 1000000)

static void append(struct buffer *out, const char *text)
{
    buffer_append_bytes(out, bytes_of(text));
}

/* --- one table --- */

static status look(const struct gather_options *wanted, struct buffer *out)
{
    struct advice_observations seen;
    struct advice_sample sample;
    struct advice advice;
    TRY(gather(wanted, &seen, &sample));
    TRY(advice_find(&seen, wanted->source.arena, &advice));
    advice_write_json(&seen, &sample, &advice, out);
    return out->failed ? status_out_of_memory() : status_ok();
}

static status look_at(const struct admin_request *request, struct table *table,
                      const char *instance, struct buffer *out)
{
    struct arena *arena = arena_create(TABLE_MEMORY);
    int64_t now_us = clock_wall_us(cluster_clock(request->bigtable->cluster));
    struct table_source source = {.request = request, .table = table, .instance = instance};
    struct gather_options wanted = {.table_id = name_id(table_name(table)),
                                    .now_us = now_us,
                                    .places = PLACES,
                                    .rows = ROWS,
                                    .bytes = TABLE_BYTES,
                                    .time_limit_us = TABLE_US,
                                    .seed = (uint64_t)now_us | 1};
    if (arena == NULL)
        return status_out_of_memory();
    table_source_init(&source, arena, &wanted.source);
    status s = look(&wanted, out);
    arena_destroy(arena);
    return s;
}

/* --- all that are asked for --- */

struct advising {
    const struct admin_request *request;
    const char *instance;
    int64_t until_us;  /* clock_steady_us */
    struct buffer ids; /* const char *, of tables that are to be looked at */
    struct buffer documents;
    struct buffer left_out; /* JSON strings */
};

static status add_id(struct advising *advising, const char *id)
{
    const char *kept = arena_string(advising->request->arena, bytes_of(id));
    buffer_append(&advising->ids, &kept, sizeof kept);
    return kept == NULL || advising->ids.failed ? status_out_of_memory() : status_ok();
}

struct id_list {
    struct advising *advising;
    status failure;
};

static bool take_table(void *context, struct table *table)
{
    struct id_list *list = context;
    list->failure = add_id(list->advising, name_id(table_name(table)));
    return status_is_ok(list->failure);
}

static status list_ids(struct advising *advising)
{
    const Insight__AdviseRequest *message = (const void *)advising->request->message;
    struct bigtable *bigtable = advising->request->bigtable;
    struct id_list list = {.advising = advising, .failure = status_ok()};
    for (size_t i = 0; i < message->n_tables; i++) {
        TRY(name_check_table_id(message->tables[i]));
        TRY(add_id(advising, message->tables[i]));
    }
    if (message->n_tables > 0)
        return status_ok();
    char *prefix = name_of_table(advising->request->arena, advising->instance, "");
    if (prefix == NULL)
        return status_out_of_memory();
    TRY(check_instance_to_list(bigtable, advising->instance));
    TRY(cluster_list_tables(bigtable->cluster, bytes_of(prefix), bytes_make(NULL, 0), take_table,
                            &list));
    return list.failure;
}

/* NOT_FOUND of a table that was asked for; one that was listed may have gone meanwhile. */
static status advise_on_table(struct advising *advising, const char *id, bool is_asked_for)
{
    const struct admin_request *request = advising->request;
    char *name = name_of_table(request->arena, advising->instance, id);
    struct table *table;
    if (name == NULL)
        return status_out_of_memory();
    status s = cluster_table(request->bigtable->cluster, bytes_of(name), &table);
    if (s.code == STATUS_NOT_FOUND && !is_asked_for) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    if (advising->documents.size > 0)
        append(&advising->documents, ",\n");
    s = look_at(request, table, advising->instance, &advising->documents);
    table_release(table);
    return s;
}

static status advise_on_all(struct advising *advising)
{
    const Insight__AdviseRequest *message = (const void *)advising->request->message;
    const char *const *ids = (const void *)advising->ids.data;
    size_t count = advising->ids.size / sizeof *ids;
    for (size_t i = 0; i < count; i++) {
        TRY(insight_check_call(advising->request));
        if (clock_steady_us(clock_system()) < advising->until_us) {
            TRY(advise_on_table(advising, ids[i], message->n_tables > 0));
            continue;
        }
        if (advising->left_out.size > 0)
            append(&advising->left_out, ", ");
        json_encode_string(bytes_of(ids[i]), &advising->left_out);
    }
    return advising->left_out.failed ? status_out_of_memory() : status_ok();
}

static status answer(struct advising *advising, const ProtobufCMessage **response)
{
    struct arena *arena = advising->request->arena;
    Insight__Advice *advice;
    struct buffer json = {0};
    append(&json, "{\"tables\": [");
    buffer_append_bytes(&json, buffer_bytes(&advising->documents));
    append(&json, "], \"notLookedAt\": [");
    buffer_append_bytes(&json, buffer_bytes(&advising->left_out));
    append(&json, "]}\n");
    char *text = json.failed ? NULL : arena_string(arena, buffer_bytes(&json));
    buffer_free(&json);
    if (text == NULL)
        return status_out_of_memory();
    PROTO_NEW(arena, advice, INSIGHT__ADVICE__INIT);
    advice->json = text;
    *response = &advice->base;
    return status_ok();
}

static status advise_on_instance(const struct admin_request *request, const char *instance,
                                 const ProtobufCMessage **response)
{
    struct advising advising = {.request = request,
                                .instance = instance,
                                .until_us = clock_steady_us(clock_system()) + ALL_US};
    TRY(name_check_instance(instance));
    status s = list_ids(&advising);
    if (status_is_ok(s))
        s = advise_on_all(&advising);
    if (status_is_ok(s))
        s = answer(&advising, response);
    buffer_free(&advising.ids);
    buffer_free(&advising.documents);
    buffer_free(&advising.left_out);
    return s;
}

static status advise_on_the_database(const struct admin_request *request, const char *name,
                                     const ProtobufCMessage **response)
{
    struct advising advising = {.request = request};
    status s = advise_on_database(request, name, &advising.documents);
    if (status_is_ok(s))
        s = answer(&advising, response);
    buffer_free(&advising.documents);
    return s;
}

status give_advice(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__AdviseRequest *message = (const void *)request->message;
    if (ds_is_database_table(message->name))
        return advise_on_the_database(request, message->name, response);
    return advise_on_instance(request, message->name, response);
}
