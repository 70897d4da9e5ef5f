/* Meanings: see meaning.h. Which there are, and the words, are as both of Google's emulators have
 * them. */
#include "datastore/model/meaning.h"

#include "datastore/model/value.h"

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)
#define TYPE(name)   DS__VALUE__VALUE_TYPE_##name

enum { MEANING_TIMESTAMP = 7 }; /* in microseconds */

struct meaning {
    int32_t first, last;
    Ds__Value__ValueTypeCase type;
    const char *field;
    bool is_excluded; /* its values must be excluded from indexes */
};

static const struct meaning MEANINGS[] = {
    {1, 6, TYPE(STRING_VALUE), "string_value", false},
    {7, 7, TYPE(INTEGER_VALUE), "integer_value", false},
    {8, 8, TYPE(STRING_VALUE), "string_value", false},
    {10, 12, TYPE(STRING_VALUE), "string_value", false},
    {13, 13, TYPE(INTEGER_VALUE), "integer_value", false},
    {15, 15, TYPE(STRING_VALUE), "string_value", true},
    {16, 16, TYPE(BLOB_VALUE), "blob_value", false},
    {17, 17, TYPE(STRING_VALUE), "string_value", false},
    {20, 20, TYPE(ENTITY_VALUE), "entity_value", false},
    {22, 22, TYPE(BLOB_VALUE), "blob_value", true},
    {23, 23, TYPE(GEO_POINT_VALUE), "geo_point_value", false},
    {29, 30, TYPE(INTEGER_VALUE), "integer_value", false},
};

static const struct meaning *find(int32_t meaning)
{
    for (size_t i = 0; i < sizeof MEANINGS / sizeof *MEANINGS; i++)
        if (meaning >= MEANINGS[i].first && meaning <= MEANINGS[i].last)
            return &MEANINGS[i];
    return NULL;
}

/* Microseconds since 1970 that a timestamp can say. */
static bool is_timestamp(int64_t us)
{
    const int64_t first = -62135596800000000, last = 253402300799999999;
    return us >= first && us <= last;
}

static status check_array(const Ds__Value *value)
{
    if (value->meaning == DS_MEANING_VECTOR)
        return status_ok();
    if (value->meaning != 0)
        return INVALID("A Value containing a list_value cannot specify a meaning.");
    if (value->exclude_from_indexes)
        return INVALID("Exclude from indexes cannot be set on a list value");
    return status_ok();
}

static status check_known(const struct meaning *meaning, const Ds__Value *value, const char *name)
{
    if (value->value_type_case != meaning->type)
        return INVALID("Value \"%s\" has a meaning %d which does not match %s field.", name,
                       value->meaning, meaning->field);
    if (meaning->is_excluded && !value->exclude_from_indexes)
        return INVALID("Indexed value has meaning %d.", value->meaning);
    if (value->meaning == MEANING_TIMESTAMP && is_timestamp(value->integer_value))
        return INVALID("A timestamp in range [0001-01-01T00:00:00Z, 9999-12-31T23:59:59.999999Z] "
                       "must be stored as a timestamp value.");
    return status_ok();
}

status ds_meaning_check(const Ds__Value *value, const char *name)
{
    if (value->value_type_case == TYPE(ARRAY_VALUE))
        return check_array(value);
    if (value->meaning == 0)
        return status_ok();
    if (value->meaning == DS_MEANING_VECTOR)
        return INVALID("Value \"%s\" has a meaning %d which does not match vector field.", name,
                       value->meaning);
    if (value->meaning == DS_MEANING_TIMESTAMP)
        return INVALID("Projection property cannot be used.");
    const struct meaning *meaning = find(value->meaning);
    return meaning == NULL ? INVALID("Unknown value meaning %d.", value->meaning)
                           : check_known(meaning, value, name);
}
