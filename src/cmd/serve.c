/* See serve.h.
 *
 * Signals: SIGTERM and SIGINT drain the server; a second one ends the process at once, by the
 * system's own rule. SIGHUP has it read certificates and the like again. SIGPIPE is ignored: a
 * client that has gone shows in the write. */
#include "cmd/serve.h"

#include "base/metrics.h"
#include "cmd/command.h"
#include "os/allocator.h"
#include "os/thread.h"
#include "server/serve_check.h"
#include "server/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

/* Each connection is a descriptor, each open table file is one. */
static void raise_descriptor_limit(const struct log *log)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        log_warn(log, "cannot raise the limit of open files",
                 LOG_STR("error", strerrordesc_np(errno)));
}

/* Blocks them here, and so in every thread that is started later: only wait_for_stop takes them. */
static void take_signals(sigset_t *taken)
{
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(taken);
    sigaddset(taken, SIGTERM);
    sigaddset(taken, SIGINT);
    sigaddset(taken, SIGHUP);
    pthread_sigmask(SIG_BLOCK, taken, NULL);
}

/* --- while it serves --- */

/* A thread that looks at the memory that the process takes, twenty times a second, where that is
 * bounded: the main one may have to wait for a disk. */
struct memory_watch {
    struct server *server;
    pthread_t thread;
    struct thread_stop stop;
};

static void *watch_memory(void *argument)
{
    enum { PAUSE_US = 50 * 1000 };
    struct memory_watch *watch = argument;
    do {
        server_look_at_memory(watch->server);
    } while (thread_rest(&watch->stop, PAUSE_US));
    return NULL;
}

static status begin_memory_watch(struct memory_watch *watch)
{
    if (!server_memory_is_bounded(watch->server))
        return status_ok();
    thread_stop_init(&watch->stop);
    return thread_start(&watch->thread, "memory", watch_memory, watch);
}

static void end_memory_watch(struct memory_watch *watch)
{
    if (!server_memory_is_bounded(watch->server))
        return;
    thread_stop_now(&watch->stop);
    pthread_join(watch->thread, NULL);
    thread_stop_destroy(&watch->stop);
}

/* Meanwhile looks every second whether files that the server has read have changed, and what is the
 * matter with it. */
static void wait_for_stop(struct server *server, const sigset_t *taken, const struct log *log)
{
    static const struct timespec second = {.tv_sec = 1};
    int number;
    do {
        number = sigtimedwait(taken, NULL, &second);
        if (!server_memory_is_bounded(server))
            server_look_at_memory(server);
        if (number == SIGHUP || number < 0)
            server_reload(server, number == SIGHUP);
        server_look(server);
    } while (number != SIGTERM && number != SIGINT);
    log_info(log, "stopping", LOG_STR("signal", strsignal(number)));
    pthread_sigmask(SIG_UNBLOCK, taken, NULL); /* the next one ends the process */
}

static void say_ready(const struct settings *settings, const struct log *log, const char *address)
{
    log_info(log, "serving", LOG_STR("address", address), LOG_STR("data", settings->data_dir),
             LOG_STR("tls", settings->tls_cert == NULL ? "no" : "yes"));
    if (settings->ready_fd != 0) {
        int fd = (int)settings->ready_fd;
        if (dprintf(fd, "READY %s\n", address) < 0)
            log_warn(log, "cannot write to ready-fd", LOG_STR("error", strerrordesc_np(errno)));
        close(fd);
    }
    sd_notifyf(0, "READY=1\nSTATUS=Serving on %s", address);
}

/* Most likely a typing error. */
static void warn_of_unknown_variables(const struct log *log)
{
    const char *const *environment = (const char *const *)environ;
    const char *variable;
    while ((variable = settings_unknown_variable(&environment)) != NULL)
        log_warn(log, "environment variable is no setting",
                 LOG_BYTES("name", bytes_make(variable, strcspn(variable, "="))));
}

static void warn_of_former_names(const struct settings *settings, const struct log *log)
{
    const struct option_alias *alias;
    for (size_t at = 0; (alias = settings_next_alias(settings, &at)) != NULL;)
        log_warn(log, "setting was given by its former name", LOG_STR("former", alias->former),
                 LOG_STR("name", alias->member));
}

static status serve(struct server *server, const struct settings *settings, const struct log *log,
                    const sigset_t *taken)
{
    char address[ADDRESS_TEXT_SIZE];
    address_format(server_address(server), address);
    warn_of_unknown_variables(log);
    struct memory_watch watch = {.server = server};
    warn_of_former_names(settings, log);
    TRY(server_start(server));
    TRY(begin_memory_watch(&watch));
    say_ready(settings, log, address);
    wait_for_stop(server, taken, log);
    sd_notify(0, "STOPPING=1");
    server_drain(server);
    end_memory_watch(&watch);
    return status_ok();
}

/* Returns the exit status; after a failed start it is not looked at. */
static int close_server(struct server *server, const struct log *log)
{
    status s = server_destroy(server);
    int exit_status = status_is_ok(s) ? EXIT_SUCCESS : EXIT_FAILURE;
    if (!status_is_ok(s))
        log_error(log, "the next start will miss files", LOG_STR("cause", status_message(s)));
    status_free(s);
    return exit_status;
}

static status run_server(const struct settings *settings, struct log *log, int *exit_status)
{
    sigset_t taken;
    struct server *server;
    allocator_set_up();
    raise_descriptor_limit(log);
    take_signals(&taken);
    TRY(server_create(settings, log, clock_system(), &server));
    status s = serve(server, settings, log, &taken);
    *exit_status = close_server(server, log);
    return s;
}

static int run(const struct settings *settings)
{
    struct log log = {.fd = STDERR_FILENO,
                      .level = (enum log_level)settings->log_level,
                      .format = (enum log_format)settings->log_format,
                      .clock = clock_system()};
    int exit_status = EXIT_SUCCESS;
    status s = run_server(settings, &log, &exit_status);
    if (s.code == STATUS_INVALID_ARGUMENT) {
        exit_status = command_usage_error("serve", status_message(s));
    } else if (!status_is_ok(s)) {
        log_error(&log, "cannot serve", LOG_STR("error", status_message(s)));
        exit_status = EXIT_FAILURE;
    } else {
        log_info(&log, "stopped");
    }
    status_free(s);
    return exit_status;
}

static void write_help(struct buffer *out)
{
    settings_write_help(out);
    buffer_append_format(out, "\nWithout serving:\n"
                              "  --check  tells what is wrong with these settings, and the files, "
                              "directories and\n           the port that they name, and changes "
                              "nothing\n");
}

/* A line of its own for each of what was refused. Returns how many they are. */
static size_t append_refusals(const struct buffer *refused, struct buffer *out)
{
    size_t count = 0;
    const char *line = (const char *)refused->data, *end = line + refused->size;
    for (; line < end; line += strcspn(line, "\n") + 1, count++)
        buffer_append_format(out, "wrong: %.*s\n", (int)strcspn(line, "\n"), line);
    return count;
}

static int print_check(const struct settings *settings, const struct buffer *refused)
{
    struct buffer out = {0};
    size_t wrong = append_refusals(refused, &out);
    wrong += serve_check_all(settings, &out);
    if (wrong == 0)
        buffer_append_format(&out, "nothing is wrong: serve would start\n");
    status s = out.failed ? status_out_of_memory() : status_ok();
    if (status_is_ok(s))
        fwrite(out.data, 1, out.size, stdout);
    buffer_free(&out);
    return command_end("serve", s, wrong == 0);
}

/* The arguments without the one that is no setting; NULL without memory. */
static const char **settings_of(const char *const *arguments)
{
    size_t count = 0, kept = 0;
    while (arguments[count] != NULL)
        count++;
    const char **others = calloc(count + 1, sizeof *others);
    for (size_t i = 0; others != NULL && i < count; i++)
        if (strcmp(arguments[i], "--check") != 0)
            others[kept++] = arguments[i];
    return others;
}

/* `trestle serve --check`: prints all that is wrong with the settings, and with what they name.
 * Returns the exit status: a failure's if something is. */
static int check(const char *const *arguments)
{
    struct settings settings = {0};
    struct buffer refused = {0};
    const char **others = settings_of(arguments);
    status s = others == NULL
                   ? status_out_of_memory()
                   : settings_read_sound(others, (const char *const *)environ, &settings, &refused);
    if (status_is_ok(s))
        buffer_append_byte(&refused, '\0'); /* its lines are looked for as in a string */
    if (status_is_ok(s) && refused.failed)
        s = status_out_of_memory();
    refused.size -= refused.size > 0;
    int exit_status =
        status_is_ok(s) ? print_check(&settings, &refused) : command_refuse("serve", s);
    buffer_free(&refused);
    settings_free(&settings);
    free(others);
    return exit_status;
}

int serve_command(const char *const *arguments)
{
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    if (command_asks_for(arguments, "--metrics-markdown"))
        return command_print(metrics_write_markdown);
    if (command_asks_for(arguments, "--help-markdown"))
        return command_print(settings_write_markdown);
    if (command_asks_for(arguments, "--check"))
        return check(arguments);
    struct settings settings;
    status s = settings_read(arguments, (const char *const *)environ, &settings);
    int exit_status =
        status_is_ok(s) ? run(&settings) : command_usage_error("serve", status_message(s));
    status_free(s);
    settings_free(&settings);
    return exit_status;
}
