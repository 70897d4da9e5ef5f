/* See resolve.h.
 *
 * A row without spilled cells is its record, which folds have left with nothing covered in it: its
 * entries are read once, and what the rules condemn is left out. A row with spilled cells is two
 * sorted streams, the record's entries and the spilled cells, merged family by family and fed to a
 * combiner (combine.h). Families come by name, which is not the order in which they are stored. */
#include "row/resolve.h"

#include "row/interim_combine.h"

/* The cells as they come out, in order; what both ways of reading share. */
struct output {
    const struct resolve_request *request;
    struct cell_list *cells;
    const struct family *family;
    const struct family_scope *scope; /* of the family; NULL: all of it */
    bytes qualifier;
    bool has_column;
    int32_t in_column; /* cells of the column so far */
    uint64_t size;
    bool is_full; /* no more cells are wanted */
    bool is_too_large;
    bool is_failed; /* no memory */
};

static int32_t most_in_column(const struct output *output)
{
    const struct read_scope *scope = output->request->scope;
    return scope == NULL ? INT32_MAX : scope->cells_per_column;
}

static bool row_is_full(const struct output *output)
{
    const struct read_scope *scope = output->request->scope;
    return scope != NULL && output->cells->count >= (size_t)scope->cells_per_row;
}

static bool wants_values(const struct output *output)
{
    const struct read_scope *scope = output->request->scope;
    return scope == NULL || scope->wants_values;
}

/* False if the scope leaves the family out. */
static bool enter_family(struct output *output, const struct family *family)
{
    const struct read_scope *scope = output->request->scope;
    size_t position = (size_t)(family - output->request->schema->families);
    output->family = family;
    output->has_column = false;
    output->scope = scope == NULL || scope->families == NULL ? NULL : &scope->families[position];
    return output->scope == NULL || output->scope->is_wanted;
}

static bool is_before_scope(const struct output *output, bytes qualifier)
{
    return output->scope != NULL && bytes_compare(qualifier, output->scope->from) < 0;
}

static bool is_after_scope(const struct output *output, bytes qualifier)
{
    return output->scope != NULL && output->scope->has_to &&
           bytes_compare(qualifier, output->scope->to) >= 0;
}

static void enter_column(struct output *output, bytes qualifier)
{
    if (output->has_column && bytes_equal(output->qualifier, qualifier))
        return;
    output->has_column = true;
    output->qualifier = qualifier;
    output->in_column = 0;
}

static void add_cell(struct output *output, const struct entry *entry)
{
    if (output->in_column++ >= most_in_column(output))
        return;
    bytes value = wants_values(output) ? entry->value : bytes_make(NULL, 0);
    output->size += entry->qualifier.size + entry->value.size;
    output->is_too_large = output->size > output->request->size_limit;
    struct cell cell = {.family = output->family,
                        .qualifier = entry->qualifier,
                        .timestamp_us = entry->timestamp_us,
                        .value = value};
    if (!cell_list_add(output->cells, &cell))
        output->is_failed = true;
    output->is_full = output->is_too_large || output->is_failed || row_is_full(output);
}

/* --- a record alone --- */

static bool is_condemned(const struct output *output, const struct entry *entry, int32_t newer)
{
    return output->request->apply_gc &&
           gc_condemns(output->family->gc, entry->timestamp_us, newer, output->request->now_us);
}

/* The cells of the family that the reader has come to; `entry` is its first, and at the end the
 * first of another family. False at the end of the record. */
static bool read_family(struct output *output, struct fragment_reader *reader, struct entry *entry)
{
    uint32_t id = entry->family;
    int32_t newer = 0;
    bool more = true;
    for (; more && entry->family == id && !output->is_full;
         more = fragment_reader_next(reader, entry)) {
        if (!entry_is_cell(entry->kind) || is_before_scope(output, entry->qualifier))
            continue;
        if (is_after_scope(output, entry->qualifier)) {
            fragment_reader_seek_family(reader, id + 1);
            continue;
        }
        bool is_same = output->has_column && bytes_equal(output->qualifier, entry->qualifier);
        newer = is_same ? newer + 1 : 0;
        enter_column(output, entry->qualifier);
        if (!is_condemned(output, entry, newer))
            add_cell(output, entry);
    }
    return more;
}

/* Families whose ids rise with their names come in the right order as they are stored. */
static void read_in_order(struct output *output, struct fragment_reader *reader)
{
    struct entry entry;
    bool more = fragment_reader_next(reader, &entry);
    while (more && !output->is_full) {
        const struct family *family = schema_family(output->request->schema, entry.family);
        if (family != NULL && enter_family(output, family)) {
            more = read_family(output, reader, &entry);
        } else {
            fragment_reader_seek_family(reader, entry.family + 1);
            more = fragment_reader_next(reader, &entry);
        }
    }
}

static void read_by_name(struct output *output, struct fragment_reader *reader)
{
    const struct schema *schema = output->request->schema;
    const struct fragment_reader start = *reader;
    for (size_t i = 0; i < schema->family_count && !output->is_full && !reader->is_bad; i++) {
        struct entry entry;
        if (!enter_family(output, &schema->families[i]))
            continue;
        *reader = start;
        fragment_reader_seek_family(reader, schema->families[i].id);
        if (fragment_reader_next(reader, &entry) && entry.family == schema->families[i].id)
            read_family(output, reader, &entry);
    }
}

static status damaged(void)
{
    return status_make(STATUS_DATA_LOSS, "A row's record does not parse");
}

static status read_record(struct output *output)
{
    struct fragment_reader reader;
    if (output->request->record.size == 0)
        return status_ok();
    if (!fragment_reader_start(&reader, output->request->record))
        return damaged();
    if (output->request->schema->names_follow_ids)
        read_in_order(output, &reader);
    else
        read_by_name(output, &reader);
    return reader.is_bad ? damaged() : status_ok();
}

/* --- a record and spilled cells --- */

/* One family: the record's entries and the spilled cells, each with its next entry. */
struct pair {
    struct combiner combiner;
    struct output *output;
    struct fragment_reader record;
    struct entry record_entry;
    bool has_record_entry;
    struct spill_source *spilled;
    struct entry spilled_cell;
    bool has_spilled_cell;
    bytes held_qualifier; /* the last spilled column's, in the arena */
    int skipped;          /* spilled cells passed over one after the other */
};

static void emit_cell(struct combiner *combiner, const struct entry *entry)
{
    struct pair *pair = (struct pair *)combiner;
    struct output *output = pair->output;
    struct entry cell = *entry;
    if (output->is_full)
        return;
    if (cell.value.data == combiner->sum) {
        cell.value = arena_copy(output->cells->arena, cell.value);
        output->is_failed = output->is_failed || cell.value.data == NULL;
    }
    enter_column(output, cell.qualifier);
    add_cell(output, &cell);
}

static bool is_from_spill(const struct pair *pair, const struct entry *entry)
{
    return pair->has_spilled_cell && entry->value.data == pair->spilled_cell.value.data;
}

/* A spilled cell's value is gone with the next one. Its size stays, for the row's limit. */
static bool hold_value(struct combiner *combiner, struct entry *entry)
{
    struct pair *pair = (struct pair *)combiner;
    bool is_needed = wants_values(pair->output) || entry->kind != ENTRY_CELL;
    if (entry->value.size == 0 || !is_from_spill(pair, entry) || !is_needed)
        return true;
    entry->value = arena_copy(pair->output->cells->arena, entry->value);
    return entry->value.data != NULL;
}

static void next_record_entry(struct pair *pair, uint32_t family)
{
    pair->has_record_entry = fragment_reader_next(&pair->record, &pair->record_entry) &&
                             pair->record_entry.family == family;
}

/* The next spilled cell of the family and in scope, with a qualifier that lasts. */
static status next_spilled_cell(struct pair *pair, uint32_t family)
{
    struct entry *cell = &pair->spilled_cell;
    TRY(pair->spilled->next(pair->spilled, cell, &pair->has_spilled_cell));
    pair->has_spilled_cell = pair->has_spilled_cell && cell->family == family &&
                             !is_after_scope(pair->output, cell->qualifier);
    if (!pair->has_spilled_cell)
        return status_ok();
    if (pair->held_qualifier.data == NULL || !bytes_equal(pair->held_qualifier, cell->qualifier)) {
        pair->held_qualifier = arena_copy(pair->output->cells->arena, cell->qualifier);
        if (pair->held_qualifier.data == NULL)
            return status_out_of_memory();
    }
    cell->qualifier = pair->held_qualifier;
    return status_ok();
}

/* Whether the column of this spilled cell has all the cells that are wanted of it. */
static bool column_is_full(const struct pair *pair)
{
    const struct output *output = pair->output;
    int32_t most = most_in_column(output);
    if (output->request->apply_gc && gc_most_versions(output->family->gc) < most)
        most = gc_most_versions(output->family->gc);
    return output->has_column && output->in_column >= most &&
           bytes_equal(output->qualifier, pair->spilled_cell.qualifier);
}

/* The least qualifier after the present one: itself and a zero byte. */
static status seek_next_column(struct pair *pair, uint32_t family)
{
    struct buffer after = {0};
    buffer_append_bytes(&after, pair->held_qualifier);
    buffer_append_byte(&after, 0);
    status s = after.failed ? status_out_of_memory()
                            : pair->spilled->seek(pair->spilled, family, buffer_bytes(&after));
    buffer_free(&after);
    return s;
}

/* Old versions of a column are stepped over while they are few; a seek costs as much as some. */
static status pass_spilled_cell(struct pair *pair, uint32_t family)
{
    enum { MOST_STEPS = 16 };
    if (column_is_full(pair)) {
        if (++pair->skipped >= MOST_STEPS) {
            pair->skipped = 0;
            TRY(seek_next_column(pair, family));
        }
    } else {
        pair->skipped = 0;
        combine_add(&pair->combiner, &pair->spilled_cell);
    }
    return next_spilled_cell(pair, family);
}

static status merge_family(struct pair *pair, uint32_t family)
{
    next_record_entry(pair, family);
    TRY(next_spilled_cell(pair, family));
    while ((pair->has_record_entry || pair->has_spilled_cell) && !pair->output->is_full) {
        bool takes_record = pair->has_record_entry &&
                            (!pair->has_spilled_cell ||
                             entry_compare(&pair->record_entry, &pair->spilled_cell) <= 0);
        if (!takes_record) {
            TRY(pass_spilled_cell(pair, family));
            continue;
        }
        bool is_in_scope = pair->record_entry.kind == ENTRY_FAMILY_TOMBSTONE ||
                           (!is_before_scope(pair->output, pair->record_entry.qualifier) &&
                            !is_after_scope(pair->output, pair->record_entry.qualifier));
        if (is_in_scope)
            combine_add(&pair->combiner, &pair->record_entry);
        next_record_entry(pair, family);
    }
    return status_ok();
}

/* The row's tombstone, which covers every family; the mark is of no use to a reader. */
static uint64_t find_row_tombstone(struct fragment_reader reader)
{
    struct entry entry;
    while (fragment_reader_next(&reader, &entry) && entry.family == 0)
        if (entry.kind == ENTRY_ROW_TOMBSTONE)
            return entry.version;
    return 0;
}

static struct combiner reading_combiner(const struct resolve_request *request)
{
    return (struct combiner){.emit = emit_cell,
                             .hold = hold_value,
                             .schema = request->schema,
                             .is_whole = true,
                             .is_everything = true,
                             .applies_gc = request->apply_gc,
                             .now_us = request->now_us};
}

static status read_family_of_both(struct output *output, const struct fragment_reader *start,
                                  uint64_t row_tombstone, const struct family *family)
{
    const struct resolve_request *request = output->request;
    struct pair pair = {.combiner = reading_combiner(request),
                        .output = output,
                        .record = *start,
                        .spilled = request->spilled};
    bytes from = output->scope == NULL ? bytes_make(NULL, 0) : output->scope->from;
    fragment_reader_seek_family(&pair.record, family->id);
    if (row_tombstone > 0)
        combine_add(&pair.combiner,
                    &(struct entry){.kind = ENTRY_ROW_TOMBSTONE, .version = row_tombstone});
    status s = pair.spilled->seek(pair.spilled, family->id, from);
    if (status_is_ok(s))
        s = merge_family(&pair, family->id);
    combine_finish(&pair.combiner);
    TRY(s);
    if (pair.record.is_bad || pair.combiner.is_bad)
        return damaged();
    return pair.combiner.is_failed ? status_out_of_memory() : status_ok();
}

static status read_both(struct output *output)
{
    const struct schema *schema = output->request->schema;
    struct fragment_reader start;
    if (!fragment_reader_start(&start, output->request->record))
        return damaged();
    uint64_t row_tombstone = find_row_tombstone(start);
    for (size_t i = 0; i < schema->family_count && !output->is_full; i++)
        if (enter_family(output, &schema->families[i]))
            TRY(read_family_of_both(output, &start, row_tombstone, &schema->families[i]));
    return status_ok();
}

status row_resolve(const struct resolve_request *request, struct cell_list *out, bool *too_large)
{
    struct output output = {.request = request, .cells = out};
    *too_large = false;
    TRY(request->spilled == NULL ? read_record(&output) : read_both(&output));
    if (output.is_failed)
        return status_out_of_memory();
    *too_large = output.is_too_large;
    return output.is_too_large
               ? status_make(STATUS_FAILED_PRECONDITION, "The row has more than %llu bytes",
                             (unsigned long long)request->size_limit)
               : status_ok();
}
