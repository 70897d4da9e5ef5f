/* A change list: what a request does to a row, mutation by mutation in the request's order, as
 * readers of change streams get it. A packed change (fragment.h) is what it comes to; the list is
 * what was asked for: also what a later mutation of the same request undoes. Byte format:
 * docs/internals/format.md, "Change list".
 *
 * Invariants
 *  1. Families stand by name, so that a list is readable after its family has gone. A family that
 * is the one of the mutation before is not said again.
 *  2. A value of more than CHANGE_LIST_INLINE bytes is not in the list: only its size is, and the
 *     value is listed beside it, in order.
 *  3. A list that is stored has no deletion of a row: which families it deletes is found under the
 *     row's lock, and stands in its place (change_list_expand).
 *  4. A reader takes any bytes: what does not parse sets `is_bad`, and nothing of it is returned.
 */
#ifndef TRESTLE_ROW_CHANGE_LIST_H
#define TRESTLE_ROW_CHANGE_LIST_H

#include "base/bytes.h"

enum { CHANGE_LIST_INLINE = 1 << 20 };

/* Numbers as stored. */
enum list_kind {
    LIST_SET = 1,
    LIST_DELETE_COLUMN = 2,
    LIST_DELETE_FAMILY = 3,
    LIST_ADD_INT = 4,    /* AddToCell with a number */
    LIST_ADD_BYTES = 5,  /* AddToCell with bytes */
    LIST_MERGE = 6,      /* MergeToCell */
    LIST_DELETE_ROW = 7, /* until it is expanded */
};

struct list_mutation {
    enum list_kind kind;
    bytes family; /* its name */
    bytes qualifier;
    int64_t timestamp_us; /* a cell's; DELETE_COLUMN: start, inclusive */
    int64_t end_us;       /* DELETE_COLUMN: end, exclusive; 0: none, as in requests */
    bytes value;          /* SET, ADD_BYTES, MERGE; empty if `is_apart` */
    int64_t number;       /* ADD_INT */
    bool is_apart;        /* SET: the value lies beside the list, `size` bytes of it */
    size_t size;
};

/* --- writing --- */

/* In a packed change; all zeroes is empty, change_list_free ends it. */
struct change_list {
    struct buffer list;
    bytes *apart; /* values beside it, in order: slices of the request's */
    size_t apart_count;
    size_t apart_capacity;
    bytes family;     /* of the mutation before */
    bool deletes_row; /* a deletion of the row is in it */
    bool failed;      /* memory ran out */
};

/* Makes room for so many more mutations, whose slices come to so many bytes: mostly it need not
 * grow then. Without memory nothing happens: the list grows as it goes. */
void change_list_reserve(struct change_list *list, size_t count, size_t slice_bytes);
/* `mutation->value` is whole, whatever its size; `is_apart` and `size` are ignored. Slices that are
 * apart, and the last family's name, must outlive the list. */
void change_list_add(struct change_list *list, const struct list_mutation *mutation);
/* Whether anything was added: a change without a list is one that nobody asked to tell. */
static inline bool change_list_is_empty(const struct change_list *list)
{
    return list->list.size == 0;
}
/* Bytes of the list and of the values apart. */
size_t change_list_size(const struct change_list *list);
void change_list_free(struct change_list *list);

/* Puts in place of each deletion of the row one of each of these families, and of those that the
 * list has set before it: what the row had, by rising name, and what the request itself put there.
 * A list that comes to nothing is empty. False without memory, and the list is as it was. */
bool change_list_expand(struct change_list *list, const bytes *families, size_t count);

/* --- reading --- */

struct list_reader {
    const uint8_t *at;
    const uint8_t *end;
    bool is_bad;
    bytes family;
};

void list_reader_start(struct list_reader *reader, bytes list);
/* The next mutation, its slices pointing into the list; false at the end or when it is bad. */
bool list_reader_next(struct list_reader *reader, struct list_mutation *mutation);

#endif
