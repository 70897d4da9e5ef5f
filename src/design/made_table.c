/* See made_table.h: which rows there are, and their keys. */
#include "design/made_table.h"

#include <stdlib.h>

/* --- numbers of rows --- */

/* The number of the row made at this place: in runs, from all over the table. */
static uint64_t number_at(const struct made_table *made, size_t at)
{
    uint64_t all = made->table->rows;
    if (all <= MADE_ROWS_MOST)
        return at;
    uint64_t runs = MADE_ROWS_MOST / MADE_RUN, run = at / MADE_RUN;
    return all / runs * run + at % MADE_RUN;
}

double made_scale(const struct made_table *made)
{
    return (double)made->table->rows / (double)made->count;
}

int64_t made_time(const struct made_table *made, uint64_t number)
{
    enum { STEPS = 1000 };
    double slot_us = (double)made->history_us / (double)made->table->rows;
    double step = (double)(made_random(made->seed, number, 0, 5) % STEPS) / STEPS;
    double ago_us = slot_us * ((double)(made->table->rows - number) - step);
    return made->now_us - (int64_t)ago_us;
}

/* --- keys --- */

/* Whose values are the rows' that were made, too: all of a few, fewer of many. */
static uint64_t count_made(const struct made_table *made, uint64_t count)
{
    uint64_t scaled = (uint64_t)((double)count / made_scale(made));
    uint64_t least = count < MADE_OWNERS_LEAST ? count : MADE_OWNERS_LEAST;
    return scaled > least ? scaled : least;
}

static void count_values(struct made_table *made)
{
    for (size_t i = 0; i < made->table->key.count; i++) {
        const struct design_part *part = &made->table->key.parts[i];
        bool is_any = part->kind == PART_NUMBER && !part->is_rising && part->count == 0;
        uint64_t count = is_any ? part->to - part->from + 1 : part->count;
        bool is_list = part->words != NULL;
        made->counts[i] = is_list || count == 0 ? count : count_made(made, count);
    }
}

/* Which of the part's values the row has. */
static uint64_t value_of(const struct made_table *made, size_t part, uint64_t number)
{
    int of = made->table->key.parts[part].of;
    if (of != PART_OF_NONE) {
        uint64_t value = made_random(made->seed, value_of(made, (size_t)of, number), part, 6);
        return made->counts[part] > 0 ? value % made->counts[part] : value;
    }
    if (made->counts[part] == 0)
        return number;
    return made_random(made->seed, number, part, 7) % made->counts[part];
}

void made_key(const struct made_table *made, uint64_t number, int64_t time_us, size_t parts,
              struct buffer *out)
{
    const struct design_key *key = &made->table->key;
    for (size_t i = 0; i < parts; i++) {
        const struct design_part *part = &key->parts[i];
        made_value(part, made_random(made->seed, i, 0, 8), value_of(made, i, number), time_us, out);
        if (i + 1 < key->count)
            buffer_append_bytes(out, bytes_of(key->delimiter));
    }
}

static int compare_rows(const void *a, const void *b)
{
    const struct made_row *left = a, *right = b;
    int order = bytes_compare(left->key, right->key);
    if (order != 0)
        return order;
    return left->number < right->number ? -1 : left->number > right->number;
}

/* In the order of keys, each once: of rows with the same key the first is there. */
static void sort_rows(struct made_table *made)
{
    size_t kept = 0;
    qsort(made->rows, made->written, sizeof *made->rows, compare_rows);
    for (size_t i = 0; i < made->written; i++)
        if (kept == 0 || !bytes_equal(made->rows[kept - 1].key, made->rows[i].key))
            made->rows[kept++] = made->rows[i];
    made->count = kept;
}

static status make_rows(struct made_table *made)
{
    struct buffer key = {0};
    status s = status_ok();
    for (size_t i = 0; i < made->written && status_is_ok(s); i++) {
        struct made_row *row = &made->rows[i];
        row->number = number_at(made, i);
        buffer_clear(&key);
        made_key(made, row->number, made_time(made, row->number), made->table->key.count, &key);
        row->key = key.failed ? (bytes){0} : arena_copy(made->arena, buffer_bytes(&key));
        if (row->key.data == NULL)
            s = status_out_of_memory();
    }
    buffer_free(&key);
    return s;
}

/* Rows all of whose families forget are gone by then. */
static int64_t history_of(const struct design_table *table)
{
    int64_t oldest_us = 0;
    for (size_t i = 0; i < table->family_count; i++)
        if (table->families[i].most_age_us > oldest_us)
            oldest_us = table->families[i].most_age_us;
    return oldest_us < table->history_us ? oldest_us : table->history_us;
}

status made_table_create(const struct design_table *table, uint64_t seed, int64_t now_us,
                         struct arena *arena, struct made_table *out)
{
    uint64_t rows = table->rows < MADE_ROWS_MOST ? table->rows : MADE_ROWS_MOST;
    *out = (struct made_table){.table = table,
                               .arena = arena,
                               .seed = seed,
                               .now_us = now_us,
                               .history_us = history_of(table),
                               .written = (size_t)rows,
                               .count = (size_t)rows};
    out->rows = arena_alloc(arena, out->written * sizeof *out->rows);
    if (out->rows == NULL)
        return status_out_of_memory();
    count_values(out);
    TRY(make_rows(out));
    sort_rows(out);
    return status_ok();
}

size_t made_find(const struct made_table *made, bytes key)
{
    size_t low = 0, high = made->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bytes_compare(made->rows[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
