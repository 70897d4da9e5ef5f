/* Tests of catalogs of which a table file is damaged: what is lost, what is served, what never
 * comes back. */
#include "base/condition.h"
#include "cluster/catalog.h"
#include "cluster/lost_records.h"
#include "cluster/salvage.h"
#include "cluster/testing/testing.h"

#include <fcntl.h>
#include <glob.h>

enum {
    TABLES = 40,
    STARTS = 8,
    EXTRA = 1200,
    POLICIES = 120,
    POLICY = 400, /* bytes, which do not compress */
    MOST_RECORDS = 1000,
    FLIPPED = 16,
    BEHIND_DATA = 3000, /* at most: index, filter, properties */
    MOST_OF_A_BLOCK = 30,
};

/* --- a directory --- */

struct known_table {
    char name[64];
    uint64_t id;
    uint64_t keyspace_id;
};

struct record {
    uint8_t key[128];
    size_t key_size;
    uint64_t value; /* a sum of it */
};

struct story {
    struct cluster_fixture *f;
    struct known_table tables[TABLES];
    struct record records[MOST_RECORDS];
    size_t record_count;
    uint64_t next_id;
    struct commit_ceilings ceilings;
    char file[512]; /* of the catalog */
};

static void put(struct cluster_fixture *f, struct keyspace *keyspace, bytes key, bytes value)
{
    struct store_batch *batch = store_batch_create();
    store_batch_put(batch, keyspace, key, value);
    assert_ok(store_write(f->cluster->home->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
}

static void put_raw(struct cluster_fixture *f, const char *key, const char *value)
{
    put(f, f->cluster->catalog, bytes_of(key), bytes_of(value));
}

/* Nothing that is compressed away. */
static void fill_text(char *text, size_t size, uint64_t seed)
{
    for (size_t at = 0; at + 1 < size; at++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        text[at] = (char)('a' + (seed >> 33) % 26);
    }
    text[size - 1] = '\0';
}

/* With so much beside it that not many records are in one block. */
static void create(struct cluster_fixture *f, const char *name, struct known_table *known)
{
    char extra[EXTRA];
    const struct family families[] = {{.id = FAMILY_F, .name = bytes_of("f")}};
    struct schema *schema;
    assert_ok(schema_create(GRANULARITY_MICROS, families, 1, 2, &schema));
    fill_text(extra, sizeof extra, strlen(name) + (uint64_t)name[strlen(name) - 1]);
    struct table_spec spec = {.name = name, .schema = schema, .extra = bytes_of(extra)};
    assert_ok(cluster_create_table(f->cluster, &spec, &f->table));
    schema_destroy(schema);
    set_cell(f, "a", name);
    set_cell(f, "z", name);
    split_at(f, "m");
    snprintf(known->name, sizeof known->name, "%s", name);
    known->id = f->table->id;
    known->keyspace_id = keyspace_id(f->table->tablets[0]->keyspace);
    table_release(f->table);
    f->table = NULL;
}

static void policy_key(char key[64], unsigned i)
{
    snprintf(key, 64, "Ryprojects/p/instances/i%03u", i);
}

static void put_policies(struct cluster_fixture *f)
{
    for (unsigned i = 0; i < POLICIES; i++) {
        char key[64], value[POLICY];
        policy_key(key, i);
        fill_text(value, sizeof value, i);
        put_raw(f, key, value);
    }
}

static uint64_t sum(bytes b)
{
    uint64_t sum = 1469598103934665603u;
    for (size_t i = 0; i < b.size; i++)
        sum = (sum ^ b.data[i]) * 1099511628211u;
    return sum;
}

static void each_record(struct cluster_fixture *f, void (*visit)(void *, bytes key, bytes value),
                        void *context)
{
    const struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    assert_ok(store_cursor_create(f->cluster->catalog, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor))
        visit(context, store_cursor_key(cursor), store_cursor_value(cursor));
    assert_ok(store_cursor_status(cursor));
    store_cursor_destroy(cursor);
}

static void note_record(void *context, bytes key, bytes value)
{
    struct story *story = context;
    assert_true(story->record_count < MOST_RECORDS);
    struct record *record = &story->records[story->record_count++];
    assert_true(key.size <= sizeof record->key);
    memcpy(record->key, key.data, key.size);
    record->key_size = key.size;
    record->value = sum(value);
}

static void newest_file(const char *directory, char path[512])
{
    char pattern[128];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.sst", directory);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0); /* sorted, by numbers of equal width */
    snprintf(path, 512, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
}

static void compact(struct cluster_fixture *f)
{
    const bytes none = bytes_of("");
    assert_ok(keyspace_flush(f->cluster->catalog));
    assert_ok(keyspace_compact(f->cluster->catalog, none, none));
}

static void stop(struct cluster_fixture *f)
{
    if (f->table != NULL)
        table_release(f->table);
    f->table = NULL;
    close_test_cluster(f);
}

/* What a deleted table had; here one that stands has some, too. */
static void put_kept(struct cluster_fixture *f, uint64_t table_id)
{
    struct buffer key = {0};
    catalog_append_kept_key(&key, table_id);
    put(f, f->cluster->catalog, buffer_bytes(&key), bytes_of("-"));
    buffer_free(&key);
}

/* What the change log has are no rows. */
static void make_log(struct cluster_fixture *f)
{
    uint64_t id = f->cluster->next_id++;
    assert_ok(store_keyspaces_create(f->cluster->home->store, id, 1));
    put(f, store_keyspace_find(f->cluster->home->store, id), bytes_of("dentries"), bytes_of("-"));
}

/* With a clock that stands: each start gives versions that are above the ceiling of the last. */
static void start_many_times(struct cluster_fixture *f, const struct known_table *known)
{
    for (unsigned i = 0; i < STARTS; i++) {
        stop(f);
        open_test_cluster(f);
        assert_ok(cluster_table(f->cluster, bytes_of(known->name), &f->table));
        set_cell(f, "a", known->name);
        table_release(f->table);
        f->table = NULL;
    }
}

/* All of the catalog is in one table file, except what a server writes at its end. */
static void tell(struct story *story)
{
    struct cluster_fixture *f = story->f;
    make_log(f); /* before: the greatest ids are those of tables */
    for (unsigned i = 0; i < TABLES; i++) {
        char name[64];
        snprintf(name, sizeof name, "projects/p/instances/i/tables/t%03u", i);
        create(f, name, &story->tables[i]);
        put_kept(f, story->tables[i].id);
    }
    start_many_times(f, &story->tables[0]);
    put_policies(f);
    compact(f);
    newest_file(f->directory, story->file);
    each_record(f, note_record, story);
    story->next_id = f->cluster->next_id;
    assert_ok(commit_read_ceilings(f->cluster->catalog, &story->ceilings));
    stop(f);
}

static int setup(void **state)
{
    struct story *story = calloc(1, sizeof *story);
    assert_non_null(story);
    story->f = cluster_fixture_create(NULL);
    story->f->log.fd = -1;
    table_release(story->f->table);
    story->f->table = NULL;
    stop(story->f);
    story->f->options.heat = false;
    open_test_cluster(story->f);
    *state = story;
    return 0;
}

/* The cluster is closed. */
static int teardown(void **state)
{
    struct story *story = *state;
    struct cluster_fixture *f = story->f;
    pool_destroy(f->pool);
    arena_destroy(f->arena);
    remove_test_directory(f->directory);
    free(f);
    free(story);
    return 0;
}

/* --- damage --- */

static off_t size_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_size;
}

/* `at` negative: before the end. */
static void flip(const char *path, off_t at)
{
    char piece[FLIPPED];
    off_t from = at < 0 ? size_of(path) + at : at;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t count = pread(fd, piece, FLIPPED, from);
    assert_true(count > 0);
    for (ssize_t i = 0; i < count; i++)
        piece[i] = (char)~piece[i];
    assert_int_equal(pwrite(fd, piece, (size_t)count, from), count);
    assert_int_equal(close(fd), 0);
}

/* --- what is so --- */

static void assert_refused(struct story *story, const char *words)
{
    struct cluster *cluster;
    status s = cluster_open(&story->f->options, &cluster);
    assert_int_equal(s.code, STATUS_DATA_LOSS);
    if (strstr(status_message(s), words) == NULL)
        fail_msg("not \"%s\": %s", words, status_message(s));
    status_free(s);
}

static void open_and_give_up(struct story *story)
{
    story->f->options.accepts_lost_records = true;
    open_test_cluster(story->f);
    story->f->options.accepts_lost_records = false;
}

static bool has_record(struct cluster_fixture *f, bytes key, uint64_t *value)
{
    struct store_value found = {0};
    enum store_presence presence;
    assert_ok(store_get(f->cluster->catalog, NULL, key, STORE_READ_ANY, &found, &presence));
    *value = sum(found.bytes);
    store_value_release(&found);
    return presence == STORE_FOUND;
}

static bool has_kept(struct cluster_fixture *f, uint64_t table_id)
{
    struct buffer key = {0};
    uint64_t value;
    catalog_append_kept_key(&key, table_id);
    bool has = has_record(f, buffer_bytes(&key), &value);
    buffer_free(&key);
    return has;
}

/* Records that say what an administrator said, and nothing that changes by itself. */
static bool is_compared(const struct record *record)
{
    return record->key[0] == 'R';
}

/* Each that is there is what it was; those that are not are neighbours. How many are not. */
static size_t count_lost(struct story *story)
{
    size_t lost = 0, gaps = 0;
    bool was_lost = false;
    for (size_t i = 0; i < story->record_count; i++) {
        const struct record *record = &story->records[i];
        uint64_t value;
        if (!is_compared(record))
            continue;
        bool is_there = has_record(story->f, bytes_make(record->key, record->key_size), &value);
        if (is_there)
            assert_true(value == record->value);
        lost += !is_there;
        gaps += !is_there && !was_lost;
        was_lost = !is_there;
    }
    assert_true(gaps <= 1);
    return lost;
}

static bool is_unclaimed(const struct cluster *cluster, uint64_t id)
{
    for (size_t i = 0; i < cluster->home->unclaimed_count; i++)
        if (cluster->home->unclaimed[i] == id)
            return true;
    return false;
}

static bool find_table(struct cluster_fixture *f, const char *name)
{
    status s = cluster_table(f->cluster, bytes_of(name), &f->table);
    bool found = status_is_ok(s);
    status_free(s);
    return found;
}

/* All of it, or nothing under its name, and the rows where they were. */
static bool check_table(struct story *story, const struct known_table *known)
{
    struct cluster_fixture *f = story->f;
    char text[256];
    bool is_empty = true;
    if (find_table(f, known->name)) {
        snprintf(text, sizeof text, "a=%s z=%s", known->name, known->name);
        assert_scan(f, "", "", false, text);
        assert_false(is_unclaimed(f->cluster, known->keyspace_id));
        table_release(f->table);
        f->table = NULL;
        return true;
    }
    assert_false(has_kept(f, known->id));
    struct keyspace *keyspace = store_keyspace_find(f->cluster->home->store, known->keyspace_id);
    assert_non_null(keyspace);
    assert_ok(salvage_is_empty(keyspace, &is_empty));
    assert_false(is_empty);
    assert_true(is_unclaimed(f->cluster, known->keyspace_id));
    return false;
}

static size_t count_tables(struct story *story)
{
    size_t count = 0;
    for (size_t i = 0; i < TABLES; i++)
        count += check_table(story, &story->tables[i]);
    assert_int_equal(story->f->cluster->home->unclaimed_count, TABLES - count);
    return count;
}

static bool is_salvaged(struct cluster_fixture *f, const char *words)
{
    struct condition_view view;
    condition_look(cluster_condition(f->cluster), &view);
    for (size_t i = 0; i < view.count; i++)
        if (view.reasons[i].reason == REASON_salvaged)
            return strstr(view.reasons[i].text, words) != NULL;
    return false;
}

/* Whatever was given before. */
static void check_new_table(struct story *story)
{
    struct known_table made;
    struct cluster_fixture *f = story->f;
    struct commit_ceilings ceilings;
    assert_true(f->cluster->next_id >= story->next_id);
    create(f, "projects/p/instances/i/tables/new", &made);
    assert_true(made.id >= story->next_id);
    for (size_t i = 0; i < TABLES; i++)
        assert_int_not_equal(made.keyspace_id, story->tables[i].keyspace_id);
    assert_ok(commit_read_ceilings(f->cluster->catalog, &ceilings));
    assert_true(ceilings.version >= story->ceilings.version);
    assert_true(ceilings.sequence >= story->ceilings.sequence);
    assert_true(find_table(f, made.name));
    assert_scan(f, "", "", false,
                "a=projects/p/instances/i/tables/new z=projects/p/instances/i/tables/new");
}

/* Refused, given up when that is asked for, and sound from then on. */
struct outcome {
    size_t tables;
    size_t lost; /* of what is compared */
};

static struct outcome give_up(struct story *story)
{
    struct cluster_fixture *f = story->f;
    struct outcome outcome;
    assert_refused(story, "--salvage");
    assert_refused(story, strrchr(story->file, '/') + 1);
    open_and_give_up(story);
    assert_true(is_salvaged(f, "records of the catalog ("));
    outcome.tables = count_tables(story);
    outcome.lost = count_lost(story);
    stop(f);
    open_test_cluster(f);
    assert_false(keyspace_has_damage(f->cluster->catalog));
    assert_int_equal(count_tables(story), outcome.tables);
    assert_int_equal(count_lost(story), outcome.lost);
    assert_int_equal(is_salvaged(f, ""), outcome.tables < TABLES);
    assert_false(is_salvaged(f, "records of the catalog"));
    check_new_table(story);
    stop(f);
    return outcome;
}

static size_t compared(const struct story *story)
{
    size_t count = 0;
    for (size_t i = 0; i < story->record_count; i++)
        count += is_compared(&story->records[i]);
    return count;
}

/* --- blocks: where which records are depends on their sizes, so it is found by trying. Of some
 * kinds a block has neither tables nor what is compared --- */

struct seen {
    bool lost_tables;
    bool lost_policies;
    bool kept_both;
};

static void flip_at(struct seen *seen, unsigned part, unsigned parts)
{
    void *state;
    setup(&state);
    struct story *story = state;
    tell(story);
    flip(story->file, (size_of(story->file) - BEHIND_DATA) * part / parts);
    struct outcome outcome = give_up(story);
    print_message("# %u of %u: %zu tables, %zu lost\n", part, parts, outcome.tables, outcome.lost);
    seen->lost_tables |= outcome.tables < TABLES;
    seen->lost_policies |= outcome.lost > 0;
    assert_true(outcome.lost <= MOST_OF_A_BLOCK && TABLES - outcome.tables <= MOST_OF_A_BLOCK);
    seen->kept_both |= outcome.tables > 0 && outcome.lost < compared(story);
    teardown(&state);
}

static void a_flipped_block_takes_its_records(void **state)
{
    enum { PARTS = 8 };
    struct seen seen = {0};
    (void)state;
    for (unsigned part = 0; part <= PARTS; part++)
        flip_at(&seen, part, PARTS);
    assert_true(seen.lost_tables);
    assert_true(seen.lost_policies);
    assert_true(seen.kept_both);
}

/* --- whole files --- */

static void without_a_footer_all_of_it_is_lost(void **state)
{
    struct story *story = *state;
    tell(story);
    flip(story->file, -FLIPPED);
    struct outcome outcome = give_up(story);
    assert_int_equal(outcome.tables, 0);
    assert_int_equal(outcome.lost, compared(story));
}

static void without_the_file_all_of_it_is_lost(void **state)
{
    struct story *story = *state;
    tell(story);
    assert_int_equal(unlink(story->file), 0);
    struct outcome outcome = give_up(story);
    assert_int_equal(outcome.tables, 0);
    assert_int_equal(outcome.lost, compared(story));
}

/* The file may have been unreadable only for a while, by a loose cable. */
static void with_the_file_all_is_back(void **state)
{
    struct story *story = *state;
    char aside[520];
    tell(story);
    snprintf(aside, sizeof aside, "%s.aside", story->file);
    assert_int_equal(rename(story->file, aside), 0);
    for (int i = 0; i < 2; i++)
        assert_refused(story, "--salvage");
    assert_int_equal(rename(aside, story->file), 0);
    open_test_cluster(story->f);
    assert_int_equal(count_tables(story), TABLES);
    assert_int_equal(count_lost(story), 0);
    stop(story->f);
}

static void without_damage_nothing_is_given_up(void **state)
{
    struct story *story = *state;
    tell(story);
    open_and_give_up(story);
    assert_int_equal(count_tables(story), TABLES);
    assert_int_equal(count_lost(story), 0);
    assert_false(is_salvaged(story->f, ""));
    stop(story->f);
}

/* --- what must not come back --- */

/* A newer file, which withdrew a policy, is the damaged one. */
static void a_withdrawn_policy_does_not_rise(void **state)
{
    struct story *story = *state;
    struct cluster_fixture *f = story->f;
    char key[64];
    uint64_t value;
    struct store_batch *batch = store_batch_create();
    policy_key(key, 7);
    put_policies(f);
    compact(f);
    store_batch_delete(batch, f->cluster->catalog, bytes_of(key));
    assert_ok(store_write(f->cluster->home->store, batch, STORE_SYNCED));
    store_batch_destroy(batch);
    policy_key(key, 8);
    put_raw(f, key, "less");
    assert_ok(keyspace_flush(f->cluster->catalog));
    newest_file(f->directory, story->file);
    stop(f);
    flip(story->file, 10);
    assert_refused(story, "access policies");
    open_and_give_up(story);
    for (unsigned i = 7; i < 9; i++) {
        policy_key(key, i);
        assert_false(has_record(f, bytes_of(key), &value));
    }
    stop(f);
}

/* Rows that a damaged file had deleted are not opened either: what says that they are out of
 * service is lost. */
static void closed_rows_are_not_opened(void **state)
{
    struct story *story = *state;
    char kept[128];
    tell(story);
    snprintf(kept, sizeof kept, "%s/000003.sst.damaged", story->f->directory);
    int fd = open(kept, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    unlink(story->file);
    story->f->options.accepts_lost_records = true;
    for (int i = 0; i < 2; i++)
        assert_refused(story, "000003.sst.damaged");
    assert_int_equal(unlink(kept), 0);
    open_and_give_up(story);
    stop(story->f);
}

/* Of a range in which there are none of these the file says nothing. */
static void other_records_are_given_up_beside_kept_files(void **state)
{
    struct story *story = *state;
    struct cluster_fixture *f = story->f;
    char kept[128];
    put_policies(f);
    compact(f);
    put_raw(f, "Ryprojects/p/instances/i001", "less");
    put_raw(f, "Ryprojects/p/instances/i002", "less");
    assert_ok(keyspace_flush(f->cluster->catalog));
    newest_file(f->directory, story->file);
    stop(f);
    flip(story->file, 10);
    snprintf(kept, sizeof kept, "%s/000003.sst.damaged", f->directory);
    int fd = open(kept, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    open_and_give_up(story);
    stop(f);
}

/* --- words --- */

static void assert_kinds(const char *from, const char *to, const char *expected)
{
    struct buffer words = {0};
    lost_records_kinds(bytes_of(from), bytes_of(to), &words);
    buffer_append_byte(&words, 0);
    assert_string_equal((const char *)words.data, expected);
    buffer_free(&words);
}

static void a_range_is_told_by_its_kinds(void **state)
{
    (void)state;
    assert_kinds("Tx", "Ty", "tables");
    assert_kinds("T", "U", "tables");
    assert_kinds("M", "N", "findings that are muted");
    assert_kinds("T", "U1", "tables, keyspaces without a table");
    assert_kinds("Ryprojects/a", "Ryprojects/b", "access policies");
    assert_kinds("Rs", "Ty", "schema bundles, access policies, tables");
    assert_kinds("t9", "", "tablets, the ceiling of versions");
    assert_kinds("s", "t",
                 "the ceiling of sequences, which server it is, to which moments it was restored");
    assert_kinds("ci", "d", "from where on versions name clusters");
    assert_kinds("version-ceiling", "version-ceilinh", "the ceiling of versions");
    assert_kinds("A", "B", "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flipped_block_takes_its_records),
        TEST(without_a_footer_all_of_it_is_lost),
        TEST(without_the_file_all_of_it_is_lost),
        TEST(with_the_file_all_is_back),
        TEST(without_damage_nothing_is_given_up),
        TEST(a_withdrawn_policy_does_not_rise),
        TEST(closed_rows_are_not_opened),
        TEST(other_records_are_given_up_beside_kept_files),
        cmocka_unit_test(a_range_is_told_by_its_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
