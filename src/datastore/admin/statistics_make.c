/* Statistics as entities: see statistics.h. Names and properties are production's. */
#include "datastore/admin/statistics_private.h"

#include "base/limits.h"
#include "datastore/model/property_path.h"
#include "wire/proto.h"

#include <stdio.h>

/* --- which there are --- */

enum { BY_KIND = 1, BY_PROPERTY = 2, BY_TYPE = 4, BY_INDEX = 8, BY_NAMESPACE = 16 };

#define BIT(amount) (1u << (amount))

/* A kind of statistic: what is summed up, by what. Each except the one by namespace is there twice:
 * of all entities, and under a name with Ns of each namespace, in that namespace. */
struct statistic {
    const char *name;
    enum ds_tally_what what;
    unsigned by;
    unsigned entities; /* which amounts make its count, and its entity_bytes */
    unsigned rows;     /* which rows it has besides; of an index they make its count */
};

static const struct statistic all[] = {
    {"PropertyType_PropertyName_Kind", DS_TALLY_VALUES, BY_KIND | BY_PROPERTY | BY_TYPE,
     BIT(DS_VALUES), BIT(DS_BUILT_IN)},
    {"PropertyName_Kind", DS_TALLY_VALUES, BY_KIND | BY_PROPERTY, BIT(DS_VALUES), BIT(DS_BUILT_IN)},
    {"PropertyType_Kind", DS_TALLY_VALUES, BY_KIND | BY_TYPE, BIT(DS_VALUES), BIT(DS_BUILT_IN)},
    {"PropertyType", DS_TALLY_VALUES, BY_TYPE, BIT(DS_VALUES), BIT(DS_BUILT_IN)},
    {"Kind_CompositeIndex", DS_TALLY_INDEX, BY_KIND | BY_INDEX, 0, BIT(DS_COMPOSITE)},
    {"Kind_NotRootEntity", DS_TALLY_KIND, BY_KIND, BIT(DS_CHILDREN), 0},
    {"Kind_IsRootEntity", DS_TALLY_KIND, BY_KIND, BIT(DS_ROOTS), 0},
    {"Kind", DS_TALLY_KIND, BY_KIND, BIT(DS_ROOTS) | BIT(DS_CHILDREN),
     BIT(DS_BUILT_IN) | BIT(DS_COMPOSITE)},
    {"Namespace", DS_TALLY_KIND, BY_NAMESPACE, BIT(DS_ROOTS) | BIT(DS_CHILDREN),
     BIT(DS_BUILT_IN) | BIT(DS_COMPOSITE)},
    {"Total", DS_TALLY_KIND, 0, BIT(DS_ROOTS) | BIT(DS_CHILDREN),
     BIT(DS_BUILT_IN) | BIT(DS_COMPOSITE)},
};

/* The first half are those of namespaces. */
size_t ds_statistic_kinds(void)
{
    return 2 * (sizeof all / sizeof *all);
}

const char *ds_statistic_type(int type, bool is_excluded)
{
    switch (type) {
    case DS__VALUE__VALUE_TYPE_BOOLEAN_VALUE:
        return "Boolean";
    case DS__VALUE__VALUE_TYPE_INTEGER_VALUE:
        return "Integer";
    case DS__VALUE__VALUE_TYPE_DOUBLE_VALUE:
        return "Float";
    case DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE:
        return "Date/Time";
    case DS__VALUE__VALUE_TYPE_KEY_VALUE:
        return "Key";
    case DS__VALUE__VALUE_TYPE_STRING_VALUE:
        return is_excluded ? "Text" : "String";
    case DS__VALUE__VALUE_TYPE_BLOB_VALUE:
        return is_excluded ? "Blob" : "ShortBlob";
    case DS__VALUE__VALUE_TYPE_GEO_POINT_VALUE:
        return "GeoPt";
    default:
        return "NULL";
    }
}

/* Whether the statistics are detailed enough. */
static bool is_there(const struct ds_statistics *statistics, const struct statistic *statistic,
                     bool is_of_namespace)
{
    bool has_names = statistics->detail < DS_NOT_BY_PROPERTY;
    bool has_spaces = statistics->detail < DS_NOT_BY_NAMESPACE && statistics->has_namespaces;
    bool has_kinds = statistics->detail < DS_NOT_BY_KIND;
    if (is_of_namespace && (!has_spaces || (statistic->by & BY_NAMESPACE)))
        return false;
    if (statistic->by & BY_NAMESPACE)
        return statistics->detail < DS_NOT_BY_NAMESPACE;
    return ((statistic->by & BY_PROPERTY) == 0 || has_names) &&
           ((statistic->by & BY_KIND) == 0 || has_kinds || statistic->what == DS_TALLY_INDEX);
}

/* --- an entity --- */

struct making {
    const struct statistic *statistic;
    bool is_of_namespace;
    const struct ds_database *database;
    int64_t at_us;
    struct arena *arena;
    Ds__Entity *entity;
};

static status add_value(struct making *making, const char *name, Ds__Value__ValueTypeCase type,
                        Ds__Value **out)
{
    PROTO_NEW(making->arena, *out, DS__VALUE__INIT);
    (*out)->value_type_case = type;
    return ds_property_append(making->entity, name, *out, making->arena);
}

static status add_number(struct making *making, const char *name, int64_t number)
{
    Ds__Value *value;
    TRY(add_value(making, name, DS__VALUE__VALUE_TYPE_INTEGER_VALUE, &value));
    value->integer_value = number;
    return status_ok();
}

static status add_text(struct making *making, const char *name, const char *text)
{
    Ds__Value *value;
    TRY(add_value(making, name, DS__VALUE__VALUE_TYPE_STRING_VALUE, &value));
    value->string_value = text;
    return status_ok();
}

static status add_time(struct making *making, const char *name)
{
    enum { SECOND_US = 1000000 };
    Ds__Value *value;
    TRY(add_value(making, name, DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE, &value));
    PROTO_NEW(making->arena, value->timestamp_value, PB__TIMESTAMP__INIT);
    value->timestamp_value->seconds = making->at_us / SECOND_US;
    value->timestamp_value->nanos = (int32_t)(making->at_us % SECOND_US) * 1000;
    return status_ok();
}

static struct ds_amount sum_of(const struct ds_tally *tally, unsigned amounts)
{
    struct ds_amount sum = {0};
    for (size_t i = 0; i < DS_AMOUNTS; i++)
        if (amounts & BIT(i))
            ds_amount_add(&sum, tally->amounts[i]);
    return sum;
}

static status add_rows(struct making *making, const char *bytes_name, const char *count_name,
                       const struct ds_tally *tally, enum ds_amount_kind rows)
{
    TRY(add_number(making, bytes_name, tally->amounts[rows].bytes));
    return add_number(making, count_name, tally->amounts[rows].count);
}

/* Adds the properties that tell what it is a statistic of. */
static status add_subject(struct making *making, const struct ds_tally_name *name)
{
    unsigned by = making->statistic->by;
    if (by & BY_INDEX)
        TRY(add_number(making, "index_id", (int64_t)name->index));
    if (by & BY_KIND)
        TRY(add_text(making, "kind_name", name->kind));
    if (by & BY_PROPERTY)
        TRY(add_text(making, "property_name", name->property));
    if (by & BY_TYPE)
        TRY(add_text(making, "property_type", name->type));
    return by & BY_NAMESPACE ? add_text(making, "subject_namespace", name->name_space)
                             : status_ok();
}

/* Adds the index's name in the API. */
static status add_index_name(struct making *making, uint64_t index)
{
    enum { MOST = 24 };
    char *name = arena_alloc(making->arena, MOST);
    if (name == NULL)
        return status_out_of_memory();
    snprintf(name, MOST, "%llu", (unsigned long long)index);
    return add_text(making, "alphanumeric_id", name);
}

/* In the order of their names. */
static status add_properties(struct making *making, const struct ds_tally *tally)
{
    const struct statistic *statistic = making->statistic;
    bool is_of_index = statistic->by & BY_INDEX;
    struct ds_amount entities = sum_of(tally, statistic->entities);
    struct ds_amount rows = sum_of(tally, statistic->rows);
    bool has_built_in = statistic->rows & BIT(DS_BUILT_IN);
    bool has_composite = !is_of_index && (statistic->rows & BIT(DS_COMPOSITE));
    if (is_of_index)
        TRY(add_index_name(making, tally->name.index));
    if (has_built_in)
        TRY(add_rows(making, "builtin_index_bytes", "builtin_index_count", tally, DS_BUILT_IN));
    TRY(add_number(making, "bytes", entities.bytes + rows.bytes));
    if (has_composite)
        TRY(add_rows(making, "composite_index_bytes", "composite_index_count", tally,
                     DS_COMPOSITE));
    TRY(add_number(making, "count", is_of_index ? rows.count : entities.count));
    if (!is_of_index)
        TRY(add_number(making, "entity_bytes", entities.bytes));
    TRY(add_subject(making, &tally->name));
    return add_time(making, "timestamp");
}

/* --- its key --- */

static void append_part(struct buffer *out, const char *text)
{
    buffer_append_format(out, out->size > 0 ? "_%s" : "%s", text);
}

/* Appends its name in production; of names that are too long together, a fingerprint. */
static void append_name(struct buffer *out, const struct statistic *statistic,
                        const struct ds_tally_name *name)
{
    if (statistic->by == 0)
        append_part(out, DS_STATISTIC_TOTAL);
    if (statistic->by & BY_NAMESPACE)
        append_part(out, name->name_space);
    if (statistic->by & BY_TYPE)
        append_part(out, name->type);
    if (statistic->by & BY_PROPERTY)
        append_part(out, name->property);
    if (statistic->by & BY_KIND)
        append_part(out, name->kind);
    if (statistic->by & BY_INDEX)
        buffer_append_format(out, "_%llu", (unsigned long long)name->index);
}

static void shorten(struct buffer *name, const struct fingerprint *print)
{
    if (name->size <= LIMIT_DS_NAME_BYTES)
        return;
    buffer_clear(name);
    buffer_append_format(name, "%016llx%016llx", (unsigned long long)print->words[0],
                         (unsigned long long)print->words[1]);
}

static status set_name(struct making *making, const struct ds_tally *tally,
                       Ds__Key__PathElement *element)
{
    struct buffer name = {0};
    append_name(&name, making->statistic, &tally->name);
    shorten(&name, &tally->print);
    element->id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
    element->name = name.failed ? NULL : arena_string(making->arena, buffer_bytes(&name));
    buffer_free(&name);
    if (element->name == NULL)
        return status_out_of_memory();
    if (element->name[0] != '\0')
        return status_ok();
    element->id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_ID; /* the namespace without a name */
    element->id = 1;
    return status_ok();
}

static status set_kind(struct making *making, Ds__Key__PathElement *element)
{
    char kind[64];
    int size = snprintf(kind, sizeof kind, DS_STATISTIC_PREFIX "%s%s__",
                        making->is_of_namespace ? "Ns_" : "", making->statistic->name);
    element->kind = arena_string(making->arena, bytes_make((const uint8_t *)kind, (size_t)size));
    return element->kind == NULL ? status_out_of_memory() : status_ok();
}

static status make_key(struct making *making, const struct ds_tally *tally, Ds__Key **out)
{
    Ds__PartitionId *partition;
    Ds__Key__PathElement *element;
    PROTO_NEW(making->arena, *out, DS__KEY__INIT);
    PROTO_NEW(making->arena, partition, DS__PARTITION_ID__INIT);
    PROTO_NEW(making->arena, element, DS__KEY__PATH_ELEMENT__INIT);
    partition->project_id = making->database->project;
    partition->database_id = making->database->id;
    partition->namespace_id = making->is_of_namespace ? tally->name.name_space : "";
    (*out)->partition_id = partition;
    (*out)->path = arena_alloc(making->arena, sizeof *(*out)->path);
    if ((*out)->path == NULL)
        return status_out_of_memory();
    (*out)->path[(*out)->n_path++] = element;
    TRY(set_kind(making, element));
    return set_name(making, tally, element);
}

/* --- all of a kind --- */

/* The parts of the name that the statistic is by, and nothing else. */
static struct ds_tally_name name_of(const struct making *making, const struct ds_tally_name *name)
{
    unsigned by = making->statistic->by;
    bool has_space = making->is_of_namespace || (by & BY_NAMESPACE);
    return (struct ds_tally_name){.what = (int)making->statistic->what,
                                  .name_space = has_space ? name->name_space : "",
                                  .kind = by & BY_KIND ? name->kind : "",
                                  .property = by & BY_PROPERTY ? name->property : "",
                                  .type = by & BY_TYPE ? name->type : "",
                                  .index = by & BY_INDEX ? name->index : 0};
}

static status sum_up(const struct making *making, const struct ds_tallies *counted,
                     struct ds_tallies *sums)
{
    for (const struct ds_tally *each = counted->first; each != NULL; each = each->next) {
        if (each->name.what != (int)making->statistic->what)
            continue;
        struct ds_tally_name name = name_of(making, &each->name);
        struct ds_tally *sum;
        TRY(ds_tally_find(sums, &name, &sum));
        for (size_t i = 0; i < DS_AMOUNTS; i++)
            ds_amount_add(&sum->amounts[i], each->amounts[i]);
    }
    return status_ok();
}

/* A count of zero has no statistic, except the total. */
static bool is_wanted(const struct statistic *statistic, const struct ds_tally *tally)
{
    return statistic->by == 0 || sum_of(tally, statistic->entities | statistic->rows).count > 0;
}

/* The sums do not live as long as what is made of them. */
static status copy_name(struct arena *arena, struct ds_tally_name *name)
{
    const char **const texts[] = {&name->name_space, &name->kind, &name->property, &name->type};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i] = arena_string(arena, bytes_of(*texts[i]));
        if (*texts[i] == NULL)
            return status_out_of_memory();
    }
    return status_ok();
}

static status make_entity(struct making *making, const struct ds_tally *tally, struct vector *out)
{
    enum { MOST_PROPERTIES = 12 };
    struct ds_tally kept = *tally;
    Ds__Key *key;
    if (!is_wanted(making->statistic, tally))
        return status_ok();
    TRY(copy_name(making->arena, &kept.name));
    TRY(make_key(making, &kept, &key));
    TRY(ds_entity_like(NULL, MOST_PROPERTIES, making->arena, &making->entity));
    making->entity->key = key;
    TRY(add_properties(making, &kept));
    return vector_add(out, making->arena, &making->entity, sizeof making->entity);
}

static status make_all(struct making *making, const struct ds_tallies *counted,
                       struct ds_tallies *sums, struct vector *out)
{
    static const struct ds_tally_name total = {
        .what = DS_TALLY_KIND, .name_space = "", .kind = "", .property = "", .type = ""};
    struct ds_tally *sum;
    if (making->statistic->by == 0 && !making->is_of_namespace)
        TRY(ds_tally_find(sums, &total, &sum)); /* also of a database without entities */
    TRY(sum_up(making, counted, sums));
    for (sum = sums->first; sum != NULL; sum = sum->next)
        TRY(make_entity(making, sum, out));
    return status_ok();
}

status ds_statistics_make(const struct ds_statistics *statistics, size_t kind,
                          const struct ds_database *database, int64_t at_us, struct arena *arena,
                          struct vector *out)
{
    size_t count = sizeof all / sizeof *all;
    struct making making = {.statistic = &all[kind % count],
                            .is_of_namespace = kind < count,
                            .database = database,
                            .at_us = at_us,
                            .arena = arena};
    struct ds_tallies sums;
    if (!is_there(statistics, making.statistic, making.is_of_namespace))
        return status_ok();
    TRY(ds_tallies_init(&sums, statistics->memory));
    status s = make_all(&making, &statistics->tallies, &sums, out);
    ds_tallies_free(&sums);
    return s;
}
