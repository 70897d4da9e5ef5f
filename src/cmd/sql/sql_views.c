/* Materialized views, made and dropped by statements of the shell: calls of the admin API. */
#include "cmd/sql/sql_shell.h"
#include "cmd/sql/sql_statements.h"
#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "google/longrunning/operations.pb-c.h"

enum {
    ARENA_LIMIT = 16 << 20,
    FIRST_WAIT_US = 50 * 1000, /* between two questions, half as long again each time */
    MOST_WAIT_US = 2 * 1000 * 1000,
    CALL_US = 60 * 1000 * 1000,
};

#define INSTANCE_ADMIN "/google.bigtable.admin.v2.BigtableInstanceAdmin/"
#define GET_OPERATION  "/google.longrunning.Operations/GetOperation"

/* Once: what changes something is not sent again by itself. */
static status ask(struct shell *shell, const char *path, const ProtobufCMessage *request,
                  const ProtobufCMessageDescriptor *type, struct arena *arena,
                  const ProtobufCMessage **out)
{
    const struct session_call call = {.path = path, .request = request, .timeout_us = CALL_US};
    return client_session_ask(shell->session, &call, type, arena, out);
}

static status say(struct shell *shell, const char *what)
{
    buffer_append_format(&shell->out, "%s\n", what);
    return shell_flush(shell);
}

/* What was to be there, or not, is so already. */
static status forgive(struct shell *shell, status s, const struct sql_words *words,
                      enum status_code code)
{
    if (s.code != code || !words->is_lenient)
        return s;
    status_free(s);
    return say(shell, code == STATUS_NOT_FOUND ? "There is no such view." : "It is there already.");
}

/* --- waiting --- */

static status end_of(const Lro__Operation *operation)
{
    if (operation->result_case != LRO__OPERATION__RESULT_ERROR)
        return status_ok();
    return status_make((enum status_code)operation->error->code, "%s", operation->error->message);
}

static status ask_operation(struct shell *shell, const char *name, struct arena *arena,
                            const Lro__Operation **out)
{
    Lro__GetOperationRequest request = LRO__GET_OPERATION_REQUEST__INIT;
    const ProtobufCMessage *message;
    request.name = name;
    TRY(client_session_call(shell->session, GET_OPERATION, NULL, &request.base,
                            &lro__operation__descriptor, arena, &message));
    *out = (const void *)message;
    return status_ok();
}

/* Until the operation is done. CANCELLED for Ctrl-C, which leaves it going on. */
static status wait_for(struct shell *shell, const Lro__Operation *operation)
{
    struct arena *arena = arena_create(ARENA_LIMIT);
    const char *name = operation->name;
    int64_t wait_us = FIRST_WAIT_US;
    status s = arena == NULL ? status_out_of_memory() : status_ok();
    while (status_is_ok(s) && !operation->done) {
        s = client_session_wait(shell->session, wait_us);
        wait_us = wait_us + wait_us / 2 < MOST_WAIT_US ? wait_us + wait_us / 2 : MOST_WAIT_US;
        if (arena != NULL)
            arena_reset(arena);
        if (status_is_ok(s))
            s = ask_operation(shell, name, arena, &operation);
    }
    if (status_is_ok(s))
        s = end_of(operation);
    arena_destroy(arena);
    return s;
}

/* --- statements --- */

static status tell_waiting(status s)
{
    if (s.code != STATUS_CANCELLED)
        return s;
    status_free(s);
    return status_make(STATUS_CANCELLED, "The view goes on being populated");
}

static status create_view(struct shell *shell, bytes text, const struct sql_words *words,
                          struct arena *arena)
{
    BtAdmin__CreateMaterializedViewRequest request =
        BT_ADMIN__CREATE_MATERIALIZED_VIEW_REQUEST__INIT;
    BtAdmin__MaterializedView view = BT_ADMIN__MATERIALIZED_VIEW__INIT;
    const ProtobufCMessage *message;
    view.query = words->query;
    view.deletion_protection = words->is_protected;
    request.parent = client_session_instance(shell->session);
    request.materialized_view_id = words->name;
    request.materialized_view = &view;
    status s = ask(shell, INSTANCE_ADMIN "CreateMaterializedView", &request.base,
                   &lro__operation__descriptor, arena, &message);
    if (!status_is_ok(s))
        return forgive(shell, sql_words_place_error(text, words->query_at, s), words,
                       STATUS_ALREADY_EXISTS);
    TRY(tell_waiting(wait_for(shell, (const void *)message)));
    return say(shell, "The view is populated.");
}

static status drop_view(struct shell *shell, const struct sql_words *words, struct arena *arena)
{
    BtAdmin__DeleteMaterializedViewRequest request =
        BT_ADMIN__DELETE_MATERIALIZED_VIEW_REQUEST__INIT;
    struct buffer name = {0};
    const ProtobufCMessage *message;
    buffer_append_format(&name, "%s/materializedViews/%s", client_session_instance(shell->session),
                         words->name);
    request.name = name.failed ? NULL : arena_string(arena, buffer_bytes(&name));
    buffer_free(&name);
    if (request.name == NULL)
        return status_out_of_memory();
    status s = ask(shell, INSTANCE_ADMIN "DeleteMaterializedView", &request.base,
                   &pb__empty__descriptor, arena, &message);
    if (!status_is_ok(s))
        return forgive(shell, s, words, STATUS_NOT_FOUND);
    return say(shell, "The view is gone.");
}

static status run_words(struct shell *shell, bytes text, struct arena *arena)
{
    struct sql_words words;
    TRY(sql_words_read(text, arena, &words));
    if (words.kind == STATEMENT_CREATE_VIEW)
        return create_view(shell, text, &words, arena);
    if (words.kind == STATEMENT_DROP_VIEW)
        return drop_view(shell, &words, arena);
    return shell_query(shell, text, shell->explain);
}

status shell_statement(struct shell *shell, bytes text)
{
    struct arena *arena = arena_create(ARENA_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    status s = run_words(shell, text, arena);
    arena_destroy(arena);
    return s;
}
