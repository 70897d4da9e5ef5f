/* See failmalloc.h. The linker's --wrap sends the calls here. */
#include "base/testing/failmalloc.h"

#include "base/testing/testing.h"

#include <string.h>

enum { MOST_ALLOCATIONS = 100000 };

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *string);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *string);

static _Thread_local struct {
    bool active;
    bool failed;
    size_t left;
    size_t least; /* bytes of those that are meant */
} plan;

static bool fails(size_t size)
{
    if (!plan.active || size < plan.least)
        return false;
    if (plan.left > 0) {
        plan.left--;
        return false;
    }
    plan.failed = true;
    return true;
}

void failmalloc_start(size_t count)
{
    plan.active = true;
    plan.failed = false;
    plan.left = count;
    plan.least = 0;
}

void failmalloc_start_large(size_t least)
{
    failmalloc_start(0);
    plan.least = least;
}

bool failmalloc_stop(void)
{
    plan.active = false;
    return plan.failed;
}

void failmalloc_each(void (*body)(void *context), void *context)
{
    bool failed = true;
    for (size_t count = 0; failed; count++) {
        assert_true(count < MOST_ALLOCATIONS);
        failmalloc_start(count);
        body(context);
        failed = failmalloc_stop();
    }
}

void *__wrap_malloc(size_t size)
{
    return fails(size) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails(count * size) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails(size) ? NULL : __real_realloc(memory, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails(size) ? NULL : __real_aligned_alloc(alignment, size);
}

char *__wrap_strdup(const char *string)
{
    return fails(strlen(string) + 1) ? NULL : __real_strdup(string);
}
