/* Who is let in: callers, with the audit log of what they change; and pages of which sites. */
#include "server/server_private.h"

/* Access does not depend on the audit log's file. */
static status reload_access(void *context, struct buffer *changes)
{
    struct server *server = context;
    status reopened = audit_reopen(server->audit);
    status s = access_reload(server->access, changes);
    if (status_is_ok(s) || status_is_ok(reopened))
        return status_is_ok(s) ? reopened : s;
    status both = status_make(s.code, "%s; %s", status_message(s), status_message(reopened));
    status_free(s);
    status_free(reopened);
    return both;
}

static status reopen_audit(void *context, struct buffer *changes)
{
    (void)changes;
    const struct server *server = context;
    return audit_reopen(server->audit);
}

/* With access control off there is an audit log only if it has a file of its own. */
static status create_audit(struct server *server)
{
    const struct settings *settings = server->settings;
    const struct audit_options options = {.path = settings->audit_log,
                                          .file_bytes = settings->audit_log_size,
                                          .older_files = settings->audit_log_files,
                                          .refusals_most = settings->audit_refusals,
                                          .data_us = settings->audit_data,
                                          .log = server->log,
                                          .clock = server->clock,
                                          .metrics = server->metrics};
    if (settings->auth == AUTH_OFF && settings->audit_log == NULL)
        return status_ok();
    TRY(audit_open(&options, &server->audit));
    server->access_files = (struct reloadable){.what = "audit log",
                                               .kind = RELOAD_AUDIT_LOG,
                                               .metrics = server->metrics,
                                               .reload = reopen_audit,
                                               .context = server};
    server->insight.audit = server->backup_service.audit = server->audit;
    return rule_table_create(server->services, SERVICES, &server->rules);
}

static status open_access(struct server *server)
{
    const struct settings *settings = server->settings;
    const struct access_options options = {.data_directory = settings->data_dir,
                                           .token_file = settings->auth_tokens,
                                           .jwks_file = settings->auth_jwks,
                                           .audience = settings->auth_audience,
                                           .issuer = settings->auth_issuer,
                                           .policy_file = settings->auth_policy,
                                           .log = server->log,
                                           .audit = server->audit,
                                           .condition = cluster_condition(server->cluster),
                                           .clock = server->clock};
    return access_open(&options, server->services, SERVICES, &server->access);
}

status server_create_access(struct server *server)
{
    const struct settings *settings = server->settings;
    TRY(create_audit(server));
    if (settings->auth == AUTH_OFF)
        return status_ok();
    server->access_files = (struct reloadable){
        .what = "access control",
        .kind = RELOAD_ACCESS,
        .metrics = server->metrics,
        .reload = reload_access,
        .context = server,
        .paths = {settings->auth_tokens, settings->auth_jwks, settings->auth_policy}};
    reloadable_init(&server->access_files);
    TRY(open_access(server));
    bigtable_enforce_policies(&server->bigtable, server->access);
    server->insight.access = server->access;
    return status_ok();
}

status server_create_guard(struct server *server)
{
    const struct settings *settings = server->settings;
    server->guard = (struct browser_guard){.allowed_hosts = settings->allowed_hosts,
                                           .any_host = settings->auth == AUTH_ON};
    return browser_guard_check_hosts(settings->allowed_hosts);
}
