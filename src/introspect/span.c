/* See span.h. The names of attributes are those of OpenTelemetry's conventions for RPCs, and our
 * own, which begin with `trestle.`. */
#include "introspect/span.h"

#include "access/rules.h"
#include "trestle/trace.pb-c.h"
#include "wire/proto.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ATTRIBUTES_MOST = 12 + CALL_STEPS,
    SPAN_WITHIN = 1,
    SPAN_OF_SERVER = 2,
    CODE_ERROR = 2,
    FLAG_SAMPLED = 1,
    FLAG_REMOTE_IS_KNOWN = 0x100,
    FLAG_IS_REMOTE = 0x200,
    NANOSECONDS_EACH = 1000,
};

/* Longer names are cut. */
static void set_resource(const struct grpc_call_record *record, struct span *out)
{
    struct buffer text = {0};
    out->resource[0] = '\0';
    if (record->method == NULL)
        return;
    bytes name = rule_name_of(record->service->name, record->method->name, record->request);
    buffer_append_readable(&text, name, SPAN_NAME_MOST);
    size_t size = text.size < SPAN_NAME_MOST ? text.size : SPAN_NAME_MOST;
    if (!text.failed && size > 0) {
        memcpy(out->resource, text.data, size);
        out->resource[size] = '\0';
    }
    buffer_free(&text);
}

void span_make(const struct grpc_call_record *record, const struct trace_context *parent,
               bool is_slow, int64_t now_us, struct span *out)
{
    out->parent = *parent;
    arc4random_buf(out->span_id, sizeof out->span_id);
    out->service = record->service;
    out->method = record->method;
    out->start_us = now_us - record->duration_us;
    out->duration_us = record->duration_us;
    out->client_us = record->client_us;
    out->code = record->code;
    out->items = record->items;
    out->seen = record->seen;
    out->request_bytes = record->request_bytes;
    out->answer_bytes = record->response_bytes;
    out->is_slow = is_slow;
    out->steps = record->steps == NULL ? (struct call_steps){.count = 0} : *record->steps;
    set_resource(record, out);
}

/* --- attributes --- */

struct attributes {
    struct arena *arena;
    size_t count;
    Trace__Attribute **list; /* ATTRIBUTES_MOST */
};

static status add(struct attributes *attributes, const char *key, Trace__Value **out)
{
    Trace__Attribute *attribute;
    PROTO_NEW(attributes->arena, attribute, TRACE__ATTRIBUTE__INIT);
    PROTO_NEW(attributes->arena, *out, TRACE__VALUE__INIT);
    attribute->key = key;
    attribute->value = *out;
    attributes->list[attributes->count++] = attribute;
    return status_ok();
}

static status add_text(struct attributes *attributes, const char *key, const char *text)
{
    Trace__Value *value;
    if (text[0] == '\0')
        return status_ok();
    TRY(add(attributes, key, &value));
    value->value_case = TRACE__VALUE__VALUE_TEXT;
    value->text = text;
    return status_ok();
}

static status add_number(struct attributes *attributes, const char *key, int64_t number)
{
    Trace__Value *value;
    TRY(add(attributes, key, &value));
    value->value_case = TRACE__VALUE__VALUE_NUMBER;
    value->number = number;
    return status_ok();
}

static status add_truth(struct attributes *attributes, const char *key)
{
    Trace__Value *value;
    TRY(add(attributes, key, &value));
    value->value_case = TRACE__VALUE__VALUE_TRUTH;
    value->truth = true;
    return status_ok();
}

/* Of more steps than are told one by one: how long each kind took in all. */
static status add_totals(struct attributes *to, const struct call_steps *steps)
{
    if (steps->untold == 0)
        return status_ok();
    TRY(add_number(to, "trestle.steps_untold", steps->untold));
    for (enum call_step step = CALL_RECEIVES; step < CALL_STEPS; step++) {
        char key[64];
        if (steps->total_us[step] == 0)
            continue;
        snprintf(key, sizeof key, "trestle.%s_us", call_step_name(step));
        const char *kept = arena_string(to->arena, bytes_of(key));
        if (kept == NULL)
            return status_out_of_memory();
        TRY(add_number(to, kept, steps->total_us[step]));
    }
    return status_ok();
}

static status start_attributes(struct arena *arena, struct attributes *out)
{
    *out = (struct attributes){.arena = arena};
    out->list = arena_alloc(arena, ATTRIBUTES_MOST * sizeof *out->list);
    return out->list == NULL ? status_out_of_memory() : status_ok();
}

static status add_call(struct attributes *to, const struct span *span)
{
    TRY(add_text(to, "rpc.system", "grpc"));
    if (span->method != NULL) {
        TRY(add_text(to, "rpc.service", span->service->name));
        TRY(add_text(to, "rpc.method", span->method->name));
    }
    TRY(add_number(to, "rpc.grpc.status_code", span->code));
    TRY(add_text(to, "trestle.resource", span->resource));
    TRY(add_number(to, "trestle.rows", span->items));
    TRY(add_number(to, "trestle.rows_seen", span->seen));
    TRY(add_number(to, "trestle.request_bytes", (int64_t)span->request_bytes));
    TRY(add_number(to, "trestle.answer_bytes", (int64_t)span->answer_bytes));
    TRY(add_number(to, "trestle.client_us", span->client_us));
    if (span->is_slow)
        TRY(add_truth(to, "trestle.slow"));
    return add_totals(to, &span->steps);
}

/* --- spans --- */

/* By the conventions, what is the client's own fault is no error of the server's span. */
static bool is_error(enum status_code code)
{
    return code == STATUS_UNKNOWN || code == STATUS_DEADLINE_EXCEEDED ||
           code == STATUS_UNIMPLEMENTED || code == STATUS_INTERNAL || code == STATUS_UNAVAILABLE ||
           code == STATUS_DATA_LOSS;
}

static status name_span(const struct span *span, struct arena *arena, const char **out)
{
    struct buffer name = {0};
    *out = "unknown";
    if (span->method == NULL)
        return status_ok();
    buffer_append_format(&name, "%s/%s", span->service->name, span->method->name);
    *out = name.failed ? NULL : arena_string(arena, buffer_bytes(&name));
    buffer_free(&name);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static bool has_parent(const struct span *span)
{
    static const uint8_t none[SPAN_ID_SIZE];
    return memcmp(span->parent.span_id, none, sizeof none) != 0;
}

static void set_times(const struct span *of, int64_t from_us, int64_t to_us, Trace__Span *out)
{
    out->start_time = (uint64_t)(of->start_us + from_us) * NANOSECONDS_EACH;
    out->end_time = (uint64_t)(of->start_us + to_us) * NANOSECONDS_EACH;
}

static status make_step(const struct span *of, const struct told_step *step, struct arena *arena,
                        Trace__Span **out)
{
    Trace__Span *span;
    PROTO_NEW(arena, span, TRACE__SPAN__INIT);
    uint8_t *id = arena_alloc(arena, SPAN_ID_SIZE);
    if (id == NULL)
        return status_out_of_memory();
    arc4random_buf(id, SPAN_ID_SIZE);
    span->name = call_step_name(step->step);
    span->trace_id = proto_data(bytes_make(of->parent.trace_id, TRACE_ID_SIZE));
    span->span_id = proto_data(bytes_make(id, SPAN_ID_SIZE));
    span->parent_span_id = proto_data(bytes_make(of->span_id, SPAN_ID_SIZE));
    span->flags = FLAG_SAMPLED | FLAG_REMOTE_IS_KNOWN;
    span->kind = SPAN_WITHIN;
    set_times(of, step->from_us, step->to_us, span);
    *out = span;
    return status_ok();
}

static status make_span(const struct span *from, struct arena *arena, Trace__Span **out)
{
    Trace__Span *span;
    struct attributes attributes;
    PROTO_NEW(arena, span, TRACE__SPAN__INIT);
    TRY(start_attributes(arena, &attributes));
    TRY(add_call(&attributes, from));
    TRY(name_span(from, arena, &span->name));
    span->trace_id = proto_data(bytes_make(from->parent.trace_id, TRACE_ID_SIZE));
    span->span_id = proto_data(bytes_make(from->span_id, SPAN_ID_SIZE));
    span->flags = FLAG_SAMPLED | FLAG_REMOTE_IS_KNOWN;
    if (has_parent(from)) {
        span->parent_span_id = proto_data(bytes_make(from->parent.span_id, SPAN_ID_SIZE));
        span->flags |= FLAG_IS_REMOTE;
    }
    span->kind = SPAN_OF_SERVER;
    set_times(from, 0, from->duration_us, span);
    span->attributes = attributes.list;
    span->n_attributes = attributes.count;
    if (is_error(from->code)) {
        PROTO_NEW(arena, span->status, TRACE__STATUS__INIT);
        span->status->code = CODE_ERROR;
        span->status->message = status_code_name(from->code);
    }
    *out = span;
    return status_ok();
}

/* Each with its steps behind it. */
static status make_spans(const struct span *from, size_t count, struct arena *arena,
                         Trace__ScopeSpans *out)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += span_count(&from[i]);
    out->spans = arena_alloc(arena, total * sizeof *out->spans);
    if (out->spans == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        TRY(make_span(&from[i], arena, &out->spans[out->n_spans++]));
        for (size_t j = 0; j < from[i].steps.count; j++)
            TRY(make_step(&from[i], &from[i].steps.told[j], arena, &out->spans[out->n_spans++]));
    }
    return status_ok();
}

status spans_encode(const struct span *spans, size_t count, const char *version,
                    struct arena *arena, struct buffer *out)
{
    struct attributes about;
    Trace__Scope scope = TRACE__SCOPE__INIT;
    Trace__ScopeSpans in_scope = TRACE__SCOPE_SPANS__INIT;
    Trace__Resource resource = TRACE__RESOURCE__INIT;
    Trace__ResourceSpans in_resource = TRACE__RESOURCE_SPANS__INIT;
    Trace__Export export = TRACE__EXPORT__INIT;
    Trace__ScopeSpans *scopes[] = {&in_scope};
    Trace__ResourceSpans *resources[] = {&in_resource};
    TRY(start_attributes(arena, &about));
    TRY(add_text(&about, "service.name", "trestle"));
    TRY(add_text(&about, "service.version", version));
    resource.attributes = about.list;
    resource.n_attributes = about.count;
    scope.name = "trestle";
    scope.version = version;
    in_scope.scope = &scope;
    TRY(make_spans(spans, count, arena, &in_scope));
    in_resource.resource = &resource;
    in_resource.scope_spans = scopes;
    in_resource.n_scope_spans = 1;
    export.resource_spans = resources;
    export.n_resource_spans = 1;
    proto_encode(&export.base, out);
    return out->failed ? status_out_of_memory() : status_ok();
}
