/* Fragments as text, for tests: "r@7 a@5 1:q[1000,2000)@5 1:q:2000=v@4 1:q:1000+5@3", in order:
 *
 *     m@V>M!P     overflow mark of version V, moved up to M, purged up to P; m-@… has none left
 *     r@V         row tombstone of version V
 *     F@V         family tombstone
 *     F:Q[S,E)@V  column tombstone; E may be "-": no end
 *     F:Q:T=X@V   cell; instead of '=': '+' sum, '<' minimum, '>' maximum of a decimal number
 *     F:Q:T#N~E@V cell: a sketch of N values, about E different */
#ifndef TRESTLE_ROW_TESTING_TESTING_H
#define TRESTLE_ROW_TESTING_TESTING_H

#include "row/fragment.h"
#include "row/hll.h"

#include "base/testing/testing.h"

#include <endian.h>
#include <stdio.h>

enum { FRAGMENT_TEXT_SIZE = 4096 };

static inline int64_t number_of(bytes value)
{
    uint64_t word = 0;
    assert_int_equal(value.size, sizeof word);
    memcpy(&word, value.data, sizeof word);
    return (int64_t)be64toh(word);
}

/* What a cell of the kind is written as: its value, and how it adds up. */
static inline int print_aggregate(char *at, size_t room, const struct entry *e)
{
    struct hll_state state;
    if (e->kind != ENTRY_HLL)
        return snprintf(at, room, "%c%lld", "+<>"[e->kind - ENTRY_SUM],
                        (long long)number_of(e->value));
    assert_ok(hll_state_parse(e->value, &state));
    return snprintf(at, room, "#%lld~%lld", (long long)state.num_values,
                    (long long)hll_estimate(&state));
}

static inline size_t print_entry(char *at, size_t room, const struct entry *e)
{
    int size = 0;
    int name_size = (int)e->qualifier.size;
    const char *name = name_size == 0 ? "" : (const char *)e->qualifier.data;
    long long from = e->timestamp_us;
    long long version = (long long)e->version;
    char end[32] = "-";
    if (e->end_us != INT64_MAX)
        snprintf(end, sizeof end, "%lld", (long long)e->end_us);
    if (e->kind == ENTRY_OVERFLOW_MARK)
        size = snprintf(at, room, "m%s@%lld>%lld!%lld", e->has_overflow ? "" : "-", version,
                        (long long)e->moved, (long long)e->purged);
    else if (e->kind == ENTRY_ROW_TOMBSTONE)
        size = snprintf(at, room, "r@%lld", version);
    else if (e->kind == ENTRY_FAMILY_TOMBSTONE)
        size = snprintf(at, room, "%u@%lld", e->family, version);
    else if (e->kind == ENTRY_COLUMN_TOMBSTONE)
        size = snprintf(at, room, "%u:%.*s[%lld,%s)@%lld", e->family, name_size, name, from, end,
                        version);
    else if (e->kind == ENTRY_CELL)
        size = snprintf(at, room, "%u:%.*s:%lld=%.*s@%lld", e->family, name_size, name, from,
                        (int)e->value.size, (const char *)e->value.data, version);
    else {
        char aggregate[64];
        print_aggregate(aggregate, sizeof aggregate, e);
        size = snprintf(at, room, "%u:%.*s:%lld%s@%lld", e->family, name_size, name, from,
                        aggregate, version);
    }
    assert_true(size > 0 && (size_t)size < room);
    return (size_t)size;
}

/* `text` has FRAGMENT_TEXT_SIZE bytes. */
static inline void print_fragment(bytes fragment, char *text)
{
    size_t size = 0;
    struct fragment_reader reader;
    struct entry entry;
    text[0] = '\0';
    assert_ok(fragment_check(fragment));
    assert_true(fragment_reader_start(&reader, fragment));
    while (fragment_reader_next(&reader, &entry)) {
        if (size > 0)
            text[size++] = ' ';
        size += print_entry(text + size, FRAGMENT_TEXT_SIZE - size, &entry);
    }
}

/* Holds a fragment against its text. */
static inline void assert_fragment(bytes fragment, const char *expected)
{
    char text[FRAGMENT_TEXT_SIZE];
    print_fragment(fragment, text);
    assert_string_equal(text, expected);
}

static inline struct entry cell_entry(uint32_t family, const char *qualifier, int64_t timestamp_us,
                                      const char *value, uint64_t version)
{
    return (struct entry){.kind = ENTRY_CELL,
                          .family = family,
                          .qualifier = bytes_of(qualifier),
                          .timestamp_us = timestamp_us,
                          .value = bytes_of(value),
                          .version = version};
}

static inline struct entry column_tombstone(uint32_t family, const char *qualifier,
                                            int64_t start_us, int64_t end_us, uint64_t version)
{
    return (struct entry){.kind = ENTRY_COLUMN_TOMBSTONE,
                          .family = family,
                          .qualifier = bytes_of(qualifier),
                          .timestamp_us = start_us,
                          .end_us = end_us,
                          .version = version};
}

static inline struct entry row_tombstone(uint64_t version)
{
    return (struct entry){.kind = ENTRY_ROW_TOMBSTONE, .version = version};
}

static inline struct entry family_tombstone(uint32_t family, uint64_t version)
{
    return (struct entry){.kind = ENTRY_FAMILY_TOMBSTONE, .family = family, .version = version};
}

/* A fragment of these entries; the caller frees it. */
static inline struct buffer fragment_of(const struct entry *entries, size_t count)
{
    struct buffer out = {0};
    struct fragment_writer writer;
    fragment_writer_start(&writer, &out, count == 0 ? 0 : entries[0].version);
    for (size_t i = 0; i < count; i++)
        fragment_writer_add(&writer, &entries[i]);
    fragment_writer_finish(&writer);
    assert_false(out.failed);
    return out;
}

#define FRAGMENT(...)                                                                              \
    fragment_of((const struct entry[]){__VA_ARGS__},                                               \
                sizeof((const struct entry[]){__VA_ARGS__}) / sizeof(struct entry))

#endif
