/* See stream_end.h. */
#include "bigtable/stream_end.h"

#include "base/key_range.h"
#include "base/vector.h"
#include "bigtable/stream_answer.h"

struct bounds {
    bytes start;
    bytes end;
};

struct search {
    const struct stream_request *request;
    struct arena *arena;
    struct vector found; /* of bounds: partitions that meet the range */
};

static status copy_bounds(struct arena *arena, bytes start, bytes end, struct bounds *out)
{
    *out = (struct bounds){arena_copy(arena, start), arena_copy(arena, end)};
    bool is_whole = out->start.data != NULL && out->end.data != NULL;
    return is_whole ? status_ok() : status_out_of_memory();
}

static status take_partition(void *context, bytes start, bytes end)
{
    struct search *search = context;
    struct bounds bounds;
    if (!key_ranges_meet(start, end, search->request->start, search->request->end))
        return status_ok();
    TRY(copy_bounds(search->arena, start, end, &bounds));
    return vector_add(&search->found, search->arena, &bounds, sizeof bounds);
}

static struct bounds meet(const struct bounds *partition, const struct stream_request *request)
{
    struct bounds part = *partition;
    if (bytes_compare(request->start, part.start) > 0)
        part.start = request->start;
    bool ends_first =
        request->end.size > 0 && (part.end.size == 0 || bytes_compare(request->end, part.end) < 0);
    if (ends_first)
        part.end = request->end;
    return part;
}

static status make_token(struct table *table, const struct stream_request *request,
                         const struct stream_token *token, const struct bounds *part,
                         struct arena *arena, const char **out)
{
    struct stream_token cut;
    struct buffer string = {0};
    if (token != NULL)
        TRY(stream_token_cut(token, part->start, part->end, arena, &cut));
    else
        TRY(table_stream_token_at(table, request->start_us, part->start, part->end, arena, &cut));
    stream_token_write(&string, &cut);
    *out = string.failed ? NULL : arena_string(arena, buffer_bytes(&string));
    buffer_free(&string);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status make_successor(struct table *table, const struct stream_request *request,
                             const struct stream_token *token, const struct bounds *partition,
                             struct arena *arena, struct successor *out)
{
    const struct bounds part = meet(partition, request);
    partition_message(partition->start, partition->end, &out->newer);
    partition_message(part.start, part.end, &out->part);
    return make_token(table, request, token, &part, arena, &out->token);
}

status stream_end_misaligned(struct table *table, const struct stream_request *request,
                             const struct stream_token *token, struct arena *arena,
                             struct buffer *out)
{
    struct search search = {.request = request, .arena = arena};
    TRY(table_stream_partitions(table, take_partition, &search));
    size_t count = search.found.count;
    struct successor *successors = arena_alloc(arena, count * sizeof *successors);
    if (successors == NULL)
        return status_out_of_memory();
    if (count == 0)
        return status_make(STATUS_FAILED_PRECONDITION, "The table has no partitions any more");
    for (size_t i = 0; i < count; i++)
        TRY(make_successor(table, request, token, &((struct bounds *)search.found.items)[i], arena,
                           &successors[i]));
    close_append(out, successors, count, arena);
    return status_ok();
}
