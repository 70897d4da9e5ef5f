/* Allocations that fail on purpose, for tests alone: link with failmalloc.c and FAILMALLOC's linker
 * flags (see meson.build). Only our own code's calls fail, not the C library's, and only those of
 * the thread that asks for it: others go on. */
#ifndef TRESTLE_BASE_TESTING_FAILMALLOC_H
#define TRESTLE_BASE_TESTING_FAILMALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* The allocation after `count` successful ones fails, and every one after it, until
 * failmalloc_stop. */
void failmalloc_start(size_t count);

/* Each allocation of at least so many bytes fails, until failmalloc_stop; smaller ones do not. */
void failmalloc_start_large(size_t least);

/* Whether any allocation failed since the start. */
bool failmalloc_stop(void);

/* Runs `body` with the first allocation failing, then with the second, and so on until nothing
 * fails any more: each place where memory may run out is met once. `body` must get along with any
 * of them, and release what it took. The count is bounded: a body that never stops allocating
 * fails the test. */
void failmalloc_each(void (*body)(void *context), void *context);

#endif
