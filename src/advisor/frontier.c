/* See frontier.h. */
#include "advisor/frontier.h"

/* Whether a reading from there on would have come upon the first key behind this one. */
static bool begins_behind(bytes start, bytes key)
{
    bool is_next =
        start.size == key.size + 1 && start.data[key.size] == 0 && bytes_start_with(start, key);
    return is_next || bytes_compare(start, key) <= 0;
}

bool frontier_note(struct frontier *frontier, bytes start, bytes last, bool is_end)
{
    bytes *ends = (bytes *)(void *)frontier->ends.data;
    size_t count = frontier->ends.size / sizeof *ends, kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_passed =
            begins_behind(start, ends[i]) && (is_end || bytes_compare(last, ends[i]) >= 0);
        if (!is_passed)
            ends[kept++] = ends[i];
    }
    frontier->ends.size = kept * sizeof *ends;
    if (!is_end && last.size > 0)
        buffer_append(&frontier->ends, &last, sizeof last);
    return !frontier->ends.failed;
}

bool frontier_choose(const struct frontier *frontier, struct advice_random *random, bytes *out)
{
    const bytes *ends = (const bytes *)(const void *)frontier->ends.data;
    size_t count = frontier->ends.size / sizeof *ends;
    if (count == 0)
        return false;
    *out = ends[advice_random_below(random, count)];
    return true;
}

void frontier_drop(struct frontier *frontier, bytes end)
{
    bytes *ends = (bytes *)(void *)frontier->ends.data;
    size_t count = frontier->ends.size / sizeof *ends, kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!bytes_equal(ends[i], end))
            ends[kept++] = ends[i];
    frontier->ends.size = kept * sizeof *ends;
}

void frontier_free(struct frontier *frontier)
{
    buffer_free(&frontier->ends);
}
