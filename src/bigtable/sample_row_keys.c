/* SampleRowKeys: the ends of the table's tablets, as far as they lie in the rows asked for, and
 * where these end. Asks for sizes on a pool thread, since the store may have to open a file for
 * them. */
#include "bigtable/data_call.h"
#include "bigtable/data_methods.h"
#include "bigtable/row_ranges.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "wire/proto_call.h"

struct sample_row_keys {
    struct data_call data;
    struct row_ranges ranges;
    size_t at; /* the range whose samples are due */
    struct task task;
};

static void send_sample(struct sample_row_keys *self, bytes row_key, uint64_t offset)
{
    Bt__SampleRowKeysResponse response = BT__SAMPLE_ROW_KEYS_RESPONSE__INIT;
    response.row_key = proto_data(row_key);
    response.offset_bytes = (int64_t)offset;
    grpc_call_send_proto(self->data.call, &response.base);
}

/* A tablet's end, empty for that of the table. The range's own end is always its last sample. */
static bool visit_tablet(void *context, bytes end, uint64_t offset)
{
    struct sample_row_keys *self = context;
    for (; self->at < self->ranges.count; self->at++) {
        const struct key_range *range = &self->ranges.items[self->at];
        bool is_last = end.size == 0 || (range->to.size > 0 && bytes_compare(end, range->to) >= 0);
        if (!is_last) {
            if (bytes_compare(end, range->from) > 0)
                send_sample(self, end, offset);
            return true;
        }
        send_sample(self, range->to, offset);
    }
    return false;
}

static void run_on_pool(struct task *task)
{
    struct sample_row_keys *self = LIST_ENTRY(&task->link, struct sample_row_keys, task.link);
    grpc_call_step(self->data.call, CALL_READS);
    data_call_finish(&self->data, table_sample(self->data.table, visit_tablet, self));
}

/* An inclusive end has become its key's successor; what the client is told is what it gave. */
static void tell_end_as_given(struct row_ranges *ranges, const Bt__RowRange *given, bytes end)
{
    if (ranges->count == 0 || given->end_key_case != BT__ROW_RANGE__END_KEY_END_KEY_CLOSED ||
        given->end_key_closed.len == 0)
        return;
    struct key_range *last = &ranges->items[ranges->count - 1];
    if (bytes_equal(last->to, end))
        last->to = proto_bytes(given->end_key_closed);
}

/* The rows asked for, as far as they are in the view. */
static status set_ranges(struct sample_row_keys *self, const Bt__RowRange *given)
{
    struct arena *arena = self->data.arena;
    struct key_range *whole = arena_zalloc(arena, sizeof *whole);
    if (whole == NULL)
        return status_out_of_memory();
    if (given != NULL)
        TRY(row_range_from_message(given, 0, arena, whole));
    bytes end = whole->to;
    self->ranges = (struct row_ranges){.items = whole, .count = 1};
    if (self->data.view != NULL)
        TRY(row_ranges_intersect(&self->ranges, &self->data.view->rows, arena));
    if (given != NULL)
        tell_end_as_given(&self->ranges, given, end);
    return status_ok();
}

static status start(struct sample_row_keys *self, bytes wire)
{
    struct data_call *data = &self->data;
    ProtobufCMessage *message;
    TRY(proto_decode(&bt__sample_row_keys_request__descriptor, wire, data->arena, &message));
    const Bt__SampleRowKeysRequest *request = (const void *)message;
    TRY(data_call_open(
        data, &(struct data_target){.table_name = request->table_name,
                                    .app_profile_id = request->app_profile_id,
                                    .authorized_view_name = request->authorized_view_name,
                                    .materialized_view_name = request->materialized_view_name}));
    TRY(set_ranges(self, request->row_range));
    data_call_add_headers(data);
    self->task.run = run_on_pool;
    grpc_call_step(data->call, CALL_AWAITS_THREAD);
    if (!pool_submit(cluster_pool(data->bigtable->cluster), &self->task))
        return pool_full();
    return status_ok();
}

void sample_row_keys(void *context, struct grpc_call *call, bytes request)
{
    struct sample_row_keys *self = data_call_create(context, call, sizeof *self);
    if (self == NULL)
        return;
    status s = start(self, request);
    if (!status_is_ok(s))
        data_call_finish(&self->data, s);
}
