/* See data_sums.h. */
#include "access/data_sums.h"

#include "base/limits.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    PARTS = 16,   /* powers of two, both */
    CHAINS = 256, /* of a part */
    SUMS_MOST = LIMIT_DATA_SUMS / PARTS,
};

struct entry {
    struct entry *next; /* of its chain */
    uint64_t hash;
    struct data_sum sum; /* its texts are in `text`, one after the other */
    uint8_t text[];
};

/* A part of the sums: those of some hashes. */
struct part {
    pthread_mutex_t lock;
    size_t count;
    struct entry *chains[CHAINS];
    struct data_sum others; /* beyond the bound */
};

struct data_sums {
    struct part parts[PARTS];
};

/* --- life --- */

status data_sums_create(struct data_sums **out)
{
    struct data_sums *sums = calloc(1, sizeof *sums);
    *out = sums;
    if (sums == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < PARTS; i++)
        pthread_mutex_init(&sums->parts[i].lock, NULL);
    return status_ok();
}

static void free_chain(struct entry *entry)
{
    while (entry != NULL) {
        struct entry *next = entry->next;
        free(entry);
        entry = next;
    }
}

void data_sums_destroy(struct data_sums *sums)
{
    if (sums == NULL)
        return;
    for (size_t i = 0; i < PARTS; i++) {
        for (size_t j = 0; j < CHAINS; j++)
            free_chain(sums->parts[i].chains[j]);
        pthread_mutex_destroy(&sums->parts[i].lock);
    }
    free(sums);
}

/* --- adding --- */

static uint64_t hash_of(bytes principal, bytes resource, const struct grpc_method *method)
{
    enum { HALF = 32 };
    uint64_t hash = bytes_hash(resource) + (uint64_t)(uintptr_t)method;
    hash ^= bytes_hash(principal) * 0x9e3779b97f4a7c15ULL;
    return hash ^ hash >> HALF;
}

/* Methods are told apart by where their names are: they are the server's. */
static struct entry *find(struct entry *entry, uint64_t hash, bytes principal, bytes resource,
                          const char *method)
{
    for (; entry != NULL; entry = entry->next)
        if (entry->hash == hash && entry->sum.method == method &&
            bytes_equal(entry->sum.resource, resource) &&
            bytes_equal(entry->sum.principal, principal))
            return entry;
    return NULL;
}

/* NULL without memory. */
static struct entry *create(uint64_t hash, bytes principal, bytes resource,
                            const struct grpc_call_record *record)
{
    struct entry *entry = calloc(1, sizeof *entry + principal.size + resource.size);
    if (entry == NULL)
        return NULL;
    if (principal.size > 0)
        memcpy(entry->text, principal.data, principal.size);
    if (resource.size > 0)
        memcpy(entry->text + principal.size, resource.data, resource.size);
    entry->hash = hash;
    entry->sum.principal = bytes_make(entry->text, principal.size);
    entry->sum.resource = bytes_make(entry->text + principal.size, resource.size);
    entry->sum.service = record->service->name;
    entry->sum.method = record->method->name;
    return entry;
}

static void count(struct data_sum *sum, const struct grpc_call_record *record)
{
    sum->calls++;
    sum->failed += record->code != STATUS_OK;
    sum->items += record->items;
    sum->request_bytes += (int64_t)record->request_bytes;
    sum->response_bytes += (int64_t)record->response_bytes;
}

/* With the part's lock held. */
static struct data_sum *sum_of(struct part *part, uint64_t hash, bytes principal, bytes resource,
                               const struct grpc_call_record *record)
{
    struct entry **chain = &part->chains[hash / PARTS & (CHAINS - 1)];
    struct entry *entry = find(*chain, hash, principal, resource, record->method->name);
    if (entry == NULL && part->count < SUMS_MOST) {
        entry = create(hash, principal, resource, record);
        if (entry == NULL)
            return &part->others;
        entry->next = *chain;
        *chain = entry;
        part->count++;
    }
    return entry == NULL ? &part->others : &entry->sum;
}

void data_sums_add(struct data_sums *sums, bytes principal, bytes resource,
                   const struct grpc_call_record *record)
{
    uint64_t hash = hash_of(principal, resource, record->method);
    struct part *part = &sums->parts[hash & (PARTS - 1)];
    pthread_mutex_lock(&part->lock);
    count(sum_of(part, hash, principal, resource, record), record);
    pthread_mutex_unlock(&part->lock);
}

/* --- taking --- */

/* Empties the part; its chains are the caller's. */
static struct data_sum detach(struct part *part, struct entry *chains[CHAINS])
{
    pthread_mutex_lock(&part->lock);
    struct data_sum others = part->others;
    memcpy(chains, part->chains, sizeof part->chains);
    memset(part->chains, 0, sizeof part->chains);
    part->others = (struct data_sum){0};
    part->count = 0;
    pthread_mutex_unlock(&part->lock);
    return others;
}

static void add_sum(struct data_sum *to, const struct data_sum *from)
{
    to->calls += from->calls;
    to->failed += from->failed;
    to->items += from->items;
    to->request_bytes += from->request_bytes;
    to->response_bytes += from->response_bytes;
}

void data_sums_take(struct data_sums *sums, void *context,
                    void (*each)(void *context, const struct data_sum *sum))
{
    struct data_sum others = {0};
    for (size_t i = 0; i < PARTS; i++) {
        struct entry *chains[CHAINS];
        const struct data_sum beyond = detach(&sums->parts[i], chains);
        add_sum(&others, &beyond);
        for (size_t j = 0; j < CHAINS; j++) {
            for (const struct entry *entry = chains[j]; entry != NULL; entry = entry->next)
                each(context, &entry->sum);
            free_chain(chains[j]);
        }
    }
    if (others.calls > 0)
        each(context, &others);
}
