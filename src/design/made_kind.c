/* See made_kind.h: the entities. What is asked for is in made_calls.c. */
#include "design/made_kind.h"

#include "design/made_kind_private.h"

#include <stdio.h>
#include <stdlib.h>

enum { ENTITIES_A_PLACE = 10 };

/* --- keys --- */

/* As a server gives them. */
static const struct design_part given_id = {
    .kind = PART_NUMBER, .of = PART_OF_NONE, .from = (uint64_t)1 << 52, .to = (uint64_t)3 << 51};

static const struct design_part *key_of(const struct design_kind *kind)
{
    return kind->has_key ? &kind->key : &given_id;
}

/* A number that is padded is a name. */
static bool is_id(const struct design_part *part)
{
    return part->kind == PART_NUMBER && part->digits == 0;
}

static void append_element(const char *kind, bool is_number, bytes which, struct buffer *out)
{
    buffer_append_format(out, is_number ? "%s " : "%s \"", kind);
    buffer_append_bytes(out, which);
    if (!is_number)
        buffer_append_byte(out, '"');
}

static status keep(const struct made_kind *made, struct buffer *text, bytes *out)
{
    *out = text->failed ? bytes_make(NULL, 0) : arena_copy(made->arena, buffer_bytes(text));
    buffer_free(text);
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

static void append_given(const struct made_kind *made, const char *kind, uint64_t number,
                         struct buffer *out)
{
    buffer_append_format(out, "%s ", kind);
    made_value(&given_id, made->seed, number, made->now_us, out);
}

status made_kind_words(const struct made_kind *made, uint64_t number, bytes key, bytes *out)
{
    const struct design_kind *kind = made->kind;
    struct buffer text = {0};
    if (kind->parent != NULL) {
        append_given(made, kind->parent, number % kind->parents, &text);
        buffer_append_bytes(&text, bytes_of(" / "));
    }
    append_element(kind->name, is_id(key_of(kind)), key, &text);
    return keep(made, &text, out);
}

/* Numbers in their order, texts in theirs: so keys of numbers are no texts. */
static int by_number(const void *a, const void *b)
{
    const struct made_row *left = a, *right = b;
    if (left->key.size != right->key.size)
        return left->key.size < right->key.size ? -1 : 1;
    return bytes_compare(left->key, right->key);
}

/* The kind's keys as those of a table. */
static status make_rows(const struct made_kind *made, struct design_table *table,
                        struct made_table *out)
{
    static struct advice_family family = {.name = "f", .most_age_us = INT64_MAX};
    struct design_part *part = arena_alloc(made->arena, sizeof *part);
    if (part == NULL)
        return status_out_of_memory();
    *part = *key_of(made->kind);
    *table = (struct design_table){.name = made->kind->name,
                                   .families = &family,
                                   .family_count = 1,
                                   .key = {.delimiter = "#", .parts = part, .count = 1},
                                   .rows = made->kind->entities,
                                   .history_us = made->kind->history_us};
    TRY(made_table_create(table, made->seed, made->now_us, made->arena, out));
    if (is_id(part))
        qsort(out->rows, out->count, sizeof *out->rows, by_number);
    return status_ok();
}

/* Some of them, at places that are spread evenly. */
static size_t choose_rows(struct made_table *rows)
{
    size_t places = MADE_ENTITIES / ENTITIES_A_PLACE, kept = 0;
    if (rows->count <= MADE_ENTITIES)
        return rows->count;
    for (size_t place = 0; place < places; place++)
        for (size_t i = 0; i < ENTITIES_A_PLACE; i++)
            rows->rows[kept++] = rows->rows[rows->count * place / places + i];
    return kept;
}

static status add_root(struct made_kind *made, const struct made_table *rows, size_t at,
                       struct advice_row *row, bytes *words, bytes *better)
{
    const struct made_row *from = &rows->rows[at];
    struct buffer text = {0};
    struct advice_cell *cell = arena_zalloc(made->arena, sizeof *cell);
    if (cell == NULL)
        return status_out_of_memory();
    cell->timestamp_us = made_time(rows, from->number);
    *row = (struct advice_row){.key = from->key,
                               .place = (uint32_t)(at / ENTITIES_A_PLACE),
                               .cells = cell,
                               .cell_count = 1,
                               .size = from->key.size};
    TRY(made_kind_words(made, from->number, from->key, words));
    made_value(&given_id, made->seed, from->number, made->now_us, &text);
    status s = text.failed ? status_out_of_memory()
                           : made_kind_words(made, from->number, buffer_bytes(&text), better);
    buffer_free(&text);
    return s;
}

static status describe_keys(struct made_kind *made, const struct made_table *rows, size_t count)
{
    struct advice_roots *roots = arena_zalloc(made->arena, sizeof *roots);
    struct advice_row *keys = arena_alloc(made->arena, count * sizeof *keys);
    bytes *words = arena_alloc(made->arena, count * sizeof *words);
    bytes *better = arena_alloc(made->arena, count * sizeof *better);
    if (roots == NULL || keys == NULL || words == NULL || better == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        TRY(add_root(made, rows, i, &keys[i], &words[i], &better[i]));
    *roots = (struct advice_roots){.kind = made->kind->name,
                                   .keys = keys,
                                   .count = count,
                                   .words = words,
                                   .better = is_id(key_of(made->kind)) ? better : NULL};
    made->database.roots = roots;
    made->database.roots_count = 1;
    return status_ok();
}

/* --- values --- */

/* In the order of an index; of a number the bytes of what is never negative. */
static void append_ordered(uint64_t number, struct buffer *out)
{
    for (int shift = 56; shift >= 0; shift -= 8)
        buffer_append_byte(out, (uint8_t)(number >> shift));
}

static uint64_t which_value(const struct made_kind *made, size_t property, uint64_t number)
{
    const struct design_part *part = &made->kind->properties[property].value;
    uint64_t random = made_random(made->seed, number, property, 9);
    if (part->kind == PART_NUMBER && !part->is_rising && part->count == 0)
        return random;
    return part->count > 0 ? random % part->count : number;
}

/* Appends the property's value; of a list the first. */
static void append_value(const struct made_kind *made, size_t property, uint64_t number,
                         int64_t time_us, struct buffer *out)
{
    const struct design_part *part = &made->kind->properties[property].value;
    made_value(part, made_random(made->seed, property, 0, 10), which_value(made, property, number),
               time_us, out);
}

/* Of digits with a NUL behind them; what is no number of Datastore's is the greatest. */
static int64_t number_in(const struct buffer *text)
{
    unsigned long long number = strtoull((const char *)text->data, NULL, 10);
    return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

static status add_point(const struct made_kind *made, const struct made_table *rows,
                        size_t property, const struct made_row *row, struct advice_point *out)
{
    const struct design_part *part = &made->kind->properties[property].value;
    struct buffer text = {0}, ordered = {0};
    *out = (struct advice_point){.written_us = made_time(rows, row->number),
                                 .is_time = part->kind == PART_TIME,
                                 .is_number = part->kind == PART_NUMBER && part->digits == 0};
    append_value(made, property, row->number, out->written_us, &text);
    buffer_append_byte(&text, 0);
    if (out->is_time && part->is_reversed)
        append_ordered(UINT64_MAX - (uint64_t)out->written_us, &ordered);
    else if (out->is_time)
        append_ordered((uint64_t)out->written_us, &ordered);
    else if (out->is_number && !text.failed)
        append_ordered((uint64_t)number_in(&text), &ordered);
    else if (!text.failed)
        buffer_append_bytes(&ordered, bytes_make(text.data, text.size - 1));
    out->number = out->is_number && !text.failed ? number_in(&text) : 0;
    ordered.failed |= text.failed;
    buffer_free(&text);
    return keep(made, &ordered, &out->value);
}

static status last_words(const struct made_kind *made, size_t property,
                         const struct made_table *rows, uint64_t number, bytes *out)
{
    struct buffer text = {0};
    buffer_append_format(&text, "%s.%s = ", made->kind->name,
                         made->kind->properties[property].name);
    append_value(made, property, number, made_time(rows, number), &text);
    return keep(made, &text, out);
}

static status describe_values(const struct made_kind *made, const struct made_table *rows,
                              size_t count, size_t property, struct advice_series *out)
{
    enum { POINTS_MOST = 300 };
    size_t taken = count < POINTS_MOST ? count : POINTS_MOST, last = 0;
    struct advice_point *points = arena_alloc(made->arena, (taken + 1) * sizeof *points);
    if (points == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < taken; i++) {
        TRY(add_point(made, rows, property, &rows->rows[count * i / taken], &points[i]));
        last = bytes_compare(points[i].value, points[last].value) > 0 ? i : last;
    }
    *out = (struct advice_series){.kind = made->kind->name,
                                  .property = made->kind->properties[property].name,
                                  .points = points,
                                  .count = taken};
    return last_words(made, property, rows, rows->rows[count * last / (taken + !taken)].number,
                      &out->last);
}

static status describe_series(struct made_kind *made, const struct made_table *rows, size_t count)
{
    struct advice_series *series =
        arena_alloc(made->arena, made->kind->property_count * sizeof *series);
    if (series == NULL)
        return status_out_of_memory();
    made->database.series = series;
    for (size_t i = 0; i < made->kind->property_count; i++)
        if (made->kind->properties[i].is_indexed)
            TRY(describe_values(made, rows, count, i, &series[made->database.series_count++]));
    return status_ok();
}

/* --- entities by themselves --- */

/* Rows of an entity in the index: for each combination of values. */
double made_kind_index_rows(const struct design_kind *kind, const struct design_index *index)
{
    double rows = 1;
    for (size_t i = 0; i < kind->property_count; i++)
        rows *= index->properties[i] ? (double)kind->properties[i].count : 1;
    return rows;
}

/* As an entity has in all of them: one in that of its kind, and for each indexed value. */
static void count_index_rows(const struct design_kind *kind, struct advice_entity *out)
{
    const double most = 1e9; /* far beyond what an entity may have */
    double rows = 1, widest = 0;
    for (size_t i = 0; i < kind->property_count; i++)
        rows += kind->properties[i].is_indexed ? (double)kind->properties[i].count : 0;
    for (size_t i = 0; i < kind->index_count; i++) {
        double of_index = made_kind_index_rows(kind, &kind->indexes[i]);
        rows += of_index;
        if (of_index <= widest)
            continue;
        widest = of_index;
        out->widest = kind->indexes[i].words;
    }
    out->index_rows = (size_t)(rows < most ? rows : most);
    out->widest_rows = (size_t)(widest < most ? widest : most);
}

static status odd_words(const struct made_kind *made, const char *what, bytes name,
                        const char **out)
{
    struct buffer text = {0};
    bytes kept;
    buffer_append_format(&text, "%s ", what);
    buffer_append_bytes(&text, name);
    buffer_append_byte(&text, 0);
    TRY(keep(made, &text, &kept));
    *out = (const char *)kept.data;
    return status_ok();
}

/* What tools stumble over in its names, the first of it. */
static status find_odd(const struct made_kind *made, bytes key, const char **out)
{
    const struct design_kind *kind = made->kind;
    if (strchr(kind->name, '/') != NULL)
        return odd_words(made, "the kind", bytes_of(kind->name), out);
    if (kind->parent != NULL && strchr(kind->parent, '/') != NULL)
        return odd_words(made, "the kind", bytes_of(kind->parent), out);
    if (key.size > 0 && memchr(key.data, '/', key.size) != NULL)
        return odd_words(made, "the name", key, out);
    for (size_t i = 0; i < kind->property_count; i++)
        if (strchr(kind->properties[i].name, '.') != NULL)
            return odd_words(made, "the property", bytes_of(kind->properties[i].name), out);
    return status_ok();
}

static status size_of(const struct made_kind *made, uint64_t number, int64_t time_us, uint64_t *out)
{
    struct buffer text = {0};
    for (size_t i = 0; i < made->kind->property_count; i++) {
        const struct design_property *property = &made->kind->properties[i];
        uint64_t size = property->size;
        buffer_clear(&text);
        if (size == 0)
            append_value(made, i, number, time_us, &text);
        size += text.size;
        *out += property->count * size + strlen(property->name);
    }
    status s = text.failed ? status_out_of_memory() : status_ok();
    buffer_free(&text);
    return s;
}

static status describe_entities(struct made_kind *made, const struct made_table *rows, size_t count)
{
    struct advice_entity all = {.size = 0};
    struct advice_entity *entities = arena_alloc(made->arena, count * sizeof *entities);
    if (entities == NULL)
        return status_out_of_memory();
    count_index_rows(made->kind, &all);
    for (size_t i = 0; i < count; i++) {
        const struct made_row *row = &rows->rows[i];
        entities[i] = all;
        entities[i].words = made->database.roots->words[i];
        entities[i].size = row->key.size;
        TRY(size_of(made, row->number, made_time(rows, row->number), &entities[i].size));
        TRY(find_odd(made, row->key, &entities[i].odd));
        for (size_t j = 0; j < made->kind->property_count; j++)
            personal_count(&made->database.properties, bytes_of(made->kind->properties[j].name));
    }
    made->database.entities = entities;
    made->database.entity_count = count;
    return status_ok();
}

/* --- all --- */

status made_kind_look(struct made_kind *made)
{
    struct advice_composites *composites = arena_alloc(made->arena, sizeof *composites);
    struct design_table table;
    struct made_table rows;
    if (composites == NULL)
        return status_out_of_memory();
    *composites = (struct advice_composites){made->kind->name, made->kind->index_count};
    made->database = (struct advice_database){.composites = composites, .composites_count = 1};
    TRY(make_rows(made, &table, &rows));
    size_t count = choose_rows(&rows);
    TRY(describe_keys(made, &rows, count));
    TRY(describe_series(made, &rows, count));
    TRY(describe_entities(made, &rows, count));
    made->seen = (struct advice_observations){
        .table_id = made->kind->name, .now_us = made->now_us, .shows_values = true};
    made->sample =
        (struct advice_sample){.name = made->kind->name,
                               .places = (count + ENTITIES_A_PLACE - 1) / ENTITIES_A_PLACE,
                               .is_database = true,
                               .is_made = true};
    return made_calls(made);
}
