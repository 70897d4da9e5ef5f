/* A first-in, first-out list of objects that carry their own link.
 *
 * `struct link` is a member of the object; LIST_ENTRY gets back from the link to the object. An
 * object is on at most one list per link. Nothing is allocated, so nothing here can fail. */
#ifndef TRESTLE_BASE_LIST_H
#define TRESTLE_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct link {
    struct link *next;
};

struct list {
    struct link *first;
    struct link **last; /* where the next link goes; NULL in an empty zeroed list */
};

#define LIST_ENTRY(link_pointer, type, member)                                                     \
    ((type *)(void *)((char *)(link_pointer)-offsetof(type, member)))

static inline bool list_is_empty(const struct list *list)
{
    return list->first == NULL;
}

static inline void list_append(struct list *list, struct link *link)
{
    link->next = NULL;
    if (list->first == NULL)
        list->first = link;
    else
        *list->last = link;
    list->last = &link->next;
}

/* The oldest entry, taken off the list; NULL from an empty one. */
static inline struct link *list_take(struct list *list)
{
    struct link *first = list->first;
    if (first != NULL)
        list->first = first->next;
    return first;
}

/* Takes the entry off the list that `*place` is: `first`, or the `next` of the one before it. */
static inline void list_take_at(struct list *list, struct link **place)
{
    if (list->last == &(*place)->next)
        list->last = place;
    *place = (*place)->next;
}

/* Takes the entry off the list, if it is there: looks at those before it. */
static inline bool list_remove(struct list *list, const struct link *entry)
{
    struct link **place = &list->first;
    while (*place != NULL && *place != entry)
        place = &(*place)->next;
    if (*place == NULL)
        return false;
    list_take_at(list, place);
    return true;
}

/* All entries, leaving `list` empty. */
static inline struct list list_take_all(struct list *list)
{
    struct list all = *list;
    list->first = NULL;
    return all;
}

/* Moves all entries of `from` to the end of `to`, in their order. */
static inline void list_append_all(struct list *to, struct list *from)
{
    if (list_is_empty(from))
        return;
    if (list_is_empty(to))
        to->first = from->first;
    else
        *to->last = from->first;
    to->last = from->last;
    from->first = NULL;
}

#endif
