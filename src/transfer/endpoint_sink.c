#include "transfer/endpoint_sink.h"

#include "client/row_writer.h"

#include <stdlib.h>

enum { UNDER_WAY = 4 };

struct endpoint_sink {
    struct transfer_refusal refusal;
    const char **aggregates; /* names, and NULL */
    struct row_writer *writer;
};

static void refused(void *context, uint64_t tag, bytes text, status why)
{
    struct endpoint_sink *sink = context;
    sink->refusal.refused(sink->refusal.context, tag, text, why);
}

static status find_aggregates(const BtAdmin__Table *schema, struct endpoint_sink *sink)
{
    size_t count = 0;
    sink->aggregates = calloc(schema->n_column_families + 1, sizeof *sink->aggregates);
    if (sink->aggregates == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < schema->n_column_families; i++) {
        const BtAdmin__Type *type = schema->column_families[i]->value->value_type;
        if (type != NULL && type->kind_case == BT_ADMIN__TYPE__KIND_AGGREGATE_TYPE)
            sink->aggregates[count++] = schema->column_families[i]->key;
    }
    return status_ok();
}

static status prepare(const struct endpoint_sink_options *options, struct endpoint_sink *sink)
{
    TRY(find_aggregates(options->schema, sink));
    const struct row_writer_options writer = {
        .loop = client_session_loop(options->session),
        .endpoint = client_session_endpoint(options->session),
        .table = options->table,
        .app_profile = client_session_app_profile(options->session),
        .aggregates = sink->aggregates,
        .under_way = UNDER_WAY,
        .rows_per_second = options->rows_per_second,
        .context = sink,
        .refused = refused,
    };
    return row_writer_create(&writer, &sink->writer);
}

status endpoint_sink_create(const struct endpoint_sink_options *options, struct endpoint_sink **out)
{
    struct endpoint_sink *sink = *out = calloc(1, sizeof *sink);
    if (sink == NULL)
        return status_out_of_memory();
    sink->refusal = options->refusal;
    status s = prepare(options, sink);
    if (status_is_ok(s))
        return s;
    endpoint_sink_destroy(sink);
    *out = NULL;
    return s;
}

void endpoint_sink_destroy(struct endpoint_sink *sink)
{
    if (sink == NULL)
        return;
    row_writer_destroy(sink->writer);
    free(sink->aggregates);
    free(sink);
}

static status add(void *context, const struct transfer_record *record)
{
    struct endpoint_sink *sink = context;
    return row_writer_add(sink->writer, &record->change, record->tag, record->text);
}

static status flush(void *context)
{
    struct endpoint_sink *sink = context;
    return row_writer_flush(sink->writer);
}

struct transfer_sink endpoint_sink_interface(struct endpoint_sink *sink)
{
    return (struct transfer_sink){.context = sink, .add = add, .flush = flush};
}
