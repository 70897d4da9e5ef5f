/* Tests of the audit log's lines about whole backups: of which, as it is asked for and as it ends.
 */
#include "backup/run_audit.h"

#include "base/testing/testing.h"
#include "base/testing/testing_clock.h"
#include "base/testing/testing_log.h"

#include <stdlib.h>
#include <unistd.h>

enum { ARENA_MOST = 1 << 20 };

struct fixture {
    struct log log;
    struct turned_clock clock;
    struct audit *audit;
    struct arena *arena;
    struct access_caller caller;
    char text[4096];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->log = testing_log();
    f->clock = (struct turned_clock){.clock = TURNED_CLOCK, .now_us = 1000000};
    f->caller.resource = bytes_of("servers/self");
    const struct audit_options options = {.log = &f->log, .clock = &f->clock.clock};
    assert_ok(audit_open(&options, &f->audit));
    f->arena = arena_create(ARENA_MOST);
    assert_non_null(f->arena);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    audit_close(f->audit);
    arena_destroy(f->arena);
    close(f->log.fd);
    free(f);
    return 0;
}

static struct whole_wish wish_of(const char *place, const char *name)
{
    return (struct whole_wish){.place = place, .name = name, .from = "", .to = "", .scope = ""};
}

static void asks(struct fixture *f, const struct whole_wish *wish, const char *resource,
                 const char *source)
{
    assert_ok(run_audit_ask(wish, f->arena, &f->caller));
    assert_true(bytes_equal(f->caller.resource, bytes_of(resource)));
    assert_true(bytes_equal(f->caller.source, bytes_of(source)));
}

static void a_backup_is_of_its_scope(void **state)
{
    struct fixture *f = *state;
    struct whole_wish wish = wish_of("/pl", "");
    asks(f, &wish, "servers/self/places//pl", "servers/self");
    wish.scope = "projects/p/instances/i/tables/t";
    asks(f, &wish, "servers/self/places//pl", "projects/p/instances/i/tables/t");
}

static void tables_come_from_a_backup(void **state)
{
    struct fixture *f = *state;
    struct whole_wish wish = wish_of("/pl", "");
    wish.from = "projects/p/instances/i/tables/t";
    asks(f, &wish, "projects/p/instances/i/tables/t", "servers/self/places//pl");
    wish.name = "20261124T004417Z";
    wish.to = "projects/p/instances/i/tables/u";
    asks(f, &wish, "projects/p/instances/i/tables/u", "servers/self/places//pl/20261124T004417Z");
}

/* It is about what the rules of calls have found. */
static void a_wish_that_names_nothing_stays_as_it_is(void **state)
{
    struct fixture *f = *state;
    const struct whole_wish wish = wish_of("", "");
    asks(f, &wish, "servers/self", "servers/self");
    assert_ok(run_audit_ask(&wish, f->arena, NULL));
}

static void without_memory_the_call_fails(void **state)
{
    struct fixture *f = *state;
    const struct whole_wish wish = wish_of("/pl", "");
    struct arena *tiny = arena_create(1);
    assert_non_null(tiny);
    assert_status(run_audit_ask(&wish, tiny, &f->caller), STATUS_RESOURCE_EXHAUSTED);
    arena_destroy(tiny);
}

static void ends(struct fixture *f, const struct whole_run *run, const char *expected)
{
    run_audit_end(f->audit, run, bytes_of("user:a"));
    testing_log_take(&f->log, f->text, sizeof f->text);
    assert_non_null(strstr(f->text, expected));
}

static void an_end_says_what_came_of_it(void **state)
{
    struct fixture *f = *state;
    struct whole_run run = {.place = "/pl", .name = "B", .start_us = 5, .end_us = 12};
    ends(f, &run,
         "msg=audit event=ended principal=user:a service=trestle.backup.v1.WholeBackups "
         "method=CreateWholeBackup resource=servers/self/places//pl/B source=servers/self "
         "status=OK duration_us=7\n");
    run = (struct whole_run){
        .place = "/pl", .from = "t", .code = STATUS_NOT_FOUND, .error = "it is not there"};
    ends(f, &run,
         "method=RestoreTables resource=t source=servers/self/places//pl status=NOT_FOUND "
         "reason=\"it is not there\" duration_us=0\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_backup_is_of_its_scope),
        TEST(tables_come_from_a_backup),
        TEST(a_wish_that_names_nothing_stays_as_it_is),
        TEST(without_memory_the_call_fails),
        TEST(an_end_says_what_came_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
