/* See dynamo_scan.h.
 *
 *     idle ──► asked ──► a page that is given out ──► idle, at the page behind; or done
 *
 * A segment's position is the key behind which its next request begins: that of the page, or, if a
 * page has been given out in part, that of its last item, which DynamoDB takes as well. */
#include "aws/dynamo_scan.h"

#include "base/check.h"
#include "formats/dynamo_page.h"

#include <stdlib.h>

struct segment {
    struct dynamo_call call;
    json_t *start; /* the key behind which its page begins; NULL: at the beginning */
    json_t *next;  /* and behind which the next one does; NULL: there is none */
    struct dynamo_page page;
    bytes last;      /* the item of the page that was given out last; empty: none */
    bool has_answer; /* that was not looked at yet */
    bool has_page;   /* that is being given out */
    bool is_done;
};

struct dynamo_scan {
    struct dynamo_scan_options options;
    bool is_waiting; /* the loop runs for us */
    unsigned current;
    uint64_t bytes;
    struct segment segments[];
};

/* --- making and ending --- */

static void page_came(struct dynamo_call *call)
{
    struct dynamo_scan *scan = call->context;
    LIST_ENTRY(call, struct segment, call)->has_answer = true;
    if (scan->is_waiting)
        loop_stop(dynamo_client_loop(scan->options.client));
}

status dynamo_scan_create(const struct dynamo_scan_options *options, struct dynamo_scan **out)
{
    CHECK(options->segments >= 1 && options->segments <= DYNAMO_SEGMENTS_MOST);
    struct dynamo_scan *scan = *out =
        calloc(1, sizeof *scan + options->segments * sizeof scan->segments[0]);
    if (scan == NULL)
        return status_out_of_memory();
    scan->options = *options;
    for (unsigned i = 0; i < options->segments; i++) {
        scan->segments[i].call.done = page_came;
        scan->segments[i].call.context = scan;
    }
    return status_ok();
}

void dynamo_scan_destroy(struct dynamo_scan *scan)
{
    if (scan == NULL)
        return;
    for (unsigned i = 0; i < scan->options.segments; i++) {
        dynamo_call_clear(&scan->segments[i].call);
        json_decref(scan->segments[i].start);
        json_decref(scan->segments[i].next);
    }
    free(scan);
}

/* --- pages --- */

static json_t *request_of(const struct dynamo_scan *scan, unsigned number)
{
    const struct segment *segment = &scan->segments[number];
    json_t *body =
        json_pack("{s:s, s:b, s:O*}", "TableName", scan->options.table->name, "ConsistentRead",
                  scan->options.is_consistent, "ExclusiveStartKey", segment->start);
    if (scan->options.segments == 1 || body == NULL)
        return body;
    /* A failure here fails when the body is written. */
    if (json_object_set_new(body, "Segment", json_integer(number)) != 0 ||
        json_object_set_new(body, "TotalSegments", json_integer(scan->options.segments)) != 0) {
        json_decref(body);
        return NULL;
    }
    return body;
}

static void ask_for_pages(struct dynamo_scan *scan)
{
    for (unsigned i = 0; i < scan->options.segments; i++) {
        struct segment *segment = &scan->segments[i];
        if (!segment->is_done && !segment->has_page && !segment->has_answer &&
            !segment->call.is_under_way)
            dynamo_call_start(scan->options.client, &segment->call, DYNAMO_TABLES, "Scan",
                              request_of(scan, i));
    }
}

static status load_key(bytes text, json_t **out)
{
    json_error_t error;
    *out = NULL;
    if (text.size == 0)
        return status_ok();
    *out = json_loadb((const char *)text.data, text.size, 0, &error);
    if (json_is_object(*out))
        return status_ok();
    json_decref(*out);
    *out = NULL;
    return status_make(STATUS_DATA_LOSS, "Scan: LastEvaluatedKey is no key: %s", error.text);
}

/* A page has come, or a failure. */
static status open_page(struct dynamo_scan *scan, struct segment *segment)
{
    segment->has_answer = false;
    TRY(status_copy(segment->call.outcome));
    TRY(dynamo_page_open(segment->call.answer, "Items", "LastEvaluatedKey", &segment->page));
    TRY(load_key(segment->page.next, &segment->next));
    if (segment->next != NULL && segment->start != NULL &&
        json_equal(segment->next, segment->start))
        return status_make(STATUS_DATA_LOSS,
                           "Scan: the next page begins where this one does: it would never end");
    scan->bytes += segment->call.answer.size;
    segment->has_page = true;
    segment->last = bytes_make(NULL, 0);
    return status_ok();
}

static void close_page(struct segment *segment)
{
    json_decref(segment->start);
    segment->start = segment->next;
    segment->next = NULL;
    segment->is_done = segment->start == NULL;
    segment->has_page = false;
    segment->last = bytes_make(NULL, 0);
}

/* Finds a segment with a page, beginning with the one after the last; false if all are done. */
static status find_page(struct dynamo_scan *scan, bool *is_end)
{
    unsigned count = scan->options.segments, done = 0;
    for (unsigned step = 1; step <= count; step++) {
        unsigned number = (scan->current + step) % count;
        struct segment *segment = &scan->segments[number];
        done += segment->is_done;
        if (segment->has_answer)
            TRY(open_page(scan, segment));
        if (!segment->has_page)
            continue;
        scan->current = number;
        break;
    }
    *is_end = done == count;
    return status_ok();
}

static void wait_for_page(struct dynamo_scan *scan)
{
    scan->is_waiting = true;
    loop_run(dynamo_client_loop(scan->options.client));
    scan->is_waiting = false;
}

status dynamo_scan_next(struct dynamo_scan *scan, bytes *out, bool *is_end)
{
    *is_end = false;
    for (;;) {
        struct segment *segment = &scan->segments[scan->current];
        if (segment->has_page && dynamo_page_next(&segment->page, out)) {
            segment->last = *out;
            return status_ok();
        }
        if (segment->has_page)
            close_page(segment);
        ask_for_pages(scan);
        TRY(find_page(scan, is_end));
        if (*is_end)
            return status_ok();
        if (!scan->segments[scan->current].has_page)
            wait_for_page(scan);
    }
}

uint64_t dynamo_scan_bytes(const struct dynamo_scan *scan)
{
    return scan->bytes;
}

/* --- positions --- */

/* The key of the last item; NULL if it cannot be had, and the page is read again. */
static json_t *key_of(const struct dynamo_table *table, bytes item)
{
    json_t *all = json_loadb((const char *)item.data, item.size, 0, NULL);
    json_t *key = json_object();
    bool is_whole =
        json_object_set(key, table->partition_key, json_object_get(all, table->partition_key)) == 0;
    if (table->sort_key != NULL)
        is_whole &=
            json_object_set(key, table->sort_key, json_object_get(all, table->sort_key)) == 0;
    json_decref(all);
    if (is_whole)
        return key;
    json_decref(key);
    return NULL;
}

/* true: done; else the key behind which to go on, null at the beginning. */
static json_t *save_segment(const struct dynamo_scan *scan, const struct segment *segment)
{
    json_t *key = segment->last.size > 0 ? key_of(scan->options.table, segment->last) : NULL;
    if (segment->is_done)
        return json_true();
    if (key != NULL)
        return key;
    return segment->start == NULL ? json_null() : json_incref(segment->start);
}

json_t *dynamo_scan_save(const struct dynamo_scan *scan)
{
    json_t *all = json_array();
    for (unsigned i = 0; all != NULL && i < scan->options.segments; i++) {
        if (json_array_append_new(all, save_segment(scan, &scan->segments[i])) == 0)
            continue;
        json_decref(all);
        all = NULL;
    }
    return all;
}

status dynamo_scan_restore(struct dynamo_scan *scan, const json_t *position)
{
    if (json_array_size(position) != scan->options.segments)
        return status_make(STATUS_DATA_LOSS, "the checkpoint's position is of another scan");
    for (unsigned i = 0; i < scan->options.segments; i++) {
        json_t *key = json_array_get(position, i);
        struct segment *segment = &scan->segments[i];
        segment->is_done = json_is_true(key);
        if (!segment->is_done && !json_is_null(key) && !json_is_object(key))
            return status_make(STATUS_DATA_LOSS, "the checkpoint's position cannot be read");
        segment->start = json_is_object(key) ? json_incref(key) : NULL;
    }
    return status_ok();
}
