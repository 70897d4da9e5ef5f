/* Prepared queries, as clients carry them.
 *
 * The token has the query, the types of its parameters, and the tables' columns as they were: so
 * that a query executed later gives what its metadata said, whatever was added meanwhile, and
 * every server of the data can execute it, also after a restart. A client that makes up a token
 * gets no more from it than from a query: rights are looked at when it is executed, and a view in
 * it counts as one only if there is one with that query (query_catalog.c).
 *
 *     fingerprint of what follows, 16 bytes      PreparedQuery (proto/trestle/query.proto) */
#include "base/siphash.h"
#include "bigtable/plan_cache.h"
#include "bigtable/query.h"
#include "bigtable/query_messages.h"
#include "wire/proto.h"

static bytes fingerprint_of(bytes content, struct fingerprint *out)
{
    struct siphash hash;
    siphash_start(&hash);
    siphash_add(&hash, content);
    *out = siphash_finish(&hash);
    return bytes_make(out, sizeof *out);
}

/* --- writing --- */

static status encode_type(const struct sql_type *type, struct arena *arena,
                          ProtobufCBinaryData *out)
{
    Bt__Type *message;
    struct buffer encoded = {0};
    TRY(query_type_to_message(type, arena, &message));
    proto_encode(&message->base, &encoded);
    bytes copy = arena_copy(arena, buffer_bytes(&encoded));
    bool failed = encoded.failed || copy.data == NULL;
    buffer_free(&encoded);
    *out = proto_data(copy);
    return failed ? status_out_of_memory() : status_ok();
}

static status write_parameters(const struct query *query, struct arena *arena,
                               Query__PreparedQuery *out)
{
    out->n_parameters = query->parameter_count;
    out->parameters = arena_alloc(arena, query->parameter_count * sizeof *out->parameters);
    if (out->parameters == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < query->parameter_count; i++) {
        PROTO_NEW(arena, out->parameters[i], QUERY__PARAMETER__INIT);
        out->parameters[i]->name = query->parameters[i].name;
        TRY(encode_type(query->parameters[i].type, arena, &out->parameters[i]->type));
    }
    return status_ok();
}

static status write_relation(const struct found_relation *found, struct arena *arena,
                             Query__Relation **out)
{
    const struct sql_relation *relation = found->relation;
    PROTO_NEW(arena, *out, QUERY__RELATION__INIT);
    (*out)->name = relation->name;
    if (relation->view_query != NULL)
        (*out)->query = relation->view_query;
    if (found->materialized_query != NULL) {
        (*out)->query = found->materialized_query;
        (*out)->is_materialized = true;
        return status_ok(); /* its columns follow from that */
    }
    (*out)->row_key_schema = proto_data(found->row_key_schema);
    (*out)->n_columns = relation->column_count;
    (*out)->columns = arena_alloc(arena, relation->column_count * sizeof *(*out)->columns);
    if ((*out)->columns == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < relation->column_count; i++) {
        Query__Column *column;
        PROTO_NEW(arena, column, QUERY__COLUMN__INIT);
        column->name = relation->columns[i].name;
        column->kind = relation->columns[i].kind;
        column->is_hidden = relation->columns[i].is_hidden;
        TRY(encode_type(relation->columns[i].type, arena, &column->type));
        (*out)->columns[i] = column;
    }
    return status_ok();
}

static status write_relations(const struct query *query, struct arena *arena,
                              Query__PreparedQuery *out)
{
    const struct found_relation *found = query->catalog.found.items;
    out->n_relations = query->catalog.found.count;
    out->relations = arena_alloc(arena, out->n_relations * sizeof *out->relations);
    if (out->relations == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < out->n_relations; i++)
        TRY(write_relation(&found[i], arena, &out->relations[i]));
    return status_ok();
}

static status seal(const Query__PreparedQuery *prepared, struct arena *arena, bytes *out)
{
    struct buffer content = {0};
    struct buffer token = {0};
    struct fingerprint fingerprint;
    proto_encode(&prepared->base, &content);
    buffer_append_bytes(&token, fingerprint_of(buffer_bytes(&content), &fingerprint));
    buffer_append_bytes(&token, buffer_bytes(&content));
    *out = arena_copy(arena, buffer_bytes(&token));
    bool failed = content.failed || token.failed || out->data == NULL;
    buffer_free(&content);
    buffer_free(&token);
    return failed ? status_out_of_memory() : status_ok();
}

status query_token_write(const struct query *query, const char *text, int64_t expires_us,
                         struct arena *arena, bytes *out)
{
    Query__PreparedQuery prepared = QUERY__PREPARED_QUERY__INIT;
    prepared.instance = query->catalog.instance;
    prepared.query = text;
    prepared.expires_us = expires_us;
    prepared.explain = query->explain;
    TRY(write_parameters(query, arena, &prepared));
    TRY(write_relations(query, arena, &prepared));
    return seal(&prepared, arena, out);
}

/* --- reading --- */

static status bad_token(void)
{
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Invalid prepared query. Please retry request with a valid prepared query");
}

static status read_parameters(struct kept_plan *out)
{
    const Query__PreparedQuery *prepared = out->prepared;
    out->parameter_count = prepared->n_parameters;
    out->parameters = arena_alloc(out->arena, prepared->n_parameters * sizeof *out->parameters);
    if (out->parameters == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < prepared->n_parameters; i++) {
        ProtobufCMessage *type;
        out->parameters[i].name = prepared->parameters[i]->name;
        TRY(proto_decode(&bt__type__descriptor, proto_bytes(prepared->parameters[i]->type),
                         out->arena, &type));
        TRY(query_type_from_message((const void *)type, out->arena, &out->parameters[i].type));
    }
    return status_ok();
}

status query_token_read(bytes token, struct kept_plan *out)
{
    struct fingerprint fingerprint;
    ProtobufCMessage *message;
    if (token.size < sizeof fingerprint)
        return bad_token();
    bytes content = bytes_from(token, sizeof fingerprint);
    bytes wanted = bytes_make(token.data, sizeof fingerprint);
    if (!bytes_equal(fingerprint_of(content, &fingerprint), wanted))
        return bad_token();
    out->token = arena_copy(out->arena, token);
    if (out->token.data == NULL)
        return status_out_of_memory();
    content = bytes_from(out->token, sizeof fingerprint); /* what is decoded points into it */
    TRY(proto_decode(&query__prepared_query__descriptor, content, out->arena, &message));
    out->prepared = (const void *)message;
    return read_parameters(out);
}

status query_token_check(const struct query *query, const Query__PreparedQuery *prepared)
{
    if (strcmp(prepared->instance, query->catalog.instance) != 0)
        return bad_token();
    return query->session.now_us >= prepared->expires_us ? query_expired() : status_ok();
}

const char *query_token_text(bytes token, struct arena *arena)
{
    ProtobufCMessage *message;
    if (token.size < sizeof(struct fingerprint))
        return "";
    bytes content = bytes_from(token, sizeof(struct fingerprint));
    status s = proto_decode(&query__prepared_query__descriptor, content, arena, &message);
    const char *text = status_is_ok(s) ? ((const Query__PreparedQuery *)message)->query : "";
    status_ignore(s);
    return text;
}
