/* See client_headers.h. */
#include "bigtable/client_headers.h"

#include "wire/grpc_text.h"
#include "wire/proto.h"

/* --- features --- */

static const Bt__FeatureFlags no_features = BT__FEATURE_FLAGS__INIT;

static status decode_features(struct grpc_call *call, bytes text, ProtobufCMessage **out)
{
    struct arena *arena = grpc_call_arena(call);
    size_t size;
    uint8_t *decoded = arena_alloc(arena, base64_decoded_most(text.size));
    if (decoded == NULL)
        return status_out_of_memory();
    if (!base64_decode(text, decoded, &size))
        return status_make(STATUS_INVALID_ARGUMENT, "Not base64");
    return proto_decode(&bt__feature_flags__descriptor, bytes_make(decoded, size), arena, out);
}

const Bt__FeatureFlags *client_features(struct grpc_call *call)
{
    bytes text;
    ProtobufCMessage *features = NULL;
    if (!grpc_call_header(call, "bigtable-features", &text))
        return &no_features;
    status s = decode_features(call, text, &features);
    bool is_read = status_is_ok(s);
    status_free(s);
    return is_read ? (const void *)features : &no_features;
}

/* --- routing --- */

/* Whether it is the name, or that of something above it. */
static bool leads_to(bytes encoded, bytes name)
{
    struct buffer decoded = {0};
    grpc_percent_decode(encoded, &decoded);
    bytes prefix = buffer_bytes(&decoded);
    bool leads = decoded.failed || prefix.size == 0 || bytes_equal(prefix, name) ||
                 (bytes_start_with(name, prefix) && name.data[prefix.size] == '/');
    buffer_free(&decoded);
    return leads;
}

static bool is_resource_key(bytes key)
{
    return bytes_equal(key, bytes_of("table_name")) || bytes_equal(key, bytes_of("name")) ||
           bytes_equal(key, bytes_of("authorized_view_name")) ||
           bytes_equal(key, bytes_of("materialized_view_name"));
}

status client_routing_check(struct grpc_call *call, const char *resource_name)
{
    return client_routing_check_either(call, resource_name, resource_name);
}

status client_routing_check_either(struct grpc_call *call, const char *resource_name,
                                   const char *other)
{
    bytes rest, key, value;
    if (!grpc_call_header(call, "x-goog-request-params", &rest))
        return status_ok();
    while (grpc_parameter_next(&rest, &key, &value)) {
        if (is_resource_key(key) && !leads_to(value, bytes_of(resource_name)) &&
            !leads_to(value, bytes_of(other)))
            return status_make(STATUS_INVALID_ARGUMENT,
                               "The request is for %s, but its routing header "
                               "(x-goog-request-params) is for another resource",
                               resource_name);
    }
    return status_ok();
}
