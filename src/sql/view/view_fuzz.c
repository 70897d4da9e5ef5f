/* Fuzzer: any bytes as what is recorded of a view: contributions, groups, entries, ids.
 *
 * They are taken or refused with DATA_LOSS, and lead nowhere else. A group that was taken is
 * written so that it is read again, and is written the same.
 *
 * Input: choices: a view, a record, entries, and a contribution whose parts are folded. */
#include "base/testing/fuzzing.h"
#include "sql/testing/view_double.h"

enum { MOST_ENTRIES = 16, FUZZ_ARENA = 64 << 20 };

static const char *const queries[] = {
    "SELECT f['k'] AS k, COUNT(*) AS c, SUM(n['i']) AS s, AVG(n['i']) AS a, BIT_AND(n['i']) AS ba, "
    "BIT_OR(n['i']) AS bo, BIT_XOR(n['i']) AS bx FROM t GROUP BY k",
    "SELECT f['k'] AS k, n['i'] AS i, MIN(f['s']) AS least, MAX(n['i'] / 2) AS most FROM t GROUP "
    "BY k, i",
    "SELECT _key, HLL_COUNT.INIT(f['s'], 10) AS h FROM t GROUP BY _key",
    "SELECT _key, HLL_COUNT.MERGE(f['s']) AS c, HLL_COUNT.MERGE_PARTIAL(f['s']) AS h FROM t GROUP "
    "BY _key",
    "SELECT _key, _timestamp, MAX(x) AS x FROM UNPACK((SELECT _key, f['x'] AS x FROM "
    "t(with_history => TRUE))) GROUP BY _key, _timestamp",
    "SELECT f['a'] AS a, n['i'] AS i, _key AS k, f AS all_of_it, n AS numbers FROM t ORDER BY a, "
    "i, "
    "k",
};

struct fuzz {
    struct view_double view;
    struct arena *arena;
    struct record entries[MOST_ENTRIES]; /* as they were chosen, in no order */
    size_t entry_count;
};

static bool is_taken(status s)
{
    bool is_ok = status_is_ok(s);
    CHECK(is_ok || s.code == STATUS_DATA_LOSS);
    status_free(s);
    return is_ok;
}

/* --- entries: any --- */

static status put(void *context, bytes entry, bytes value)
{
    (void)context, (void)value;
    CHECK(entry.size > 0);
    return status_ok();
}

static status take(void *context, bytes entry)
{
    return put(context, entry, entry);
}

static bool is_wanted(bytes entry, bytes prefix, bytes from)
{
    return bytes_start_with(entry, prefix) && bytes_compare(entry, from) >= 0;
}

static status find(void *context, bytes prefix, bytes from, bool is_last, bytes *entry,
                   bytes *value, bool *found)
{
    const struct fuzz *fuzz = context;
    const struct record *best = NULL;
    for (size_t i = 0; i < fuzz->entry_count; i++) {
        const struct record *record = &fuzz->entries[i];
        int order = best == NULL ? 0 : bytes_compare(record->key, best->key);
        bool is_better = best == NULL || (is_last ? order > 0 : order < 0);
        if (is_wanted(record->key, prefix, from) && is_better)
            best = record;
    }
    *found = best != NULL;
    if (best != NULL) {
        *entry = best->key;
        *value = best->value;
    }
    return status_ok();
}

static void choose_entries(struct fuzz *fuzz, struct choices *choices)
{
    size_t count = choose(choices, MOST_ENTRIES + 1);
    for (size_t i = 0; i < count; i++)
        fuzz->entries[fuzz->entry_count++] =
            (struct record){choose_bytes(choices, UINT8_MAX), choose_bytes(choices, UINT8_MAX)};
}

/* --- groups --- */

static void check_written(struct fuzz *fuzz, const struct view_group *group)
{
    struct buffer first = {0}, second = {0};
    struct view_group *again;
    CHECK(is_taken(view_group_write(group, &first)));
    CHECK(is_taken(view_group_read(fuzz->view.program, buffer_bytes(&first), fuzz->arena, &again)));
    CHECK(view_group_rows(again) == view_group_rows(group));
    CHECK(is_taken(view_group_write(again, &second)));
    CHECK(bytes_equal(buffer_bytes(&first), buffer_bytes(&second)));
    buffer_free(&first);
    buffer_free(&second);
}

static void fold_part(struct fuzz *fuzz, struct view_group *group, const struct view_part *part,
                      bool is_removal)
{
    const struct view_entries entries = {fuzz, put, take, find};
    struct view_row row;
    const char *why;
    if (!is_taken(view_group_fold(group, part->body, bytes_of("r"), is_removal, &entries)) ||
        !is_taken(view_group_settle(group, &entries)))
        return;
    check_written(fuzz, group);
    status result = view_group_row(fuzz->view.runner, group, part->id, fuzz->arena, &row, &why);
    if (is_taken(result) && why == NULL)
        CHECK(row.cell_count > 0 && row.place.key.size > 0);
}

static void check_index(struct fuzz *fuzz, const struct view_part *part)
{
    struct view_row row;
    if (is_taken(view_index_row(fuzz->view.program, part, fuzz->arena, &row)))
        CHECK(row.cell_count > 0 && row.place.key.size > 0);
}

static void check_parts(struct fuzz *fuzz, struct choices *choices, bytes record)
{
    struct view_group *group = NULL;
    struct view_part part;
    bool found = true;
    bool is_index = view_program_form(fuzz->view.program) == VIEW_INDEX;
    bool is_removal = choose_bool(choices);
    if (!is_index && !is_taken(view_group_read(fuzz->view.program, record, fuzz->arena, &group)))
        return;
    while (is_taken(view_contribution_next(&choices->left, &part, &found)) && found) {
        if (is_index)
            check_index(fuzz, &part);
        else
            fold_part(fuzz, group, &part, is_removal);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices = choices_of(data, size);
    struct fuzz fuzz = {.arena = arena_create(FUZZ_ARENA)};
    const char *query = queries[choose(&choices, sizeof queries / sizeof *queries)];
    CHECK(fuzz.arena != NULL && is_taken(view_double_init(&fuzz.view, query)));
    bytes record = choose_bytes(&choices, UINT8_MAX);
    choose_entries(&fuzz, &choices);
    check_parts(&fuzz, &choices, record);
    view_double_free(&fuzz.view);
    arena_destroy(fuzz.arena);
    return 0;
}
