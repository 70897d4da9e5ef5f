/* See cell_marks.h. Marks are in a hash table, by row and place, and on a list of their row. */
#include "transfer/cell_marks.h"

#include "client/row_mutations.h"

#include <stdlib.h>

enum {
    BUCKETS = 1 << 14,
    MEMORY_LIMIT = 1 << 30,
    MUTATIONS_OF_A_CELL = 2,
};

struct marked_row;

struct mark {
    struct mark *next;        /* of its bucket */
    struct mark *next_of_row; /* the one that was set before it */
    struct marked_row *row;
    struct cell_mark at;
    uint64_t hash;
    bool is_there; /* the source has the cell: while the row is resolved */
};

struct marked_row {
    struct marked_row *next; /* of its bucket */
    bytes key;
    uint64_t hash;
    struct mark *last;
    size_t count;
    bool has_ranges; /* marks of columns or families */
};

struct cell_marks {
    struct arena *arena;
    struct marked_row *row_buckets[BUCKETS];
    struct mark *buckets[BUCKETS];
    struct marked_row **rows;
    size_t row_count;
    size_t row_capacity;
    size_t count;
};

/* --- making and ending --- */

struct cell_marks *cell_marks_create(void)
{
    struct cell_marks *marks = calloc(1, sizeof *marks);
    if (marks == NULL)
        return NULL;
    marks->arena = arena_create(MEMORY_LIMIT);
    if (marks->arena != NULL)
        return marks;
    free(marks);
    return NULL;
}

void cell_marks_destroy(struct cell_marks *marks)
{
    if (marks == NULL)
        return;
    arena_destroy(marks->arena);
    free(marks->rows);
    free(marks);
}

void cell_marks_clear(struct cell_marks *marks)
{
    arena_reset(marks->arena);
    memset(marks->row_buckets, 0, sizeof marks->row_buckets);
    memset(marks->buckets, 0, sizeof marks->buckets);
    marks->row_count = marks->count = 0;
}

/* --- rows --- */

static status keep_row(struct cell_marks *marks, struct marked_row *row)
{
    if (marks->row_count == marks->row_capacity) {
        size_t capacity = marks->row_capacity == 0 ? 64 : 2 * marks->row_capacity;
        struct marked_row **grown = realloc(marks->rows, capacity * sizeof(struct marked_row *));
        if (grown == NULL)
            return status_out_of_memory();
        marks->rows = grown;
        marks->row_capacity = capacity;
    }
    marks->rows[marks->row_count++] = row;
    return status_ok();
}

/* The row of that key, which is made if there is none. */
static status find_row(struct cell_marks *marks, bytes key, struct marked_row **out)
{
    uint64_t hash = bytes_hash(key);
    struct marked_row **bucket = &marks->row_buckets[hash % BUCKETS];
    for (*out = *bucket; *out != NULL; *out = (*out)->next)
        if ((*out)->hash == hash && bytes_equal((*out)->key, key))
            return status_ok();
    struct marked_row *row = arena_zalloc(marks->arena, sizeof *row);
    if (row == NULL)
        return status_out_of_memory();
    row->hash = hash;
    row->key = arena_copy(marks->arena, key);
    if (row->key.data == NULL)
        return status_out_of_memory();
    TRY(keep_row(marks, row));
    row->next = *bucket;
    *bucket = *out = row;
    return status_ok();
}

/* --- marks --- */

static uint64_t hash_of(const struct marked_row *row, const struct cell_mark *at)
{
    enum { ODD = 1000003 };
    uint64_t hash = row->hash;
    hash = hash * ODD + bytes_hash(bytes_of(at->family));
    hash = hash * ODD + bytes_hash(at->qualifier);
    hash = hash * ODD + (uint64_t)at->timestamp_us;
    return hash * ODD + (uint64_t)at->kind;
}

static bool is_same(const struct cell_mark *a, const struct cell_mark *b)
{
    return a->kind == b->kind && a->timestamp_us == b->timestamp_us &&
           bytes_equal(a->qualifier, b->qualifier) && strcmp(a->family, b->family) == 0;
}

static struct mark *find_mark(struct cell_marks *marks, const struct marked_row *row,
                              const struct cell_mark *at, uint64_t hash)
{
    struct mark *mark = marks->buckets[hash % BUCKETS];
    while (mark != NULL && (mark->hash != hash || mark->row != row || !is_same(&mark->at, at)))
        mark = mark->next;
    return mark;
}

static status copy_place(struct arena *arena, const struct cell_mark *from, struct cell_mark *out)
{
    *out = *from;
    out->family = arena_string(arena, bytes_of(from->family));
    out->qualifier = arena_copy(arena, from->qualifier);
    bool has_memory = out->family != NULL && out->qualifier.data != NULL;
    return has_memory ? status_ok() : status_out_of_memory();
}

status cell_marks_add(struct cell_marks *marks, bytes row_key, const struct cell_mark *at)
{
    struct marked_row *row;
    TRY(find_row(marks, row_key, &row));
    uint64_t hash = hash_of(row, at);
    if (find_mark(marks, row, at, hash) != NULL)
        return status_ok();
    struct mark *mark = arena_zalloc(marks->arena, sizeof *mark);
    if (mark == NULL)
        return status_out_of_memory();
    TRY(copy_place(marks->arena, at, &mark->at));
    mark->hash = hash;
    mark->row = row;
    mark->next = marks->buckets[hash % BUCKETS];
    marks->buckets[hash % BUCKETS] = mark;
    mark->next_of_row = row->last;
    row->last = mark;
    row->count++;
    row->has_ranges |= at->kind != MARK_CELL;
    marks->count++;
    return status_ok();
}

size_t cell_marks_count(const struct cell_marks *marks)
{
    return marks->count;
}

/* --- resolving --- */

size_t cell_marks_rows(const struct cell_marks *marks)
{
    return marks->row_count;
}

static int by_key(const void *a, const void *b)
{
    const struct marked_row *const *first = a, *const *second = b;
    return bytes_compare((*first)->key, (*second)->key);
}

void cell_marks_sort(struct cell_marks *marks)
{
    if (marks->row_count > 0)
        qsort(marks->rows, marks->row_count, sizeof(struct marked_row *), by_key);
}

bytes cell_marks_row_key(const struct cell_marks *marks, size_t row)
{
    return marks->rows[row]->key;
}

static bool is_in_range(struct cell_marks *marks, const struct marked_row *row,
                        const struct move_cell *cell)
{
    if (!row->has_ranges)
        return false;
    const struct cell_mark family = {.kind = MARK_FAMILY, .family = cell->family};
    const struct cell_mark column = {
        .kind = MARK_COLUMN, .family = cell->family, .qualifier = cell->qualifier};
    return find_mark(marks, row, &family, hash_of(row, &family)) != NULL ||
           find_mark(marks, row, &column, hash_of(row, &column)) != NULL;
}

static bool is_marked(struct cell_marks *marks, const struct marked_row *row,
                      const struct move_cell *cell)
{
    const struct cell_mark at = {.kind = MARK_CELL,
                                 .family = cell->family,
                                 .qualifier = cell->qualifier,
                                 .timestamp_us = cell->timestamp_us};
    struct mark *mark = find_mark(marks, row, &at, hash_of(row, &at));
    if (mark != NULL)
        mark->is_there = true;
    return mark != NULL || is_in_range(marks, row, cell);
}

/* Marked cells that the source does not have any more. */
static status remove_rest(const struct marked_row *row, struct arena *arena, Bt__Mutation **out,
                          size_t *count)
{
    for (const struct mark *mark = row->last; mark != NULL; mark = mark->next_of_row) {
        const struct move_cell cell = {.family = mark->at.family,
                                       .qualifier = mark->at.qualifier,
                                       .timestamp_us = mark->at.timestamp_us};
        if (mark->at.kind == MARK_CELL && !mark->is_there)
            TRY(row_mutations_remove_cell(&cell, arena, &out[(*count)++]));
    }
    return status_ok();
}

status cell_marks_resolve(struct cell_marks *marks, size_t index, const struct move_cell *cells,
                          size_t cell_count, struct arena *arena, Bt__Mutation ***out,
                          size_t *count)
{
    struct marked_row *row = marks->rows[index];
    size_t most = MUTATIONS_OF_A_CELL * cell_count + row->count;
    *count = 0;
    *out = arena_alloc(arena, most * sizeof(Bt__Mutation *));
    if (*out == NULL)
        return status_out_of_memory();
    for (struct mark *mark = row->last; mark != NULL; mark = mark->next_of_row)
        mark->is_there = false;
    for (size_t i = 0; i < cell_count; i++) {
        if (!is_marked(marks, row, &cells[i]))
            continue;
        TRY(row_mutations_remove_cell(&cells[i], arena, &(*out)[(*count)++]));
        TRY(row_mutations_merge_cell(&cells[i], arena, &(*out)[(*count)++]));
    }
    return remove_rest(row, arena, *out, count);
}
