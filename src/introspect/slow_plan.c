/* See slow_plan.h. The services know their requests; what they have in common is done here. */
#include "introspect/slow_plan.h"

#include "access/rules.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "bigtable/describe.h"
#include "datastore/query/describe.h"

#include <inttypes.h>

static void add_request(const struct grpc_call_record *record, struct arena *arena,
                        struct slow_plan *out)
{
    const char *service = record->service->name;
    const char *method = record->method->name;
    if (record->request.size > LIMIT_SLOW_DESCRIBED_BYTES)
        buffer_append_format(&out->words, "a request of %zu bytes, too large to be described\n",
                             record->request.size);
    else if (strcmp(service, "google.bigtable.v2.Bigtable") == 0)
        bigtable_describe(method, record->request, arena, &out->words, &out->app_profile);
    else if (strcmp(service, "google.datastore.v1.Datastore") == 0)
        ds_describe(method, record->request, arena, &out->words);
}

void slow_plan_make(const struct grpc_call_record *record, struct arena *arena,
                    struct slow_plan *out)
{
    out->app_profile = "";
    out->resource = rule_name_of(record->service->name, record->method->name, record->request);
    add_request(record, arena, out);
    buffer_append_bytes(&out->words, record->explanation);
    out->words.size = utf8_cut(buffer_bytes(&out->words), LIMIT_SLOW_PLAN_BYTES).size;
}
