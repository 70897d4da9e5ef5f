/* See heat_hot.h. */
#include "cluster/heat/heat_hot.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

struct hot_entry {
    struct link link;
    struct hot_tablet hot; /* the table's name and the keys lie behind it */
};

void hot_list_init(struct hot_list *list)
{
    *list = (struct hot_list){.count = 0};
    pthread_mutex_init(&list->lock, NULL);
}

static struct hot_entry *entry_of(struct link *link)
{
    return LIST_ENTRY(link, struct hot_entry, link);
}

static void forget_oldest(struct hot_list *list)
{
    DCHECK(list->count > 0);
    free(entry_of(list_take(&list->entries)));
    list->count--;
    list->has_changed = true;
}

void hot_list_free(struct hot_list *list)
{
    while (list->count > 0)
        forget_oldest(list);
    pthread_mutex_destroy(&list->lock);
}

static bytes copy_behind(char **at, bytes text)
{
    bytes copy = bytes_make(*at, text.size);
    if (text.size > 0)
        memcpy(*at, text.data, text.size);
    *at += text.size;
    return copy;
}

static struct hot_entry *make_entry(const struct hot_tablet *hot)
{
    bytes name = bytes_make(hot->table, strlen(hot->table) + 1);
    struct hot_entry *entry = malloc(sizeof *entry + name.size + hot->start.size + hot->end.size);
    if (entry == NULL)
        return NULL;
    char *at = (char *)(entry + 1);
    entry->hot = *hot;
    entry->hot.table = (const char *)copy_behind(&at, name).data;
    entry->hot.start = copy_behind(&at, hot->start);
    entry->hot.end = copy_behind(&at, hot->end);
    return entry;
}

uint64_t hot_list_new_id(struct hot_list *list)
{
    pthread_mutex_lock(&list->lock);
    uint64_t id = ++list->last_id;
    pthread_mutex_unlock(&list->lock);
    return id;
}

/* With the lock held, as the next. */
static void append(struct hot_list *list, struct hot_entry *entry)
{
    DCHECK(check_is_held(&list->lock));
    list_append(&list->entries, &entry->link);
    list->newest_id = entry->hot.id;
    if (list->last_id < entry->hot.id)
        list->last_id = entry->hot.id;
    if (++list->count > HEAT_MOST)
        forget_oldest(list);
}

/* Replaces the entry with the id of this one. False if none has it. */
static bool replace(struct hot_list *list, struct hot_entry *entry)
{
    DCHECK(check_is_held(&list->lock));
    struct list former = list_take_all(&list->entries);
    bool is_found = false;
    for (struct link *link; (link = list_take(&former)) != NULL;) {
        struct hot_entry *other = entry_of(link);
        bool is_it = other->hot.id == entry->hot.id;
        list_append(&list->entries, is_it ? &entry->link : link);
        if (is_it)
            free(other);
        is_found |= is_it;
    }
    return is_found;
}

void hot_list_put(struct hot_list *list, const struct hot_tablet *hot)
{
    struct hot_entry *entry = make_entry(hot);
    if (entry == NULL)
        return;
    pthread_mutex_lock(&list->lock);
    list->has_changed = true;
    if (hot->id > list->newest_id)
        append(list, entry);
    else if (!replace(list, entry))
        free(entry);
    pthread_mutex_unlock(&list->lock);
}

void hot_list_forget(struct hot_list *list, int64_t before_us)
{
    pthread_mutex_lock(&list->lock);
    while (list->count > 0 && entry_of(list->entries.first)->hot.until_us < before_us)
        forget_oldest(list);
    pthread_mutex_unlock(&list->lock);
}

void hot_list_visit(struct hot_list *list,
                    bool (*visit)(void *context, const struct hot_tablet *hot), void *context)
{
    bool goes_on = true;
    pthread_mutex_lock(&list->lock);
    for (struct link *at = list->entries.first; at != NULL && goes_on; at = at->next)
        goes_on = visit(context, &entry_of(at)->hot);
    pthread_mutex_unlock(&list->lock);
}

size_t hot_list_count(struct hot_list *list)
{
    pthread_mutex_lock(&list->lock);
    size_t count = list->count;
    pthread_mutex_unlock(&list->lock);
    return count;
}

static int order_of_ranges(const void *a, const void *b)
{
    const struct hot_tablet *left = *(const struct hot_tablet *const *)a;
    const struct hot_tablet *right = *(const struct hot_tablet *const *)b;
    int order = strcmp(left->table, right->table);
    if (order == 0)
        order = bytes_compare(left->start, right->start);
    return order == 0 ? bytes_compare(left->end, right->end) : order;
}

/* With the lock held. Without memory they are taken to be all different. */
static size_t count_ranges(struct hot_list *list)
{
    DCHECK(check_is_held(&list->lock));
    const struct hot_tablet **all = malloc((list->count + 1) * sizeof(const struct hot_tablet *));
    size_t count = 0, ranges = 0;
    if (all == NULL)
        return list->count;
    for (struct link *at = list->entries.first; at != NULL; at = at->next)
        all[count++] = &entry_of(at)->hot;
    qsort(all, count, sizeof(const struct hot_tablet *), order_of_ranges);
    for (size_t i = 0; i < count; i++)
        ranges += i == 0 || order_of_ranges(&all[i - 1], &all[i]) != 0;
    free(all);
    return ranges;
}

size_t hot_list_range_count(struct hot_list *list)
{
    pthread_mutex_lock(&list->lock);
    if (list->has_changed)
        list->range_count = count_ranges(list);
    list->has_changed = false;
    size_t count = list->range_count;
    pthread_mutex_unlock(&list->lock);
    return count;
}
