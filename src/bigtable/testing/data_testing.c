/* See data_testing.h. */
#include "bigtable/testing/data_testing.h"

#include "bigtable/materialized.h"
#include "bigtable/served_by.h"
#include "google/bigtable/admin/v2/table.pb-c.h"
#include "wire/call_steps.h"

enum { ARENA_LIMIT = 256 << 20, MOST_TURNS = 100000 };

struct fake_server fake;

/* --- time, threads, tables --- */

static int64_t fake_now(struct clock *clock)
{
    (void)clock;
    return fake.now_us += fake.tick_us;
}

static struct clock fake_clock = {.wall_us = fake_now, .steady_us = fake_now};

void loop_post(struct loop *loop, struct task *task)
{
    (void)loop;
    list_append(&fake.loop, &task->link);
}

struct clock *loop_clock(const struct loop *loop)
{
    (void)loop;
    return &fake_clock;
}

status loop_timer_set(struct loop *loop, struct timer *timer, int64_t due_us)
{
    (void)loop;
    assert_true(fake.timer == NULL && due_us > fake.now_us);
    if (fake.timers_fail)
        return status_out_of_memory();
    timer->due_us = due_us;
    fake.timer = timer;
    return status_ok();
}

void loop_timer_clear(struct loop *loop, struct timer *timer)
{
    (void)loop;
    assert_true(fake.timer == NULL || fake.timer == timer);
    fake.timer = NULL;
}

bool pool_submit(struct pool *pool, struct task *task)
{
    (void)pool;
    if (!fake.pool_is_full)
        list_append(&fake.pool, &task->link);
    return !fake.pool_is_full;
}

struct pool *cluster_pool(struct cluster *cluster)
{
    (void)cluster;
    return NULL;
}

struct clock *cluster_clock(struct cluster *cluster)
{
    (void)cluster;
    return &fake_clock;
}

status cluster_table(struct cluster *cluster, bytes name, struct table **out)
{
    (void)cluster;
    assert_true(bytes_equal(name, bytes_of(TABLE_NAME)));
    *out = (void *)&fake;
    fake.tables_held++;
    return status_ok();
}

void table_release(struct table *table)
{
    (void)table;
    fake.tables_held--;
}

const char *table_name(const struct table *table)
{
    (void)table;
    return TABLE_NAME;
}

const struct schema *table_schema(const struct table *table)
{
    (void)table;
    return fake.schema;
}

bool table_has_stream(const struct table *table)
{
    (void)table;
    return false;
}

int64_t cluster_version_us(struct cluster *cluster)
{
    (void)cluster;
    return fake.now_us + fake.lead_us;
}

int64_t cluster_wall_us(struct cluster *cluster)
{
    (void)cluster;
    return fake.now_us;
}

double cluster_write_load(struct cluster *cluster)
{
    (void)cluster;
    return fake.write_load;
}

/* --- views --- */

bool control_has(struct control *control, enum resource_kind kind, const char *name)
{
    (void)control, (void)kind, (void)name;
    return true;
}

status control_find(struct control *control, enum resource_kind kind, const char *name,
                    struct resource **out)
{
    (void)control;
    assert_int_equal(kind, RESOURCE_AUTHORIZED_VIEW);
    if (fake.view == NULL || strcmp(name, VIEW_NAME) != 0)
        return status_make(STATUS_NOT_FOUND, "Not found: %s", name);
    resource_retain(fake.view);
    *out = fake.view;
    return status_ok();
}

/* Its rows are the table's. */
status materialized_open(struct bigtable *bigtable, const char *name, struct table **out)
{
    (void)bigtable;
    if (strcmp(name, MATERIALIZED_NAME) != 0)
        return status_make(STATUS_NOT_FOUND, "Not found: %s", name);
    *out = (void *)&fake;
    fake.tables_held++;
    return status_ok();
}

void fake_add_view(const char *row_prefix, const char *family)
{
    ProtobufCBinaryData all = {0}, prefix = proto_data(bytes_of(row_prefix));
    BtAdmin__AuthorizedView__FamilySubsets columns =
        BT_ADMIN__AUTHORIZED_VIEW__FAMILY_SUBSETS__INIT;
    columns.n_qualifier_prefixes = 1;
    columns.qualifier_prefixes = &all;
    BtAdmin__AuthorizedView__SubsetView__FamilySubsetsEntry entry =
        BT_ADMIN__AUTHORIZED_VIEW__SUBSET_VIEW__FAMILY_SUBSETS_ENTRY__INIT;
    entry.key = family;
    entry.value = &columns;
    BtAdmin__AuthorizedView__SubsetView__FamilySubsetsEntry *entries[] = {&entry};
    BtAdmin__AuthorizedView__SubsetView subset = BT_ADMIN__AUTHORIZED_VIEW__SUBSET_VIEW__INIT;
    subset.n_row_prefixes = 1;
    subset.row_prefixes = &prefix;
    subset.n_family_subsets = 1;
    subset.family_subsets = entries;
    BtAdmin__AuthorizedView view = BT_ADMIN__AUTHORIZED_VIEW__INIT;
    view.authorized_view_case = BT_ADMIN__AUTHORIZED_VIEW__AUTHORIZED_VIEW_SUBSET_VIEW;
    view.subset_view = &subset;
    struct buffer body = {0};
    proto_encode(&view.base, &body);
    assert_ok(resource_create(RESOURCE_AUTHORIZED_VIEW, VIEW_NAME, 1, buffer_bytes(&body),
                              bytes_make(NULL, 0), &fake.view));
    buffer_free(&body);
}

/* --- the call --- */

struct arena *grpc_call_arena(struct grpc_call *call)
{
    return call->arena;
}

struct loop *grpc_call_loop(struct grpc_call *call)
{
    (void)call;
    return NULL;
}

void grpc_call_set_profile(struct grpc_call *call, const char *id)
{
    (void)call;
    (void)id;
}

bool grpc_call_header(struct grpc_call *call, const char *name, bytes *value)
{
    bool is_routing = strcmp(name, "x-goog-request-params") == 0;
    if (!is_routing)
        assert_string_equal(name, "bigtable-features");
    const char *text = is_routing ? call->routing : call->features;
    if (text != NULL)
        *value = bytes_of(text);
    return text != NULL;
}

bool grpc_call_is_cancelled(const struct grpc_call *call)
{
    return call->is_cancelled;
}

status grpc_call_admit_again(struct grpc_call *call)
{
    assert_false(call->is_finished);
    return call->is_refused ? status_make(STATUS_PERMISSION_DENIED, "no more") : status_ok();
}

bool grpc_call_is_congested(struct grpc_call *call)
{
    return call->is_congested;
}

void grpc_call_count(struct grpc_call *call, int64_t items, int64_t seen)
{
    assert_false(call->is_finished);
    assert_true(items >= 0 && seen >= 0);
}

void grpc_call_rested(struct grpc_call *call, int64_t us)
{
    assert_false(call->is_finished);
    assert_true(us >= 0);
}

void grpc_call_is_at(struct grpc_call *call, enum call_step step)
{
    (void)call;
    (void)step;
}

void grpc_call_step(struct grpc_call *call, enum call_step step)
{
    assert_false(call->is_finished);
    assert_in_range(step, CALL_WORKS, CALL_STEPS - 1);
}

void grpc_call_step_at(struct grpc_call *call, enum call_step step, int64_t at_us)
{
    grpc_call_step(call, step);
    assert_true(at_us >= 0);
}

void grpc_call_add_header(struct grpc_call *call, const char *name, bytes value)
{
    assert_int_equal(call->messages, 0);
    assert_non_null(name);
    assert_true(value.size > 0);
}

void grpc_call_add_trailer(struct grpc_call *call, const char *name, bytes value)
{
    assert_true(bytes_start_with(bytes_of(name), bytes_of("x-goog-cbt-cookie")));
    assert_true(value.size > 0);
    assert_null(call->cookie);
    call->cookie = name;
}

void grpc_call_share_headers(struct grpc_call *call, const struct metadata *headers)
{
    (void)headers;
    assert_int_equal(call->messages, 0);
    call->headers++;
}

void grpc_call_share_trailers(struct grpc_call *call, const struct metadata *trailers)
{
    (void)call;
    (void)trailers;
}

int64_t grpc_call_begun_us(const struct grpc_call *call)
{
    (void)call;
    return fake.now_us;
}

uint32_t usage_weight(struct table *table, int64_t began_us)
{
    (void)table, (void)began_us;
    return 1;
}

void usage_note_scan(struct table *table, const struct usage_scan *scan)
{
    (void)table;
    fake.usage.scan = *scan;
    fake.usage.scans++;
}

void usage_note_read(struct table *table, const struct usage_read *read)
{
    (void)table;
    fake.usage.reads += read->request.weight;
}

void usage_note_write(struct table *table, const struct usage_request *request, bytes key,
                      bool is_cell)
{
    (void)table, (void)key, (void)is_cell;
    fake.usage.writes += request->weight;
}

void usage_note_increment(struct table *table, const struct usage_request *request, bytes key,
                          bytes family, bytes qualifier)
{
    (void)table, (void)key, (void)family, (void)qualifier;
    fake.usage.increments += request->weight;
}

uint64_t grpc_call_connection(const struct grpc_call *call)
{
    (void)call;
    return 1;
}

status served_by_find(struct served_by *served_by, bytes instance, const char *profile,
                      struct served *out)
{
    (void)served_by;
    (void)profile;
    assert_true(bytes_equal(instance, bytes_of("projects/p/instances/i")));
    *out = (struct served){.allows_transactions = true};
    return status_ok();
}

void grpc_call_set_callbacks(struct grpc_call *call, void *context,
                             void (*on_writable)(void *context), void (*on_cancel)(void *context))
{
    call->context = context;
    call->on_writable = on_writable;
    call->on_cancel = on_cancel;
}

void grpc_call_set_on_drain(struct grpc_call *call, void (*on_drain)(void *context))
{
    call->on_drain = on_drain;
}

void grpc_message_start(struct buffer *message)
{
    static const uint8_t prefix[GRPC_PREFIX_SIZE];
    buffer_clear(message);
    buffer_append(message, prefix, sizeof prefix);
}

void grpc_piece_start(struct buffer *piece)
{
    static const uint8_t room[GRPC_PIECE_SIZE];
    buffer_clear(piece);
    buffer_append(piece, room, sizeof room);
}

static void take_message(struct grpc_call *call, bytes wire)
{
    call->messages++;
    bytes copy = arena_copy(call->arena, wire);
    assert_non_null(copy.data);
    call->receive(call, copy);
}

static void note_sent(struct grpc_call *call, size_t size)
{
    call->largest = size > call->largest ? size : call->largest;
    call->is_congested =
        call->congests_after > 0 && call->messages + call->pieces >= call->congests_after;
}

void grpc_call_send(struct grpc_call *call, struct buffer *message)
{
    assert_false(call->is_finished || message->failed || call->body_left > 0);
    bytes wire = bytes_from(buffer_bytes(message), GRPC_PREFIX_SIZE);
    take_message(call, wire);
    note_sent(call, wire.size);
    buffer_free(message);
}

void grpc_call_announce(struct grpc_call *call, uint32_t body_size)
{
    assert_false(call->is_finished || call->body_left > 0);
    call->body_left = body_size;
}

void grpc_call_send_piece(struct grpc_call *call, struct buffer *piece)
{
    assert_false(call->is_finished || piece->failed);
    bytes part = bytes_from(buffer_bytes(piece), GRPC_PIECE_SIZE);
    assert_in_range(part.size, 1, call->body_left);
    buffer_append_bytes(&call->body, part);
    call->body_left -= part.size;
    call->pieces++;
    if (call->body_left == 0) {
        take_message(call, buffer_bytes(&call->body));
        buffer_free(&call->body);
    }
    note_sent(call, part.size);
    buffer_free(piece);
}

bool grpc_call_wants_small_messages(const struct grpc_call *call)
{
    return call->wants_small;
}

void grpc_call_finish(struct grpc_call *call, status s)
{
    assert_false(call->is_finished || (status_is_ok(s) && call->body_left > 0));
    buffer_free(&call->body);
    call->is_finished = true;
    call->code = s.code;
    call->has_details = status_details(s).size > 0;
    status_free(s);
}

/* --- driving it --- */

void fake_reset(const struct schema *schema)
{
    fake = (struct fake_server){.tick_us = 1, .schema = schema};
    fake.call.arena = arena_create(ARENA_LIMIT);
    assert_non_null(fake.call.arena);
}

void fake_free(void)
{
    assert_int_equal(fake.tables_held, 0);
    assert_null(fake.timer);
    assert_true(fake.view == NULL || atomic_load(&fake.view->references) == 1);
    resource_release(fake.view);
    assert_true(list_is_empty(&fake.loop) && list_is_empty(&fake.pool));
    arena_destroy(fake.call.arena);
}

void fake_call(grpc_handler *method, const ProtobufCMessage *request)
{
    static struct bigtable bigtable;
    struct buffer wire = {0};
    struct grpc_call *call = &fake.call;
    call->is_finished = false;
    call->messages = call->headers = 0;
    call->cookie = NULL;
    bigtable.values = fake.values;
    bigtable.largest_cell = fake.largest_cell;
    proto_encode(request, &wire);
    bytes copy = arena_copy(fake.call.arena, buffer_bytes(&wire));
    assert_non_null(copy.data);
    buffer_free(&wire);
    method(&bigtable, &fake.call, copy);
}

static bool run_one(struct list *tasks)
{
    struct link *link = list_take(tasks);
    if (link == NULL)
        return false;
    struct task *task = LIST_ENTRY(link, struct task, link);
    task->run(task);
    return true;
}

void fake_time_is_over(void)
{
    struct timer *timer = fake.timer;
    assert_non_null(timer);
    fake.timer = NULL;
    timer->run(timer);
}

void fake_run(void)
{
    for (int turns = 0; run_one(&fake.loop) || run_one(&fake.pool); turns++)
        assert_true(turns < MOST_TURNS);
}
