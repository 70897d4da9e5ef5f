/* Rules for the use of columns: too many of them, values too small for cells of their own, values
 * that say nothing, names that are values, and lifetimes that do not belong together. */
#include "advisor/columns.h"
#include "advisor/key_start.h"
#include "advisor/report.h"

#include <ctype.h>

static bool is_of(const struct column_summary *column, size_t family)
{
    return column->family == family;
}

static const char *family_name(const struct advisor *advisor, size_t family)
{
    return advisor->seen->families[family].name;
}

/* A column's name, which may have any bytes, as it is shown. */
static status shown_name(struct advisor *advisor, bytes name, bytes *out)
{
    struct buffer text = {0};
    advice_write_key(name, &text);
    return keep_text(advisor, &text, out);
}

/* In at least so many of a hundred rows. */
static bool is_in(const struct column_summary *column, const struct column_summaries *columns,
                  size_t percent)
{
    return column->rows * 100 >= columns->rows * percent;
}

/* --- too many columns --- */

static size_t columns_of(const struct advice_row *row)
{
    size_t count = 0;
    for (size_t i = 0; i < row->cell_count; i++) {
        const struct advice_cell *cell = &row->cells[i];
        count += i == 0 || cell[-1].family != cell->family ||
                 !bytes_equal(cell[-1].qualifier, cell->qualifier);
    }
    return count;
}

static status advise_on_many(struct advisor *advisor, bool *is_found)
{
    const struct advice_observations *seen = advisor->seen;
    const struct advice_row *widest = NULL;
    struct advice_finding *finding;
    size_t wide = 0, most = 0;
    for (size_t i = 0; i < seen->row_count; i++) {
        size_t count = columns_of(&seen->rows[i]);
        wide += count >= ROW_COLUMNS;
        if (count > most) {
            most = count;
            widest = &seen->rows[i];
        }
    }
    *is_found = wide >= COLUMNS_LEAST && 2 * wide >= seen->row_count;
    if (!*is_found)
        return status_ok();
    TRY(advise(advisor, RULE_row_columns, &finding,
               "%zu of %zu sampled rows have %d columns or more; one has %s%zu.", wide,
               seen->row_count, ROW_COLUMNS, widest->is_cut ? "more than " : "", most));
    finding_add_key(finding, widest->key);
    return status_ok();
}

/* --- values too small for a cell --- */

struct tiny {
    size_t columns;
    size_t cells;
    uint64_t size;
    uint64_t names; /* bytes of them, with each cell */
};

static struct tiny count_tiny(const struct column_summaries *columns, size_t family)
{
    struct tiny tiny = {0};
    for (size_t i = 0; i < columns->count; i++) {
        const struct column_summary *column = &columns->all[i];
        bool is_tiny = is_of(column, family) && is_in(column, columns, TINY_ROWS_PERCENT) &&
                       column->size <= column->cells * TINY_BYTES;
        if (!is_tiny)
            continue;
        tiny.columns++;
        tiny.cells += column->cells;
        tiny.size += column->size;
        tiny.names += column->cells * column->qualifier.size;
    }
    return tiny;
}

static status advise_on_tiny(struct advisor *advisor, const struct column_summaries *columns)
{
    struct advice_finding *finding;
    for (size_t family = 0; family < advisor->seen->family_count; family++) {
        struct tiny tiny = count_tiny(columns, family);
        bool is_found = columns->rows >= COLUMNS_LEAST && tiny.columns >= TINY_COLUMNS &&
                        !advisor->seen->families[family].is_aggregate;
        if (!is_found)
            continue;
        TRY(advise(advisor, RULE_tiny_cells, &finding,
                   "In the family %s, %zu columns are in half of the sampled rows or more, and "
                   "their values have %.1f bytes on average, beside %.1f of their names.",
                   family_name(advisor, family), tiny.columns,
                   (double)tiny.size / (double)tiny.cells,
                   (double)tiny.names / (double)tiny.cells));
        finding_add_key(finding, row_to_show(advisor->seen, 0)->key);
        return status_ok();
    }
    return status_ok();
}

/* --- values that say nothing --- */

/* Whether the column is in nearly all rows, with the same value in most of them. */
static bool has_default(const struct column_summary *column, const struct column_summaries *columns)
{
    return column->usual_hash != 0 && is_in(column, columns, DEFAULT_ROWS_PERCENT) &&
           column->usual * 100 >= column->rows * DEFAULT_PERCENT;
}

/* Columns of the family that have the same default as this one. */
static size_t count_alike(const struct column_summaries *columns,
                          const struct column_summary *column, size_t *cells, size_t *usual)
{
    size_t count = 0;
    *cells = *usual = 0;
    for (size_t i = 0; i < columns->count; i++) {
        const struct column_summary *other = &columns->all[i];
        if (!is_of(other, column->family) || other->usual_hash != column->usual_hash ||
            !has_default(other, columns))
            continue;
        count++;
        *cells += other->rows;
        *usual += other->usual;
    }
    return count;
}

static status advise_on_defaults(struct advisor *advisor, const struct column_summaries *columns)
{
    struct advice_finding *finding;
    for (size_t i = 0; i < columns->count && columns->rows >= COLUMNS_LEAST; i++) {
        const struct column_summary *column = &columns->all[i];
        size_t cells, usual;
        if (!has_default(column, columns) || advisor->seen->families[column->family].is_aggregate)
            continue;
        size_t count = count_alike(columns, column, &cells, &usual);
        if (count < DEFAULT_COLUMNS)
            continue;
        TRY(advise(advisor, RULE_default_values, &finding,
                   "In the family %s, %zu columns are in nearly all of %zu sampled rows, and %zu "
                   "of their %zu cells %s.",
                   family_name(advisor, column->family), count, columns->rows, usual, cells,
                   column->usual_hash == bytes_hash(bytes_make(NULL, 0)) ? "are empty"
                                                                         : "have the same value"));
        finding_add_key(finding, row_to_show(advisor->seen, 0)->key);
        return status_ok();
    }
    return status_ok();
}

/* --- names that are values --- */

/* The size of the name up to its number, and the number; 0: it is none of a word with a number. */
static size_t numbered(bytes name, uint64_t *number)
{
    enum { DIGITS_MOST = 9 };
    size_t end = name.size, start;
    if (end > 0 && is_one_of(name.data[end - 1], "])"))
        end--;
    for (start = end; start > 0 && isdigit(name.data[start - 1]); start--)
        ;
    if (start == end || end - start > DIGITS_MOST || start == 0 || !isalpha(name.data[0]))
        return 0;
    *number = 0;
    for (size_t i = start; i < end; i++)
        *number = 10 * *number + (name.data[i] - '0');
    return start;
}

struct list {
    bytes word;
    size_t columns; /* of the family that begin with the word and end with a number */
    size_t first;   /* rows that have the one that most have */
    uint64_t most;
};

/* Finds a list: the family's columns that are numbered behind the word of the first that is. */
static struct list find_list(const struct column_summaries *columns, size_t family, size_t *all)
{
    struct list list = {0};
    *all = 0;
    for (size_t i = 0; i < columns->count; i++) {
        const struct column_summary *column = &columns->all[i];
        uint64_t number;
        if (!is_of(column, family))
            continue;
        ++*all;
        size_t size = numbered(column->qualifier, &number);
        bytes word = bytes_make(column->qualifier.data, size);
        list.word = list.columns == 0 && size > 0 ? word : list.word;
        if (size == 0 || !bytes_equal(word, list.word))
            continue;
        list.columns++;
        list.first = column->rows > list.first ? column->rows : list.first;
        list.most = number > list.most ? number : list.most;
    }
    return list;
}

static status tell_list(struct advisor *advisor, size_t family, const struct list *list)
{
    struct advice_finding *finding;
    bytes word;
    TRY(shown_name(advisor, list->word, &word));
    TRY(advise(advisor, RULE_qualifier_data, &finding,
               "In the family %s, %zu columns are named \"%.*s\" with a number up to %llu.",
               family_name(advisor, family), list->columns, (int)word.size, (const char *)word.data,
               (unsigned long long)list->most));
    finding_add_key(finding, row_to_show(advisor->seen, 0)->key);
    return status_ok();
}

static status advise_on_lists(struct advisor *advisor, const struct column_summaries *columns,
                              bool *is_found)
{
    *is_found = false;
    for (size_t family = 0; family < advisor->seen->family_count && !*is_found; family++) {
        size_t all;
        struct list list = find_list(columns, family, &all);
        *is_found = columns->rows >= COLUMNS_LEAST && list.columns >= LIST_COLUMNS &&
                    list.columns * 100 >= all * LIST_PERCENT &&
                    list.first * 100 >= columns->rows * LIST_PERCENT &&
                    list.most <= 2 * (uint64_t)list.columns;
        if (*is_found)
            TRY(tell_list(advisor, family, &list));
    }
    return status_ok();
}

/* Of a name like price=12.50, the size of what stands before the mark; 0: there is none. */
static size_t attribute_size(bytes name)
{
    size_t size = 0;
    while (size < name.size && (isalnum(name.data[size]) || is_one_of(name.data[size], "_-.")))
        size++;
    return size > 0 && size + 1 < name.size && is_one_of(name.data[size], "=:") ? size : 0;
}

/* Columns from that one on which begin with the same attribute. */
struct attribute {
    size_t columns;
    size_t rows; /* of all of them: each once, if each has one value */
    uint64_t size;
};

static struct attribute attribute_at(const struct column_summaries *columns, size_t first)
{
    struct attribute found = {0};
    bytes name = columns->all[first].qualifier;
    bytes start = bytes_make(name.data, attribute_size(name) + 1);
    for (size_t i = first; i < columns->count; i++) {
        const struct column_summary *column = &columns->all[i];
        if (!is_of(column, columns->all[first].family) ||
            !bytes_start_with(column->qualifier, start))
            break;
        found.columns++;
        found.rows += column->rows;
        found.size += column->size;
    }
    return found;
}

/* An attribute that nearly each row has once, with another value, which stands in the name. Of what
 * a row has many of, such as followers, the name is the right place. */
static status advise_on_attributes(struct advisor *advisor, const struct column_summaries *columns)
{
    struct advice_finding *finding;
    for (size_t i = 0; i < columns->count && columns->rows >= COLUMNS_LEAST;) {
        bytes name = columns->all[i].qualifier;
        size_t size = attribute_size(name);
        struct attribute found = {.columns = 1};
        if (size > 0)
            found = attribute_at(columns, i);
        i += found.columns;
        bool is_one = size > 0 && found.size == 0 && found.rows <= columns->rows &&
                      found.rows * 100 >= columns->rows * LIST_PERCENT &&
                      found.columns * 2 >= found.rows;
        if (!is_one)
            continue;
        TRY(advise(advisor, RULE_qualifier_data, &finding,
                   "In the family %s, %zu rows have %zu different columns whose names begin with "
                   "\"%.*s\", one each, and no value in them.",
                   family_name(advisor, columns->all[i - 1].family), found.rows, found.columns,
                   (int)size + 1, name.data));
        finding_add_key(finding, row_to_show(advisor->seen, 0)->key);
        return status_ok();
    }
    return status_ok();
}

/* --- lifetimes --- */

static status tell_lifetimes(struct advisor *advisor, const struct column_summary *one,
                             const struct column_summary *other, const char *what)
{
    struct advice_finding *finding;
    bytes name, others;
    TRY(shown_name(advisor, one->qualifier, &name));
    TRY(shown_name(advisor, other->qualifier, &others));
    TRY(advise(advisor, RULE_family_retention, &finding,
               "In the family %s, the column %.*s has %.1f versions on average and %.*s has %.1f; "
               "%s.",
               family_name(advisor, one->family), (int)name.size, (const char *)name.data,
               (double)one->cells / (double)one->rows, (int)others.size, (const char *)others.data,
               (double)other->cells / (double)other->rows, what));
    finding_add_key(finding, row_to_show(advisor->seen, 0)->key);
    return status_ok();
}

/* Many versions of one, and never a second of the other. */
static bool differ_in_versions(const struct column_summary *one, const struct column_summary *other)
{
    return one->cells >= one->rows * RETAINED_VERSIONS && other->most == 1;
}

/* Several versions of one, not as many as the family's rule keeps, and all of them far younger than
 * any cell of the other: the application deletes the old ones itself. */
static bool differ_in_age(const struct advisor *advisor, const struct column_summary *one,
                          const struct column_summary *other)
{
    int64_t now_us = advisor->seen->now_us,
            most = advisor->seen->families[one->family].most_versions;
    if (one->oldest_us == 0 || other->oldest_us == 0 || one->cells < 2 * one->rows)
        return false;
    int64_t oldest = now_us - one->oldest_us, youngest = now_us - other->youngest_us;
    return youngest >= RETAINED_AGE_US && oldest * RETAINED_TIMES < youngest &&
           (most == 0 || (int64_t)one->most < most);
}

static status hold_against(struct advisor *advisor, const struct column_summary *one,
                           const struct column_summary *other, bool *is_found)
{
    *is_found = true;
    if (differ_in_versions(one, other))
        return tell_lifetimes(advisor, one, other, "both are kept by one rule");
    if (differ_in_age(advisor, one, other))
        return tell_lifetimes(advisor, one, other,
                              "none of the first is as old as a tenth of the second's youngest");
    *is_found = false;
    return status_ok();
}

/* The columns of a family that enough rows have: of few the first hundred. */
static status advise_on_lifetimes(struct advisor *advisor, const struct column_summaries *columns)
{
    enum { HELD_MOST = 100 };
    for (size_t i = 0; i < columns->count; i++) {
        const struct column_summary *one = &columns->all[i];
        size_t held = 0;
        if (one->rows < COLUMNS_LEAST || advisor->seen->families[one->family].is_aggregate ||
            one->cells < 2 * one->rows)
            continue;
        for (size_t j = 0; j < columns->count && held < HELD_MOST; j++) {
            const struct column_summary *other = &columns->all[j];
            bool is_found = false;
            if (!is_of(other, one->family) || other->rows < COLUMNS_LEAST)
                continue;
            held++;
            TRY(hold_against(advisor, one, other, &is_found));
            if (is_found)
                return status_ok();
        }
    }
    return status_ok();
}

status advise_on_columns(struct advisor *advisor)
{
    struct column_summaries columns;
    bool is_found;
    TRY(columns_summarize(advisor, &columns));
    TRY(advise_on_many(advisor, &is_found));
    if (!is_found)
        TRY(advise_on_tiny(advisor, &columns));
    TRY(advise_on_defaults(advisor, &columns));
    TRY(advise_on_lists(advisor, &columns, &is_found));
    if (!is_found)
        TRY(advise_on_attributes(advisor, &columns));
    return advise_on_lifetimes(advisor, &columns);
}
