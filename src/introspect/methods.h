/* The methods of the service, for service.c; each has a file of its own. */
#ifndef TRESTLE_INTROSPECT_METHODS_H
#define TRESTLE_INTROSPECT_METHODS_H

#include "bigtable/admin_call.h"
#include "introspect/insight.h"
#include "trestle/insight/v1/insight.pb-c.h"

admin_method cancel_request;
admin_method give_advice;
admin_method get_cpu_profile;
admin_method get_metrics;
admin_method get_settings;
admin_method get_stacks;
admin_method list_audit_entries;
admin_method list_damaged_ranges;
admin_method read_heat;
admin_method read_metric_history;
admin_method read_table_history;
admin_method read_table_shape;
admin_method list_running_requests;
admin_method list_table_sizes;
admin_method list_view_upkeep;
admin_method mute_advice;
admin_method unmute_advice;
admin_method repair_table;
admin_method list_slow_requests;
admin_method set_log_level;

/* NOT_FOUND unless it is the name of this server: servers/self. */
status insight_check_server(const char *name);

/* Whether it is asked for: it is among these names, or there are none, which asks for all. */
bool insight_is_asked_for(const char *const *names, size_t count, const char *name);

static inline const struct insight *insight_of(const struct admin_request *request)
{
    return request->more;
}

#endif
