/* Tests of what a reader sees of a row: rules, scopes, order, overflow cells. */
#include "row/columns.h"
#include "row/testing/testing.h"
#include "wire/proto.h"

enum { ARENA_LIMIT = 64 << 20, NOW_US = 10000, MOST_OVERFLOW = 4096 };

/* Overflow cells from an array; counts what is asked of it. */
struct source {
    struct overflow_source interface;
    const struct entry *cells; /* in order */
    size_t count;
    size_t at;
    size_t nexts;
    size_t seeks;
};

struct fixture {
    struct arena *arena;
    struct schema *schema;
    struct source source;
    struct read_scope scope;
    struct family_scope families[3];
    struct resolve_request request;
};

static status source_seek(struct overflow_source *interface, uint32_t family, bytes qualifier)
{
    struct source *source = (struct source *)(void *)interface;
    struct entry place = {
        .kind = ENTRY_CELL, .family = family, .qualifier = qualifier, .timestamp_us = INT64_MAX};
    source->seeks++;
    source->at = 0;
    while (source->at < source->count && entry_compare(&source->cells[source->at], &place) < 0)
        source->at++;
    return status_ok();
}

static status source_next(struct overflow_source *interface, struct entry *entry, bool *found)
{
    struct source *source = (struct source *)(void *)interface;
    source->nexts++;
    *found = source->at < source->count;
    if (*found)
        *entry = source->cells[source->at++];
    return status_ok();
}

static status broken_next(struct overflow_source *interface, struct entry *entry, bool *found)
{
    (void)interface, (void)entry, (void)found;
    return status_make(STATUS_UNAVAILABLE, "the disk is away");
}

/* Family 1 is "z", 2 is "a" with the two newest, 3 is "m" with the last millisecond. */
static int set_up(void **state)
{
    static const struct gc_rule newest = {.kind = GC_MAX_VERSIONS, .max_versions = 2};
    static const struct gc_rule young = {.kind = GC_MAX_AGE, .max_age_us = 1000};
    const struct family families[] = {{.id = 1, .name = bytes_of("z")},
                                      {.id = 2, .name = bytes_of("a"), .gc = &newest},
                                      {.id = 3, .name = bytes_of("m"), .gc = &young}};
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->arena = arena_create(ARENA_LIMIT);
    assert_ok(schema_create(GRANULARITY_MICROS, families, 3, 5, &fixture->schema));
    fixture->source.interface = (struct overflow_source){.seek = source_seek, .next = source_next};
    for (int i = 0; i < 3; i++)
        fixture->families[i].is_wanted = true;
    fixture->scope = (struct read_scope){.families = fixture->families,
                                         .cells_per_column = INT32_MAX,
                                         .cells_per_row = INT32_MAX,
                                         .wants_values = true};
    fixture->request = (struct resolve_request){
        .schema = fixture->schema, .now_us = NOW_US, .apply_gc = true, .size_limit = UINT64_MAX};
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    schema_destroy(fixture->schema);
    arena_destroy(fixture->arena);
    free(fixture);
    return 0;
}

static void has_record(struct fixture *fixture, struct buffer record)
{
    fixture->request.record = arena_copy(fixture->arena, buffer_bytes(&record));
    buffer_free(&record);
}

static void has_overflow(struct fixture *fixture, const struct entry *cells, size_t count)
{
    fixture->source.cells = cells;
    fixture->source.count = count;
    fixture->request.overflow = &fixture->source.interface;
}

/* The cells in sight, as "family:qualifier:time=value", separated by spaces. */
static void assert_cells(struct fixture *fixture, const char *expected)
{
    struct cell_list cells = {.arena = fixture->arena};
    char text[FRAGMENT_TEXT_SIZE] = "";
    size_t size = 0;
    bool too_large;
    assert_ok(row_resolve(&fixture->request, &cells, &too_large));
    assert_false(too_large);
    for (size_t i = 0; i < cells.count; i++) {
        const struct cell *cell = &cells.items[i];
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%.*s:%.*s:%lld=%.*s",
                                 i == 0 ? "" : " ", (int)cell->family->name.size,
                                 (const char *)cell->family->name.data, (int)cell->qualifier.size,
                                 (const char *)cell->qualifier.data, (long long)cell->timestamp_us,
                                 (int)cell->value.size, (const char *)cell->value.data);
        assert_true(size < sizeof text);
    }
    assert_string_equal(text, expected);
}

/* --- records --- */

static void test_a_row_without_record_has_no_cells(void **state)
{
    assert_cells(*state, "");
}

static void test_families_come_by_name(void **state)
{
    has_record(*state, FRAGMENT(cell_entry(1, "q", 2, "one", 1), cell_entry(1, "q", 1, "older", 1),
                                cell_entry(2, "q", 1, "two", 1), cell_entry(3, "", 9500, "x", 1),
                                cell_entry(3, "q", 9500, "three", 1)));
    assert_cells(*state, "a:q:1=two m::9500=x m:q:9500=three z:q:2=one z:q:1=older");
}

static void test_rules_hide_what_they_condemn(void **state)
{
    struct fixture *fixture = *state;
    has_record(fixture,
               FRAGMENT(cell_entry(2, "p", 3, "c", 1), cell_entry(2, "p", 2, "b", 1),
                        cell_entry(2, "p", 1, "a", 1), cell_entry(2, "q", 1, "d", 1),
                        cell_entry(3, "p", 9000, "young", 1), cell_entry(3, "p", 8999, "old", 1)));
    assert_cells(fixture, "a:p:3=c a:p:2=b a:q:1=d m:p:9000=young");
    fixture->request.apply_gc = false;
    assert_cells(fixture, "a:p:3=c a:p:2=b a:p:1=a a:q:1=d m:p:9000=young m:p:8999=old");
}

static void test_unknown_families_are_not_seen(void **state)
{
    has_record(*state, FRAGMENT(cell_entry(1, "q", 1, "v", 1), cell_entry(4, "q", 1, "dropped", 1),
                                cell_entry(9, "q", 1, "newer", 1)));
    assert_cells(*state, "z:q:1=v");
}

static void test_tombstones_that_wait_cover(void **state)
{
    struct entry mark = {
        .kind = ENTRY_OVERFLOW_MARK, .version = 9, .moved = 2, .has_overflow = true};
    const struct entry overflow[] = {
        cell_entry(1, "q", 9, "covered", 5), cell_entry(1, "q", 8, "in sight", 5),
        cell_entry(1, "q", 7, "newer than the tombstone", 6), cell_entry(2, "q", 1, "covered", 5)};
    struct fixture *fixture = *state;
    has_record(fixture, FRAGMENT(mark, column_tombstone(1, "q", 9, INT64_MAX, 6),
                                 column_tombstone(1, "q", 7, 8, 6), family_tombstone(2, 6),
                                 cell_entry(2, "q", 2, "hot", 7)));
    has_overflow(fixture, overflow, 4);
    assert_cells(fixture, "a:q:2=hot z:q:8=in sight z:q:7=newer than the tombstone");
}

static void test_a_row_too_large_is_said_to_be(void **state)
{
    struct fixture *fixture = *state;
    struct cell_list cells = {.arena = fixture->arena};
    bool too_large;
    has_record(fixture, FRAGMENT(cell_entry(1, "qq", 1, "12345", 1)));
    fixture->request.size_limit = 7;
    assert_cells(fixture, "z:qq:1=12345");
    fixture->request.size_limit = 6;
    assert_status(row_resolve(&fixture->request, &cells, &too_large), STATUS_FAILED_PRECONDITION);
    assert_true(too_large);
}

static void test_damage_is_data_loss(void **state)
{
    struct fixture *fixture = *state;
    struct cell_list cells = {.arena = fixture->arena};
    bool too_large;
    const bytes bad[] = {bytes_of("damaged"), bytes_make("\x10\0\0\0\0\0\0\0\0\x03", 10),
                         bytes_make("\x12\0\0\0\0\0\0\0\0\x03", 10)};
    for (int i = 0; i < 3; i++) {
        fixture->request.record = bad[i];
        assert_status(row_resolve(&fixture->request, &cells, &too_large), STATUS_DATA_LOSS);
    }
}

static void test_without_memory_there_is_no_row(void **state)
{
    struct fixture *fixture = *state;
    struct arena *small = arena_create(100);
    struct cell_list cells = {.arena = small};
    bool too_large;
    has_record(fixture, FRAGMENT(cell_entry(1, "q", 1, "v", 1)));
    assert_status(row_resolve(&fixture->request, &cells, &too_large), STATUS_RESOURCE_EXHAUSTED);
    assert_false(too_large);
    arena_destroy(small);
}

/* --- scopes --- */

static void test_scope_of_families_and_qualifiers(void **state)
{
    struct fixture *fixture = *state;
    has_record(fixture, FRAGMENT(cell_entry(1, "a", 1, "x", 1), cell_entry(1, "b", 1, "y", 1),
                                 cell_entry(1, "c", 1, "z", 1), cell_entry(2, "b", 1, "w", 1)));
    fixture->request.scope = &fixture->scope;
    fixture->families[0].is_wanted = false; /* by name: a, m, z */
    fixture->families[2].from = bytes_of("b");
    fixture->families[2].to = bytes_of("c");
    fixture->families[2].has_to = true;
    assert_cells(fixture, "z:b:1=y");
}

static void test_scope_of_counts(void **state)
{
    struct fixture *fixture = *state;
    has_record(fixture, FRAGMENT(cell_entry(1, "a", 3, "x", 1), cell_entry(1, "a", 2, "y", 1),
                                 cell_entry(1, "b", 1, "z", 1)));
    fixture->request.scope = &fixture->scope;
    fixture->scope.cells_per_column = 1;
    assert_cells(fixture, "z:a:3=x z:b:1=z");
}

/* --- views --- */

static struct family_columns columns_of(struct arena *arena, const char *family,
                                        const char *qualifier, const char *prefix)
{
    struct family_columns columns = {.family = bytes_of(family)};
    ProtobufCBinaryData one = proto_data(bytes_of(qualifier)), some = proto_data(bytes_of(prefix));
    assert_ok(string_set_make(&one, 1, &some, 1, arena, &columns.qualifiers));
    return columns;
}

static void restrict_to(struct fixture *fixture, const struct columns *columns)
{
    assert_ok(columns_restrict(columns, fixture->schema, fixture->arena, &fixture->scope));
    fixture->request.scope = &fixture->scope;
}

/* Counts are of what is visible: of the cells that a filter may want first, too. */
static void test_a_view_leaves_out_the_rest(void **state)
{
    struct fixture *fixture = *state;
    const struct family_columns families[] = {columns_of(fixture->arena, "z", "a", "c"),
                                              columns_of(fixture->arena, "m", "b", "b")};
    has_record(fixture, FRAGMENT(cell_entry(1, "a", 1, "x", 1), cell_entry(1, "ab", 1, "-", 1),
                                 cell_entry(1, "c", 1, "y", 1), cell_entry(1, "cc", 1, "z", 1),
                                 cell_entry(1, "d", 1, "-", 1), cell_entry(2, "a", 1, "-", 1)));
    restrict_to(fixture, &(struct columns){.families = families, .count = 2});
    assert_cells(fixture, "z:a:1=x z:c:1=y z:cc:1=z");
    fixture->request.size_limit = 7; /* of names and values in sight */
    assert_cells(fixture, "z:a:1=x z:c:1=y z:cc:1=z");
    fixture->families[0] = fixture->families[1] = (struct family_scope){.is_wanted = true};
    fixture->families[2] = (struct family_scope){.is_wanted = true, .from = bytes_of("b")};
    fixture->scope.families = fixture->families;
    restrict_to(fixture, &(struct columns){.families = families, .count = 2});
    assert_cells(fixture, "z:c:1=y z:cc:1=z");
    restrict_to(fixture, &(struct columns){.count = 0});
    assert_cells(fixture, "");
}

static void test_a_view_of_all_is_no_restriction(void **state)
{
    struct fixture *fixture = *state;
    const struct family_columns all = columns_of(fixture->arena, "z", "a", "");
    has_record(fixture, FRAGMENT(cell_entry(1, "", 1, "x", 1), cell_entry(1, "ab", 1, "y", 1)));
    restrict_to(fixture, &(struct columns){.families = &all, .count = 1});
    assert_null(fixture->scope.families[2].visible);
    assert_cells(fixture, "z::1=x z:ab:1=y");
}

/* --- presence --- */

/* SQL's rows: there is one whatever is in it, of which a query wants a column or two. */
static void test_a_row_out_of_scope_shows_that_it_is_there(void **state)
{
    struct fixture *fixture = *state;
    const struct family_columns two[] = {columns_of(fixture->arena, "z", "b", "d")};
    has_record(fixture, FRAGMENT(cell_entry(1, "a", 1, "x", 1), cell_entry(1, "b", 1, "y", 1),
                                 cell_entry(1, "c", 1, "w", 1), cell_entry(2, "b", 1, "w", 1)));
    restrict_to(fixture, &(struct columns){.families = two, .count = 1});
    fixture->scope.wants_presence = true;
    assert_cells(fixture, "z:b:1=y"); /* nothing beside it */
    has_record(fixture, FRAGMENT(cell_entry(1, "a", 2, "x", 1), cell_entry(1, "a", 1, "v", 1),
                                 cell_entry(2, "b", 1, "w", 1)));
    assert_cells(fixture, "z:a:2=x"); /* one, of whatever column */
    fixture->scope.wants_presence = false;
    assert_cells(fixture, "");
    fixture->scope.wants_presence = true;
    has_record(fixture, FRAGMENT(cell_entry(3, "a", 1, "too old", 1)));
    assert_cells(fixture, ""); /* what rules hide is not there */
}

static void test_overflow_cells_show_that_a_row_is_there(void **state)
{
    const struct entry overflow[] = {cell_entry(1, "a", 3, "x", 1), cell_entry(1, "b", 3, "y", 1)};
    struct fixture *fixture = *state;
    restrict_to(fixture, &(struct columns){.count = 0});
    fixture->scope.wants_presence = true;
    has_overflow(fixture, overflow, 2);
    assert_cells(fixture, "z:a:3="); /* its value is not read */
    assert_true(fixture->source.nexts <= 2);
}

/* Behind the columns that are wanted, nothing more of the family is looked at. */
static void test_a_family_is_left_behind_its_scope(void **state)
{
    struct fixture *fixture = *state;
    has_record(fixture, FRAGMENT(cell_entry(1, "a", 1, "x", 1), cell_entry(1, "b", 1, "y", 1),
                                 cell_entry(1, "c", 1, "w", 1), cell_entry(2, "b", 1, "n", 1)));
    fixture->request.scope = &fixture->scope;
    fixture->families[2].to = bytes_of("b");
    fixture->families[2].has_to = true;
    assert_cells(fixture, "a:b:1=n z:a:1=x");
}

/* --- overflow cells --- */

static void test_hot_and_overflow_cells_are_one_row(void **state)
{
    struct entry mark = {
        .kind = ENTRY_OVERFLOW_MARK, .version = 9, .moved = 5, .has_overflow = true};
    const struct entry overflow[] = {cell_entry(1, "a", 5, "older of one cell", 2),
                                     cell_entry(1, "a", 3, "cold", 5),
                                     cell_entry(2, "b", 9, "n", 4), cell_entry(2, "b", 8, "n-1", 4),
                                     cell_entry(2, "b", 7, "too many", 4)};
    struct fixture *fixture = *state;
    has_record(fixture, FRAGMENT(mark, cell_entry(1, "a", 5, "newer of one cell", 6),
                                 cell_entry(1, "a", 4, "hot", 7), cell_entry(1, "b", 1, "x", 4)));
    has_overflow(fixture, overflow, 5);
    assert_cells(fixture, "a:b:9=n a:b:8=n-1 z:a:5=newer of one cell z:a:4=hot z:a:3=cold");
}

static void test_aggregates_add_up_over_both(void **state)
{
    uint64_t two = htobe64(2), three = htobe64(3);
    struct entry cold = {.kind = ENTRY_SUM,
                         .family = 1,
                         .qualifier = bytes_of("n"),
                         .value = bytes_make(&two, sizeof two),
                         .version = 3};
    struct entry hot = cold;
    hot.value = bytes_make(&three, sizeof three);
    hot.version = 9;
    struct fixture *fixture = *state;
    struct cell_list cells = {.arena = fixture->arena};
    bool too_large;
    has_record(fixture, FRAGMENT(hot));
    has_overflow(fixture, &cold, 1);
    assert_ok(row_resolve(&fixture->request, &cells, &too_large));
    assert_int_equal(cells.count, 1);
    assert_int_equal(number_of(cells.items[0].value), 5);
}

/* A number after each value that came, a '?' and its size for one that was left. */
static void assert_values(struct fixture *fixture, const char *expected)
{
    struct cell_list cells = {.arena = fixture->arena};
    char text[FRAGMENT_TEXT_SIZE] = "";
    size_t size = 0;
    bool too_large;
    assert_ok(row_resolve(&fixture->request, &cells, &too_large));
    for (size_t i = 0; i < cells.count; i++) {
        bytes value = cells.items[i].value;
        if (cell_is_deferred(&cells.items[i]))
            size += (size_t)snprintf(text + size, sizeof text - size, "?%zu ", value.size);
        else
            size += (size_t)snprintf(text + size, sizeof text - size, "%.*s ", (int)value.size,
                                     (const char *)value.data);
        assert_true(size < sizeof text);
    }
    assert_string_equal(text, expected);
}

/* Values of the record come, whatever is left. */
static void test_overflow_values_may_be_left(void **state)
{
    struct entry mark = {
        .kind = ENTRY_OVERFLOW_MARK, .version = 9, .moved = 5, .has_overflow = true};
    const struct entry overflow[] = {
        cell_entry(1, "a", 5, "replaced", 2), cell_entry(1, "b", 3, "four", 5),
        cell_entry(1, "c", 3, "", 4),         cell_entry(1, "d", 3, "some six", 4),
        cell_entry(1, "e", 3, "six", 4),
    };
    struct fixture *fixture = *state;
    has_record(fixture, FRAGMENT(mark, cell_entry(1, "a", 5, "of the record", 6)));
    has_overflow(fixture, overflow, 5);
    assert_values(fixture, "of the record four  some six six ");
    fixture->request.defer_after = 12; /* the value that is replaced counts */
    assert_values(fixture, "of the record four  ?8 ?3 ");
    fixture->request.defer_after = 1;
    assert_values(fixture, "of the record ?4  ?8 ?3 ");
    fixture->request.size_limit = 30; /* as ever: of what there is, not of what came */
    struct cell_list cells = {.arena = fixture->arena};
    bool too_large;
    assert_status(row_resolve(&fixture->request, &cells, &too_large), STATUS_FAILED_PRECONDITION);
    assert_true(too_large);
}

/* The value came as an empty one when its copy found no memory. */
static void test_an_overflow_value_without_memory_is_no_empty_one(void **state)
{
    enum { SIZE = 1 << 16 };
    static const uint8_t large[SIZE];
    struct entry cell = cell_entry(1, "a", 1, "", 1);
    struct fixture *fixture = *state;
    struct arena *small = arena_create(SIZE / 2);
    struct cell_list cells = {.arena = small};
    bool too_large;
    cell.value = bytes_make(large, SIZE);
    has_overflow(fixture, &cell, 1);
    assert_status(row_resolve(&fixture->request, &cells, &too_large), STATUS_RESOURCE_EXHAUSTED);
    fixture->request.defer_after = 1; /* without it there is memory enough */
    assert_ok(row_resolve(&fixture->request, &cells, &too_large));
    arena_destroy(small);
}

static void test_aggregates_are_never_left(void **state)
{
    uint64_t two = htobe64(2);
    struct entry cold = {.kind = ENTRY_SUM,
                         .family = 1,
                         .qualifier = bytes_of("n"),
                         .value = bytes_make(&two, sizeof two),
                         .version = 3};
    struct fixture *fixture = *state;
    struct cell_list cells = {.arena = fixture->arena};
    bool too_large;
    has_overflow(fixture, &cold, 1);
    fixture->request.defer_after = 1;
    assert_ok(row_resolve(&fixture->request, &cells, &too_large));
    assert_int_equal(number_of(cells.items[0].value), 2);
}

/* What makes one column of a million cheap: a seek to it, and no step beyond. */
static void test_one_column_of_many_is_sought(void **state)
{
    static struct entry overflow[MOST_OVERFLOW];
    static char names[MOST_OVERFLOW][8];
    struct fixture *fixture = *state;
    for (int i = 0; i < MOST_OVERFLOW; i++) {
        snprintf(names[i], sizeof names[i], "%05d", i);
        overflow[i] = cell_entry(1, names[i], 1, "v", 1);
    }
    has_overflow(fixture, overflow, MOST_OVERFLOW);
    fixture->request.scope = &fixture->scope;
    fixture->families[2].from = bytes_of("01000");
    fixture->families[2].to = bytes_of("01001");
    fixture->families[2].has_to = true;
    assert_cells(fixture, "z:01000:1=v");
    assert_true(fixture->source.seeks <= 3);
    assert_true(fixture->source.nexts <= 4);
}

/* A view of a few columns is cheap, since they are sought. */
static void test_visible_columns_are_sought(void **state)
{
    static struct entry overflow[MOST_OVERFLOW];
    static char names[MOST_OVERFLOW][8];
    struct fixture *fixture = *state;
    const struct family_columns some = columns_of(fixture->arena, "z", "04000", "0010");
    for (int i = 0; i < MOST_OVERFLOW; i++) {
        snprintf(names[i], sizeof names[i], "%05d", i);
        overflow[i] = cell_entry(1, names[i], 1, "v", 1);
    }
    has_overflow(fixture, overflow, MOST_OVERFLOW);
    restrict_to(fixture, &(struct columns){.families = &some, .count = 1});
    assert_cells(fixture, "z:00100:1=v z:00101:1=v z:00102:1=v z:00103:1=v z:00104:1=v "
                          "z:00105:1=v z:00106:1=v z:00107:1=v z:00108:1=v z:00109:1=v "
                          "z:04000:1=v");
    assert_true(fixture->source.seeks <= 3);
    assert_true(fixture->source.nexts <= 15);
}

static void test_old_versions_are_skipped(void **state)
{
    static struct entry overflow[MOST_OVERFLOW];
    struct fixture *fixture = *state;
    for (int i = 0; i < MOST_OVERFLOW - 1; i++)
        overflow[i] = cell_entry(2, "a", MOST_OVERFLOW - i, "v", 1);
    overflow[MOST_OVERFLOW - 1] = cell_entry(2, "b", 1, "w", 1);
    has_overflow(fixture, overflow, MOST_OVERFLOW);
    assert_cells(fixture, "a:a:4096=v a:a:4095=v a:b:1=w");
    assert_true(fixture->source.nexts < 20);
}

/* Also where they are next to others in the record, and of a family that comes behind. */
static void test_a_scope_may_begin_at_a_time(void **state)
{
    struct fixture *fixture = *state;
    has_record(fixture,
               FRAGMENT(cell_entry(1, "q", 5, "five", 1), cell_entry(1, "q", 4, "four", 1),
                        cell_entry(1, "r", 3, "three", 1), cell_entry(2, "q", 2, "two", 1)));
    fixture->request.scope = &fixture->scope;
    fixture->families[2].least_us = 5; /* z */
    assert_cells(fixture, "a:q:2=two z:q:5=five");
    fixture->families[2].least_us = 6;
    assert_cells(fixture, "a:q:2=two");
    fixture->families[0].least_us = 3; /* a */
    assert_cells(fixture, "");
}

/* What a row was, at each of many times, cost who wanted what it is: a hot entity of Datastore's
 * was read with all that it had been within the hour, and grew slower with each update. */
static void test_overflow_cells_before_the_scope_are_skipped(void **state)
{
    static struct entry overflow[MOST_OVERFLOW];
    struct fixture *fixture = *state;
    for (int i = 0; i < MOST_OVERFLOW - 2; i++)
        overflow[i] = cell_entry(1, "a", MOST_OVERFLOW - i, "v", 1);
    overflow[MOST_OVERFLOW - 2] = cell_entry(1, "b", MOST_OVERFLOW, "w", 1);
    overflow[MOST_OVERFLOW - 1] = cell_entry(2, "a", 1, "x", 1);
    has_overflow(fixture, overflow, MOST_OVERFLOW);
    fixture->request.scope = &fixture->scope;
    fixture->families[2].least_us = MOST_OVERFLOW - 1; /* z */
    assert_cells(fixture, "a:a:1=x z:a:4096=v z:a:4095=v z:b:4096=w");
    assert_true(fixture->source.nexts < 20);
    fixture->families[2].least_us = INT64_MAX;
    fixture->source.nexts = 0;
    assert_cells(fixture, "a:a:1=x");
    assert_true(fixture->source.nexts < 20);
}

static void test_a_failing_source_fails_the_row(void **state)
{
    struct fixture *fixture = *state;
    struct cell_list cells = {.arena = fixture->arena};
    bool too_large;
    has_overflow(fixture, NULL, 0);
    fixture->source.interface.next = broken_next;
    assert_status(row_resolve(&fixture->request, &cells, &too_large), STATUS_UNAVAILABLE);
}

/* --- overflowing --- */

struct visits {
    char text[FRAGMENT_TEXT_SIZE];
    size_t size;
    int left; /* until it fails; negative: never */
};

static status visit(void *context, const struct entry *cell, bytes operand)
{
    struct visits *visits = context;
    struct fragment_reader reader;
    struct entry entry;
    if (visits->left-- == 0)
        return status_make(STATUS_ABORTED, "enough");
    visits->size +=
        print_entry(visits->text + visits->size, sizeof visits->text - visits->size, cell);
    visits->text[visits->size++] = '(';
    assert_true(fragment_reader_start(&reader, operand));
    while (fragment_reader_next(&reader, &entry))
        visits->size +=
            print_entry(visits->text + visits->size, sizeof visits->text - visits->size, &entry);
    visits->text[visits->size++] = ')';
    return status_ok();
}

static struct buffer record_to_overflow(void)
{
    uint64_t word = htobe64(3);
    struct entry sum = {.kind = ENTRY_SUM,
                        .family = 2,
                        .qualifier = bytes_of("n"),
                        .timestamp_us = 7,
                        .value = bytes_make(&word, sizeof word),
                        .version = 8};
    struct entry mark = {
        .kind = ENTRY_OVERFLOW_MARK, .version = 2, .moved = 1, .has_overflow = true};
    return FRAGMENT(mark, row_tombstone(3), cell_entry(1, "a", 5, "v", 6),
                    column_tombstone(2, "n", 0, INT64_MAX, 7), sum);
}

static void test_an_overflow_visits_all_cells(void **state)
{
    (void)state;
    struct visits visits = {.left = -1};
    struct buffer record = record_to_overflow();
    uint64_t newest;
    assert_ok(row_overflow_cells(buffer_bytes(&record), visit, &visits, &newest));
    assert_string_equal(visits.text, "1:a:5=v@6(0::0=v@6)2:n:7+3@8(r@70::0+3@8)");
    assert_int_equal(newest, 8);
    buffer_free(&record);
}

static void test_an_overflow_stops_when_it_is_told(void **state)
{
    (void)state;
    struct visits visits = {.left = 1};
    struct buffer record = record_to_overflow();
    uint64_t newest;
    assert_status(row_overflow_cells(buffer_bytes(&record), visit, &visits, &newest),
                  STATUS_ABORTED);
    assert_status(row_overflow_cells(bytes_of("damaged"), visit, &visits, &newest),
                  STATUS_DATA_LOSS);
    buffer_free(&record);
}

static status note_range(void *context, const struct entry *range)
{
    struct visits *visits = context;
    visits->size +=
        print_entry(visits->text + visits->size, sizeof visits->text - visits->size, range);
    visits->text[visits->size++] = ' ';
    return status_ok();
}

static void assert_condemned(struct fixture *fixture, struct buffer record, const char *expected)
{
    struct visits visits = {0};
    assert_ok(row_overflow_condemned(buffer_bytes(&record), fixture->schema, NOW_US, note_range,
                                     &visits));
    assert_string_equal(visits.text, expected);
    buffer_free(&record);
}

static void test_enough_hot_cells_condemn_overflow_ones(void **state)
{
    assert_condemned(*state,
                     FRAGMENT(cell_entry(1, "a", 9, "", 1), cell_entry(1, "a", 8, "", 1),
                              cell_entry(2, "a", 9, "", 1), cell_entry(2, "a", 8, "", 1),
                              cell_entry(2, "a", 7, "", 1), cell_entry(2, "b", 9, "", 1),
                              cell_entry(2, "c", 2, "", 1), cell_entry(2, "c", 0, "", 1),
                              cell_entry(2, "d", 2, "", 1), cell_entry(2, "d", 1, "", 1)),
                     "2:a[0,8)@-1 2:d[0,1)@-1 ");
    assert_condemned(*state, FRAGMENT(cell_entry(3, "a", 5, "", 1), cell_entry(3, "a", 4, "", 1)),
                     ""); /* by age alone */
}

static void test_overflow_cells_come_back(void **state)
{
    (void)state;
    struct overflow_key key = {
        .row_key = bytes_of("r"), .family = 4, .qualifier = bytes_of("q"), .timestamp_us = 12};
    struct buffer value = {0};
    struct entry cell;
    bool found;
    overflow_cell_write(&value, ENTRY_CELL, 77, 0, bytes_of("big"));
    assert_true(overflow_cell_read(&key, buffer_bytes(&value), &cell, &found));
    assert_true(found);
    assert_int_equal(cell.family, 4);
    assert_int_equal(cell.timestamp_us, 12);
    assert_int_equal(cell.version, 77);
    assert_true(bytes_equal(cell.value, bytes_of("big")));
    assert_false(overflow_cell_read(&key, bytes_of("damaged"), &cell, &found));
    buffer_free(&value);
    value = fragment_of(NULL, 0);
    assert_true(overflow_cell_read(&key, buffer_bytes(&value), &cell, &found));
    assert_false(found);
    buffer_free(&value);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_row_without_record_has_no_cells),
        TEST(test_families_come_by_name),
        TEST(test_rules_hide_what_they_condemn),
        TEST(test_unknown_families_are_not_seen),
        TEST(test_tombstones_that_wait_cover),
        TEST(test_a_row_too_large_is_said_to_be),
        TEST(test_damage_is_data_loss),
        TEST(test_without_memory_there_is_no_row),
        TEST(test_scope_of_families_and_qualifiers),
        TEST(test_scope_of_counts),
        TEST(test_a_view_leaves_out_the_rest),
        TEST(test_a_view_of_all_is_no_restriction),
        TEST(test_a_row_out_of_scope_shows_that_it_is_there),
        TEST(test_overflow_cells_show_that_a_row_is_there),
        TEST(test_a_family_is_left_behind_its_scope),
        TEST(test_visible_columns_are_sought),
        TEST(test_hot_and_overflow_cells_are_one_row),
        TEST(test_aggregates_add_up_over_both),
        TEST(test_overflow_values_may_be_left),
        TEST(test_an_overflow_value_without_memory_is_no_empty_one),
        TEST(test_aggregates_are_never_left),
        TEST(test_one_column_of_many_is_sought),
        TEST(test_old_versions_are_skipped),
        TEST(test_a_scope_may_begin_at_a_time),
        TEST(test_overflow_cells_before_the_scope_are_skipped),
        TEST(test_a_failing_source_fails_the_row),
        cmocka_unit_test(test_an_overflow_visits_all_cells),
        cmocka_unit_test(test_an_overflow_stops_when_it_is_told),
        TEST(test_enough_hot_cells_condemn_overflow_ones),
        cmocka_unit_test(test_overflow_cells_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
