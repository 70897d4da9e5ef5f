/* See permissions.h. */
#include "access/permissions.h"

enum level { VIEW, READ, WRITE, MANAGE, POLICY };

struct permission {
    const char *name;
    enum level level;
};

static const struct permission permissions[] = {
#define PERMISSION(collection, verb, level) {"bigtable." #collection "." #verb, level},
#include "access/permissions.def"
#undef PERMISSION
};

struct role {
    const char *name;
    enum level level;
    const char *sentence;
};

static const struct role roles[] = {
    {"roles/bigtable.viewer", VIEW, "sees what there is, but no data"},
    {"roles/bigtable.reader", READ, "reads data, too"},
    {"roles/bigtable.user", WRITE, "reads and writes data"},
    {"roles/bigtable.editor", MANAGE, "makes, changes and deletes resources, too"},
    {"roles/bigtable.admin", POLICY, "everything, policies too"},
    {"roles/viewer", READ, "as roles/bigtable.reader"},
    {"roles/editor", MANAGE, "as roles/bigtable.editor"},
    {"roles/owner", POLICY, "as roles/bigtable.admin"},
};

enum { ROLE_COUNT = sizeof roles / sizeof *roles };

const char *permission_name(enum access_permission permission)
{
    return permission == PERMISSION_NONE ? "none" : permissions[permission].name;
}

bool permission_find(bytes name, enum access_permission *out)
{
    for (unsigned i = 0; i < PERMISSION_COUNT; i++) {
        *out = (enum access_permission)i;
        if (bytes_equal(name, bytes_of(permissions[i].name)))
            return true;
    }
    return false;
}

static struct permission_set up_to(enum level level)
{
    struct permission_set set = {{0}};
    for (unsigned i = 0; i < PERMISSION_COUNT; i++)
        if (permissions[i].level <= level)
            set.words[i / 64] |= (uint64_t)1 << i % 64;
    return set;
}

bool role_find(bytes name, struct permission_set *out)
{
    *out = (struct permission_set){{0}};
    for (size_t i = 0; i < ROLE_COUNT; i++)
        if (bytes_equal(name, bytes_of(roles[i].name))) {
            *out = up_to(roles[i].level);
            return true;
        }
    return false;
}

const char *role_name(size_t index)
{
    return index < ROLE_COUNT ? roles[index].name : NULL;
}

const char *role_sentence(size_t index)
{
    return index < ROLE_COUNT ? roles[index].sentence : NULL;
}
