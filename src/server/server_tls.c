/* TLS of a server: its certificate with the key, and the authorities of clients' certificates,
 * which are read apart, so that an authority that was taken away is gone while the certificate
 * cannot be read, and the other way round. */
#include "server/server_private.h"

struct tls_server_files server_tls_files(const struct settings *settings)
{
    return (struct tls_server_files){
        .certificate = settings->tls_cert,
        .key = settings->tls_key,
        .client_authority = settings->tls_client_ca,
        .client_required = settings->tls_client_certs == TLS_CLIENT_CERTS_REQUIRED,
        .fellow_authority = settings->peer_ca,
    };
}

static bool is_same(const struct tls_certificate *a, const struct tls_certificate *b)
{
    return strcmp(a->serial, b->serial) == 0 && strcmp(a->subject, b->subject) == 0 &&
           a->to_us == b->to_us;
}

/* Into the audit log, too, if there is one. */
static void tell(const struct server *server, const char *what, status result,
                 const struct audit_changes *changes, struct buffer *words)
{
    audit_changes_write(changes, words);
    if (server->audit != NULL)
        audit_reload(server->audit, what, result, status_is_ok(result) ? changes : NULL);
}

/* --- the certificate --- */

static const char IDENTITY[] = "TLS";

static status reload_identity(void *context, struct buffer *words)
{
    struct server *server = context;
    const struct tls_server_files files = server_tls_files(server->settings);
    char date[CLOCK_DATE_SIZE];
    struct audit_changes changes = {0};
    struct tls_certificate before = {0}, after = {0};
    tls_server_certificate(server->tls, &before);
    status s = tls_server_reload_identity(server->tls, &files);
    tls_server_certificate(server->tls, &after);
    if (!is_same(&before, &after))
        AUDIT_CHANGE(&changes, LOG_STR("action", "CHANGE"), LOG_STR("certificate", after.subject),
                     LOG_STR("serial", after.serial),
                     LOG_STR("not_after", clock_date(after.to_us, date)));
    tell(server, IDENTITY, s, &changes, words);
    return s;
}

/* --- authorities --- */

static const char AUTHORITIES[] = "client authorities";

/* Structs tls_certificate. */
struct authorities {
    struct buffer list;
};

static void note_authority(void *context, const struct tls_certificate *authority)
{
    struct authorities *authorities = context;
    buffer_append(&authorities->list, authority, sizeof *authority);
}

static const struct tls_certificate *all_of(const struct authorities *authorities, size_t *count)
{
    *count = authorities->list.size / sizeof(struct tls_certificate);
    return (const struct tls_certificate *)(const void *)authorities->list.data;
}

static bool has(const struct authorities *authorities, const struct tls_certificate *authority)
{
    size_t count;
    const struct tls_certificate *all = all_of(authorities, &count);
    for (size_t i = 0; i < count; i++)
        if (is_same(&all[i], authority))
            return true;
    return false;
}

/* Notes the authorities that only `these` has. */
static void note_changes(const struct authorities *these, const struct authorities *others,
                         const char *action, struct audit_changes *changes)
{
    size_t count;
    const struct tls_certificate *all = all_of(these, &count);
    for (size_t i = 0; i < count; i++)
        if (!has(others, &all[i]))
            AUDIT_CHANGE(changes, LOG_STR("action", action), LOG_STR("authority", all[i].subject),
                         LOG_STR("serial", all[i].serial));
}

static status reload_authorities(void *context, struct buffer *words)
{
    struct server *server = context;
    const struct tls_server_files files = server_tls_files(server->settings);
    struct audit_changes changes = {0};
    struct authorities before = {0}, after = {0};
    tls_server_authorities(server->tls, note_authority, &before);
    status s = tls_server_reload_authorities(server->tls, &files);
    tls_server_authorities(server->tls, note_authority, &after);
    if (!before.list.failed && !after.list.failed) {
        note_changes(&after, &before, "ADD", &changes);
        note_changes(&before, &after, "REMOVE", &changes);
    }
    tell(server, AUTHORITIES, s, &changes, words);
    buffer_free(&before.list);
    buffer_free(&after.list);
    return s;
}

/* --- either --- */

status server_create_tls(struct server *server)
{
    const struct tls_server_files files = server_tls_files(server->settings);
    if (files.certificate == NULL)
        return status_ok();
    server->tls_files = (struct reloadable){.what = IDENTITY,
                                            .kind = RELOAD_TLS,
                                            .metrics = server->metrics,
                                            .reload = reload_identity,
                                            .context = server,
                                            .paths = {files.certificate, files.key}};
    reloadable_init(&server->tls_files);
    if (files.client_authority != NULL || files.fellow_authority != NULL)
        server->tls_client_ca =
            (struct reloadable){.what = AUTHORITIES,
                                .kind = RELOAD_TLS_CLIENT_CA,
                                .metrics = server->metrics,
                                .reload = reload_authorities,
                                .context = server,
                                .paths = {files.client_authority, files.fellow_authority}};
    reloadable_init(&server->tls_client_ca);
    return tls_server_create(&files, &server->tls);
}

void server_look_at_tls(struct server *server)
{
    struct certificate_dates dates = {.file = server->settings->tls_cert};
    if (server->tls == NULL || !tls_server_validity(server->tls, &dates.from_us, &dates.to_us))
        return;
    certificate_look(cluster_condition(server->cluster), &dates, clock_wall_us(server->clock));
    certificate_measure(server->metrics, server->settings->listen, &dates);
}
