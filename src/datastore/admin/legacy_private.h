/* The numbers of the first form of entities: see legacy_entity.h. Private to its two files. */
#ifndef TRESTLE_DATASTORE_ADMIN_LEGACY_PRIVATE_H
#define TRESTLE_DATASTORE_ADMIN_LEGACY_PRIVATE_H

#include "datastore/admin/legacy_entity.h"

enum legacy_wire {
    LEGACY_NUMBER = 0,
    LEGACY_FIXED64 = 1,
    LEGACY_BYTES = 2,
    LEGACY_GROUP = 3,
    LEGACY_END = 4,
    LEGACY_FIXED32 = 5,
};

enum { ENTITY_KEY = 13, ENTITY_PROPERTY = 14, ENTITY_EXCLUDED = 15, ENTITY_ROOT = 16 };

enum {
    REFERENCE_APP = 13,
    REFERENCE_PATH = 14,
    REFERENCE_KIND = 15, /* of an element in a value; then id and name */
    REFERENCE_NAMESPACE = 20,
    REFERENCE_DATABASE = 23,
};
enum { PATH_ELEMENT = 1, ELEMENT_KIND = 2 /* then id and name */ };

enum {
    PROPERTY_MEANING = 1,
    PROPERTY_MEANING_URI = 2,
    PROPERTY_NAME = 3,
    PROPERTY_IS_OF_SEVERAL = 4,
    PROPERTY_VALUE = 5,
};

enum {
    VALUE_INTEGER = 1,
    VALUE_BOOLEAN = 2,
    VALUE_TEXT = 3,
    VALUE_DOUBLE = 4,
    VALUE_POINT = 5,
    VALUE_USER = 8,
    VALUE_REFERENCE = 12,
};
enum { POINT_X = 6, POINT_Y = 7 };
enum { USER_NUMBER = 18, USER_ID = 19 };

/* The texts of a User, and the properties that the entity of its meaning has for them, by rising
 * field. The first two are always there. */
struct legacy_user_text {
    unsigned field;
    const char *name;
};
enum { LEGACY_USER_TEXTS = 5 };
static const struct legacy_user_text legacy_user_texts[LEGACY_USER_TEXTS] = {
    {9, "email"},
    {10, "auth_domain"},
    {USER_ID, "user_id"},
    {21, "federated_identity"},
    {22, "federated_provider"},
};

enum {
    MEANING_TIMESTAMP = 7,
    MEANING_GEO_POINT = 9,
    MEANING_BLOB = 14,
    MEANING_BYTE_STRING = 16,
    MEANING_ENTITY = 19,
    MEANING_USER = 20, /* of an entity; in the first form there is a type for it */
    MEANING_ZLIB = 22, /* of a blob; in the first form an URI */
    MEANING_POINT_ALONE = 23,
    MEANING_EMPTY_ARRAY = 24,
};
#define LEGACY_ZLIB "ZLIB"

/* Meanings that texts and numbers may have without becoming something else: categories, links and
 * the like (1 to 6, 8, 10 to 13), long texts (15), keys of blobs (17), values of indexes (18). */
static inline bool legacy_meaning_is_free(int64_t meaning)
{
    return (meaning >= 1 && meaning <= 13 && meaning != MEANING_TIMESTAMP &&
            meaning != MEANING_GEO_POINT) ||
           meaning == 15 || meaning == 17 || meaning == 18;
}

#endif
