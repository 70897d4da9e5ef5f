/* SampleRowKeys: the ends of the table's tablets. Asks for sizes on a pool thread, since the store
 * may have to open a file for them. */
#include "bigtable/data_call.h"
#include "bigtable/data_methods.h"
#include "bigtable/row_ranges.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

struct sample_row_keys {
    struct data_call data;
    struct key_range range;
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
    const struct key_range *range = &self->range;
    bool is_before = end.size > 0 && bytes_compare(end, range->from) <= 0;
    bool is_last = end.size == 0 || (range->to.size > 0 && bytes_compare(end, range->to) >= 0);
    if (!is_before)
        send_sample(self, is_last ? range->to : end, offset);
    return !is_last;
}

static void run_on_pool(struct task *task)
{
    struct sample_row_keys *self = LIST_ENTRY(&task->link, struct sample_row_keys, task.link);
    data_call_finish(&self->data, table_sample(self->data.table, visit_tablet, self));
}

static status start(struct sample_row_keys *self, bytes wire)
{
    struct data_call *data = &self->data;
    ProtobufCMessage *message;
    TRY(proto_decode(&bt__sample_row_keys_request__descriptor, wire, data->arena, &message));
    const Bt__SampleRowKeysRequest *request = (const void *)message;
    if (request->row_range != NULL)
        TRY(row_range_from_message(request->row_range, 0, data->arena, &self->range));
    TRY(data_call_open_table(
        data, &(struct data_target){.table_name = request->table_name,
                                    .authorized_view_name = request->authorized_view_name,
                                    .materialized_view_name = request->materialized_view_name}));
    data_call_add_headers(data);
    self->task.run = run_on_pool;
    if (!pool_submit(cluster_pool(data->bigtable->cluster), &self->task))
        return status_make(STATUS_RESOURCE_EXHAUSTED, "Too many requests wait for a thread");
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
