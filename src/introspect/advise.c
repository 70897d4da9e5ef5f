/* Advise: what the schema advisor says of tables, or of a database (docs/reference/advise.md).
 *
 * What it takes is bounded: of a table some hundred short reads, TABLE_US and TABLE_BYTES; of all
 * of them ALL_US, after which the tables that are left are only named. */
#include "base/clock.h"
#include "base/vector.h"
#include "bigtable/default_instance.h"
#include "bigtable/names.h"
#include "datastore/index/index_check.h"
#include "introspect/advice_message.h"
#include "introspect/advice_watch.h"
#include "introspect/database_advice.h"
#include "introspect/methods.h"
#include "introspect/mutes.h"
#include "introspect/table_source.h"
#include "wire/timestamps.h"

enum {
    PLACES = 100,
    PLACES_MOST = 10000,
    ROWS = 10,
    ROWS_MOST = 1000,
    TABLE_BYTES = 8 * 1000 * 1000,
    TABLE_BYTES_MOST = 32 * 1000 * 1000,
    TABLE_MEMORY = 128 << 20,
};

#define TABLE_US (INT64_C(5) * 1000000)
#define ALL_US   (INT64_C(20) * 1000000)

/* --- what a look goes by --- */

status insight_check_call(const struct admin_request *request)
{
    if (request->call == NULL && advice_watch_is_stopping(insight_of(request)->watch))
        return status_make(STATUS_CANCELLED, "The server stops");
    if (request->call != NULL && grpc_call_is_cancelled(request->call))
        return status_make(STATUS_CANCELLED, "The call was cancelled");
    return status_ok();
}

status insight_read_since(const struct admin_request *request, int64_t *since_us)
{
    const Insight__AdviseRequest *message = (const void *)request->message;
    *since_us = 0;
    if (message->since_time == NULL)
        return status_ok();
    TRY(timestamp_check("since_time", message->since_time));
    *since_us = timestamp_us(message->since_time);
    if (*since_us >= 0 && *since_us <= cluster_wall_us(request->bigtable->cluster))
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "since_time must not lie in the future");
}

/* --- one table --- */

/* What is found of another time than of all that is known says nothing of what waits. */
static void note_advice(const struct admin_request *request, const char *name,
                        const Insight__TableAdvice *found)
{
    const Insight__AdviseRequest *message = (const void *)request->message;
    if (message->since_time == NULL)
        advice_watch_note(insight_of(request)->watch, name, found);
}

static status read_number(const char *field, int64_t asked, int64_t most, int64_t preset,
                          int64_t *out)
{
    if (asked < 0 || asked > most)
        return status_make(STATUS_INVALID_ARGUMENT, "%s must be between 0 and %lld, and is %lld",
                           field, (long long)most, (long long)asked);
    *out = asked == 0 ? preset : asked;
    return status_ok();
}

/* How much of a table is looked at. */
static status read_extent(const Insight__AdviseRequest *message, int64_t now_us,
                          struct gather_options *out)
{
    int64_t places, rows, bytes, seed;
    TRY(read_number("places", message->places, PLACES_MOST, PLACES, &places));
    TRY(read_number("rows", message->rows, ROWS_MOST, ROWS, &rows));
    TRY(read_number("max_bytes", message->max_bytes, INT64_MAX, TABLE_BYTES, &bytes));
    TRY(read_number("seed", message->seed, INT64_MAX, now_us | 1, &seed));
    *out = (struct gather_options){
        .now_us = now_us,
        .places = (size_t)places,
        .rows = (size_t)rows,
        .bytes = (uint64_t)(bytes < TABLE_BYTES_MOST ? bytes : TABLE_BYTES_MOST),
        .time_limit_us = TABLE_US,
        .seed = (uint64_t)seed,
        .shows_values = message->show_values,
    };
    return status_ok();
}

static status look(const struct gather_options *wanted, struct table *table, struct arena *answer,
                   Insight__TableAdvice **out)
{
    struct advice_observations seen;
    struct advice_sample sample;
    struct advice advice;
    TRY(gather(wanted, &seen, &sample));
    TRY(advice_find(&seen, wanted->source.arena, &advice));
    TRY(mute_findings(table, wanted->source.arena, &advice));
    return advice_message(&seen, &sample, &advice, answer, out);
}

static status look_at(const struct admin_request *request, struct table *table,
                      const char *instance, Insight__TableAdvice **out)
{
    struct table_source source = {.request = request, .table = table, .instance = instance};
    struct gather_options wanted;
    TRY(insight_read_since(request, &source.since_us));
    TRY(read_extent((const void *)request->message,
                    clock_wall_us(cluster_clock(request->bigtable->cluster)), &wanted));
    struct arena *arena = arena_create(TABLE_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    wanted.table_id = name_id(table_name(table));
    wanted.since_us = source.since_us;
    table_source_init(&source, arena, &wanted.source);
    status s = look(&wanted, table, request->arena, out);
    arena_destroy(arena);
    return s;
}

/* --- all that are asked for --- */

/* What is listed is of the request's arena. */
struct advising {
    const struct admin_request *request;
    const char *instance;
    int64_t until_us;       /* clock_steady_us */
    struct vector ids;      /* const char *, of tables that are to be looked at */
    struct vector tables;   /* Insight__TableAdvice * */
    struct vector left_out; /* const char * */
};

static status add_id(struct advising *advising, const char *id)
{
    struct arena *arena = advising->request->arena;
    const char *kept = arena_string(arena, bytes_of(id));
    if (kept == NULL)
        return status_out_of_memory();
    return vector_add(&advising->ids, arena, &kept, sizeof kept);
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
    Insight__TableAdvice *found;
    if (name == NULL)
        return status_out_of_memory();
    status s = cluster_table(request->bigtable->cluster, bytes_of(name), &table);
    if (s.code == STATUS_NOT_FOUND && !is_asked_for) {
        status_free(s);
        return status_ok();
    }
    TRY(s);
    s = look_at(request, table, advising->instance, &found);
    table_release(table);
    TRY(s);
    note_advice(request, name, found);
    return vector_add(&advising->tables, request->arena, &found, sizeof found);
}

static status advise_on_all(struct advising *advising)
{
    const struct admin_request *request = advising->request;
    const Insight__AdviseRequest *message = (const void *)request->message;
    const char *const *ids = advising->ids.items;
    for (size_t i = 0; i < advising->ids.count; i++) {
        TRY(insight_check_call(request));
        if (clock_steady_us(clock_system()) < advising->until_us)
            TRY(advise_on_table(advising, ids[i], message->n_tables > 0));
        else
            TRY(vector_add(&advising->left_out, request->arena, &ids[i], sizeof ids[i]));
    }
    return status_ok();
}

static status answer(const struct advising *advising, const ProtobufCMessage **response)
{
    Insight__Advice *advice;
    PROTO_NEW(advising->request->arena, advice, INSIGHT__ADVICE__INIT);
    advice->tables = advising->tables.items;
    advice->n_tables = advising->tables.count;
    advice->not_looked_at = advising->left_out.items;
    advice->n_not_looked_at = advising->left_out.count;
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
    TRY(list_ids(&advising));
    TRY(advise_on_all(&advising));
    return answer(&advising, response);
}

static status advise_on_the_database(const struct admin_request *request, const char *name,
                                     const ProtobufCMessage **response)
{
    struct advising advising = {.request = request};
    Insight__TableAdvice *found;
    TRY(advise_on_database(request, name, &found));
    note_advice(request, name, found);
    TRY(vector_add(&advising.tables, request->arena, &found, sizeof found));
    return answer(&advising, response);
}

status give_advice(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__AdviseRequest *message = (const void *)request->message;
    if (ds_is_database_table(message->name))
        return advise_on_the_database(request, message->name, response);
    return advise_on_instance(request, message->name, response);
}
