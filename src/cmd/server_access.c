/* Who is let in: callers, with the audit log of what they change; and pages of which sites. */
#include "cmd/server_private.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Also again, when the file has been renamed: whoever writes meanwhile has the old one or the new.
 */
static status open_audit_log(struct server *server)
{
    const char *path = server->settings->audit_log;
    if (path == NULL)
        return status_ok();
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return status_from_errno(errno, "cannot open %s", path);
    if (server->audit.fd == server->log->fd) {
        server->audit.fd = fd;
        return status_ok();
    }
    int replaced = dup3(fd, server->audit.fd, O_CLOEXEC);
    int error = errno;
    close(fd);
    return replaced < 0 ? status_from_errno(error, "cannot use %s", path) : status_ok();
}

static status reload_access(void *context)
{
    struct server *server = context;
    TRY(open_audit_log(server));
    return access_reload(server->access);
}

status server_create_access(struct server *server)
{
    const struct settings *settings = server->settings;
    server->audit = *server->log;
    server->audit.level = LOG_INFO; /* whatever else the log leaves out */
    if (settings->auth == AUTH_OFF)
        return status_ok();
    server->access_files = (struct reloadable){
        .what = "access control",
        .reload = reload_access,
        .context = server,
        .paths = {settings->auth_tokens, settings->auth_jwks, settings->auth_policy}};
    reloadable_init(&server->access_files);
    TRY(open_audit_log(server));
    const struct access_options options = {.data_directory = settings->data_dir,
                                           .token_file = settings->auth_tokens,
                                           .jwks_file = settings->auth_jwks,
                                           .audience = settings->auth_audience,
                                           .issuer = settings->auth_issuer,
                                           .policy_file = settings->auth_policy,
                                           .log = server->log,
                                           .audit = &server->audit,
                                           .clock = server->clock};
    TRY(access_open(&options, server->services, SERVICES, &server->access));
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
