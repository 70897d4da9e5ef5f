/* SampleRowKeys: the ends of the table's tablets. Asks for sizes on a pool thread, since the store
 * may have to open a file for them. */
#include "bigtable/data_call.h"
#include "bigtable/data_methods.h"
#include "bigtable/row_ranges.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

struct sample_row_keys {
    struct data_call data;
    struct key_range range;
    bytes last; /* the last sample: the end of the range as the client gave it */
    struct task task;
};

static void send_sample(struct sample_row_keys *self, bytes row_key, uint64_t offset)
{
    struct buffer message = {0};
    Bt__SampleRowKeysResponse response = BT__SAMPLE_ROW_KEYS_RESPONSE__INIT;
    response.row_key = proto_data(row_key);
    response.offset_bytes = (int64_t)offset;
    grpc_message_start(&message);
    proto_encode(&response.base, &message);
    grpc_call_send(self->data.call, &message);
}

/* A tablet's end, empty for that of the table. The range's own end is always the last sample. */
static bool visit_tablet(void *context, bytes end, uint64_t offset)
{
    struct sample_row_keys *self = context;
    bytes last = self->last;
    bool is_before = end.size > 0 && bytes_compare(end, self->range.from) <= 0;
    bool is_last = end.size == 0 || (last.size > 0 && bytes_compare(end, last) >= 0);
    if (!is_before)
        send_sample(self, is_last ? last : end, offset);
    return !is_last;
}

static void run_on_pool(struct task *task)
{
    struct sample_row_keys *self = LIST_ENTRY(&task->link, struct sample_row_keys, task.link);
    data_call_finish(&self->data, table_sample(self->data.table, visit_tablet, self));
}

static status set_range(struct sample_row_keys *self, const Bt__RowRange *range)
{
    TRY(row_range_from_message(range, 0, self->data.arena, &self->range));
    self->last = self->range.to;
    if (range->end_key_case == BT__ROW_RANGE__END_KEY_END_KEY_CLOSED &&
        range->end_key_closed.len > 0)
        self->last = proto_bytes(range->end_key_closed);
    return status_ok();
}

static status start(struct sample_row_keys *self, bytes wire)
{
    struct data_call *data = &self->data;
    ProtobufCMessage *message;
    TRY(proto_decode(&bt__sample_row_keys_request__descriptor, wire, data->arena, &message));
    const Bt__SampleRowKeysRequest *request = (const void *)message;
    if (request->row_range != NULL)
        TRY(set_range(self, request->row_range));
    TRY(data_call_open_table(
        data, &(struct data_target){.table_name = request->table_name,
                                    .authorized_view_name = request->authorized_view_name,
                                    .materialized_view_name = request->materialized_view_name}));
    data_call_add_headers(data);
    self->task.run = run_on_pool;
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
