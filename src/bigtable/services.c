/* What all services share: see services.h. */
#include "bigtable/services.h"

#include "bigtable/default_instance.h"
#include "google/bigtable/v2/response_params.pb-c.h"
#include "wire/proto.h"

static void encode_response_params(struct buffer *out)
{
    Bt__ResponseParams params = BT__RESPONSE_PARAMS__INIT;
    params.has_zone_id_case = BT__RESPONSE_PARAMS__HAS_ZONE_ID_ZONE_ID;
    params.zone_id = BIGTABLE_ZONE_ID;
    params.has_cluster_id_case = BT__RESPONSE_PARAMS__HAS_CLUSTER_ID_CLUSTER_ID;
    params.cluster_id = BIGTABLE_CLUSTER_ID;
    proto_encode(&params.base, out);
}

static status make_response_params(struct bigtable *bigtable)
{
    struct buffer params = {0};
    encode_response_params(&params);
    if (!params.failed)
        bigtable->response_params =
            grpc_header_create("x-goog-ext-425905942-bin", buffer_bytes(&params));
    buffer_free(&params);
    return bigtable->response_params == NULL ? status_out_of_memory() : status_ok();
}

status bigtable_init(struct bigtable *bigtable, const struct bigtable_options *options)
{
    *bigtable = (struct bigtable){.cluster = options->cluster,
                                  .auto_create = options->auto_create,
                                  .gc_on_read = options->gc_on_read};
    TRY(make_response_params(bigtable));
    TRY(control_open(options->cluster, options->log, &bigtable->control));
    TRY(adopt_tables(bigtable));
    return operations_start(bigtable->control, NULL, 0);
}

void bigtable_free(struct bigtable *bigtable)
{
    control_close(bigtable->control);
    bigtable->control = NULL;
    grpc_header_destroy(bigtable->response_params);
    bigtable->response_params = NULL;
}
