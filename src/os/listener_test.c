/* Tests of the listener: many clients at once, a port in use, and life without descriptors. */
#include "os/listener.h"

#include "base/testing/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CLIENTS = 200 };

struct fixture {
    struct clock clock;
    int64_t now;
    struct loop *loop;
    struct listener *listener;
    int accepted;
    int expected; /* the loop stops when so many have come */
};

static int64_t hand_us(struct clock *clock)
{
    return LIST_ENTRY(clock, struct fixture, clock)->now;
}

static void count_and_close(void *context, int socket, const struct address *peer)
{
    struct fixture *f = context;
    assert_true(address_is_loopback(peer));
    close(socket);
    if (++f->accepted == f->expected)
        loop_stop(f->loop);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct address any;
    assert_non_null(f);
    f->clock = (struct clock){.wall_us = hand_us, .steady_us = hand_us};
    assert_ok(loop_create(&f->clock, &f->loop));
    assert_ok(address_parse("127.0.0.1:0", &any));
    assert_ok(listener_open(f->loop, &any, count_and_close, f, &f->listener));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    listener_close(f->listener);
    loop_destroy(f->loop);
    free(f);
    return 0;
}

static int connect_to(const struct listener *listener)
{
    const struct address *address = listener_address(listener);
    int fd = socket(address->storage.ss_family, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address->storage, address->size), 0);
    return fd;
}

static void many_clients_are_accepted(void **state)
{
    struct fixture *f = *state;
    int clients[CLIENTS];
    f->expected = CLIENTS;
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = connect_to(f->listener);
    loop_run(f->loop);
    assert_int_equal(f->accepted, CLIENTS);
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
}

static void the_port_is_reported_and_taken(void **state)
{
    struct fixture *f = *state;
    struct listener *second;
    char text[ADDRESS_TEXT_SIZE];
    address_format(listener_address(f->listener), text);
    assert_int_not_equal(strcmp(text, "127.0.0.1:0"), 0);
    status s = listener_open(f->loop, listener_address(f->listener), count_and_close, f, &second);
    assert_non_null(strstr(status_message(s), text));
    assert_status(s, STATUS_ALREADY_EXISTS);
    assert_null(second);
    assert_status(listener_check(listener_address(f->listener)), STATUS_ALREADY_EXISTS);
}

static void a_port_is_looked_at_and_left(void **state)
{
    struct fixture *f = *state;
    const struct address address = *listener_address(f->listener);
    listener_close(f->listener);
    f->listener = NULL;
    assert_ok(listener_check(&address));
    assert_ok(listener_open(f->loop, &address, count_and_close, f, &f->listener));
}

static void set_descriptor_limit(rlim_t soft, struct rlimit *former)
{
    assert_int_equal(getrlimit(RLIMIT_NOFILE, former), 0);
    struct rlimit limit = {.rlim_cur = soft, .rlim_max = former->rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void turn_once(struct fixture *f)
{
    loop_stop(f->loop);
    loop_run(f->loop);
}

/* While the clock stands still the listener does not try again, even when there are descriptors:
 * so it cannot spin. Then it does. */
static void a_shortage_of_descriptors_passes(void **state)
{
    struct fixture *f = *state;
    struct rlimit former, none;
    int client = connect_to(f->listener);
    set_descriptor_limit((rlim_t)client, &former);
    assert_int_equal(dup(client), -1);
    assert_int_equal(errno, EMFILE);
    turn_once(f);
    assert_int_equal(f->accepted, 0);
    set_descriptor_limit(former.rlim_cur, &none);
    turn_once(f);
    assert_int_equal(f->accepted, 0);
    f->now += 1000 * 1000;
    turn_once(f); /* the pause ends */
    turn_once(f);
    assert_int_equal(f->accepted, 1);
    close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_clients_are_accepted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_port_is_reported_and_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_port_is_looked_at_and_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_shortage_of_descriptors_passes, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
