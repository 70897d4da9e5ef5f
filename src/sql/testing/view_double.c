/* A materialized view in memory: see view_double.h. */
#include "sql/testing/view_double.h"

#include "base/check.h"
#include "sql/analyze/analyze.h"
#include "sql/plan/materialized.h"
#include "sql/plan/optimize.h"
#include "sql/run/execute.h"
#include "sql/syntax/parser.h"
#include "sql/time/zone.h"

#include <stdlib.h>

enum { DOUBLE_ARENA = 256 << 20, DOUBLE_MEMORY = 256 << 20 };

/* --- records --- */

size_t records_place(const struct records *records, bytes key)
{
    size_t low = 0, high = records->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (bytes_compare(records->items[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct record *records_find(const struct records *records, bytes key)
{
    size_t at = records_place(records, key);
    bool is_there = at < records->count && bytes_equal(records->items[at].key, key);
    return is_there ? &records->items[at] : NULL;
}

static bytes copy(bytes b)
{
    uint8_t *data = malloc(b.size + 1);
    CHECK(data != NULL);
    if (b.size > 0)
        memcpy(data, b.data, b.size);
    return bytes_make(data, b.size);
}

static void discard(bytes b)
{
    free((void *)(uintptr_t)b.data);
}

void records_put(struct records *records, bytes key, bytes value)
{
    struct record *found = records_find(records, key);
    if (found != NULL) {
        bytes before = found->value;
        found->value = copy(value);
        discard(before);
        return;
    }
    size_t at = records_place(records, key);
    if (records->count == records->capacity) {
        records->capacity = records->capacity == 0 ? 64 : 2 * records->capacity;
        records->items = realloc(records->items, records->capacity * sizeof *records->items);
        CHECK(records->items != NULL);
    }
    memmove(&records->items[at + 1], &records->items[at],
            (records->count++ - at) * sizeof *records->items);
    records->items[at] = (struct record){copy(key), copy(value)};
}

void records_remove(struct records *records, bytes key)
{
    struct record *found = records_find(records, key);
    if (found == NULL)
        return;
    size_t at = (size_t)(found - records->items);
    discard(found->key);
    discard(found->value);
    memmove(found, found + 1, (--records->count - at) * sizeof *found);
}

void records_free(struct records *records)
{
    for (size_t i = 0; i < records->count; i++) {
        discard(records->items[i].key);
        discard(records->items[i].value);
    }
    free(records->items);
}

/* --- the catalog --- */

static status find_relation(void *context, const char *name, bool in_view, struct arena *arena,
                            const struct sql_relation **out)
{
    (void)in_view;
    struct view_double *view = context;
    *out = NULL;
    if (strcmp(name, "t") == 0)
        *out = view->relation;
    if (strcmp(name, "v") == 0 && view->program != NULL)
        return view_program_relation(view->program, "v", &view->view, arena, out);
    return status_ok();
}

static void tell_names(void *context, void (*visit)(void *to, const char *name), void *to)
{
    (void)context;
    visit(to, "t");
}

static status scan_relation(void *context, const struct sql_relation *table,
                            const struct sql_scan_spec *spec, struct arena *arena,
                            struct sql_scan **out)
{
    (void)context;
    *out = cell_table_scan(table->table, spec, arena);
    return status_ok();
}

static const struct sql_relation *make_relation(struct view_double *view)
{
    struct sql_table_column *columns = arena_zalloc(view->arena, 4 * sizeof *columns);
    struct sql_relation *relation = arena_zalloc(view->arena, sizeof *relation);
    CHECK(columns != NULL && relation != NULL);
    const struct sql_type *plain = sql_map_of(view->arena, &sql_bytes, &sql_bytes);
    columns[0] =
        (struct sql_table_column){.name = "_key", .kind = SQL_COLUMN_KEY, .type = &sql_bytes};
    columns[1] = (struct sql_table_column){.name = "f", .kind = SQL_COLUMN_FAMILY, .type = plain};
    columns[2] = (struct sql_table_column){.name = "g", .kind = SQL_COLUMN_FAMILY, .type = plain};
    columns[3] = (struct sql_table_column){.name = "n",
                                           .kind = SQL_COLUMN_FAMILY,
                                           .type = sql_map_of(view->arena, &sql_bytes, &sql_int64)};
    *relation = (struct sql_relation){
        .name = "t", .columns = columns, .column_count = 4, .table = &view->source};
    return relation;
}

static status analyze(struct view_double *view, const char *query, struct arena *arena,
                      struct sql_plan *out)
{
    struct ast_query *tree;
    const struct sql_analysis analysis = {.text = bytes_of(query),
                                          .catalog = &view->catalog,
                                          .arena = arena,
                                          .session = &view->session};
    TRY(sql_parse(analysis.text, arena, &tree));
    return sql_analyze(&analysis, tree, out);
}

/* --- the beginning --- */

static status make_program(struct view_double *view, const char *query)
{
    size_t count;
    TRY(analyze(view, query, view->arena, &view->plan));
    TRY(sql_check_materialized(&view->plan));
    TRY(view_program_make(&view->plan, view->arena, &view->program));
    const char *const *families = view_program_families(view->program, &count);
    cell_table_free(&view->view);
    cell_table_init(&view->view, families, count);
    return view_runner_create(view->program, &view->runner);
}

status view_double_init(struct view_double *view, const char *query)
{
    static const char *const families[] = {"f", "g", "n"};
    *view = (struct view_double){.arena = arena_create(DOUBLE_ARENA)};
    CHECK(view->arena != NULL);
    cell_table_init(&view->source, families, 3);
    cell_table_init(&view->view, families, 0);
    cell_table_family(&view->source, "n")->aggregate = AGGREGATE_SUM;
    view->session.zones = sql_zones_create();
    view->catalog = (struct sql_catalog){
        .context = view, .find = find_relation, .names = tell_names, .scan = scan_relation};
    view->relation = make_relation(view);
    return make_program(view, query);
}

void view_double_free(struct view_double *view)
{
    view_runner_destroy(view->runner);
    cell_table_free(&view->source);
    cell_table_free(&view->view);
    records_free(&view->contributions);
    records_free(&view->groups);
    records_free(&view->entries);
    records_free(&view->excluded);
    sql_zones_destroy(view->session.zones);
    arena_destroy(view->arena);
}

void view_double_put(struct view_double *view, bytes key, const char *family, const char *qualifier,
                     int64_t timestamp_us, bytes value)
{
    cell_table_put(&view->source, key, family, bytes_of(qualifier), timestamp_us, value);
}

void view_double_put_number(struct view_double *view, bytes key, const char *qualifier,
                            int64_t value)
{
    uint8_t number[8];
    for (int i = 0; i < 8; i++)
        number[i] = (uint8_t)((uint64_t)value >> (56 - 8 * i));
    view_double_put(view, key, "n", qualifier, 0, bytes_make(number, sizeof number));
}

/* --- entries of a group --- */

struct group_entries {
    struct view_double *view;
    struct buffer prefix; /* the group's */
    struct buffer key;    /* scratch */
};

static bytes whole_key(struct group_entries *entries, bytes entry)
{
    buffer_clear(&entries->key);
    buffer_append_bytes(&entries->key, buffer_bytes(&entries->prefix));
    buffer_append_bytes(&entries->key, entry);
    return buffer_bytes(&entries->key);
}

static status put_entry(void *context, bytes entry, bytes value)
{
    struct group_entries *entries = context;
    CHECK(entry.size <= VIEW_MOST_ENTRY + 4096);
    records_put(&entries->view->entries, whole_key(entries, entry), value);
    return status_ok();
}

static status remove_entry(void *context, bytes entry)
{
    struct group_entries *entries = context;
    CHECK(records_find(&entries->view->entries, whole_key(entries, entry)) != NULL);
    records_remove(&entries->view->entries, whole_key(entries, entry));
    return status_ok();
}

static status find_entry(void *context, bytes prefix, bytes from, bool is_last, bytes *entry,
                         bytes *value, bool *found)
{
    struct group_entries *entries = context;
    const struct records *records = &entries->view->entries;
    struct buffer whole = {0};
    entries->view->finds++;
    buffer_append_bytes(&whole, buffer_bytes(&entries->prefix));
    buffer_append_bytes(&whole, bytes_compare(from, prefix) > 0 ? from : prefix);
    size_t at = records_place(records, buffer_bytes(&whole));
    whole.size = entries->prefix.size;
    buffer_append_bytes(&whole, prefix);
    size_t end = at;
    while (end < records->count &&
           bytes_start_with(records->items[end].key, buffer_bytes(&whole)) &&
           (is_last || end == at))
        end++;
    *found = end > at;
    if (*found) {
        const struct record *record = &records->items[is_last ? end - 1 : at];
        *entry = bytes_from(record->key, entries->prefix.size);
        *value = record->value;
    }
    buffer_free(&whole);
    return status_ok();
}

static void begin_entries(struct view_double *view, bytes id, struct group_entries *out)
{
    *out = (struct group_entries){.view = view};
    for (size_t i = 0; i < id.size; i++) {
        buffer_append_byte(&out->prefix, id.data[i]);
        if (id.data[i] == 0)
            buffer_append_byte(&out->prefix, 0xff);
    }
    buffer_append(&out->prefix, "\0\1", 2);
}

static void end_entries(struct group_entries *entries)
{
    buffer_free(&entries->prefix);
    buffer_free(&entries->key);
}

/* --- rows of the view --- */

static void delete_row(struct view_double *view, const struct view_place *place)
{
    if (place->has_timestamp)
        cell_table_delete_version(&view->view, place->key, place->timestamp_us);
    else
        cell_table_delete_row(&view->view, place->key);
}

static void write_row(struct view_double *view, const struct view_row *row)
{
    delete_row(view, &row->place);
    for (size_t i = 0; i < row->cell_count; i++)
        cell_table_put(&view->view, row->place.key, row->cells[i].family, row->cells[i].qualifier,
                       row->timestamp_us, row->cells[i].value);
}

/* --- groups --- */

static status finish_group(struct view_double *view, struct view_group *group, bytes id,
                           struct arena *arena, const struct view_entries *entries)
{
    struct buffer record = {0};
    struct view_row row;
    struct view_place place;
    const char *why;
    TRY(view_group_settle(group, entries));
    TRY(view_place_of(view->program, id, arena, &place));
    if (view_group_is_empty(group)) {
        delete_row(view, &place);
        records_remove(&view->groups, id);
        return status_ok();
    }
    TRY(view_group_row(view->runner, group, id, arena, &row, &why));
    if (why == NULL)
        write_row(view, &row);
    else
        delete_row(view, &place);
    TRY(view_group_write(group, &record));
    records_put(&view->groups, id, buffer_bytes(&record));
    buffer_free(&record);
    return status_ok();
}

static status fold_part(struct view_double *view, const struct view_part *part, bytes source_key,
                        bool is_removal)
{
    struct arena *arena = arena_create(DOUBLE_ARENA);
    struct group_entries own;
    struct view_group *group;
    begin_entries(view, part->id, &own);
    const struct view_entries entries = {&own, put_entry, remove_entry, find_entry};
    const struct record *record = records_find(&view->groups, part->id);
    bytes written = record == NULL ? bytes_make(NULL, 0) : record->value;
    status result = view_group_read(view->program, written, arena, &group);
    if (status_is_ok(result))
        result = view_group_fold(group, part->body, source_key, is_removal, &entries);
    if (status_is_ok(result))
        result = finish_group(view, group, part->id, arena, &entries);
    end_entries(&own);
    arena_destroy(arena);
    return result;
}

static status index_part(struct view_double *view, const struct view_part *part, bool is_removal)
{
    struct arena *arena = arena_create(DOUBLE_ARENA);
    struct view_row row;
    status result = view_index_row(view->program, part, arena, &row);
    if (status_is_ok(result) && is_removal)
        delete_row(view, &row.place);
    else if (status_is_ok(result))
        write_row(view, &row);
    arena_destroy(arena);
    return result;
}

static status apply_parts(struct view_double *view, bytes contribution, bytes source_key,
                          bool is_removal)
{
    struct view_part part;
    bool found;
    for (;;) {
        TRY(view_contribution_next(&contribution, &part, &found));
        if (!found)
            return status_ok();
        TRY(view_program_form(view->program) == VIEW_GROUPS
                ? fold_part(view, &part, source_key, is_removal)
                : index_part(view, &part, is_removal));
    }
}

/* --- following --- */

/* Rows that are gone give nothing: what they gave is taken back first, for all. */
static status take_back(struct view_double *view, bytes key)
{
    const struct record *before = records_find(&view->contributions, key);
    records_remove(&view->excluded, key);
    if (before == NULL)
        return status_ok();
    TRY(apply_parts(view, before->value, key, true));
    records_remove(&view->contributions, key);
    return status_ok();
}

static status visit(void *context, bytes source_key, enum view_outcome outcome, bytes contribution,
                    const char *why)
{
    struct view_double *view = context;
    CHECK((outcome == VIEW_ROW_EXCLUDED) == (why != NULL));
    CHECK((outcome == VIEW_ROW_IN) == (contribution.size > 0));
    if (why != NULL)
        records_put(&view->excluded, source_key, bytes_of(why));
    if (outcome != VIEW_ROW_IN)
        return status_ok();
    records_put(&view->contributions, source_key, contribution);
    return apply_parts(view, contribution, source_key, false);
}

struct wanted_rows {
    struct view_double *view;
    const bytes *keys;
    size_t count;
};

/* The rows that changed, as ranges of one key each. */
static status open_source(void *context, const struct sql_scan_spec *spec, struct arena *arena,
                          struct sql_scan **out)
{
    const struct wanted_rows *wanted = context;
    struct sql_key_range *ranges = arena_alloc(arena, wanted->count * sizeof *ranges);
    struct sql_scan_spec *own = arena_alloc(arena, sizeof *own);
    CHECK(ranges != NULL && own != NULL);
    for (size_t i = 0; i < wanted->count; i++) {
        uint8_t *after = arena_zalloc(arena, wanted->keys[i].size + 1);
        CHECK(after != NULL);
        memcpy(after, wanted->keys[i].data, wanted->keys[i].size);
        ranges[i] =
            (struct sql_key_range){wanted->keys[i], bytes_make(after, wanted->keys[i].size + 1)};
    }
    *own = *spec;
    own->ranges = ranges;
    own->range_count = wanted->count;
    *out = cell_table_scan(&wanted->view->source, own, arena);
    return status_ok();
}

status view_double_follow(struct view_double *view, const bytes *keys, size_t count)
{
    struct wanted_rows wanted = {view, keys, count};
    const struct view_source source = {&wanted, open_source};
    for (size_t i = 0; i < count; i++)
        TRY(take_back(view, keys[i]));
    return view_runner_run(view->runner, &source, visit, view);
}

/* --- looking --- */

static void append_hex(struct buffer *out, bytes b)
{
    for (size_t i = 0; i < b.size; i++)
        buffer_append_format(out, "%02x", b.data[i]);
}

void view_double_show(const struct view_double *view, bytes key, struct buffer *out)
{
    for (size_t i = 0; i < view->view.count; i++) {
        const struct table_cell *cell = &view->view.cells[i];
        if (!bytes_equal(cell->key, key))
            continue;
        buffer_append_format(out, "%s", out->size == 0 ? "" : " ");
        buffer_append_bytes(out, cell->family->name);
        buffer_append_format(out, ":");
        buffer_append_bytes(out, cell->qualifier);
        buffer_append_format(out, "@%lld=", (long long)cell->timestamp_us);
        append_hex(out, cell->value);
    }
    buffer_append_byte(out, '\0');
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lines in order, as one text. */
static void sort_lines(struct buffer *text)
{
    char **lines = calloc(text->size + 1, sizeof *lines);
    size_t count = 0;
    buffer_append_byte(text, '\0');
    char *all = strdup((const char *)text->data);
    CHECK(lines != NULL && all != NULL);
    for (char *at = all, *end; *at != '\0'; at = end + 1) {
        end = strchr(at, '\n');
        *end = '\0';
        lines[count++] = at;
    }
    qsort(lines, count, sizeof *lines, compare_lines);
    buffer_clear(text);
    for (size_t i = 0; i < count; i++)
        buffer_append_format(text, "%s\n", lines[i]);
    free(lines);
    free(all);
}

static status append_rows(struct view_double *view, const struct sql_plan *plan, struct buffer *out)
{
    const struct sql_execution_spec spec = {.plan = plan,
                                            .catalog = &view->catalog,
                                            .session = &view->session,
                                            .memory_limit = DOUBLE_MEMORY};
    struct sql_execution *execution;
    const struct sql_value *row = NULL;
    TRY(sql_execution_create(&spec, &execution));
    status result = sql_execution_next(execution, &row);
    while (status_is_ok(result) && row != NULL) {
        for (size_t i = 0; i < plan->root->column_count; i++) {
            buffer_append_format(out, "%s", i == 0 ? "" : " ");
            sql_value_append_literal(out, plan->root->columns[i].type, &row[i]);
        }
        buffer_append_byte(out, '\n');
        result = sql_execution_next(execution, &row);
    }
    sql_execution_destroy(execution);
    return result;
}

static status prepare(struct view_double *view, const char *query, struct arena *arena,
                      struct sql_plan *plan)
{
    TRY(analyze(view, query, arena, plan));
    return sql_optimize(plan, arena);
}

static void end_text(status result, struct buffer *out)
{
    if (!status_is_ok(result)) {
        buffer_clear(out);
        buffer_append_format(out, "%s: %s\n", status_code_name(result.code),
                             status_message(result));
    }
    status_free(result);
    buffer_append_byte(out, '\0');
}

static void run_query(struct view_double *view, const char *query, bool is_sorted,
                      struct buffer *out)
{
    struct arena *arena = arena_create(DOUBLE_ARENA);
    struct sql_plan plan;
    status result = prepare(view, query, arena, &plan);
    if (status_is_ok(result))
        result = append_rows(view, &plan, out);
    if (status_is_ok(result) && is_sorted)
        sort_lines(out);
    end_text(result, out);
    arena_destroy(arena);
}

void view_double_query(struct view_double *view, const char *query, struct buffer *out)
{
    run_query(view, query, true, out);
}

void view_double_list(struct view_double *view, const char *query, struct buffer *out)
{
    run_query(view, query, false, out);
}

void view_double_explain(struct view_double *view, const char *query, struct buffer *out)
{
    struct arena *arena = arena_create(DOUBLE_ARENA);
    struct sql_plan plan;
    struct sql_execution *execution = NULL;
    status result = prepare(view, query, arena, &plan);
    const struct sql_execution_spec spec = {.plan = &plan,
                                            .catalog = &view->catalog,
                                            .session = &view->session,
                                            .memory_limit = DOUBLE_MEMORY};
    if (status_is_ok(result))
        result = sql_execution_create(&spec, &execution);
    if (status_is_ok(result))
        result = sql_execution_explain(execution, out);
    sql_execution_destroy(execution);
    end_text(result, out);
    arena_destroy(arena);
}
