/* Permissions, sets of them, and the roles that grant them: the table is permissions.def. */
#ifndef TRESTLE_ACCESS_PERMISSIONS_H
#define TRESTLE_ACCESS_PERMISSIONS_H

#include "base/bytes.h"

enum access_permission {
#define PERMISSION(service, collection, verb, level) PERMISSION_##collection##_##verb,
#include "access/permissions.def"
#undef PERMISSION
    PERMISSION_NONE, /* what everybody has */
    PERMISSION_COUNT = PERMISSION_NONE
};

struct permission_set {
    uint64_t words[2];
};
_Static_assert(PERMISSION_COUNT <= 8 * sizeof(struct permission_set), "a bit for each");

static inline bool permission_set_has(struct permission_set set, enum access_permission permission)
{
    return permission == PERMISSION_NONE ||
           (set.words[permission / 64] >> permission % 64 & 1) != 0;
}

static inline struct permission_set permission_set_union(struct permission_set a,
                                                         struct permission_set b)
{
    return (struct permission_set){{a.words[0] | b.words[0], a.words[1] | b.words[1]}};
}

static inline void permission_set_add(struct permission_set *set, enum access_permission permission)
{
    set->words[permission / 64] |= UINT64_C(1) << permission % 64;
}

/* "bigtable.tables.readRows"; for PERMISSION_NONE "none". */
const char *permission_name(enum access_permission permission);

/* False if there is none of that name. */
bool permission_find(bytes name, enum access_permission *out);

/* The permissions of a role, such as "roles/bigtable.reader"; false if there is no such role. */
bool role_find(bytes name, struct permission_set *out);

/* The roles in turn, each with its sentence for the reference; NULL after the last. */
const char *role_name(size_t index);
const char *role_sentence(size_t index);

#endif
