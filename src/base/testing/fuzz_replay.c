/* Runs a fuzzer on inputs that are there already, without libFuzzer: for the tests.
 *
 *     x_fuzz NAME FILE|DIRECTORY...
 *
 * Reports in TAP, as one case. A failure ends the process, and the last path above it says which
 * input it was. */
#include "base/testing/fuzzing.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { LARGEST_INPUT = 1 << 20 };

static int fail(const char *what, const char *path)
{
    fprintf(stdout, "Bail out! cannot %s %s: %s\n", what, path, strerrordesc_np(errno));
    return -1;
}

/* In memory of just its size, so that the sanitizers see where it ends. */
static int run_bytes(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL)
        return fail("hold", "an input");
    if (size > 0)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(size > 0 ? copy : copy + 1, size);
    free(copy);
    return 1;
}

static int run_file(const char *path)
{
    static uint8_t input[LARGEST_INPUT];
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return fail("open", path);
    size_t size = fread(input, 1, sizeof input, file);
    bool failed = ferror(file);
    fclose(file);
    if (failed)
        return fail("read", path);
    fprintf(stdout, "# %s\n", path);
    fflush(stdout);
    return run_bytes(input, size);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int run_directory(const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_visible, alphasort);
    if (count < 0)
        return fail("read", path);
    int ran = 0;
    for (int i = 0; i < count; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (ran >= 0)
            ran = run_file(name) < 0 ? -1 : ran + 1;
        free(entries[i]);
    }
    free(entries);
    return ran;
}

/* How many inputs were run; negative after a failure. */
static int run_path(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return fail("find", path);
    return S_ISDIR(status.st_mode) ? run_directory(path) : run_file(path);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s NAME FILE|DIRECTORY...\n", argv[0]);
        return 2;
    }
    int total = run_bytes(NULL, 0);
    for (int i = 2; i < argc && total > 0; i++) {
        int ran = run_path(argv[i]);
        total = ran <= 0 ? -1 : total + ran;
    }
    fprintf(stdout, "1..1\n%s 1 - %s on the %d inputs of its corpus\n", total > 0 ? "ok" : "not ok",
            argv[1], total);
    return total > 0 ? 0 : 1;
}
