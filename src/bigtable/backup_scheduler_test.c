/* Tests of the scheduler of backups, over a cluster of the test's own, by a clock that the test
 * turns. */
#include "bigtable/backup_scheduler.h"

#include "base/testing/testing_clock.h"
#include "bigtable/backup_jobs.h"
#include "bigtable/backup_methods.h"
#include "bigtable/table_methods.h"
#include "cluster/testing/testing.h"
#include "google/longrunning/operations.pb-c.h"

#define INSTANCE "projects/p/instances/i"
#define CLUSTER  INSTANCE "/clusters/trestle"
#define TABLE    INSTANCE "/tables/t"

enum { DAY = 24 * 3600 };

/* Time passes at once, by both clocks. */
static void go_to(struct ahead_clock *clock, int64_t seconds)
{
    clock->wall_ahead_us = clock->steady_ahead_us = seconds * 1000000;
}

struct fixture {
    struct cluster_fixture base;
    struct ahead_clock clock;
    char backups_directory[96];
    struct backups *backups;
    struct control *control;
    struct operation_kind kinds[BIGTABLE_KINDS];
    struct bigtable bigtable;
    struct backup_attempts attempts;
};

/* Without the care of backups, which bigtable_start would begin: here the tests are it. */
static void start_operations(struct fixture *f)
{
    bigtable_kinds(&f->bigtable, f->kinds);
    assert_ok(operations_start(f->control, f->kinds, BIGTABLE_KINDS));
}

static void open_services(struct fixture *f)
{
    open_test_cluster(&f->base);
    const struct backups_options backups = {
        .cluster = f->base.cluster, .directory = f->backups_directory, .log = &f->base.log};
    assert_ok(backups_open(&backups, &f->backups));
    assert_ok(control_open(f->base.cluster, &f->base.log, &f->control));
    const struct bigtable_options options = {.cluster = f->base.cluster,
                                             .control = f->control,
                                             .backups = f->backups,
                                             .query_threads = 1,
                                             .backups_expire = true,
                                             .zone_id = "z",
                                             .auto_create = true};
    assert_ok(bigtable_init(&f->bigtable, &options));
    start_operations(f);
}

static void close_services(struct fixture *f)
{
    bigtable_stop(&f->bigtable);
    control_close(f->control);
    bigtable_free(&f->bigtable);
    backups_close(f->backups);
    close_test_cluster(&f->base);
    backup_attempts_free(&f->attempts);
}

static void call(struct fixture *f, admin_method *method, const ProtobufCMessage *message,
                 const ProtobufCMessage **response)
{
    const ProtobufCMessage *answer = NULL;
    struct admin_request request = {.bigtable = &f->bigtable,
                                    .arena = f->base.arena,
                                    .deadline_us = INT64_MAX,
                                    .message = message};
    assert_ok(method(&request, &answer));
    if (response != NULL)
        *response = answer;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    struct cluster_fixture *base = &f->base;
    snprintf(base->directory, sizeof base->directory, "/tmp/trestle-care-XXXXXX");
    assert_non_null(mkdtemp(base->directory));
    snprintf(f->backups_directory, sizeof f->backups_directory, "%s/backups", base->directory);
    base->log = (struct log){.fd = -1, .level = LOG_ERROR, .clock = clock_system()};
    base->arena = arena_create(1 << 24);
    f->clock.clock = (struct clock)AHEAD_CLOCK;
    assert_ok(pool_create(1, 16, "test", &base->pool));
    base->options = test_cluster_options(base->directory);
    base->options.clock = &f->clock.clock;
    base->options.log = &base->log;
    base->options.pool = base->pool;
    open_services(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    close_services(f);
    pool_destroy(f->base.pool);
    remove_test_directory(f->base.directory);
    arena_destroy(f->base.arena);
    free(f);
    return 0;
}

/* --- what the tests do --- */

static Pb__Duration days(int64_t count)
{
    Pb__Duration span = PB__DURATION__INIT;
    span.seconds = count * DAY;
    return span;
}

static void create_table_with(struct fixture *f, BtAdmin__Table__AutomatedBackupPolicy *policy)
{
    BtAdmin__Table table = BT_ADMIN__TABLE__INIT;
    BtAdmin__CreateTableRequest message = BT_ADMIN__CREATE_TABLE_REQUEST__INIT;
    message.parent = INSTANCE;
    message.table_id = "t";
    message.table = &table;
    if (policy != NULL) {
        table.automated_backup_config_case =
            BT_ADMIN__TABLE__AUTOMATED_BACKUP_CONFIG_AUTOMATED_BACKUP_POLICY;
        table.automated_backup_policy = policy;
    }
    call(f, create_table, &message.base, NULL);
}

static void await(struct fixture *f)
{
    struct arena *arena = arena_create(1 << 20);
    struct backup_info *infos;
    size_t count;
    for (bool is_making = true; is_making; sched_yield()) {
        is_making = false;
        arena_reset(arena);
        assert_ok(backups_list(f->backups, "", arena, &infos, &count));
        for (size_t i = 0; i < count; i++)
            is_making |= !infos[i].is_ready;
    }
    arena_destroy(arena);
}

static Pb__Timestamp time_in(struct fixture *f, int64_t seconds)
{
    Pb__Timestamp time = PB__TIMESTAMP__INIT;
    time.seconds = clock_wall_us(&f->clock.clock) / 1000000 + seconds;
    return time;
}

static void make_backup(struct fixture *f, const char *id, BtAdmin__Backup *backup)
{
    BtAdmin__CreateBackupRequest message = BT_ADMIN__CREATE_BACKUP_REQUEST__INIT;
    backup->source_table = TABLE;
    message.parent = CLUSTER;
    message.backup_id = id;
    message.backup = backup;
    call(f, create_backup, &message.base, NULL);
    await(f);
}

static bool look(struct fixture *f)
{
    bool has_more;
    backup_scheduler_run_once(&f->bigtable, &f->attempts, &has_more);
    await(f);
    return has_more;
}

/* The backups there are, by name. */
static BtAdmin__ListBackupsResponse *list(struct fixture *f)
{
    BtAdmin__ListBackupsRequest message = BT_ADMIN__LIST_BACKUPS_REQUEST__INIT;
    const ProtobufCMessage *response;
    message.parent = INSTANCE "/clusters/-";
    message.order_by = "name";
    call(f, list_backups, &message.base, &response);
    union {
        const ProtobufCMessage *given;
        BtAdmin__ListBackupsResponse *wanted;
    } pointer = {.given = response};
    return pointer.wanted;
}

/* --- expiry --- */

static void test_an_expired_backup_goes(void **state)
{
    struct fixture *f = *state;
    create_table_with(f, NULL);
    BtAdmin__Backup soon = BT_ADMIN__BACKUP__INIT, late = BT_ADMIN__BACKUP__INIT;
    Pb__Timestamp in_a_day = time_in(f, DAY), in_a_month = time_in(f, 30 * DAY);
    soon.expire_time = &in_a_day;
    late.expire_time = &in_a_month;
    make_backup(f, "late", &late);
    make_backup(f, "soon", &soon);
    look(f);
    assert_int_equal(list(f)->n_backups, 2);
    go_to(&f->clock, DAY + 10);
    look(f);
    BtAdmin__ListBackupsResponse *left = list(f);
    assert_int_equal(left->n_backups, 1);
    assert_string_equal(left->backups[0]->name, CLUSTER "/backups/late");
}

static void test_a_held_backup_goes_later(void **state)
{
    struct fixture *f = *state;
    create_table_with(f, NULL);
    BtAdmin__Backup backup = BT_ADMIN__BACKUP__INIT;
    Pb__Timestamp in_a_day = time_in(f, DAY);
    backup.expire_time = &in_a_day;
    make_backup(f, "b", &backup);
    assert_ok(backup_hold(f->backups, CLUSTER "/backups/b"));
    go_to(&f->clock, DAY + 10);
    look(f);
    assert_int_equal(list(f)->n_backups, 1);
    backup_let_go(f->backups, CLUSTER "/backups/b");
    look(f);
    assert_int_equal(list(f)->n_backups, 0);
}

static void test_an_expired_backup_cannot_be_restored(void **state)
{
    struct fixture *f = *state;
    create_table_with(f, NULL);
    BtAdmin__Backup backup = BT_ADMIN__BACKUP__INIT;
    Pb__Timestamp in_a_day = time_in(f, DAY);
    backup.expire_time = &in_a_day;
    make_backup(f, "b", &backup);
    go_to(&f->clock, DAY + 10);
    BtAdmin__RestoreTableRequest message = BT_ADMIN__RESTORE_TABLE_REQUEST__INIT;
    message.parent = INSTANCE;
    message.table_id = "t2";
    message.source_case = BT_ADMIN__RESTORE_TABLE_REQUEST__SOURCE_BACKUP;
    message.backup = CLUSTER "/backups/b";
    struct admin_request request = {
        .bigtable = &f->bigtable, .arena = f->base.arena, .message = &message.base};
    const ProtobufCMessage *response;
    assert_status(restore_table(&request, &response), STATUS_FAILED_PRECONDITION);
    f->bigtable.backups_expire = false;
    look(f);
    assert_int_equal(list(f)->n_backups, 1);
    assert_ok(restore_table(&request, &response));
}

/* --- hot backups --- */

static void test_hot_backups_cool(void **state)
{
    struct fixture *f = *state;
    create_table_with(f, NULL);
    BtAdmin__Backup hot = BT_ADMIN__BACKUP__INIT, forever = BT_ADMIN__BACKUP__INIT;
    Pb__Timestamp expiry = time_in(f, 30 * DAY), cooling = time_in(f, 2 * DAY);
    hot.backup_type = forever.backup_type = BT_ADMIN__BACKUP__BACKUP_TYPE__HOT;
    hot.expire_time = forever.expire_time = &expiry;
    hot.hot_to_standard_time = &cooling;
    make_backup(f, "forever", &forever);
    make_backup(f, "hot", &hot);
    look(f);
    assert_int_equal(list(f)->backups[1]->backup_type, BT_ADMIN__BACKUP__BACKUP_TYPE__HOT);
    go_to(&f->clock, 2 * DAY + 10);
    look(f);
    BtAdmin__ListBackupsResponse *after = list(f);
    assert_int_equal(after->backups[0]->backup_type, BT_ADMIN__BACKUP__BACKUP_TYPE__HOT);
    assert_int_equal(after->backups[1]->backup_type, BT_ADMIN__BACKUP__BACKUP_TYPE__STANDARD);
    assert_null(after->backups[1]->hot_to_standard_time);
    assert_int_equal(after->backups[1]->expire_time->seconds, expiry.seconds);
}

/* --- automated backups --- */

static void test_policies_make_backups(void **state)
{
    struct fixture *f = *state;
    BtAdmin__Table__AutomatedBackupPolicy policy = BT_ADMIN__TABLE__AUTOMATED_BACKUP_POLICY__INIT;
    Pb__Duration kept = days(3), hot = days(1);
    policy.retention_period = &kept;
    policy.keep_hot_duration = &hot;
    create_table_with(f, &policy);
    look(f);
    BtAdmin__ListBackupsResponse *made = list(f);
    assert_int_equal(made->n_backups, 1);
    const BtAdmin__Backup *first = made->backups[0];
    assert_memory_equal(first->name, CLUSTER "/backups/auto-2", strlen(CLUSTER "/backups/auto-2"));
    assert_string_equal(first->name + strlen(first->name) - 2, "-t");
    assert_string_equal(first->source_table, TABLE);
    assert_int_equal(first->backup_type, BT_ADMIN__BACKUP__BACKUP_TYPE__HOT);
    int64_t span = first->expire_time->seconds - first->start_time->seconds;
    assert_in_range(span, 3 * DAY - 1, 3 * DAY);

    go_to(&f->clock, DAY - 100);
    look(f);
    assert_int_equal(list(f)->n_backups, 1);
    for (int64_t day = 1; day <= 5; day++) { /* of each day one, of which three are kept */
        go_to(&f->clock, day * DAY + 10 * day);
        look(f);
        look(f);
        assert_int_equal(list(f)->n_backups, day < 3 ? day + 1 : 3);
    }
}

/* Two tables, and a policy that is switched off: what was made stays. */
static void test_one_after_the_other(void **state)
{
    struct fixture *f = *state;
    BtAdmin__Table__AutomatedBackupPolicy policy = BT_ADMIN__TABLE__AUTOMATED_BACKUP_POLICY__INIT;
    Pb__Duration kept = days(30);
    policy.retention_period = &kept;
    create_table_with(f, &policy);
    BtAdmin__Table table = BT_ADMIN__TABLE__INIT;
    BtAdmin__CreateTableRequest message = BT_ADMIN__CREATE_TABLE_REQUEST__INIT;
    table.automated_backup_config_case =
        BT_ADMIN__TABLE__AUTOMATED_BACKUP_CONFIG_AUTOMATED_BACKUP_POLICY;
    table.automated_backup_policy = &policy;
    message.parent = INSTANCE;
    message.table_id = "a-table-whose-id-is-too-long-to-be-part-of-a-name";
    message.table = &table;
    call(f, create_table, &message.base, NULL);
    assert_true(look(f));
    assert_int_equal(list(f)->n_backups, 1);
    assert_false(look(f));
    assert_int_equal(list(f)->n_backups, 2);

    BtAdmin__UpdateTableRequest update = BT_ADMIN__UPDATE_TABLE_REQUEST__INIT;
    Pb__FieldMask mask = PB__FIELD_MASK__INIT;
    const char *path = "automated_backup_policy";
    BtAdmin__Table off = BT_ADMIN__TABLE__INIT;
    off.name = TABLE;
    mask.paths = &path;
    mask.n_paths = 1;
    update.table = &off;
    update.update_mask = &mask;
    call(f, update_table, &update.base, NULL);
    go_to(&f->clock, DAY + 10);
    look(f);
    look(f);
    assert_int_equal(list(f)->n_backups, 3);
}

/* A backup that cannot be made is tried again an hour later, not every minute. */
static void test_failures_are_not_repeated_at_once(void **state)
{
    struct fixture *f = *state;
    BtAdmin__Table__AutomatedBackupPolicy policy = BT_ADMIN__TABLE__AUTOMATED_BACKUP_POLICY__INIT;
    Pb__Duration kept = days(30);
    const char *elsewhere = "projects/p/locations/elsewhere";
    policy.retention_period = &kept;
    policy.locations = &elsewhere;
    policy.n_locations = 1;
    create_table_with(f, &policy);
    look(f);
    assert_non_null(f->attempts.first);
    const struct backup_attempt *only = f->attempts.first;
    go_to(&f->clock, 3000);
    look(f);
    assert_ptr_equal(f->attempts.first, only);
    go_to(&f->clock, 4000);
    look(f);
    assert_non_null(f->attempts.first);
    assert_int_equal(list(f)->n_backups, 0);
}

static bool is_overdue(struct fixture *f)
{
    struct condition_view view;
    condition_look(cluster_condition(f->base.cluster), &view);
    bool is_one = false;
    for (size_t i = 0; i < view.count; i++)
        is_one |= view.reasons[i].reason == REASON_backup_overdue;
    return is_one;
}

/* From the first attempt that came to nothing until there is a backup; not while the next one is
 * under way, nor before the first has ended. */
static void test_failures_make_it_overdue(void **state)
{
    struct fixture *f = *state;
    BtAdmin__Table__AutomatedBackupPolicy policy = BT_ADMIN__TABLE__AUTOMATED_BACKUP_POLICY__INIT;
    Pb__Duration kept = days(30);
    policy.retention_period = &kept;
    create_table_with(f, &policy);
    f->base.cluster->home->reserve.reserve_bytes = UINT64_MAX / 4; /* nothing can be made */
    go_to(&f->clock, 1);
    look(f);
    struct condition_view view;
    condition_look(cluster_condition(f->base.cluster), &view);
    assert_int_equal(view.count, 2); /* and why not */
    assert_int_equal(view.reasons[1].reason, REASON_backup_overdue);
    assert_non_null(strstr(view.reasons[1].text, TABLE " has none"));
    f->base.cluster->home->reserve.reserve_bytes = 0;
    go_to(&f->clock, 2);
    look(f);
    assert_true(is_overdue(f));
    go_to(&f->clock, 3700);
    look(f); /* makes it, and waits until it is there */
    assert_int_equal(list(f)->n_backups, 1);
    look(f);
    assert_false(is_overdue(f));
}

/* Time passes by both clocks while the scheduler does not run, as on a machine that was off. */
static void test_a_late_backup_is_overdue(void **state)
{
    struct fixture *f = *state;
    BtAdmin__Table__AutomatedBackupPolicy policy = BT_ADMIN__TABLE__AUTOMATED_BACKUP_POLICY__INIT;
    Pb__Duration kept = days(30);
    policy.retention_period = &kept;
    create_table_with(f, &policy);
    look(f);
    assert_false(is_overdue(f));
    go_to(&f->clock, DAY + 1000);
    look(f); /* it is due, and made */
    assert_false(is_overdue(f));
    go_to(&f->clock, 2 * DAY + 1000 + 3700);
    look(f);
    assert_true(is_overdue(f));
    look(f);
    assert_false(is_overdue(f));
}

/* A clock that was thirty days ahead: a table got no backup for thirty days after that, and no word
 * told of it. */
static void test_a_clock_that_was_ahead_stops_nothing(void **state)
{
    struct fixture *f = *state;
    BtAdmin__Table__AutomatedBackupPolicy policy = BT_ADMIN__TABLE__AUTOMATED_BACKUP_POLICY__INIT;
    Pb__Duration kept = days(60);
    policy.retention_period = &kept;
    f->clock.wall_ahead_us = INT64_C(30) * DAY * 1000000;
    create_table_with(f, &policy);
    look(f);
    assert_int_equal(list(f)->n_backups, 1);
    f->clock.wall_ahead_us = 0;
    f->clock.steady_ahead_us = INT64_C(4000) * 1000000; /* after what was tried an hour passes */
    look(f);
    assert_int_equal(list(f)->n_backups, 2);
    look(f);
    assert_int_equal(list(f)->n_backups, 2);
    go_to(&f->clock, DAY + 4000);
    look(f);
    assert_int_equal(list(f)->n_backups, 3);
    go_to(&f->clock, 2 * DAY + 4000 + 3700); /* and one that is late is told */
    look(f);
    assert_true(is_overdue(f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_expired_backup_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_held_backup_goes_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_expired_backup_cannot_be_restored, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_hot_backups_cool, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_policies_make_backups, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_after_the_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failures_are_not_repeated_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failures_make_it_overdue, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_late_backup_is_overdue, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_clock_that_was_ahead_stops_nothing, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
