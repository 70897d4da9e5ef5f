/* How large keys, rows and values are; how many families there are, and how long names are. */
#include "advisor/advice_private.h"

#include <stdlib.h>

static double mebibytes(uint64_t size)
{
    return (double)size / (1 << 20);
}

/* --- sizes --- */

static status advise_on_key_size(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    const struct advice_row *longest = NULL;
    size_t sum = 0;
    for (size_t i = 0; i < seen->row_count; i++) {
        sum += seen->rows[i].key.size;
        if (longest == NULL || seen->rows[i].key.size > longest->key.size)
            longest = &seen->rows[i];
    }
    size_t average = seen->row_count == 0 ? 0 : sum / seen->row_count;
    if (longest == NULL || (longest->key.size <= KEY_LONG_BYTES &&
                            (seen->row_count < KEYS_LEAST || average < KEY_AVERAGE_BYTES)))
        return status_ok();
    TRY(advise(advisor, RULE_key_size, &finding,
               "Sampled keys have %zu bytes on average, and the longest has %zu.", average,
               longest->key.size));
    finding_add_key(finding, longest->key);
    return status_ok();
}

/* Of all rows of the table, not of the sample: what the server notes of what it stores. */
static status advise_on_noted_rows(struct advisor *advisor, bool *is_told)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    const struct advice_weight *largest = NULL;
    size_t count = 0;
    for (size_t i = 0; i < seen->weight_count; i++) {
        count += seen->weights[i].size >= ROW_BYTES;
        if (largest == NULL || seen->weights[i].size > largest->size)
            largest = &seen->weights[i];
    }
    *is_told = count > 0;
    if (count == 0)
        return status_ok();
    TRY(advise(advisor, RULE_row_size, &finding,
               "Of the rows that the server noted as large, %zu %s 100 MiB or more; the largest "
               "has %.0f MiB.",
               count, count == 1 ? "has" : "have", mebibytes(largest->size)));
    finding_add_key(finding, largest->key);
    return status_ok();
}

static status advise_on_sampled_rows(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    const struct advice_row *largest = NULL;
    size_t count = 0;
    for (size_t i = 0; i < seen->row_count; i++) {
        count += seen->rows[i].size >= ROW_BYTES;
        if (largest == NULL || seen->rows[i].size > largest->size)
            largest = &seen->rows[i];
    }
    if (count == 0)
        return status_ok();
    TRY(advise(advisor, RULE_row_size, &finding,
               "%zu of %zu sampled rows have 100 MiB or more; the largest has %s%.0f MiB.", count,
               seen->row_count, largest->is_cut ? "about " : "", mebibytes(largest->size)));
    finding_add_key(finding, largest->key);
    return status_ok();
}

static status advise_on_row_size(struct advisor *advisor)
{
    bool is_told;
    TRY(advise_on_noted_rows(advisor, &is_told));
    return is_told ? status_ok() : advise_on_sampled_rows(advisor);
}

static status advise_on_noted_cells(struct advisor *advisor, bool *is_told)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    const struct advice_weight *largest = NULL;
    size_t count = 0;
    for (size_t i = 0; i < seen->weight_count; i++) {
        count += seen->weights[i].largest_cell > CELL_BYTES;
        if (largest == NULL || seen->weights[i].largest_cell > largest->largest_cell)
            largest = &seen->weights[i];
    }
    *is_told = count > 0;
    if (count == 0)
        return status_ok();
    TRY(advise(advisor, RULE_cell_size, &finding,
               "Of the rows that the server noted as large, %zu %s a value of more than 10 MiB; "
               "the largest, in the family %s, has %.0f MiB.",
               count, count == 1 ? "has" : "have", largest->family,
               mebibytes(largest->largest_cell)));
    finding_add_key(finding, largest->key);
    return status_ok();
}

static status advise_on_sampled_cells(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    const struct advice_row *row = NULL;
    const struct advice_cell *largest = NULL;
    size_t count = 0;
    for (size_t i = 0; i < seen->row_count; i++)
        for (size_t j = 0; j < seen->rows[i].cell_count; j++) {
            const struct advice_cell *cell = &seen->rows[i].cells[j];
            count += cell->size > CELL_BYTES;
            if (largest == NULL || cell->size > largest->size) {
                largest = cell;
                row = &seen->rows[i];
            }
        }
    if (count == 0)
        return status_ok();
    TRY(advise(advisor, RULE_cell_size, &finding,
               "%zu sampled value%s more than 10 MiB; the largest, in the family %s, has %.0f MiB.",
               count, count == 1 ? " has" : "s have", seen->families[largest->family].name,
               mebibytes(largest->size)));
    finding_add_key(finding, row->key);
    return status_ok();
}

static status advise_on_cell_size(struct advisor *advisor)
{
    bool is_told;
    TRY(advise_on_noted_cells(advisor, &is_told));
    return is_told ? status_ok() : advise_on_sampled_cells(advisor);
}

status advise_on_sizes(struct advisor *advisor)
{
    TRY(advise_on_key_size(advisor));
    TRY(advise_on_row_size(advisor));
    return advise_on_cell_size(advisor);
}

/* --- names --- */

static status advise_on_families(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    const char *longest = "";
    for (size_t i = 0; i < seen->family_count; i++)
        if (strlen(seen->families[i].name) > strlen(longest))
            longest = seen->families[i].name;
    if (seen->family_count > FAMILIES)
        TRY(advise(advisor, RULE_family_count, &finding, "The table has %zu families.",
                   seen->family_count));
    if (strlen(longest) <= FAMILY_NAME_BYTES)
        return status_ok();
    return advise(advisor, RULE_family_name, &finding, "The name %s has %zu bytes.", longest,
                  strlen(longest));
}

struct column {
    uint32_t family;
    bytes qualifier;
};

static int order_of_columns(const void *a, const void *b)
{
    const struct column *left = a, *right = b;
    if (left->family != right->family)
        return left->family < right->family ? -1 : 1;
    return bytes_compare(left->qualifier, right->qualifier);
}

static bool is_another_column(const struct advice_row *row, size_t cell)
{
    const struct advice_cell *c = &row->cells[cell];
    return cell == 0 || c[-1].family != c->family || !bytes_equal(c[-1].qualifier, c->qualifier);
}

/* The long names of each row, once a row. */
static size_t collect_long_names(const struct advice_observations *seen, struct column *out)
{
    size_t count = 0;
    for (size_t i = 0; i < seen->row_count; i++)
        for (size_t j = 0; j < seen->rows[i].cell_count; j++) {
            const struct advice_cell *cell = &seen->rows[i].cells[j];
            if (cell->qualifier.size <= QUALIFIER_BYTES || !is_another_column(&seen->rows[i], j))
                continue;
            if (out != NULL)
                out[count] = (struct column){cell->family, cell->qualifier};
            count++;
        }
    return count;
}

static status advise_on_qualifiers(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    size_t count = collect_long_names(seen, NULL), most = 0, run = 0, most_at = 0;
    struct column *columns = arena_alloc(advisor->arena, count * sizeof *columns);
    if (columns == NULL)
        return status_out_of_memory();
    collect_long_names(seen, columns);
    qsort(columns, count, sizeof *columns, order_of_columns);
    for (size_t i = 0; i < count; i++) {
        bool is_same = i > 0 && order_of_columns(&columns[i - 1], &columns[i]) == 0;
        run = is_same ? run + 1 : 1;
        if (run > most) {
            most = run;
            most_at = i;
        }
    }
    if (most < COLUMNS_LEAST || most * 100 < seen->row_count * QUALIFIER_PERCENT)
        return status_ok();
    TRY(advise(advisor, RULE_qualifier_name, &finding,
               "%zu of %zu sampled rows have a column in the family %s whose name has %zu bytes.",
               most, seen->row_count, seen->families[columns[most_at].family].name,
               columns[most_at].qualifier.size));
    return status_ok();
}

status advise_on_names(struct advisor *advisor)
{
    TRY(advise_on_families(advisor));
    return advise_on_qualifiers(advisor);
}
