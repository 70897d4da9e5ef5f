/* A line that changes, or one every ten seconds where stderr is no terminal. */
#include "transfer/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { US_PER_S = 1000 * 1000, TERMINAL_US = US_PER_S / 2, FILE_US = 10 * US_PER_S };

void progress_begin(struct progress *progress, struct clock *clock, const char *noun, bool is_quiet)
{
    *progress = (struct progress){.clock = clock,
                                  .noun = noun,
                                  .is_quiet = is_quiet,
                                  .is_terminal = isatty(STDERR_FILENO),
                                  .start_us = clock_steady_us(clock)};
    progress->shown_us = progress->start_us;
}

static void show_size(uint64_t bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        size /= 1024;
    fprintf(stderr, unit == 0 ? "%.0f %s" : "%.1f %s", size, units[unit]);
}

static void show_left(const struct progress *progress, const struct transfer_counts *counts,
                      uint64_t total, double seconds)
{
    uint64_t done = counts->bytes - progress->at_start.bytes;
    if (total <= counts->bytes || done == 0)
        return;
    uint64_t left = (uint64_t)((double)(total - counts->bytes) * seconds / (double)done);
    fprintf(stderr, ", %" PRIu64 ":%02u:%02u left", left / 3600, (unsigned)(left / 60 % 60),
            (unsigned)(left % 60));
}

static double seconds_of(const struct progress *progress)
{
    return (double)(clock_steady_us(progress->clock) - progress->start_us) / US_PER_S + 1e-6;
}

static void show(const struct progress *progress, const struct transfer_counts *counts,
                 uint64_t total)
{
    double seconds = seconds_of(progress);
    fprintf(stderr, "%s%" PRIu64 " %s, ", progress->is_terminal ? "\r\033[K" : "", counts->records,
            progress->noun);
    show_size(counts->bytes);
    if (total > 0) {
        fputs(" of ", stderr);
        show_size(total);
    }
    fprintf(stderr, ", %.0f %s/s", (double)(counts->records - progress->at_start.records) / seconds,
            progress->noun);
    if (counts->rejected > 0)
        fprintf(stderr, ", %" PRIu64 " rejected", counts->rejected);
    show_left(progress, counts, total, seconds);
    if (!progress->is_terminal)
        fputc('\n', stderr);
}

static bool is_due(struct progress *progress)
{
    int64_t now = clock_steady_us(progress->clock);
    if (progress->is_quiet ||
        now - progress->shown_us < (progress->is_terminal ? TERMINAL_US : FILE_US))
        return false;
    progress->shown_us = now;
    return true;
}

void progress_show(struct progress *progress, const struct transfer_counts *counts, uint64_t total)
{
    if (is_due(progress))
        show(progress, counts, total);
}

void progress_end(struct progress *progress, const struct transfer_counts *counts, uint64_t total)
{
    if (progress->is_quiet)
        return;
    show(progress, counts, total);
    if (progress->is_terminal)
        fputc('\n', stderr);
}

void progress_begin_following(struct progress *progress, struct clock *clock, uint64_t changes,
                              bool is_quiet)
{
    progress_begin(progress, clock, "changes", is_quiet);
    progress->at_start.records = changes;
    progress->shown_us -= FILE_US;
}

void progress_show_following(struct progress *progress, const struct follow_counts *counts)
{
    if (!is_due(progress))
        return;
    double behind = counts->behind_us < 0 ? 0 : (double)counts->behind_us / US_PER_S;
    fprintf(stderr, "%s%" PRIu64 " changes, %.0f changes/s, %.1f s behind, %zu partition%s%s",
            progress->is_terminal ? "\r\033[K" : "", counts->changes,
            (double)(counts->changes - progress->at_start.records) / seconds_of(progress), behind,
            counts->partitions, counts->partitions == 1 ? "" : "s",
            progress->is_terminal ? "" : "\n");
}

void progress_end_following(struct progress *progress)
{
    if (!progress->is_quiet && progress->is_terminal)
        fputc('\n', stderr);
}
