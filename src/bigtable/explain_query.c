/* EXPLAIN: see explain_query.h. */
#include "bigtable/explain_query.h"

#include "bigtable/query_messages.h"

static const char header[] = "trestle-explain";

status explain_asked(struct grpc_call *call, enum query_explain *out)
{
    bytes word;
    *out = QUERY_RUN;
    if (!grpc_call_header(call, header, &word))
        return status_ok();
    if (bytes_equal(word, bytes_of("plan")))
        *out = QUERY_PLAN;
    else if (bytes_equal(word, bytes_of("analyze")))
        *out = QUERY_ANALYZE;
    else
        return status_make(STATUS_INVALID_ARGUMENT, "%s must be plan or analyze", header);
    return status_ok();
}

const struct sql_operator *explain_columns(void)
{
    static const struct sql_column column = {.name = "plan", .type = &sql_string};
    static const struct sql_operator lines = {
        .kind = SQL_OP_ONE_ROW, .columns = &column, .column_count = 1};
    return &lines;
}

static void append_counts(const struct explained_run *run, struct sql_execution *execution,
                          struct buffer *text)
{
    struct sql_execution_counts counts = sql_execution_counts(execution);
    buffer_append_format(
        text, "read: %llu rows, %llu cells\nresult: %llu rows in %.3f s, %zu KB kept\n",
        (unsigned long long)counts.rows_read, (unsigned long long)counts.cells_read,
        (unsigned long long)run->rows, (double)run->taken_us / 1e6, counts.memory_peak >> 10);
}

static void append_lines(bytes text, struct buffer *batch)
{
    while (text.size > 0) {
        const uint8_t *end = memchr(text.data, '\n', text.size);
        size_t size = end == NULL ? text.size : (size_t)(end - text.data);
        struct sql_value line = sql_of_text(bytes_make(text.data, size));
        query_value_append(batch, &sql_string, &line);
        text = bytes_from(text, end == NULL ? size : size + 1);
    }
}

status explain_words(struct sql_execution *execution, const struct explained_run *run,
                     struct buffer *out)
{
    TRY(sql_execution_explain(execution, out));
    if (run != NULL)
        append_counts(run, execution, out);
    return status_ok();
}

status explain_query(struct sql_execution *execution, const struct explained_run *run,
                     struct buffer *batch)
{
    struct buffer text = {0};
    status s = explain_words(execution, run, &text);
    if (status_is_ok(s))
        append_lines(buffer_bytes(&text), batch);
    bool failed = text.failed || batch->failed;
    buffer_free(&text);
    return status_is_ok(s) && failed ? status_out_of_memory() : s;
}
