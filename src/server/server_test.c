/* Tests of the assembled server, over a cluster and services that are faked here: several in one
 * process, pages, limits, and how it stops. */
#include "server/server.h"

#include "backup/repairer.h"
#include "backup/service.h"
#include "base/condition.h"
#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"
#include "bigtable/describe.h"
#include "bigtable/services.h"
#include "cluster/backup/backup.h"
#include "datastore/datastore.h"
#include "datastore/query/describe.h"
#include "history/history.h"
#include "introspect/advice_watch.h"
#include "introspect/insight.h"
#include "os/thread.h"
#include "server/testing/replica_doubles.h"
#include "views/views.h"
#include "wire/grpc_link.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

/* --- the fakes --- */

static int the_cluster; /* something to point to */
static struct condition *the_condition;

status cluster_open(const struct cluster_options *options, struct cluster **out)
{
    assert_non_null(options->pool);
    assert_non_null(options->metrics);
    *out = (struct cluster *)(void *)&the_cluster;
    return status_ok();
}

const char *cluster_old_data(struct cluster *cluster)
{
    assert_ptr_equal(cluster, &the_cluster);
    return NULL;
}

void cluster_seal_old_data(struct cluster *cluster)
{
    assert_ptr_equal(cluster, &the_cluster);
}

status cluster_await_files(struct cluster *cluster)
{
    assert_ptr_equal(cluster, &the_cluster);
    return status_ok();
}

void cluster_close(struct cluster *cluster)
{
    assert_ptr_equal(cluster, &the_cluster);
}

status backups_open(const struct backups_options *options, struct backups **out)
{
    assert_string_equal(strrchr(options->directory, '/'), "/backups");
    *out = NULL;
    return status_ok();
}

void backups_measure(struct backups *backups)
{
    (void)backups;
}

void backups_close(struct backups *backups)
{
    assert_null(backups);
}

struct condition *cluster_condition(struct cluster *cluster)
{
    assert_ptr_equal(cluster, &the_cluster);
    return the_condition;
}

void cluster_measure(struct cluster *cluster)
{
    (void)cluster;
}

void cluster_limit_cache(struct cluster *cluster, uint64_t bytes)
{
    assert_ptr_equal(cluster, &the_cluster);
    (void)bytes;
}

void stream_readers_measure(struct stream_readers *readers, struct metrics *metrics)
{
    assert_non_null(readers);
    (void)metrics;
}

void views_measure(struct views *views)
{
    (void)views;
}

uint64_t cluster_growth(struct cluster *cluster)
{
    assert_ptr_equal(cluster, &the_cluster);
    return 0;
}

status history_recall(struct cluster *cluster, enum history_line line, double *value)
{
    (void)cluster;
    (void)line;
    *value = NAN;
    return status_ok();
}

status history_open(const struct history_options *options, struct history **out)
{
    assert_non_null(options->measure);
    assert_int_equal(options->retention_us, INT64_C(14) * 24 * 3600 * 1000000);
    *out = NULL;
    return status_ok();
}

void history_close(struct history *history)
{
    assert_null(history);
}

static void echo(void *context, struct grpc_call *call, bytes request)
{
    struct buffer message = {0};
    assert_non_null(context);
    grpc_message_start(&message);
    buffer_append_bytes(&message, request);
    grpc_call_send(call, &message);
    grpc_call_finish(call, status_ok());
}

/* A call that ends when the test releases it, or when it is cancelled. */
static struct {
    sem_t arrived;
    struct grpc_call *call;
} held;

static void end_held_call(void *context)
{
    (void)context;
    grpc_call_finish(held.call, status_make(STATUS_CANCELLED, "cancelled"));
}

static void hold(void *context, struct grpc_call *call, bytes request)
{
    (void)context;
    (void)request;
    held.call = call;
    grpc_call_set_callbacks(call, NULL, NULL, end_held_call);
    sem_post(&held.arrived);
}

static const struct grpc_method methods[] = {
    {.name = "Echo", .kind = GRPC_UNARY, .handle = echo},
    {.name = "Hold", .kind = GRPC_UNARY, .handle = hold},
};

status bigtable_init(struct bigtable *bigtable, const struct bigtable_options *options)
{
    *bigtable = (struct bigtable){.cluster = options->cluster};
    return status_ok();
}

void bigtable_kinds(struct bigtable *bigtable, struct operation_kind out[BIGTABLE_KINDS])
{
    (void)bigtable;
    memset(out, 0, BIGTABLE_KINDS * sizeof *out);
}

status bigtable_start(struct bigtable *bigtable)
{
    (void)bigtable;
    return status_ok();
}

void bigtable_look(struct bigtable *bigtable)
{
    (void)bigtable;
}

void bigtable_stop(struct bigtable *bigtable)
{
    (void)bigtable;
}

void bigtable_free(struct bigtable *bigtable)
{
    (void)bigtable;
}

status control_open(struct cluster *cluster, const struct log *log, struct control **out)
{
    (void)cluster;
    (void)log;
    *out = NULL;
    return status_ok();
}

void control_set_location(struct control *control, const char *zone)
{
    assert_null(control);
    (void)zone;
}

size_t operations_running(struct control *control)
{
    (void)control;
    return 0;
}

status operations_start(struct control *control, const struct operation_kind *kinds, size_t count)
{
    (void)control;
    (void)kinds;
    assert_int_equal(count, BIGTABLE_KINDS);
    return status_ok();
}

/* Datastore's background jobs, which ask the control plane. */
static bool background_runs;

/* A server that stopped at a load of 12 had closed it under them. */
void control_close(struct control *control)
{
    assert_null(control);
    assert_false(background_runs);
}

void bigtable_enforce_policies(struct bigtable *bigtable, struct access *access)
{
    bigtable->access = access;
}

struct grpc_service bigtable_data_service(struct bigtable *bigtable)
{
    return (struct grpc_service){
        .name = "test.Data", .methods = methods, .method_count = 2, .context = bigtable};
}

struct grpc_service bigtable_table_admin_service(struct bigtable *bigtable)
{
    (void)bigtable;
    return (struct grpc_service){.name = "test.Admin"};
}

struct grpc_service bigtable_instance_admin_service(struct bigtable *bigtable)
{
    (void)bigtable;
    return (struct grpc_service){.name = "test.Instances"};
}

struct grpc_service bigtable_operations_service(struct bigtable *bigtable)
{
    (void)bigtable;
    return (struct grpc_service){.name = "test.Operations"};
}

struct grpc_service bigtable_locations_service(struct bigtable *bigtable)
{
    (void)bigtable;
    return (struct grpc_service){.name = "test.Locations"};
}

status datastore_init(struct datastore *datastore, const struct datastore_options *options)
{
    assert_int_equal(options->threads, 16);
    *datastore = (struct datastore){.cluster = options->cluster};
    background_runs = true;
    return status_ok();
}

size_t datastore_kinds(struct datastore *datastore, struct operation_kind *out)
{
    (void)datastore;
    (void)out;
    return 0;
}

void datastore_rest(struct datastore *datastore)
{
    (void)datastore;
    background_runs = false;
}

void datastore_free(struct datastore *datastore)
{
    (void)datastore;
    assert_false(background_runs);
}

struct grpc_service datastore_service(struct datastore *datastore)
{
    (void)datastore;
    return (struct grpc_service){.name = "test.Datastore"};
}

struct grpc_service datastore_admin_service(struct datastore *datastore)
{
    (void)datastore;
    return (struct grpc_service){.name = "test.DatastoreAdmin"};
}

struct grpc_service datastore_firestore_service(struct datastore *datastore)
{
    (void)datastore;
    return (struct grpc_service){.name = "test.FirestoreAdmin"};
}

void bigtable_describe(const char *method, bytes request, struct arena *arena, struct buffer *out,
                       const char **app_profile)
{
    (void)method;
    (void)request;
    (void)arena;
    (void)out;
    *app_profile = "";
}

void ds_describe(const char *method, bytes request, struct arena *arena, struct buffer *out)
{
    (void)method;
    (void)request;
    (void)arena;
    (void)out;
}

struct grpc_service insight_service(struct insight *insight)
{
    (void)insight;
    return (struct grpc_service){.name = "test.Insight"};
}

status advice_watch_start(struct insight *insight, struct advice_watch **out)
{
    (void)insight;
    *out = NULL;
    return status_ok();
}

void advice_watch_stop(struct advice_watch *watch)
{
    assert_null(watch);
}

status whole_runner_create(const struct whole_runner_options *options, struct whole_runner **out)
{
    (void)options;
    *out = NULL;
    return status_ok();
}

bool whole_runner_is_busy(struct whole_runner *runner)
{
    (void)runner;
    return false;
}

void whole_runner_destroy(struct whole_runner *runner)
{
    (void)runner;
}

status whole_repairer_create(const struct whole_repairer_options *options,
                             struct whole_repairer **out)
{
    (void)options;
    *out = NULL;
    return status_ok();
}

void whole_repairer_destroy(struct whole_repairer *repairer)
{
    (void)repairer;
}

struct repair_source whole_repairer_source(struct whole_repairer *repairer)
{
    (void)repairer;
    return (struct repair_source){.context = NULL};
}

struct grpc_service backup_grpc_service(struct backup_service *service)
{
    (void)service;
    return (struct grpc_service){.name = "test.WholeBackups"};
}

/* --- servers --- */

static struct log silent = {.fd = -1, .level = LOG_ERROR};

struct running {
    struct settings settings;
    struct server *server;
};

static void run_server(struct running *running, const char *const *arguments)
{
    struct log *log = &silent;
    assert_ok(settings_read(arguments, LIST(), &running->settings));
    assert_ok(server_create(&running->settings, log, clock_system(), &running->server));
    assert_ok(server_start(running->server));
}

static void stop_server(struct running *running)
{
    assert_ok(server_destroy(running->server));
    settings_free(&running->settings);
}

static void assert_refused(const char *const *arguments, enum status_code code, const char *words)
{
    struct settings settings;
    struct server *server;
    assert_ok(settings_read(arguments, LIST(), &settings));
    status s = server_create(&settings, &silent, clock_system(), &server);
    assert_null(server);
    assert_string_equal(status_message(s), words);
    assert_status(s, code);
    settings_free(&settings);
}

/* --- clients --- */

/* Calls over one connection, each driven to its end on the test's thread. */
struct client {
    struct loop *loop;
    struct grpc_link *link;
    enum status_code code; /* of the last call */
    struct buffer answer;
};

static const struct grpc_identity nobody = {.authority = "localhost"};

static struct client connect_client(const struct server *server)
{
    struct client client = {0};
    assert_ok(loop_create(clock_system(), &client.loop));
    assert_ok(grpc_link_create(client.loop, server_address(server), 1, &nobody, &client.link));
    return client;
}

static void disconnect(struct client *client)
{
    grpc_link_destroy(client->link);
    loop_destroy(client->loop);
    buffer_free(&client->answer);
}

static void take_message(void *context, struct client_call *call, bytes message)
{
    (void)call;
    struct client *client = context;
    buffer_clear(&client->answer);
    buffer_append_bytes(&client->answer, message);
}

static void take_end(void *context, struct client_call *call, status s)
{
    (void)call;
    struct client *client = context;
    client->code = s.code;
    status_free(s);
    loop_stop(client->loop);
}

static void start_call(struct client *client, const char *path, const char *text)
{
    struct buffer message = {0};
    const struct client_call_options options = {.path = path,
                                                .timeout_us = INT64_MAX,
                                                .context = client,
                                                .on_message = take_message,
                                                .on_end = take_end};
    struct client_call *call;
    grpc_message_start(&message);
    buffer_append_bytes(&message, bytes_of(text));
    assert_ok(grpc_link_call(client->link, &options, &message, &call));
}

static void assert_echo(struct client *client, const char *text)
{
    start_call(client, "/test.Data/Echo", text);
    loop_run(client->loop);
    assert_int_equal(client->code, STATUS_OK);
    assert_true(bytes_equal(buffer_bytes(&client->answer), bytes_of(text)));
}

static int connect_socket(const struct server *server)
{
    const struct address *address = server_address(server);
    int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address->storage, address->size), 0);
    return fd;
}

/* What a GET of the path answers, head and body. */
static struct buffer get(const struct server *server, const char *path)
{
    struct buffer request = {0}, answer = {0};
    int fd = connect_socket(server);
    buffer_append_format(&request, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
    assert_int_equal(write(fd, request.data, request.size), request.size);
    ssize_t count = 1;
    while (count > 0) {
        uint8_t *to = buffer_reserve(&answer, 4096);
        assert_non_null(to);
        count = read(fd, to, 4096);
        assert_true(count >= 0);
        answer.size += (size_t)count;
    }
    close(fd);
    buffer_free(&request);
    return answer;
}

static void assert_page(const struct server *server, const char *path, const char *head,
                        const char *part)
{
    struct buffer answer = get(server, path);
    assert_true(bytes_start_with(buffer_bytes(&answer), bytes_of(head)));
    assert_non_null(memmem(answer.data, answer.size, part, strlen(part)));
    buffer_free(&answer);
}

/* --- tests --- */

/* An address at which no server listens any more. */
static struct address deserted(void)
{
    struct address address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_ok(address_parse("127.0.0.1:0", &address));
    assert_int_equal(bind(fd, (const struct sockaddr *)&address.storage, address.size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address.storage, &address.size), 0);
    close(fd);
    return address;
}

/* As "localhost" has ::1 and 127.0.0.1, and the server one of them. */
static void a_link_finds_the_address_that_answers(void **state)
{
    (void)state;
    struct running one;
    run_server(&one, LIST("--listen=127.0.0.1:0", "--threads=1"));
    const struct address addresses[] = {deserted(), *server_address(one.server), deserted()};
    struct client client = {0};
    assert_ok(loop_create(clock_system(), &client.loop));
    assert_ok(grpc_link_create(client.loop, addresses, 3, &nobody, &client.link));
    assert_echo(&client, "found");
    disconnect(&client);
    stop_server(&one);
}

static void a_link_says_why_no_server_is_found(void **state)
{
    (void)state;
    const struct address addresses[] = {deserted(), deserted()};
    struct client client = {0};
    assert_ok(loop_create(clock_system(), &client.loop));
    assert_ok(grpc_link_create(client.loop, addresses, 2, &nobody, &client.link));
    start_call(&client, "/test.Data/Echo", "lost");
    loop_run(client.loop);
    assert_int_equal(client.code, STATUS_UNAVAILABLE);
    assert_true(grpc_link_is_lost(client.link));
    status failure = grpc_link_failure(client.link);
    assert_string_equal(status_message(failure), "Connection refused");
    status_free(failure);
    disconnect(&client);
}

static void two_serve_in_one_process(void **state)
{
    (void)state;
    struct running one, two;
    run_server(&one, LIST("--listen=127.0.0.1:0", "--threads=2"));
    run_server(&two, LIST("--listen=127.0.0.1:0", "--threads=1"));
    struct client a = connect_client(one.server), b = connect_client(two.server);
    assert_echo(&a, "first");
    assert_echo(&b, "second");
    stop_server(&one);
    assert_echo(&b, "still there");
    disconnect(&a);
    disconnect(&b);
    stop_server(&two);
}

static void pages_are_served(void **state)
{
    (void)state;
    struct running running;
    run_server(&running, LIST("--listen=127.0.0.1:0", "--data-dir=."));
    struct client client = connect_client(running.server);
    assert_echo(&client, "counted");
    assert_page(running.server, "/livez", "HTTP/1.1 200", "ok\n");
    assert_page(running.server, "/readyz", "HTTP/1.1 200", "ok\n");
    assert_page(running.server, "/", "HTTP/1.1 302", "the console is at /console/");
    assert_page(running.server, "/other", "HTTP/1.1 404", "no such page");
    assert_page(running.server, "/metrics", "HTTP/1.1 200",
                "\ntrestle_rpcs_total{method=\"test.Data/Echo\",code=\"OK\"} 1\n");
    assert_page(running.server, "/metrics", "HTTP/1.1 200", "\ntrestle_rpcs_running 0\n");
    assert_page(running.server, "/metrics", "HTTP/1.1 200", "\nprocess_resident_memory_bytes ");
    disconnect(&client);
    stop_server(&running);
}

static void too_many_connections_are_closed(void **state)
{
    (void)state;
    struct running running;
    run_server(&running, LIST("--listen=127.0.0.1:0", "--max-connections=1"));
    struct client client = connect_client(running.server);
    assert_echo(&client, "the one");
    int second = connect_socket(running.server);
    char byte;
    assert_int_equal(read(second, &byte, 1), 0);
    close(second);
    assert_echo(&client, "undisturbed");
    disconnect(&client);
    stop_server(&running);
}

static void impossible_settings_are_refused(void **state)
{
    (void)state;
    assert_refused(LIST("--listen=nowhere"), STATUS_INVALID_ARGUMENT,
                   "--listen: \"nowhere\" is not ADDR:PORT");
    assert_refused(LIST("--listen=0.0.0.0:0"), STATUS_INVALID_ARGUMENT,
                   "--listen: 0.0.0.0:0 is not loopback: give tls-cert, tls-key and auth=on, "
                   "or say insecure");
    assert_refused(LIST("--listen=127.0.0.1:0", "--tls-cert=none", "--tls-key=none"),
                   STATUS_INVALID_ARGUMENT,
                   "--tls-cert: cannot use certificate none: No such file or directory");
    struct running running;
    run_server(&running, LIST("--listen=0.0.0.0:0", "--insecure"));
    stop_server(&running);
}

/* Drains when asked to, on a thread of its own. */
static void *drain(void *argument)
{
    server_drain(argument);
    return NULL;
}

static void draining_waits_for_calls(void **state)
{
    (void)state;
    struct running running;
    pthread_t drainer;
    run_server(&running, LIST("--listen=127.0.0.1:0", "--drain-timeout=1d"));
    struct client caller = connect_client(running.server);
    struct client watcher = connect_client(running.server);
    start_call(&caller, "/test.Data/Hold", "");
    start_call(&watcher, "/grpc.health.v1.Health/Watch", "");
    loop_stop(caller.loop); /* a turn, so that the request is written */
    loop_run(caller.loop);
    sem_wait(&held.arrived);
    assert_int_equal(pthread_create(&drainer, NULL, drain, running.server), 0);
    loop_run(watcher.loop); /* the watch ends with the beginning of the drain */
    grpc_call_finish(held.call, status_make(STATUS_ABORTED, "released"));
    loop_run(caller.loop);
    assert_int_equal(caller.code, STATUS_ABORTED);
    disconnect(&caller);
    disconnect(&watcher);
    pthread_join(drainer, NULL);
    stop_server(&running);
}

static void a_drain_that_lasts_too_long_ends_in_cancels(void **state)
{
    (void)state;
    struct running running;
    run_server(&running, LIST("--listen=127.0.0.1:0", "--drain-timeout=1us"));
    struct client caller = connect_client(running.server);
    start_call(&caller, "/test.Data/Hold", "");
    loop_stop(caller.loop);
    loop_run(caller.loop);
    sem_wait(&held.arrived);
    server_drain(running.server);
    stop_server(&running); /* returns: the call was cancelled and its handler finished */
    loop_run(caller.loop);
    assert_int_not_equal(caller.code, STATUS_OK);
    disconnect(&caller);
}

static void a_server_that_never_started_is_destroyed(void **state)
{
    (void)state;
    struct settings settings;
    struct server *server;
    assert_ok(settings_read(LIST("--listen=127.0.0.1:0"), LIST(), &settings));
    assert_ok(server_create(&settings, &silent, clock_system(), &server));
    assert_ok(server_destroy(server));
    settings_free(&settings);
}

static void create_in_need(void *context)
{
    (void)context;
    struct settings settings;
    struct server *server = NULL;
    status s = settings_read(LIST("--listen=127.0.0.1:0"), LIST(), &settings);
    if (status_is_ok(s))
        s = server_create(&settings, &silent, clock_system(), &server);
    assert_int_equal(status_is_ok(s), server != NULL);
    status_free(s);
    assert_ok(server_destroy(server));
    settings_free(&settings);
}

static void memory_runs_out_anywhere(void **state)
{
    (void)state;
    failmalloc_each(create_in_need, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_finds_the_address_that_answers),
        cmocka_unit_test(a_link_says_why_no_server_is_found),
        cmocka_unit_test(two_serve_in_one_process),
        cmocka_unit_test(pages_are_served),
        cmocka_unit_test(too_many_connections_are_closed),
        cmocka_unit_test(impossible_settings_are_refused),
        cmocka_unit_test(draining_waits_for_calls),
        cmocka_unit_test(a_drain_that_lasts_too_long_ends_in_cancels),
        cmocka_unit_test(a_server_that_never_started_is_destroyed),
        cmocka_unit_test(memory_runs_out_anywhere),
    };
    const struct log log = {.fd = -1, .level = LOG_ERROR, .clock = clock_system()};
    sem_init(&held.arrived, 0, 0);
    assert_ok(condition_create(&log, clock_system(), NULL, &the_condition));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
