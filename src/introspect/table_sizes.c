/* ListTableSizes: the tables of an instance, with what SampleRowKeys would tell of each in sum. */
#include "base/vector.h"
#include "bigtable/default_instance.h"
#include "bigtable/names.h"
#include "introspect/methods.h"
#include "introspect/table_source.h"

struct listing {
    struct arena *arena;
    struct vector held;  /* struct table *, each with a reference */
    struct vector sizes; /* Insight__TableSize * */
    size_t limit;
    bool has_more;
    status failure;
};

static bool hold(void *context, struct table *table)
{
    struct listing *listing = context;
    listing->has_more = listing->held.count == listing->limit;
    if (listing->has_more)
        return false;
    listing->failure = vector_add(&listing->held, listing->arena, &table, sizeof table);
    if (!status_is_ok(listing->failure))
        return false;
    table_retain(table);
    return true;
}

static bool add_tablet(void *context, bytes end, uint64_t offset)
{
    Insight__TableSize *size = context;
    (void)end;
    size->tablets++;
    size->bytes = (int64_t)offset;
    return true;
}

/* What SampleRowKeys would tell the caller. */
static bool may_sample(const struct admin_request *request, struct table *table)
{
    struct access *access = request->bigtable->access;
    if (access == NULL)
        return true;
    struct permission_set granted =
        access_granted(access, request->caller, bytes_of(table_name(table)));
    return permission_set_has(granted, PERMISSION_tables_sampleRowKeys);
}

static status measure(struct listing *listing, const struct admin_request *request,
                      struct table *table)
{
    Insight__TableSize *size;
    PROTO_NEW(listing->arena, size, INSIGHT__TABLE_SIZE__INIT);
    size->id = arena_string(listing->arena, bytes_of(name_id(table_name(table))));
    if (size->id == NULL)
        return status_out_of_memory();
    if (may_sample(request, table))
        TRY(table_sample(table, add_tablet, size));
    return vector_add(&listing->sizes, listing->arena, &size, sizeof size);
}

static status measure_all(struct listing *listing, const struct admin_request *request)
{
    struct table **tables = listing->held.items;
    for (size_t i = 0; i < listing->held.count; i++) {
        TRY(insight_check_call(request));
        TRY(measure(listing, request, tables[i]));
    }
    return status_ok();
}

static void let_go(struct listing *listing)
{
    struct table **tables = listing->held.items;
    for (size_t i = 0; i < listing->held.count; i++)
        table_release(tables[i]);
}

static status list(struct listing *listing, const struct admin_request *request)
{
    const Insight__ListTableSizesRequest *message = (const void *)request->message;
    struct bigtable *bigtable = request->bigtable;
    const char *prefix = name_of_table(listing->arena, message->parent, "");
    const char *after = name_of_table(listing->arena, message->parent, message->page_token);
    if (prefix == NULL || after == NULL)
        return status_out_of_memory();
    TRY(cluster_list_tables(bigtable->cluster, bytes_of(prefix), bytes_of(after), hold, listing));
    TRY(listing->failure);
    return measure_all(listing, request);
}

status list_table_sizes(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__ListTableSizesRequest *message = (const void *)request->message;
    struct listing listing = {.arena = request->arena, .failure = status_ok()};
    Insight__ListTableSizesResponse *answer;
    TRY(name_check_instance(message->parent));
    TRY(check_instance_to_list(request->bigtable, message->parent));
    TRY(page_limit(message->page_size, &listing.limit));
    PROTO_NEW(request->arena, answer, INSIGHT__LIST_TABLE_SIZES_RESPONSE__INIT);
    status s = list(&listing, request);
    let_go(&listing);
    TRY(s);
    answer->tables = listing.sizes.items;
    answer->n_tables = listing.sizes.count;
    if (listing.has_more && answer->n_tables > 0)
        answer->next_page_token = answer->tables[answer->n_tables - 1]->id;
    *response = &answer->base;
    return status_ok();
}
