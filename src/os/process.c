/* See process.h. */
#include "os/process.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t us_of(struct timeval time)
{
    return (int64_t)time.tv_sec * 1000000 + time.tv_usec;
}

static uint64_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long long total, resident;
    if (file == NULL)
        return 0;
    int fields = fscanf(file, "%llu %llu", &total, &resident);
    fclose(file);
    return fields == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static uint64_t open_files(void)
{
    DIR *directory = opendir("/proc/self/fd");
    uint64_t count = 0;
    if (directory == NULL)
        return 0;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count - 1; /* without the directory itself */
}

struct process_usage process_usage(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage); /* fails for wrong arguments only */
    return (struct process_usage){.cpu_us = us_of(usage.ru_utime) + us_of(usage.ru_stime),
                                  .resident_bytes = resident_bytes(),
                                  .open_files = open_files()};
}

uint64_t process_machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    return pages < 0 ? 0 : (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
