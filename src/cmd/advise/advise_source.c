/* See advise_source.h. */
#include "cmd/advise/advise_source.h"

#include "advisor/schema.h"
#include "advisor/siblings.h"
#include "client/table_samples.h"
#include "cmd/advise/advise_rows.h"
#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "transfer/table.h"

#define TABLE_ADMIN    "/google.bigtable.admin.v2.BigtableTableAdmin/"
#define INSTANCE_ADMIN "/google.bigtable.admin.v2.BigtableInstanceAdmin/"

/* Whether a server has no answer to a question, as it may. The status is freed then. */
static bool is_no_answer(status *s)
{
    bool is_none = s->code == STATUS_UNIMPLEMENTED || s->code == STATUS_PERMISSION_DENIED ||
                   s->code == STATUS_NOT_FOUND;
    if (is_none) {
        status_free(*s);
        *s = status_ok();
    }
    return is_none;
}

/* --- SampleRowKeys --- */

static status read_cuts(struct advice_source *source, struct advice_cuts *out)
{
    const struct client_source *client = client_source_of(source);
    struct table_samples samples;
    TRY(table_samples_read(client->session, client->table, source->arena, &samples));
    for (size_t i = 0; i < samples.count; i++) {
        const struct advice_cut cut = {samples.all[i].key, samples.all[i].offset};
        TRY(advice_cuts_add(out, &cut));
    }
    return status_ok();
}

/* --- ListHotTablets --- */

struct heat_list {
    struct client_session *session;
    const char *table;
    struct arena *arena;
    struct buffer found; /* struct advice_heat */
};

static int64_t time_of(const Pb__Timestamp *timestamp)
{
    const int64_t us_per_s = 1000 * 1000, ns_per_us = 1000;
    if (timestamp == NULL || timestamp->seconds < 0 ||
        timestamp->seconds > INT64_MAX / us_per_s - 1)
        return 0;
    return timestamp->seconds * us_per_s + timestamp->nanos / ns_per_us;
}

static status take_tablet(struct heat_list *list, const BtAdmin__HotTablet *tablet)
{
    struct advice_heat heat = {.from_us = time_of(tablet->start_time),
                               .until_us = time_of(tablet->end_time),
                               .cpu_percent = (double)tablet->node_cpu_usage_percent};
    if (strcmp(tablet->table_name, list->table) != 0)
        return status_ok();
    heat.start = client_key_of_text(bytes_of(tablet->start_key), list->arena);
    heat.end = client_key_of_text(bytes_of(tablet->end_key), list->arena);
    if (heat.start.data == NULL || heat.end.data == NULL)
        return status_out_of_memory();
    buffer_append(&list->found, &heat, sizeof heat);
    return list->found.failed ? status_out_of_memory() : status_ok();
}

static status list_cluster(struct heat_list *list, const char *cluster)
{
    enum { PAGES_MOST = 20 };
    BtAdmin__ListHotTabletsRequest request = BT_ADMIN__LIST_HOT_TABLETS_REQUEST__INIT;
    request.parent = cluster;
    for (size_t page = 0; page < PAGES_MOST; page++) {
        const ProtobufCMessage *message;
        TRY(client_session_call(list->session, INSTANCE_ADMIN "ListHotTablets", NULL, &request.base,
                                &bt_admin__list_hot_tablets_response__descriptor, list->arena,
                                &message));
        const BtAdmin__ListHotTabletsResponse *answer = (const void *)message;
        for (size_t i = 0; i < answer->n_hot_tablets; i++)
            TRY(take_tablet(list, answer->hot_tablets[i]));
        request.page_token = answer->next_page_token;
        if (request.page_token[0] == '\0')
            break;
    }
    return status_ok();
}

static status list_clusters(struct heat_list *list)
{
    const ProtobufCMessage *message;
    BtAdmin__ListClustersRequest request = BT_ADMIN__LIST_CLUSTERS_REQUEST__INIT;
    request.parent = client_session_instance(list->session);
    TRY(client_session_call(list->session, INSTANCE_ADMIN "ListClusters", NULL, &request.base,
                            &bt_admin__list_clusters_response__descriptor, list->arena, &message));
    const BtAdmin__ListClustersResponse *answer = (const void *)message;
    for (size_t i = 0; i < answer->n_clusters; i++)
        TRY(list_cluster(list, answer->clusters[i]->name));
    return status_ok();
}

static status read_heat(struct advice_source *source, struct advice_observations *out,
                        bool *is_answered)
{
    const struct client_source *client = client_source_of(source);
    struct heat_list list = {
        .session = client->session, .table = client->table, .arena = source->arena};
    status s = list_clusters(&list);
    *is_answered = !is_no_answer(&s);
    bytes kept = arena_copy(source->arena, buffer_bytes(&list.found));
    out->heat = (struct advice_heat *)(uintptr_t)kept.data;
    out->heat_count = kept.size / sizeof *out->heat;
    buffer_free(&list.found);
    return kept.data == NULL && status_is_ok(s) ? status_out_of_memory() : s;
}

/* --- other tables --- */

static const char *id_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash == NULL ? name : slash + 1;
}

static status add_siblings(const BtAdmin__ListTablesResponse *answer, const char *table_id,
                           struct buffer *found)
{
    for (size_t i = 0; i < answer->n_tables; i++) {
        const struct advice_sibling sibling = {.id = id_of(answer->tables[i]->name)};
        if (may_be_parts(table_id, sibling.id))
            buffer_append(found, &sibling, sizeof sibling);
    }
    return found->failed ? status_out_of_memory() : status_ok();
}

static status list_tables(struct client_session *session, const char *table_id, struct arena *arena,
                          struct buffer *found, size_t *tables)
{
    enum { PAGES_MOST = 100 };
    BtAdmin__ListTablesRequest request = BT_ADMIN__LIST_TABLES_REQUEST__INIT;
    request.parent = client_session_instance(session);
    for (size_t page = 0; page < PAGES_MOST; page++) {
        const ProtobufCMessage *message;
        TRY(client_session_call(session, TABLE_ADMIN "ListTables", NULL, &request.base,
                                &bt_admin__list_tables_response__descriptor, arena, &message));
        const BtAdmin__ListTablesResponse *answer = (const void *)message;
        TRY(add_siblings(answer, table_id, found));
        *tables += answer->n_tables;
        request.page_token = answer->next_page_token;
        if (request.page_token[0] == '\0')
            break;
    }
    return status_ok();
}

/* A table that has gone meanwhile, or is not the caller's to see, stays unknown. */
static status look_at(struct advice_source *source, struct advice_sibling *sibling)
{
    const struct client_source *client = client_source_of(source);
    const BtAdmin__Table *other;
    struct table_samples samples;
    status s = transfer_get_schema(client->session, sibling->id, source->arena, &other);
    if (is_no_answer(&s) || !status_is_ok(s))
        return s;
    s = table_samples_read(client->session, other->name, source->arena, &samples);
    if (is_no_answer(&s) || !status_is_ok(s))
        return s;
    sibling->has_same_families = advice_has_same_families(client->schema, other);
    sibling->size = table_samples_size(&samples);
    sibling->is_known = true;
    return status_ok();
}

static status read_siblings(struct advice_source *source, struct advice_observations *out)
{
    const struct client_source *client = client_source_of(source);
    struct buffer found = {0};
    status s =
        list_tables(client->session, client->table_id, source->arena, &found, &out->table_count);
    bytes kept = arena_copy(source->arena, buffer_bytes(&found));
    buffer_free(&found);
    if (is_no_answer(&s) || !status_is_ok(s))
        return s;
    if (kept.data == NULL)
        return status_out_of_memory();
    struct advice_sibling *siblings = (struct advice_sibling *)(uintptr_t)kept.data;
    out->siblings = siblings;
    out->sibling_count = kept.size / sizeof *siblings;
    for (size_t i = 0; i < out->sibling_count && i < SIBLINGS_KNOWN; i++)
        TRY(look_at(source, &siblings[i]));
    return status_ok();
}

/* --- all --- */

/* No API tells them. */
static status read_weights(struct advice_source *source, struct advice_observations *out)
{
    (void)source;
    (void)out;
    return status_ok();
}

static status read_schema(struct advice_source *source, struct advice_observations *out)
{
    struct client_source *client = client_source_of(source);
    TRY(transfer_get_schema(client->session, client->table_id, source->arena, &client->schema));
    return advice_set_families(client->schema, source->arena, out);
}

status client_source_init(struct client_source *client, struct client_session *session,
                          const char *table_id, struct arena *arena, struct advice_source *out)
{
    static const struct advice_source_calls calls = {.read_schema = read_schema,
                                                     .read_cuts = read_cuts,
                                                     .read_rows = client_read_rows,
                                                     .estimate_row = client_estimate_row,
                                                     .is_one_row = client_is_one_row,
                                                     .read_weights = read_weights,
                                                     .read_heat = read_heat,
                                                     .read_siblings = read_siblings};
    struct buffer name = {0};
    client_session_narrow(session, CLIENT_SOURCE_WINDOW);
    *client = (struct client_source){.session = session,
                                     .table_id = table_id,
                                     .received_before = client_session_received(session)};
    *out = (struct advice_source){.arena = arena, .context = client, .calls = &calls};
    buffer_append_format(&name, "%s/tables/%s", client_session_instance(session), table_id);
    client->table = name.failed ? NULL : arena_string(arena, buffer_bytes(&name));
    buffer_free(&name);
    return client->table == NULL ? status_out_of_memory() : status_ok();
}
