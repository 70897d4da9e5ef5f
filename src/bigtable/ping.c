/* PingAndWarm and GetClientConfiguration: what clients ask before their first real request. */
#include "bigtable/client_headers.h"
#include "bigtable/data_call.h"
#include "bigtable/data_methods.h"
#include "bigtable/names.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

static status ping(struct data_call *data, bytes request)
{
    ProtobufCMessage *message;
    TRY(proto_decode(&bt__ping_and_warm_request__descriptor, request, data->arena, &message));
    const Bt__PingAndWarmRequest *ping_request = (const void *)message;
    grpc_call_set_profile(data->call, ping_request->app_profile_id);
    TRY(name_check_instance(ping_request->name));
    TRY(client_routing_check(data->call, ping_request->name));
    data_call_serve(data, ping_request->name, ping_request->app_profile_id);
    const Bt__PingAndWarmResponse response = BT__PING_AND_WARM_RESPONSE__INIT;
    data_call_respond(data, &response.base);
    return status_ok();
}

void ping_and_warm(void *context, struct grpc_call *call, bytes request)
{
    struct data_call *data = data_call_create(context, call, sizeof *data);
    if (data == NULL)
        return;
    status s = ping(data, request);
    if (!status_is_ok(s))
        data_call_finish(data, s);
}

/* Clients that know sessions ask whether to use them, and go on asking until they are told to stop.
 * A load of 0 sends every request the plain way. */
static status configure(struct data_call *data, bytes request)
{
    ProtobufCMessage *message;
    TRY(proto_decode(&bt__get_client_configuration_request__descriptor, request, data->arena,
                     &message));
    TRY(name_check_instance(((const Bt__GetClientConfigurationRequest *)message)->instance_name));
    Bt__SessionClientConfiguration no_sessions = BT__SESSION_CLIENT_CONFIGURATION__INIT;
    Bt__ClientConfiguration response = BT__CLIENT_CONFIGURATION__INIT;
    response.session_configuration = &no_sessions;
    response.polling_case = BT__CLIENT_CONFIGURATION__POLLING_STOP_POLLING;
    response.stop_polling = true;
    data_call_respond(data, &response.base);
    return status_ok();
}

void get_client_configuration(void *context, struct grpc_call *call, bytes request)
{
    struct data_call *data = data_call_create(context, call, sizeof *data);
    if (data == NULL)
        return;
    status s = configure(data, request);
    if (!status_is_ok(s))
        data_call_finish(data, s);
}
