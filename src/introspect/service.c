/* See insight.h: the table of methods. */
#include "introspect/methods.h"

status insight_check_server(const char *name)
{
    if (strcmp(name, "servers/self") == 0)
        return status_ok();
    return status_make(STATUS_NOT_FOUND, "there is no server \"%s\" here: servers/self is the one",
                       name);
}

bool insight_is_asked_for(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return count == 0;
}

#define INSIGHT_HANDLER(method, prefix)                                                            \
    static void handle_##method(void *context, struct grpc_call *call, bytes request)              \
    {                                                                                              \
        struct insight *insight = context;                                                         \
        admin_call_run(insight->bigtable, insight, call, request, &prefix##__descriptor, method);  \
    }

INSIGHT_HANDLER(cancel_request, insight__cancel_request_request)
INSIGHT_HANDLER(give_advice, insight__advise_request)
INSIGHT_HANDLER(get_cpu_profile, insight__get_cpu_profile_request)
INSIGHT_HANDLER(get_metrics, insight__get_metrics_request)
INSIGHT_HANDLER(get_settings, insight__get_settings_request)
INSIGHT_HANDLER(get_stacks, insight__get_stacks_request)
INSIGHT_HANDLER(list_audit_entries, insight__list_audit_entries_request)
INSIGHT_HANDLER(list_damaged_ranges, insight__list_damaged_ranges_request)
INSIGHT_HANDLER(read_heat, insight__read_heat_request)
INSIGHT_HANDLER(read_metric_history, insight__read_metric_history_request)
INSIGHT_HANDLER(read_table_history, insight__read_metric_history_request)
INSIGHT_HANDLER(read_table_shape, insight__read_table_shape_request)
INSIGHT_HANDLER(list_running_requests, insight__list_running_requests_request)
INSIGHT_HANDLER(list_table_sizes, insight__list_table_sizes_request)
INSIGHT_HANDLER(list_view_upkeep, insight__list_view_upkeep_request)
INSIGHT_HANDLER(mute_advice, insight__mute_advice_request)
INSIGHT_HANDLER(unmute_advice, insight__unmute_advice_request)
INSIGHT_HANDLER(set_log_level, insight__set_log_level_request)
INSIGHT_HANDLER(repair_table, insight__repair_table_request)
INSIGHT_HANDLER(list_slow_requests, insight__list_slow_requests_request)

struct grpc_service insight_service(struct insight *insight)
{
    static const struct grpc_method methods[] = {
        {"Advise", GRPC_UNARY, handle_give_advice},
        {"CancelRequest", GRPC_UNARY, handle_cancel_request},
        {"GetCpuProfile", GRPC_UNARY, handle_get_cpu_profile},
        {"GetMetrics", GRPC_UNARY, handle_get_metrics},
        {"GetSettings", GRPC_UNARY, handle_get_settings},
        {"GetStacks", GRPC_UNARY, handle_get_stacks},
        {"ListAuditEntries", GRPC_UNARY, handle_list_audit_entries},
        {"ListDamagedRanges", GRPC_UNARY, handle_list_damaged_ranges},
        {"MuteAdvice", GRPC_UNARY, handle_mute_advice},
        {"ReadHeat", GRPC_UNARY, handle_read_heat},
        {"ReadMetricHistory", GRPC_UNARY, handle_read_metric_history},
        {"ReadTableHistory", GRPC_UNARY, handle_read_table_history},
        {"ReadTableShape", GRPC_UNARY, handle_read_table_shape},
        {"ListRunningRequests", GRPC_UNARY, handle_list_running_requests},
        {"ListTableSizes", GRPC_UNARY, handle_list_table_sizes},
        {"ListViewUpkeep", GRPC_UNARY, handle_list_view_upkeep},
        {"SetLogLevel", GRPC_UNARY, handle_set_log_level},
        {"RepairTable", GRPC_UNARY, handle_repair_table},
        {"ListSlowRequests", GRPC_UNARY, handle_list_slow_requests},
        {"UnmuteAdvice", GRPC_UNARY, handle_unmute_advice},
    };
    return (struct grpc_service){.name = "trestle.insight.v1.Insight",
                                 .methods = methods,
                                 .method_count = sizeof methods / sizeof *methods,
                                 .context = insight,
                                 .rest = &insight__insight__descriptor};
}
