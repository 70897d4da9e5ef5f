/* See row_sum.h. */
#include "formats/row_sum.h"

/* splitmix64's last steps: each bit of the input changes half of the result's. */
static uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static uint64_t cell_sum(const struct move_cell *cell, bool has_timestamps)
{
    uint64_t sum = mix(bytes_hash(bytes_of(cell->family)));
    sum = mix(sum ^ bytes_hash(cell->qualifier));
    sum = mix(sum ^ bytes_hash(cell->value));
    return has_timestamps ? mix(sum ^ (uint64_t)cell->timestamp_us) : sum;
}

void row_sum_add(struct row_sum *sum, const struct move_change *row, bool has_timestamps)
{
    uint64_t cells = 0;
    for (size_t i = 0; i < row->count; i++)
        cells += cell_sum(&row->cells[i], has_timestamps);
    sum->rows++;
    sum->sum += mix(mix(bytes_hash(row->row_key)) ^ cells);
}
