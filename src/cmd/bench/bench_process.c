/* See bench_process.h. */
#include "cmd/bench/bench_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { US_PER_S = 1000000, NS_PER_US = 1000, KB = 1024 };

static int64_t cpu_us(pid_t pid)
{
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return -1;
    return (int64_t)time.tv_sec * US_PER_S + time.tv_nsec / NS_PER_US;
}

/* The number behind `name` in /proc/PID/FILE, times `unit`. */
static int64_t number_in(pid_t pid, const char *file_name, const char *name, int64_t unit)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file_name);
    FILE *file = fopen(path, "re");
    int64_t number = -1;
    if (file == NULL)
        return -1;
    while (number < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            number = strtoll(line + strlen(name), NULL, 10) * unit;
    fclose(file);
    return number;
}

struct bench_usage bench_usage_of(uint64_t pid)
{
    if (pid == 0) /* which would be this process itself */
        return (struct bench_usage){-1, -1, -1, -1};
    pid_t process = (pid_t)pid;
    return (struct bench_usage){.cpu_us = cpu_us(process),
                                .written_bytes = number_in(process, "io", "write_bytes:", 1),
                                .resident_bytes = number_in(process, "status", "VmRSS:", KB),
                                .peak_bytes = number_in(process, "status", "VmHWM:", KB)};
}
