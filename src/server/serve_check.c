/* See serve_check.h. */
#include "server/serve_check.h"

#include "aws/bucket.h"
#include "base/sizing.h"
#include "cluster/catalog.h"
#include "cluster/lost_records.h"
#include "cluster/shard_directories.h"
#include "os/file.h"
#include "place/key.h"
#include "server/offline_cluster.h"
#include "server/otlp.h"
#include "server/otlp_headers.h"
#include "server/place_apart.h"
#include "server/server_private.h"
#include "store/check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

/* Notes on what is no mistake, one line each; NULL: not wanted. */
struct notes {
    struct buffer text;
    bool is_served; /* a server runs on the data directory: most likely the one to be restarted */
    bool has_store; /* the data directory does, and its files say what belongs to it */
};

#define NOTE(notes, ...)                                                                           \
    do {                                                                                           \
        if ((notes) != NULL) {                                                                     \
            buffer_append_format(&(notes)->text, "note: " __VA_ARGS__);                            \
            buffer_append_byte(&(notes)->text, '\n');                                              \
        }                                                                                          \
    } while (false)

/* --- directories --- */

static status check_writable(const char *directory)
{
    struct stat about;
    if (stat(directory, &about) != 0)
        return status_from_errno(errno, "cannot look at %s", directory);
    if (!S_ISDIR(about.st_mode))
        return status_make(STATUS_FAILED_PRECONDITION, "%s is not a directory", directory);
    if (access(directory, R_OK | W_OK | X_OK) != 0)
        return status_from_errno(errno, "cannot write to the directory %s", directory);
    return status_ok();
}

/* Refuses a file system in which nothing can be made, although root may write there by its mode. */
static status check_file_system(const char *directory)
{
    struct statfs about;
    if (statfs(directory, &about) != 0)
        return status_from_errno(errno, "cannot look at %s", directory);
    if (about.f_type != PROC_SUPER_MAGIC && about.f_type != SYSFS_MAGIC)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION, "nothing can be made in %s: it is the kernel's",
                       directory);
}

/* The directory that the path lies in. */
static status parent_of(const char *path, char parent[PATH_SIZE])
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    while (size > 0 && path[size - 1] != '/')
        size--;
    int written = size == 0 ? snprintf(parent, PATH_SIZE, ".")
                            : snprintf(parent, PATH_SIZE, "%.*s", (int)size, path);
    return written < PATH_SIZE ? status_ok()
                               : status_make(STATUS_INVALID_ARGUMENT, "the name is too long");
}

static status check_parent(const char *path)
{
    char parent[PATH_SIZE];
    TRY(parent_of(path, parent));
    TRY(check_writable(parent));
    return check_file_system(parent);
}

/* Checks a directory that is made if it is not there. */
static status check_directory(const char *path, const char *what, struct notes *notes)
{
    if (access(path, F_OK) == 0)
        return check_writable(path);
    TRY(check_parent(path));
    NOTE(notes, "%s %s is not there: serve makes it", what, path);
    return status_ok();
}

/* The log's end and the list of tables. A server looks when it opens the store: reading is for a
 * check alone, and while a server runs it would see halves. */
static status check_log_end(const struct settings *settings, const struct notes *notes)
{
    const struct store_options options = {
        .directory = settings->data_dir, .read_only = true, .salvage = settings->salvage};
    return notes == NULL || notes->is_served ? status_ok() : store_check_log_end(&options);
}

bool serve_needs_salvage(const struct settings *settings)
{
    const struct store_options options = {.directory = settings->data_dir, .read_only = true};
    bool is_new = false;
    status s = store_check_directory(settings->data_dir, false, &is_new);
    if (status_is_ok(s) && !is_new)
        s = store_check_log_end(&options);
    bool is_lost = s.code == STATUS_DATA_LOSS;
    status_free(s);
    return is_lost;
}

/* Of a server that runs it is told all the same: it looked when it started. */
static void note_salvage(const struct settings *settings, struct notes *notes)
{
    if (notes == NULL || !settings->salvage)
        return;
    if (notes->is_served || !serve_needs_salvage(settings))
        NOTE(notes,
             "salvage is not needed, unless the catalog is damaged: it is for one start, and "
             "gives up unasked what is lost next");
}

static status find_any(void *context, const char *name)
{
    (void)name;
    *(bool *)context = true;
    return status_ok();
}

static status note_new(const char *directory, struct notes *notes)
{
    bool has_something = false;
    if (access(directory, F_OK) != 0)
        return status_ok();
    TRY(files_list(files_of_system(), directory, find_any, &has_something));
    if (has_something)
        NOTE(notes, "%s has files, but no data of Trestle: serve begins some among them",
             directory);
    return status_ok();
}

/* Of a data directory that is not there, where it is to be. */
static status note_space(const struct settings *settings, struct notes *notes)
{
    char parent[PATH_SIZE];
    const char *at = settings->data_dir;
    uint64_t free_bytes;
    TRY(parent_of(at, parent));
    if (access(at, F_OK) != 0)
        at = parent;
    TRY(disk_free_bytes(at, &free_bytes));
    if (sizing_reserve_is_short(settings))
        NOTE(notes, "disk-reserve is less than write-buffer, which may fill the disk when no "
                    "writes are taken any more");
    if (free_bytes < (uint64_t)settings->disk_reserve)
        NOTE(notes, "%" PRIu64 " MB are free at %s, less than disk-reserve: no writes are taken",
             free_bytes >> 20, at);
    return status_ok();
}

static status check_data(const struct settings *settings, struct notes *notes)
{
    char lock[PATH_SIZE];
    bool is_new;
    if (snprintf(lock, sizeof lock, "%s/LOCK", settings->data_dir) >= PATH_SIZE)
        return status_make(STATUS_INVALID_ARGUMENT, "the name is too long");
    TRY(check_directory(settings->data_dir, "the data directory", notes));
    TRY(store_check_directory(settings->data_dir, settings->salvage, &is_new));
    if (notes != NULL && file_is_locked(lock)) {
        notes->is_served = true;
        NOTE(notes, "a server runs on %s now", settings->data_dir);
    }
    TRY(is_new ? note_new(settings->data_dir, notes) : check_log_end(settings, notes));
    note_salvage(settings, notes);
    TRY(note_space(settings, notes));
    if (notes != NULL)
        notes->has_store = !is_new;
    return status_ok();
}

static status check_shards(const struct settings *settings, struct notes *notes)
{
    (void)notes;
    if (settings->debug_shards > 1 && (settings->archive != NULL || settings->salvage))
        return status_make(STATUS_FAILED_PRECONDITION,
                           "several shards have no archive, and cannot be salvaged");
    return shard_directories_check(settings->data_dir, (unsigned)settings->debug_shards);
}

static status check_catalog(const struct settings *settings, struct store *store,
                            struct notes *notes)
{
    struct keyspace *catalog = store_keyspace_find(store, CATALOG_KEYSPACE_ID);
    status s = catalog == NULL ? status_ok() : lost_records_check(catalog);
    if (s.code != STATUS_DATA_LOSS || !settings->salvage)
        return settings_blame(settings, "data_dir", s);
    NOTE(notes, "%s", status_message(s));
    status_free(s);
    return status_ok();
}

static status check_values(const struct settings *settings, struct store *store)
{
    status s = settings->memory == 0
                   ? status_ok()
                   : store_check_large_values(store, sizing_largest_cell(settings));
    return settings_blame(settings, "memory", s);
}

static status look_into(const struct settings *settings, struct notes *notes)
{
    const struct log silent = {.fd = -1, .level = LOG_ERROR, .clock = clock_system()};
    struct store_options options = offline_store_options(settings->data_dir, &silent);
    struct store *store;
    options.read_only = true;
    options.large_commit_bytes = sizing_largest_commit(settings);
    TRY(settings_blame(settings, "data_dir", store_open(&options, &store)));
    status s = check_catalog(settings, store, notes);
    if (status_is_ok(s))
        s = check_values(settings, store);
    store_close(store);
    return s;
}

/* What a start reads of it. What is to be salvaged is not known before it is. */
static status check_store(const struct settings *settings, struct notes *notes)
{
    if (notes == NULL || notes->is_served || !notes->has_store)
        return status_ok();
    if (settings->salvage && serve_needs_salvage(settings)) {
        NOTE(notes, "the catalog and rows are not read: serve brings back first what is to be "
                    "salvaged");
        return status_ok();
    }
    NOTE(notes, "rows are not read: serve starts with damaged ones, which `trestle doctor` tells");
    if (files_lack_identity(settings->data_dir))
        NOTE(notes, "the file IDENTITY is missing, or is none: serve makes another server of it; "
                    "`trestle doctor` says which it was");
    return look_into(settings, notes);
}

/* A server locks it when its turn comes: to look at a lock is for a check alone, since a process
 * that closes a file that it has locked has lost the lock. */
static status check_unused(const char *directory, struct notes *notes)
{
    char lock[PATH_SIZE];
    if (snprintf(lock, sizeof lock, "%s/LOCK", directory) >= PATH_SIZE)
        return status_make(STATUS_INVALID_ARGUMENT, "the name is too long");
    if (notes == NULL || !file_is_locked(lock))
        return status_ok();
    if (!notes->is_served)
        return status_make(STATUS_FAILED_PRECONDITION, "%s is in use by another process",
                           directory);
    NOTE(notes, "%s is in use, by that server if it is the one to be restarted", directory);
    return status_ok();
}

/* In the data directory: its server has them. */
static status check_default_backups(const struct settings *settings, struct notes *notes)
{
    struct buffer directory = {0};
    if (notes == NULL || notes->is_served)
        return status_ok();
    const char *path = server_backup_directory(settings, &directory);
    status s = path == NULL ? status_out_of_memory() : check_unused(path, notes);
    buffer_free(&directory);
    return s;
}

static status check_backups(const struct settings *settings, struct notes *notes)
{
    const char *directory = settings->backup_dir;
    if (directory == NULL)
        return check_default_backups(settings, notes);
    TRY(backups_check_apart(directory, settings->data_dir));
    TRY(check_directory(directory, "the backup directory", notes));
    return check_unused(directory, notes);
}

/* A server starts with all of these, and what needs them fails. */
static void note_trouble(const char *what, const char *then, status s, struct notes *notes)
{
    if (!status_is_ok(s))
        NOTE(notes, "%s: %s; %s", what, status_message(s), then);
    status_free(s);
}

static status check_exports(const struct settings *settings, struct notes *notes)
{
    if (settings->export_directory != NULL)
        note_trouble("export-directory", "Datastore's exports and imports fail",
                     check_directory(settings->export_directory, "the export directory", notes),
                     notes);
    return status_ok();
}

static status check_place_name(const char *name)
{
    struct place *place;
    TRY(place_of_name(files_of_system(), name, &place));
    place_close(place);
    return status_ok();
}

/* Of a directory, whether it is there: a schedule does not make it. */
static status check_place(const char *name, bool is_scheduled)
{
    TRY(check_place_name(name));
    return is_scheduled && strstr(name, "://") == NULL ? check_writable(name) : status_ok();
}

static status check_places(const struct settings *settings, struct notes *notes)
{
    char name[PATH_SIZE];
    const char *at = settings->backup_places;
    bool is_scheduled = settings->backup_schedule > 0 || settings->backup_scopes != NULL;
    while (at != NULL && *at != '\0') {
        size_t size = strcspn(at, ",");
        if (snprintf(name, sizeof name, "%.*s", (int)size, at) >= PATH_SIZE)
            return status_make(STATUS_INVALID_ARGUMENT, "a name is too long");
        TRY(place_check_apart(name, settings->data_dir));
        note_trouble("backup-places",
                     is_scheduled ? "the schedule makes no whole backup"
                                  : "no whole backup is made there",
                     check_place(name, is_scheduled), notes);
        at += size + (at[size] == ',');
        is_scheduled = false;
    }
    return status_ok();
}

static status check_scopes(const struct settings *settings, struct notes *notes)
{
    const struct whole_schedule_wish wish = server_backup_schedules(settings);
    struct whole_schedules schedules;
    (void)notes;
    TRY(whole_schedules_create(&wish, &schedules));
    whole_schedules_free(&schedules);
    return status_ok();
}

static status check_backup_key(const struct settings *settings, struct notes *notes)
{
    struct place_key key;
    (void)notes;
    if (settings->backup_key == NULL)
        return status_ok();
    TRY(place_key_read(settings->backup_key, &key));
    cipher_forget(&key, sizeof key);
    return status_ok();
}

/* A server starts without it, and goes on when it is there. A bucket is not asked. */
static status check_archive(const struct settings *settings, struct notes *notes)
{
    if (settings->archive == NULL)
        return status_ok();
    TRY(check_place_name(settings->archive));
    TRY(place_check_apart(settings->archive, settings->data_dir));
    if (strstr(settings->archive, "://") != NULL)
        return status_ok();
    status s = check_writable(settings->archive);
    if (!status_is_ok(s))
        NOTE(notes, "the archive: %s; what is written waits in the data directory",
             status_message(s));
    status_free(s);
    return status_ok();
}

static status check_audit_log(const struct settings *settings, struct notes *notes)
{
    const char *path = settings->audit_log;
    struct stat about;
    (void)notes;
    if (path == NULL)
        return status_ok();
    if (stat(path, &about) != 0)
        return check_parent(path);
    if (S_ISDIR(about.st_mode))
        return status_from_errno(EISDIR, "cannot write to %s", path);
    if (access(path, W_OK) != 0)
        return status_from_errno(errno, "cannot write to %s", path);
    return status_ok();
}

/* --- access --- */

static status check_certificate(const struct settings *settings, struct notes *notes)
{
    char date[CLOCK_DATE_SIZE];
    int64_t from_us, to_us, now_us = clock_wall_us(clock_system());
    struct tls_context *tls;
    const struct tls_server_files files = server_tls_files(settings);
    if (files.certificate == NULL || files.key == NULL) /* which the settings have been told */
        return status_ok();
    TRY(tls_server_create(&files, &tls));
    if (tls_server_validity(tls, &from_us, &to_us)) {
        if (now_us >= to_us)
            NOTE(notes, "the certificate %s has ended, at %s", files.certificate,
                 clock_date(to_us, date));
        if (now_us < from_us)
            NOTE(notes, "the certificate %s begins at %s", files.certificate,
                 clock_date(from_us, date));
    }
    tls_context_destroy(tls);
    return status_ok();
}

/* What the server shows its peers as their client. */
static status check_peer_certificate(const struct settings *settings, struct notes *notes)
{
    struct tls_context *tls;
    const struct tls_client_files files = {.authority = settings->peer_ca,
                                           .certificate = settings->peer_cert,
                                           .key = settings->peer_key};
    (void)notes;
    if (settings->peer_cert == NULL)
        return status_ok();
    TRY(tls_client_create_known(&files, &tls));
    tls_context_destroy(tls);
    return status_ok();
}

static status check_tokens(const struct settings *settings, struct notes *notes)
{
    const struct access_options options = {.token_file = settings->auth_tokens};
    (void)notes;
    return access_try_files(&options);
}

static status check_keys(const struct settings *settings, struct notes *notes)
{
    const struct access_options options = {.jwks_file = settings->auth_jwks};
    (void)notes;
    return access_try_files(&options);
}

static status check_policy(const struct settings *settings, struct notes *notes)
{
    const struct access_options options = {.policy_file = settings->auth_policy};
    (void)notes;
    return access_try_files(&options);
}

static status check_hosts(const struct settings *settings, struct notes *notes)
{
    (void)notes;
    return browser_guard_check_hosts(settings->allowed_hosts);
}

/* --- where it serves, and whom it tells --- */

static status check_listen(const struct settings *settings, struct notes *notes)
{
    struct address address;
    TRY(address_parse(settings->listen, &address));
    status s = listener_check(&address);
    if (s.code == STATUS_ALREADY_EXISTS && notes != NULL && notes->is_served) {
        NOTE(notes, "%s is in use, by that server if it is the one to be restarted",
             settings->listen);
        status_free(s);
        return status_ok();
    }
    return s;
}

static status check_exposure(const struct settings *settings, struct notes *notes)
{
    struct address address;
    (void)notes;
    status s = address_parse(settings->listen, &address);
    if (status_is_ok(s))
        return server_check_exposure(settings, &address);
    status_free(s); /* which check_listen tells */
    return status_ok();
}

static status check_ready(const struct settings *settings, struct notes *notes)
{
    int fd = (int)settings->ready_fd;
    if (fd != 0 && fcntl(fd, F_GETFD) < 0)
        NOTE(notes, "ready-fd: %d is not open here: nobody would hear that it serves", fd);
    return status_ok();
}

static status check_faults(const struct settings *settings, struct notes *notes)
{
    struct fault_rules rules;
    (void)notes;
    if (settings->inject == NULL)
        return status_ok();
    TRY(fault_rules_parse(bytes_of(settings->inject), &rules));
    return faults_check(&rules);
}

static status check_headers(const struct settings *settings, struct notes *notes)
{
    (void)notes;
    return otlp_headers_check(settings->otlp_headers);
}

static status check_collector(const struct settings *settings, struct notes *notes)
{
    struct otlp *otlp;
    (void)notes;
    if (settings->otlp_endpoint == NULL)
        return status_ok();
    TRY(otlp_create(settings->otlp_endpoint, settings->otlp_headers, &otlp));
    otlp_destroy(otlp);
    return status_ok();
}

/* --- all of it --- */

/* In this order: backups and the port are judged by whether a server has the data. */
static const struct check {
    const char *member; /* the setting to blame; NULL: the words say which */
    status (*run)(const struct settings *settings, struct notes *notes);
} checks[] = {
    {NULL, check_exposure},
    {"inject", check_faults},
    {"allowed_hosts", check_hosts},
    {"tls_cert", check_certificate},
    {"peer_cert", check_peer_certificate},
    {"otlp_headers", check_headers},
    {"otlp_endpoint", check_collector},
    {"auth_tokens", check_tokens},
    {"auth_jwks", check_keys},
    {"auth_policy", check_policy},
    {"audit_log", check_audit_log},
    {"data_dir", check_data},
    {"debug_shards", check_shards},
    {NULL, check_store},
    {"backup_dir", check_backups},
    {"backup_places", check_places},
    {"backup_scopes", check_scopes},
    {"archive", check_archive},
    {"backup_key", check_backup_key},
    {"export_directory", check_exports},
    {"ready_fd", check_ready},
    {"listen", check_listen},
};

enum { CHECKS = sizeof checks / sizeof *checks };

static status run_check(const struct check *check, const struct settings *settings,
                        struct notes *notes)
{
    status s = check->run(settings, notes);
    return check->member == NULL ? s : settings_blame(settings, check->member, s);
}

status serve_check(const struct settings *settings)
{
    for (size_t i = 0; i < CHECKS; i++)
        TRY(run_check(&checks[i], settings, NULL));
    return status_ok();
}

size_t serve_check_all(const struct settings *settings, struct buffer *out)
{
    struct notes notes = {0};
    size_t wrong = 0;
    for (size_t i = 0; i < CHECKS; i++) {
        status s = run_check(&checks[i], settings, &notes);
        if (!status_is_ok(s)) {
            buffer_append_format(out, "wrong: %s\n", status_message(s));
            wrong++;
        }
        status_free(s);
    }
    buffer_append(out, notes.text.data, notes.text.size);
    out->failed = out->failed || notes.text.failed;
    buffer_free(&notes.text);
    return wrong;
}
