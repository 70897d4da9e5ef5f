/* See row_queue.h.
 *
 *     MutateRowsRequest.Entry { row_key = 1, mutations = 2 }
 *
 * A message is its fields one behind the other, so a mutation is added by appending it. */
#include "client/row_queue.h"

#include "base/check.h"
#include "base/varint.h"
#include "wire/proto.h"

#include <stdlib.h>

enum {
    BUCKETS = 1 << 14,
    KEY_TAG = 1 << 3 | 2, /* bytes */
    MUTATION_TAG = 2 << 3 | 2,
};

struct queued_row {
    struct queued_row *next;    /* of its bucket */
    struct link ready;          /* on the list while it has entries and none of them is taken */
    struct list entries;        /* of struct queued_entry, without the one that is taken */
    struct queued_entry *last;  /* of them; NULL: none */
    struct queued_entry *taken; /* NULL: none */
    uint64_t hash;
    size_t key_size;
    uint8_t key[];
};

struct row_queue {
    struct queued_row *buckets[BUCKETS];
    struct list ready; /* of struct queued_row */
    size_t ready_count;
    size_t bytes;
    struct buffer mutation; /* the one that is being encoded */
};

/* --- making and ending --- */

struct row_queue *row_queue_create(void)
{
    return calloc(1, sizeof(struct row_queue));
}

static void destroy_entry(struct queued_entry *entry)
{
    if (entry == NULL)
        return;
    buffer_free(&entry->message);
    free(entry);
}

static void destroy_row(struct queued_row *row)
{
    while (!list_is_empty(&row->entries))
        destroy_entry(LIST_ENTRY(list_take(&row->entries), struct queued_entry, link));
    destroy_entry(row->taken);
    free(row);
}

void row_queue_destroy(struct row_queue *queue)
{
    if (queue == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (queue->buckets[i] != NULL) {
            struct queued_row *row = queue->buckets[i];
            queue->buckets[i] = row->next;
            destroy_row(row);
        }
    buffer_free(&queue->mutation);
    free(queue);
}

/* --- rows --- */

static bytes key_of(const struct queued_row *row)
{
    return bytes_make(row->key, row->key_size);
}

static struct queued_row **place_of(struct row_queue *queue, uint64_t hash, bytes key)
{
    struct queued_row **place = &queue->buckets[hash % BUCKETS];
    while (*place != NULL && ((*place)->hash != hash || !bytes_equal(key_of(*place), key)))
        place = &(*place)->next;
    return place;
}

static size_t size_of_row(const struct queued_row *row)
{
    return sizeof *row + row->key_size;
}

/* The row of that key, which is made if there is none. */
static status find_row(struct row_queue *queue, bytes key, struct queued_row **out)
{
    uint64_t hash = bytes_hash(key);
    struct queued_row **place = place_of(queue, hash, key);
    *out = *place;
    if (*out != NULL)
        return status_ok();
    struct queued_row *row = calloc(1, sizeof *row + key.size);
    if (row == NULL)
        return status_out_of_memory();
    row->hash = hash;
    row->key_size = key.size;
    if (key.size > 0)
        memcpy(row->key, key.data, key.size);
    *place = *out = row;
    queue->bytes += size_of_row(row);
    return status_ok();
}

static void make_ready(struct row_queue *queue, struct queued_row *row)
{
    list_append(&queue->ready, &row->ready);
    queue->ready_count++;
}

static void forget_row(struct row_queue *queue, struct queued_row *row)
{
    struct queued_row **place = place_of(queue, row->hash, key_of(row));
    *place = row->next;
    queue->bytes -= size_of_row(row);
    destroy_row(row);
}

/* --- adding --- */

static size_t size_of_entry(const struct queued_entry *entry)
{
    return sizeof *entry + entry->message.size;
}

static void append_field(struct buffer *message, uint8_t tag, bytes value)
{
    buffer_append_byte(message, tag);
    buffer_append_varint(message, value.size);
    buffer_append_bytes(message, value);
}

/* An entry without mutations, behind the row's others. */
static status begin_entry(struct row_queue *queue, struct queued_row *row)
{
    struct queued_entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return status_out_of_memory();
    entry->row = row;
    append_field(&entry->message, KEY_TAG, key_of(row));
    if (entry->message.failed) {
        destroy_entry(entry);
        return status_out_of_memory();
    }
    bool is_first = list_is_empty(&row->entries);
    list_append(&row->entries, &entry->link);
    row->last = entry;
    queue->bytes += size_of_entry(entry);
    if (is_first && row->taken == NULL)
        make_ready(queue, row);
    return status_ok();
}

static bool fits(const struct queued_entry *entry, size_t size)
{
    return entry->mutations == 0 || (entry->mutations < ROW_QUEUE_ENTRY_MUTATIONS &&
                                     entry->message.size + size <= ROW_QUEUE_ENTRY_BYTES);
}

static status add_mutation(struct row_queue *queue, struct queued_row *row,
                           const Bt__Mutation *mutation)
{
    buffer_clear(&queue->mutation);
    proto_encode(&mutation->base, &queue->mutation);
    bytes encoded = buffer_bytes(&queue->mutation);
    if (queue->mutation.failed)
        return status_out_of_memory();
    if (row->last == NULL || !fits(row->last, encoded.size))
        TRY(begin_entry(queue, row));
    struct queued_entry *entry = row->last;
    size_t before = entry->message.size;
    append_field(&entry->message, MUTATION_TAG, encoded);
    if (entry->message.failed)
        return status_out_of_memory();
    entry->mutations++;
    queue->bytes += entry->message.size - before;
    return status_ok();
}

status row_queue_add(struct row_queue *queue, bytes row_key, Bt__Mutation *const *mutations,
                     size_t count)
{
    struct queued_row *row;
    if (count == 0)
        return status_ok();
    TRY(find_row(queue, row_key, &row));
    for (size_t i = 0; i < count; i++)
        TRY(add_mutation(queue, row, mutations[i]));
    return status_ok();
}

/* --- taking --- */

struct queued_entry *row_queue_take(struct row_queue *queue)
{
    if (list_is_empty(&queue->ready))
        return NULL;
    struct queued_row *row = LIST_ENTRY(list_take(&queue->ready), struct queued_row, ready);
    struct queued_entry *entry = LIST_ENTRY(list_take(&row->entries), struct queued_entry, link);
    queue->ready_count--;
    row->taken = entry;
    if (row->last == entry)
        row->last = NULL;
    return entry;
}

void row_queue_done(struct row_queue *queue, struct queued_entry *entry)
{
    struct queued_row *row = entry->row;
    CHECK(row->taken == entry);
    queue->bytes -= size_of_entry(entry);
    destroy_entry(entry);
    row->taken = NULL;
    if (list_is_empty(&row->entries))
        forget_row(queue, row);
    else
        make_ready(queue, row);
}

bytes queued_entry_key(const struct queued_entry *entry)
{
    return key_of(entry->row);
}

size_t row_queue_ready(const struct row_queue *queue)
{
    return queue->ready_count;
}

size_t row_queue_bytes(const struct row_queue *queue)
{
    return queue->bytes;
}
