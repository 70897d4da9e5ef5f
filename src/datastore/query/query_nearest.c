/* The nearest: see query_nearest.h.
 *
 * Each result that is kept has an arena of its own. One arena more is for the result being looked
 * at: if that is kept, the arena of the one that it drives out is the next to be read into. */
#include "datastore/query/query_nearest.h"

#include "base/limits.h"
#include "datastore/index/index_rows.h"
#include "datastore/model/mask.h"
#include "datastore/model/validate.h"
#include "wire/proto.h"
#include "wire/timestamps.h"

#include <math.h>

#define INVALID(...)  status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)
#define MEASURE(name) DS__FIND_NEAREST__DISTANCE_MEASURE__##name
#define MORE(name)    DS__QUERY_RESULT_BATCH__MORE_RESULTS_TYPE__##name
#define RESULT(name)  DS__ENTITY_RESULT__RESULT_TYPE__##name

/* --- checking --- */

static bool is_vector(const Ds__Value *value)
{
    return value != NULL && value->value_type_case == DS__VALUE__VALUE_TYPE_ARRAY_VALUE &&
           value->meaning == DS_MEANING_VECTOR;
}

/* False if one of them is no double. */
static bool read_numbers(const Ds__ArrayValue *array, double *out)
{
    for (size_t i = 0; i < array->n_values; i++) {
        if (array->values[i]->value_type_case != DS__VALUE__VALUE_TYPE_DOUBLE_VALUE)
            return false;
        out[i] = array->values[i]->double_value;
    }
    return true;
}

static status check_vector(const Ds__Value *value, struct arena *arena, struct ds_nearest *out)
{
    if (!is_vector(value))
        return INVALID("Query Value must be of type vector.");
    const Ds__ArrayValue *array = value->array_value;
    if (array->n_values == 0)
        return INVALID("A vector must have at least one dimension.");
    if (array->n_values > LIMIT_DS_VECTOR_DIMENSIONS)
        return INVALID("A vector must have no more than %d dimensions. The query vector has %zu.",
                       LIMIT_DS_VECTOR_DIMENSIONS, array->n_values);
    double *vector = arena_alloc(arena, array->n_values * sizeof *vector);
    if (vector == NULL)
        return status_out_of_memory();
    if (!read_numbers(array, vector))
        return INVALID("Query Value must be of type vector.");
    out->vector = vector;
    out->dimension = array->n_values;
    return status_ok();
}

static status check_property(const Ds__PropertyReference *property, struct arena *arena,
                             struct ds_nearest *out)
{
    if (property == NULL)
        return INVALID("find_nearest has no vector_property.");
    TRY(ds_property_check(property->name));
    out->property = property->name;
    return ds_property_path_parse(property->name, arena, &out->path);
}

static status check_limit(const Ds__Query *request, struct ds_nearest *out)
{
    const Pb__Int32Value *limit = request->find_nearest->limit;
    if (limit == NULL || limit->value <= 0 || limit->value > LIMIT_DS_NEAREST)
        return INVALID("find_nearest.limit must be a positive integer of no more than %d.",
                       LIMIT_DS_NEAREST);
    if (request->limit != NULL && request->limit->value < 0)
        return INVALID("Limit must be non-negative.");
    bool is_less = request->limit != NULL && request->limit->value < limit->value;
    out->limit = (size_t)(is_less ? request->limit->value : limit->value);
    return status_ok();
}

static status check_measure(const Ds__FindNearest *request, struct ds_nearest *out)
{
    if (request->distance_measure != MEASURE(EUCLIDEAN) &&
        request->distance_measure != MEASURE(COSINE) &&
        request->distance_measure != MEASURE(DOT_PRODUCT))
        return INVALID("find_nearest has no distance_measure.");
    out->measure = request->distance_measure;
    if (request->distance_threshold != NULL)
        out->threshold = &request->distance_threshold->value;
    if (request->distance_result_property[0] == '\0')
        return status_ok();
    out->result_property = request->distance_result_property;
    return ds_property_name_check(out->result_property);
}

/* A query has one order, which here is that of distances. */
static status check_combination(const Ds__Query *request)
{
    if (request->n_order > 0)
        return INVALID("find_nearest cannot be combined with an order.");
    if (request->n_distinct_on > 0)
        return INVALID("find_nearest cannot be combined with distinct_on.");
    if (request->start_cursor.len > 0 || request->end_cursor.len > 0)
        return INVALID("find_nearest cannot be combined with a cursor.");
    if (request->offset != 0)
        return INVALID("find_nearest cannot be combined with an offset.");
    if (request->n_kind == 0)
        return INVALID("kind is required for find_nearest");
    return status_ok();
}

/* There is no index to project from: what is projected is a part of the entity. */
static status check_projection(const Ds__Query *request, struct arena *arena,
                               struct ds_nearest *out)
{
    Ds__PropertyMask *mask;
    out->result_type = RESULT(FULL);
    if (request->n_projection == 0)
        return status_ok();
    PROTO_NEW(arena, mask, DS__PROPERTY_MASK__INIT);
    mask->paths = arena_alloc(arena, request->n_projection * sizeof *mask->paths);
    if (mask->paths == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < request->n_projection; i++) {
        if (request->projection[i]->property == NULL)
            return INVALID("A projection has no property.");
        const char *name = request->projection[i]->property->name;
        TRY(ds_property_check(name));
        if (strcmp(name, "__key__") != 0)
            mask->paths[mask->n_paths++] = (char *)(uintptr_t)name;
    }
    out->result_type = mask->n_paths > 0 ? RESULT(PROJECTION) : RESULT(KEY_ONLY);
    out->projected = mask;
    return status_ok();
}

status ds_nearest_check(const Ds__Query *request, struct arena *arena, struct ds_nearest *out,
                        Ds__Query **candidates)
{
    *out = (struct ds_nearest){.limit = 0};
    TRY(check_property(request->find_nearest->vector_property, arena, out));
    TRY(check_vector(request->find_nearest->query_vector, arena, out));
    TRY(check_limit(request, out));
    TRY(check_measure(request->find_nearest, out));
    TRY(check_combination(request));
    TRY(check_projection(request, arena, out));
    *candidates = arena_alloc(arena, sizeof **candidates);
    if (*candidates == NULL)
        return status_out_of_memory();
    **candidates = *request;
    (*candidates)->find_nearest = NULL;
    (*candidates)->limit = NULL;
    (*candidates)->n_projection = 0;
    return status_ok();
}

/* --- distances --- */

struct sums {
    double squares; /* of differences */
    double products;
    double length; /* of the entity's vector, squared */
    double other_length;
};

static struct sums add_up(const double *a, const double *b, size_t dimension)
{
    struct sums sums = {.squares = 0};
    for (size_t i = 0; i < dimension; i++) {
        sums.squares += (a[i] - b[i]) * (a[i] - b[i]);
        sums.products += a[i] * b[i];
        sums.length += a[i] * a[i];
        sums.other_length += b[i] * b[i];
    }
    return sums;
}

static double distance_of(const struct ds_nearest *nearest, const double *vector)
{
    const struct sums sums = add_up(vector, nearest->vector, nearest->dimension);
    switch (nearest->measure) {
    case MEASURE(COSINE):
        return 1 - sums.products / (sqrt(sums.length) * sqrt(sums.other_length));
    case MEASURE(DOT_PRODUCT):
        return sums.products;
    default:
        return sqrt(sums.squares);
    }
}

/* A lower rank comes first: a product is the greater the nearer. */
static double rank_of(const struct ds_nearest *nearest, double distance)
{
    return nearest->measure == MEASURE(DOT_PRODUCT) ? -distance : distance;
}

static bool is_within(const struct ds_nearest *nearest, double distance)
{
    return nearest->threshold == NULL ||
           rank_of(nearest, distance) <= rank_of(nearest, *nearest->threshold);
}

/* --- the nearest so far --- */

struct candidate {
    double distance;
    const Ds__Key *key;
    struct ds_version version;
    struct arena *arena; /* which all of it is in */
};

struct finding {
    const struct ds_nearest *nearest;
    struct candidate *kept; /* the nearest first */
    size_t count;
    size_t bytes;        /* of memory, of those kept */
    struct arena *spare; /* NULL: there is none yet */
    double *scratch;     /* a vector */
};

static bool comes_before(const struct finding *finding, const struct candidate *a,
                         const struct candidate *b)
{
    double first = rank_of(finding->nearest, a->distance);
    double second = rank_of(finding->nearest, b->distance);
    return first != second ? first < second : ds_key_compare(a->key, b->key) < 0;
}

static status check_memory(const struct finding *finding)
{
    if (finding->bytes <= LIMIT_ARENA_DATASTORE_BYTES)
        return status_ok();
    return status_make(STATUS_RESOURCE_EXHAUSTED,
                       "The entities that find_nearest has to keep are too large. Ask for fewer.");
}

/* Keeps the candidate, whose arena is the spare one, if it is among the nearest so far. */
static status offer(struct finding *finding, const struct candidate *candidate)
{
    size_t at = finding->count;
    bool is_full = finding->count == finding->nearest->limit;
    if (is_full && (at == 0 || !comes_before(finding, candidate, &finding->kept[at - 1])))
        return status_ok();
    finding->spare = is_full ? finding->kept[--at].arena : NULL;
    finding->bytes += arena_footprint(candidate->arena);
    finding->bytes -= is_full ? arena_footprint(finding->spare) : 0;
    for (; at > 0 && comes_before(finding, candidate, &finding->kept[at - 1]); at--)
        finding->kept[at] = finding->kept[at - 1];
    finding->kept[at] = *candidate;
    finding->count += !is_full;
    return check_memory(finding);
}

/* Whether the entity has a vector that can be compared, and how far it is. */
static bool measure(const struct finding *finding, const Ds__Entity *entity, double *distance)
{
    const struct ds_nearest *nearest = finding->nearest;
    const Ds__Value *value = ds_property_find(entity, nearest->property);
    if (value == NULL)
        value = ds_property_get(entity, &nearest->path);
    if (!is_vector(value) || value->array_value->n_values != nearest->dimension ||
        !read_numbers(value->array_value, finding->scratch))
        return false;
    *distance = distance_of(nearest, finding->scratch);
    return !isnan(*distance) && is_within(nearest, *distance);
}

static status look_at_next(struct finding *finding, struct ds_results *results, bool *found)
{
    struct ds_result result;
    struct candidate candidate;
    if (finding->spare == NULL)
        finding->spare = arena_create(LIMIT_ARENA_DATASTORE_BYTES);
    if (finding->spare == NULL)
        return status_out_of_memory();
    arena_reset(finding->spare);
    TRY(ds_results_next(results, true, finding->spare, &result, found));
    if (!*found || !measure(finding, result.version.entity, &candidate.distance))
        return status_ok();
    candidate.key = result.version.entity->key;
    candidate.version = result.version;
    candidate.arena = finding->spare;
    return offer(finding, &candidate);
}

static status find(struct finding *finding, const struct ds_query *query,
                   const struct ds_plan *plan, struct ds_reading *reading, struct arena *arena,
                   struct ds_reads *reads)
{
    struct ds_results *results;
    bool found = finding->nearest->limit > 0;
    TRY(ds_results_open(query, plan, reading, arena, &results));
    status s = status_ok();
    while (status_is_ok(s) && found)
        s = look_at_next(finding, results, &found);
    *reads = ds_results_reads(results);
    status closed = ds_results_close(results);
    if (status_is_ok(s))
        return closed;
    status_free(closed);
    return s;
}

/* --- the answer --- */

/* Makes the entity that a result shows, in the candidate's arena. */
static status show(const struct ds_nearest *nearest, const struct candidate *candidate,
                   const Ds__PropertyMask *mask, Ds__Entity **out)
{
    const struct ds_property_path path = {.names = (const char *[]){nearest->result_property},
                                          .count = 1};
    struct arena *arena = candidate->arena;
    Ds__Value *distance;
    *out = (Ds__Entity *)(uintptr_t)candidate->version.entity;
    if (nearest->projected != NULL || mask != NULL)
        TRY(ds_mask_read(*out, nearest->projected != NULL ? nearest->projected : mask, arena, out));
    if (nearest->result_property == NULL)
        return status_ok();
    PROTO_NEW(arena, distance, DS__VALUE__INIT);
    distance->value_type_case = DS__VALUE__VALUE_TYPE_DOUBLE_VALUE;
    distance->double_value = candidate->distance;
    return ds_property_set(*out, &path, distance, arena, out);
}

/* A copy, in `arena`, of what is in the candidate's. */
static status copy_entity(const Ds__Entity *entity, struct arena *arena, Ds__Entity **out)
{
    struct buffer encoded = {0};
    ProtobufCMessage *copy;
    proto_encode(&entity->base, &encoded);
    bytes kept = arena_copy(arena, buffer_bytes(&encoded));
    bool failed = encoded.failed || kept.data == NULL;
    buffer_free(&encoded);
    if (failed)
        return status_out_of_memory();
    TRY(proto_decode(&ds__entity__descriptor, kept, arena, &copy));
    *out = (Ds__Entity *)copy;
    return status_ok();
}

static status add_result(const struct ds_nearest *nearest, const struct candidate *candidate,
                         const Ds__PropertyMask *mask, struct arena *arena,
                         Ds__QueryResultBatch *batch)
{
    const struct ds_version *version = &candidate->version;
    Ds__EntityResult *made;
    Ds__Entity *shown;
    PROTO_NEW(arena, made, DS__ENTITY_RESULT__INIT);
    TRY(show(nearest, candidate, mask, &shown));
    TRY(copy_entity(shown, arena, &made->entity));
    batch->entity_results[batch->n_entity_results++] = made;
    if (nearest->result_type != RESULT(FULL) || version->version_us == 0)
        return status_ok();
    made->version = version->version_us;
    TRY(timestamp_message(version->create_us, arena, &made->create_time));
    return timestamp_message(version->version_us, arena, &made->update_time);
}

static status add_results(const struct finding *finding, const Ds__PropertyMask *mask,
                          struct arena *arena, Ds__QueryResultBatch *batch)
{
    size_t size = 0;
    batch->entity_results = arena_alloc(arena, finding->count * sizeof(Ds__EntityResult *));
    if (batch->entity_results == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < finding->count; i++) {
        TRY(add_result(finding->nearest, &finding->kept[i], mask, arena, batch));
        size += protobuf_c_message_get_packed_size(&batch->entity_results[i]->base);
        if (size > LIMIT_DS_NEAREST_BYTES)
            return status_make(STATUS_RESOURCE_EXHAUSTED,
                               "The results of find_nearest have more than %d bytes. Ask for fewer "
                               "of them, for some of their properties, or for their keys.",
                               LIMIT_DS_NEAREST_BYTES);
    }
    return status_ok();
}

static status make_batch(const struct finding *finding, const Ds__PropertyMask *mask,
                         const struct ds_reading *reading, struct arena *arena,
                         Ds__QueryResultBatch **out)
{
    Ds__QueryResultBatch *batch;
    PROTO_NEW(arena, batch, DS__QUERY_RESULT_BATCH__INIT);
    batch->entity_result_type = finding->nearest->result_type;
    batch->snapshot_version = reading->snapshot.at_us;
    batch->more_results = finding->count == finding->nearest->limit ? MORE(MORE_RESULTS_AFTER_LIMIT)
                                                                    : MORE(NO_MORE_RESULTS);
    *out = batch;
    TRY(timestamp_message(reading->read_time_us, arena, &batch->read_time));
    return add_results(finding, mask, arena, batch);
}

status ds_nearest_batch(const struct ds_nearest *nearest, const struct ds_query *query,
                        const Ds__PropertyMask *mask, const struct ds_plan *plan,
                        struct ds_reading *reading, struct arena *arena, struct ds_reads *reads,
                        Ds__QueryResultBatch **out)
{
    struct finding finding = {.nearest = nearest,
                              .kept = arena_alloc(arena, nearest->limit * sizeof *finding.kept),
                              .scratch = arena_alloc(arena, nearest->dimension * sizeof(double))};
    if (finding.kept == NULL || finding.scratch == NULL)
        return status_out_of_memory();
    status s = find(&finding, query, plan, reading, arena, reads);
    if (status_is_ok(s))
        s = make_batch(&finding, mask, reading, arena, out);
    for (size_t i = 0; i < finding.count; i++)
        arena_destroy(finding.kept[i].arena);
    arena_destroy(finding.spare);
    return s;
}
