/* See table_samples.h. */
#include "client/table_samples.h"

#include "google/bigtable/v2/bigtable.pb-c.h"

#define SAMPLE_ROW_KEYS "/google.bigtable.v2.Bigtable/SampleRowKeys"

static status make_room(struct table_samples *samples)
{
    if (samples->count < samples->capacity)
        return status_ok();
    size_t capacity = samples->capacity == 0 ? 64 : 2 * samples->capacity;
    struct table_sample *grown = arena_alloc(samples->arena, capacity * sizeof *grown);
    if (grown == NULL)
        return status_out_of_memory();
    if (samples->count > 0)
        memcpy(grown, samples->all, samples->count * sizeof *grown);
    samples->all = grown;
    samples->capacity = capacity;
    return status_ok();
}

static status take_sample(void *context, bytes message)
{
    struct table_samples *samples = context;
    ProtobufCMessage *decoded;
    TRY(proto_decode(&bt__sample_row_keys_response__descriptor, message, samples->arena, &decoded));
    const Bt__SampleRowKeysResponse *answer = (const void *)decoded;
    bytes key = arena_copy(samples->arena, proto_bytes(answer->row_key));
    if (key.data == NULL)
        return status_out_of_memory();
    TRY(make_room(samples));
    samples->all[samples->count++] = (struct table_sample){
        .key = key,
        .offset = answer->offset_bytes < 0 ? 0 : (uint64_t)answer->offset_bytes,
    };
    return status_ok();
}

status table_samples_read(struct client_session *session, const char *table, struct arena *arena,
                          struct table_samples *out)
{
    Bt__SampleRowKeysRequest request = BT__SAMPLE_ROW_KEYS_REQUEST__INIT;
    *out = (struct table_samples){.arena = arena};
    request.table_name = table;
    request.app_profile_id = client_session_app_profile(session);
    const struct session_call call = {.path = SAMPLE_ROW_KEYS,
                                      .request = &request.base,
                                      .table = table,
                                      .timeout_us = INT64_MAX,
                                      .on_message = take_sample,
                                      .context = out};
    return client_session_stream(session, &call, NULL);
}

uint64_t table_samples_size(const struct table_samples *samples)
{
    return samples->count == 0 ? 0 : samples->all[samples->count - 1].offset;
}
