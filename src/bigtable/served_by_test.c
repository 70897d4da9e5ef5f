/* Tests of served_by.h and default_instance.h, over a control plane of their own.
 * tests/e2e/conformance/test_c10_metadata.py has what clients see of it. */
#include "bigtable/served_by.h"

#include "base/testing/failmalloc.h"
#include "bigtable/default_instance.h"
#include "bigtable/services.h"
#include "cluster/testing/testing.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"
#include "google/bigtable/v2/response_params.pb-c.h"
#include "wire/grpc_text.h"
#include "wire/metadata.h"
#include "wire/proto.h"

#define ONE   "projects/p/instances/one"
#define OTHER "projects/p/instances/other"

enum { NAME_SIZE = 400, PLACE_SIZE = 200 };

/* --- fixture --- */

struct fixture {
    struct cluster_fixture *base;
    struct control *control;
    struct served_by *served_by;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->base = cluster_fixture_create(NULL);
    assert_ok(control_open(f->base->cluster, &f->base->log, &f->control));
    assert_ok(served_by_create(f->control, "here", &f->served_by));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    control_close(f->control);
    served_by_destroy(f->served_by);
    cluster_fixture_destroy(f->base);
    free(f);
    return 0;
}

/* --- edits --- */

/* A step of an edit: puts a cluster in a zone, or a profile that routes to a cluster, and the
 * instance before them; `what` NULL: deletes it. */
struct step {
    enum resource_kind kind;
    const char *instance;
    const char *id;
    const char *what;
    unsigned count; /* of instances whose names `instance` and numbers make; 0: one of that name */
};

static status put_instance(struct edit *edit, const char *instance)
{
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%s", instance);
    BtAdmin__Instance message = BT_ADMIN__INSTANCE__INIT;
    message.name = name;
    return edit_put(edit, RESOURCE_INSTANCE, name, &message.base, bytes_of(""));
}

static status put_cluster(struct edit *edit, const char *name, const char *zone)
{
    char text[NAME_SIZE], location[NAME_SIZE];
    snprintf(text, sizeof text, "%s", name);
    snprintf(location, sizeof location, "projects/p/locations/%s", zone);
    BtAdmin__Cluster message = BT_ADMIN__CLUSTER__INIT;
    message.name = text;
    message.location = location;
    return edit_put(edit, RESOURCE_CLUSTER, name, &message.base, bytes_of(""));
}

/* To that cluster alone; NULL: to any. */
static status put_routed(struct edit *edit, const char *name, const char *cluster, bool is_allowed)
{
    char text[NAME_SIZE], id[NAME_SIZE];
    BtAdmin__AppProfile__SingleClusterRouting single =
        BT_ADMIN__APP_PROFILE__SINGLE_CLUSTER_ROUTING__INIT;
    BtAdmin__AppProfile__MultiClusterRoutingUseAny any =
        BT_ADMIN__APP_PROFILE__MULTI_CLUSTER_ROUTING_USE_ANY__INIT;
    BtAdmin__AppProfile message = BT_ADMIN__APP_PROFILE__INIT;
    snprintf(text, sizeof text, "%s", name);
    snprintf(id, sizeof id, "%s", cluster == NULL ? "" : cluster);
    message.name = text;
    single.cluster_id = id;
    single.allow_transactional_writes = is_allowed;
    message.routing_policy_case =
        cluster != NULL ? BT_ADMIN__APP_PROFILE__ROUTING_POLICY_SINGLE_CLUSTER_ROUTING
                        : BT_ADMIN__APP_PROFILE__ROUTING_POLICY_MULTI_CLUSTER_ROUTING_USE_ANY;
    if (cluster != NULL)
        message.single_cluster_routing = &single;
    else
        message.multi_cluster_routing_use_any = &any;
    return edit_put(edit, RESOURCE_APP_PROFILE, name, &message.base, bytes_of(""));
}

static status put_profile(struct edit *edit, const char *name, const char *cluster)
{
    return put_routed(edit, name, cluster, false);
}

static status take_step(struct edit *edit, const struct step *step, const char *instance)
{
    char name[NAME_SIZE];
    const char *collection = step->kind == RESOURCE_CLUSTER ? "clusters" : "appProfiles";
    snprintf(name, sizeof name, "%s/%s/%s", instance, collection, step->id);
    if (step->what == NULL)
        return edit_delete(edit, step->kind, name);
    TRY(put_instance(edit, instance));
    return step->kind == RESOURCE_CLUSTER ? put_cluster(edit, name, step->what)
                                          : put_profile(edit, name, step->what);
}

static status take_steps(void *context, struct edit *edit)
{
    const struct step *step = context;
    if (step->count == 0)
        return take_step(edit, step, step->instance);
    for (unsigned i = 0; i < step->count; i++) {
        char instance[NAME_SIZE], zone[NAME_SIZE];
        snprintf(instance, sizeof instance, "%s-%u", step->instance, i);
        snprintf(zone, sizeof zone, "%s-%u", step->what, i);
        const struct step each = {step->kind, instance, step->id, zone, 0};
        TRY(take_step(edit, &each, instance));
    }
    return status_ok();
}

static void change(struct fixture *f, struct step step)
{
    assert_ok(control_edit(f->control, take_steps, &step));
}

#define CLUSTER(instance, id, zone) ((struct step){RESOURCE_CLUSTER, instance, id, zone, 0})
#define PROFILE(instance, id, cluster)                                                             \
    ((struct step){RESOURCE_APP_PROFILE, instance, id, cluster, 0})

/* --- asking --- */

static bool decode_place(bytes text, struct arena *arena, char place[PLACE_SIZE])
{
    uint8_t data[PLACE_SIZE];
    size_t size;
    ProtobufCMessage *message;
    if (base64_decoded_most(text.size) > sizeof data || !base64_decode(text, data, &size))
        return false;
    status s =
        proto_decode(&bt__response_params__descriptor, bytes_make(data, size), arena, &message);
    if (!status_is_ok(s)) {
        status_free(s);
        return false;
    }
    const Bt__ResponseParams *params = (const void *)message;
    snprintf(place, PLACE_SIZE, "%s/%s", params->zone_id, params->cluster_id);
    return true;
}

/* "zone/cluster", as the metadata says it; false if it is not the one field. Any thread. */
static bool read_place(const struct metadata *metadata, char place[PLACE_SIZE])
{
    struct fields fields = {.count = 0};
    fields_add_shared(&fields, metadata);
    const nghttp2_nv *field = &fields.list[0];
    if (fields.count != 1 ||
        !bytes_equal(bytes_make(field->name, field->namelen), bytes_of("x-goog-ext-425905942-bin")))
        return false;
    struct arena *arena = arena_create(1 << 16);
    bool is_read =
        arena != NULL && decode_place(bytes_make(field->value, field->valuelen), arena, place);
    arena_destroy(arena);
    return is_read;
}

static const struct metadata *ask(struct fixture *f, const char *instance, const char *profile)
{
    struct served served;
    status s = served_by_find(f->served_by, bytes_of(instance), profile, &served);
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_ignore(s); /* there is an answer all the same */
    return served.params;
}

static void assert_allows(struct fixture *f, const char *instance, const char *profile,
                          bool expected)
{
    struct served served;
    for (unsigned times = 0; times < 2; times++) { /* looked up, and remembered */
        assert_ok(served_by_find(f->served_by, bytes_of(instance), profile, &served));
        assert_int_equal(served.allows_transactions, expected);
    }
}

static void assert_served(struct fixture *f, const char *instance, const char *profile,
                          const char *expected)
{
    char place[PLACE_SIZE];
    for (unsigned times = 0; times < 2; times++) { /* looked up, and remembered */
        assert_true(read_place(ask(f, instance, profile), place));
        assert_string_equal(place, expected);
    }
}

/* --- tests --- */

static void test_nowhere(void **state)
{
    struct fixture *f = *state;
    assert_served(f, ONE, NULL, "here/" BIGTABLE_CLUSTER_ID);
    assert_served(f, ONE, "anybody", "here/" BIGTABLE_CLUSTER_ID);
    assert_ptr_equal(ask(f, ONE, NULL), ask(f, OTHER, ""));
}

/* A remembered answer is neither looked up nor does it take memory; one place is one metadata. */
static void test_hits(void **state)
{
    struct fixture *f = *state;
    change(f, CLUSTER(ONE, "c", "z"));
    const struct metadata *found = ask(f, ONE, "");
    failmalloc_start(0);
    const struct metadata *again = ask(f, ONE, NULL);
    assert_false(failmalloc_stop());
    assert_ptr_equal(found, again);
    assert_ptr_equal(ask(f, ONE, "another"), found);
}

static void test_changes_are_seen_at_once(void **state)
{
    struct fixture *f = *state;
    change(f, CLUSTER(ONE, "m", "z-m"));
    assert_served(f, ONE, "", "z-m/m");
    change(f, CLUSTER(ONE, "b", "z-b"));
    assert_served(f, ONE, "", "z-b/b");
    change(f, CLUSTER(ONE, "b", "z-moved"));
    assert_served(f, ONE, "", "z-moved/b");
    assert_served(f, ONE, "to-m", "z-moved/b");
    change(f, PROFILE(ONE, "to-m", "m"));
    assert_served(f, ONE, "to-m", "z-m/m");
    assert_served(f, ONE, "", "z-moved/b");
    assert_served(f, OTHER, "to-m", "here/" BIGTABLE_CLUSTER_ID);
    change(f, PROFILE(ONE, "default", "m"));
    assert_served(f, ONE, NULL, "z-m/m");
    change(f, CLUSTER(ONE, "m", NULL));
    assert_served(f, ONE, "to-m", "z-moved/b");
    change(f, PROFILE(ONE, "to-m", NULL));
    assert_served(f, ONE, "to-m", "z-moved/b");
}

/* What routing says of transactions: single-cluster routing may allow them, no other does. */
static status put_routings(void *context, struct edit *edit)
{
    (void)context;
    TRY(put_instance(edit, ONE));
    TRY(put_cluster(edit, ONE "/clusters/c", "z"));
    TRY(put_routed(edit, ONE "/appProfiles/any", NULL, false));
    TRY(put_routed(edit, ONE "/appProfiles/single", "c", false));
    return put_routed(edit, ONE "/appProfiles/transactions", "c", true);
}

/* To any cluster, to one, to one with transactions. */
static status put_default(void *context, struct edit *edit)
{
    const unsigned *which = context;
    return put_routed(edit, ONE "/appProfiles/default", *which > 0 ? "c" : NULL, *which > 1);
}

static void test_transactions(void **state)
{
    struct fixture *f = *state;
    assert_allows(f, ONE, NULL, true);
    assert_ok(control_edit(f->control, put_routings, NULL));
    assert_allows(f, ONE, "any", false);
    assert_allows(f, ONE, "single", false);
    assert_allows(f, ONE, "transactions", true);
    assert_allows(f, ONE, "nobody", true);
    for (unsigned i = 0; i < 6; i++) {
        unsigned which = i % 3;
        assert_ok(control_edit(f->control, put_default, &which));
        assert_allows(f, ONE, "", which != 1);
        assert_allows(f, ONE, NULL, which != 1);
        assert_allows(f, ONE, "default", which != 1);
    }
}

/* --- choices --- */

/* To clusters c2, c1 and c4 alone, by row. */
static status put_group(void *context, struct edit *edit)
{
    const char *list[] = {"c2", "c1", "c4"};
    char name[] = ONE "/appProfiles/group";
    BtAdmin__AppProfile__MultiClusterRoutingUseAny__RowAffinity affinity =
        BT_ADMIN__APP_PROFILE__MULTI_CLUSTER_ROUTING_USE_ANY__ROW_AFFINITY__INIT;
    BtAdmin__AppProfile__MultiClusterRoutingUseAny any =
        BT_ADMIN__APP_PROFILE__MULTI_CLUSTER_ROUTING_USE_ANY__INIT;
    BtAdmin__AppProfile message = BT_ADMIN__APP_PROFILE__INIT;
    (void)context;
    any.cluster_ids = list;
    any.n_cluster_ids = 3;
    any.affinity_case = BT_ADMIN__APP_PROFILE__MULTI_CLUSTER_ROUTING_USE_ANY__AFFINITY_ROW_AFFINITY;
    any.row_affinity = &affinity;
    message.name = name;
    message.routing_policy_case =
        BT_ADMIN__APP_PROFILE__ROUTING_POLICY_MULTI_CLUSTER_ROUTING_USE_ANY;
    message.multi_cluster_routing_use_any = &any;
    return edit_put(edit, RESOURCE_APP_PROFILE, name, &message.base, bytes_of(""));
}

/* The ids, each with a space behind it; NULL: there is no choice. */
static void assert_choice(struct fixture *f, const char *profile, const char *expected,
                          bool has_row_affinity)
{
    for (unsigned times = 0; times < 2; times++) { /* looked up, and remembered */
        char ids[PLACE_SIZE] = "";
        size_t size = 0;
        struct served served;
        assert_ok(served_by_find(f->served_by, bytes_of(ONE), profile, &served));
        assert_int_equal(served.choice != NULL, expected != NULL);
        for (size_t i = 0; served.choice != NULL && i < served.choice->count; i++)
            size += (size_t)snprintf(ids + size, sizeof ids - size, "%s ",
                                     served.choice->places[i]->cluster_id);
        assert_string_equal(ids, expected == NULL ? "" : expected);
        assert_true(served.choice == NULL || served.choice->has_row_affinity == has_row_affinity);
        assert_true(served.choice == NULL || served.choice->places[0]->params == served.params);
    }
}

/* The nearest first, and of equally near ones by id. */
static void test_choices(void **state)
{
    struct fixture *f = *state;
    assert_choice(f, "", NULL, false);
    change(f, CLUSTER(ONE, "c1", "far-east1-b"));
    change(f, CLUSTER(ONE, "c3", "here"));
    change(f, CLUSTER(ONE, "c2", "afar"));
    change(f, CLUSTER(ONE, "c4", "here-b"));
    change(f, PROFILE(ONE, "any", NULL));
    change(f, PROFILE(ONE, "one", "c1"));
    assert_choice(f, "any", "c3 c4 c1 c2 ", false);
    assert_choice(f, "", "c3 c4 c1 c2 ", false);
    assert_choice(f, "one", NULL, false);
    assert_ok(control_edit(f->control, put_group, NULL));
    assert_choice(f, "group", "c4 c1 c2 ", true);
    assert_served(f, ONE, "group", "here-b/c4");
    change(f, CLUSTER(ONE, "c4", NULL));
    assert_choice(f, "group", "c1 c2 ", true);
}

/* An instance's name and a profile's that run into each other otherwise, and long ones. */
static void test_names_are_told_apart(void **state)
{
    struct fixture *f = *state;
    char profile[NAME_SIZE / 2];
    memset(profile, 'x', sizeof profile - 1);
    profile[sizeof profile - 1] = '\0';
    change(f, CLUSTER("projects/p/instances/ab", "first", "z"));
    change(f, CLUSTER("projects/p/instances/ab", "to-c", "z"));
    change(f, CLUSTER("projects/p/instances/a", "first", "z"));
    change(f, CLUSTER("projects/p/instances/a", "to-bc", "z"));
    change(f, PROFILE("projects/p/instances/ab", "c", "to-c"));
    change(f, PROFILE("projects/p/instances/a", "bc", "to-bc"));
    change(f, PROFILE("projects/p/instances/a", profile, "to-bc"));
    assert_served(f, "projects/p/instances/ab", "c", "z/to-c");
    assert_served(f, "projects/p/instances/a", "bc", "z/to-bc");
    assert_served(f, "projects/p/instances/a", profile, "z/to-bc");
    profile[sizeof profile - 2] = 'y';
    assert_served(f, "projects/p/instances/a", profile, "z/first");
}

/* More than there is room to remember: some have the same hash. */
enum { MANY = 600 };

static void make_many(struct fixture *f)
{
    change(f, (struct step){RESOURCE_CLUSTER, "projects/p/instances/many", "c", "z", MANY});
}

static bool is_right(struct fixture *f, unsigned number)
{
    char instance[NAME_SIZE], expected[PLACE_SIZE], place[PLACE_SIZE];
    snprintf(instance, sizeof instance, "projects/p/instances/many-%u", number);
    snprintf(expected, sizeof expected, "z-%u/c", number);
    return read_place(ask(f, instance, NULL), place) && strcmp(place, expected) == 0;
}

static void test_more_than_are_remembered(void **state)
{
    struct fixture *f = *state;
    make_many(f);
    for (unsigned i = 0; i < 2 * MANY; i++)
        assert_true(is_right(f, i % MANY));
}

/* Whether asking for the second makes the first be forgotten. */
static bool is_same_place(struct fixture *f, const char *first, const char *second)
{
    ask(f, first, NULL);
    ask(f, second, NULL);
    failmalloc_start(0);
    ask(f, first, NULL);
    return failmalloc_stop();
}

struct asker {
    struct fixture *f;
    pthread_t thread;
    const char *instance;
    const struct metadata *expected;
    bool is_wrong;
};

static void *run_asker(void *context)
{
    enum { TIMES = 20000 };
    struct asker *asker = context;
    for (unsigned i = 0; i < TIMES; i++)
        asker->is_wrong |= ask(asker->f, asker->instance, NULL) != asker->expected;
    return NULL;
}

/* Two whose hashes are the same: threads overwrite what the others are about to read. */
static void test_threads(void **state)
{
    enum { ASKERS = 4, CHANGES = 20 };
    struct fixture *f = *state;
    struct asker askers[ASKERS];
    char names[2][NAME_SIZE] = {"projects/p/instances/many-0"};
    bool is_found = false;
    make_many(f);
    for (unsigned i = 1; i < MANY && !is_found; i++) {
        snprintf(names[1], NAME_SIZE, "projects/p/instances/many-%u", i);
        is_found = is_same_place(f, names[0], names[1]);
    }
    assert_true(is_found);
    for (unsigned i = 0; i < ASKERS; i++) {
        const char *name = names[i % 2];
        askers[i] = (struct asker){.f = f, .instance = name, .expected = ask(f, name, NULL)};
        assert_ok(thread_start(&askers[i].thread, "asker", run_asker, &askers[i]));
    }
    for (unsigned i = 0; i < CHANGES; i++)
        change(f, CLUSTER(ONE, "c", "z"));
    for (unsigned i = 0; i < ASKERS; i++) {
        assert_int_equal(pthread_join(askers[i].thread, NULL), 0);
        assert_false(askers[i].is_wrong);
    }
}

/* Without memory there is an answer all the same, which is not kept. */
static void test_without_memory(void **state)
{
    enum { MOST = 200 };
    struct fixture *f = *state;
    bool fails = true;
    size_t count = 0;
    change(f, PROFILE(ONE, "p", "c"));
    for (; fails && count < MOST; count++) {
        char zone[PLACE_SIZE / 2], expected[PLACE_SIZE];
        snprintf(zone, sizeof zone, "z%zu", count);
        snprintf(expected, sizeof expected, "%s/c", zone);
        change(f, CLUSTER(ONE, "c", zone));
        failmalloc_start(count);
        const struct metadata *found = ask(f, ONE, "p");
        fails = failmalloc_stop();
        assert_non_null(found);
        assert_served(f, ONE, "p", expected);
    }
    assert_true(count > 1);
    assert_false(fails);
}

static void test_a_beginning_without_memory(void **state)
{
    enum { MOST = 50 };
    struct fixture *f = *state;
    bool fails = true;
    for (size_t count = 0; fails; count++) {
        assert_true(count < MOST);
        control_close(f->control);
        served_by_destroy(f->served_by);
        assert_ok(control_open(f->base->cluster, &f->base->log, &f->control));
        failmalloc_start(count);
        status s = served_by_create(f->control, "here", &f->served_by);
        fails = failmalloc_stop();
        assert_status(s, fails ? STATUS_RESOURCE_EXHAUSTED : STATUS_OK);
    }
    assert_served(f, ONE, NULL, "here/" BIGTABLE_CLUSTER_ID);
}

/* --- instances whose records are lost --- */

static status put_orphans(void *context, struct edit *edit)
{
    (void)context;
    TRY(put_cluster(edit, "projects/p/instances/lost/clusters/c7", "z"));
    return put_profile(edit, "projects/p/instances/other/appProfiles/default", "c8");
}

static bool count_resource(void *context, struct resource *resource)
{
    (void)resource;
    ++*(size_t *)context;
    return true;
}

static size_t count_of(struct fixture *f, enum resource_kind kind, const char *instance)
{
    size_t count = 0;
    assert_ok(control_list(f->control, kind, instance, "", count_resource, &count));
    return count;
}

/* The instance is made again around what there is; a second time nothing is made. */
static void test_an_instance_is_made_around_orphans(void **state)
{
    struct fixture *f = *state;
    struct bigtable bigtable = {.control = f->control, .zone_id = "here"};
    assert_ok(control_edit(f->control, put_orphans, NULL));
    for (int i = 0; i < 2; i++) {
        assert_ok(adopt_tables(&bigtable));
        assert_true(control_has(f->control, RESOURCE_INSTANCE, "projects/p/instances/lost"));
        assert_true(control_has(f->control, RESOURCE_INSTANCE, "projects/p/instances/other"));
        assert_int_equal(count_of(f, RESOURCE_CLUSTER, "projects/p/instances/lost"), 1);
        assert_int_equal(count_of(f, RESOURCE_APP_PROFILE, "projects/p/instances/lost"), 1);
        assert_int_equal(count_of(f, RESOURCE_CLUSTER, "projects/p/instances/other"), 1);
        assert_int_equal(count_of(f, RESOURCE_APP_PROFILE, "projects/p/instances/other"), 1);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nowhere),
        TEST(test_hits),
        TEST(test_changes_are_seen_at_once),
        TEST(test_transactions),
        TEST(test_choices),
        TEST(test_names_are_told_apart),
        TEST(test_more_than_are_remembered),
        TEST(test_threads),
        TEST(test_without_memory),
        TEST(test_a_beginning_without_memory),
        TEST(test_an_instance_is_made_around_orphans),
    };
    return cmocka_run_group_tests_name("served_by", tests, NULL, NULL);
}
