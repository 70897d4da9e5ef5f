/* See permissions.h. */
#include "access/permissions.h"

enum level { VIEW, READ, WRITE, MANAGE, POLICY };

struct permission {
    const char *name;
    enum level level;
};

static const struct permission permissions[] = {
#define PERMISSION(service, collection, verb, level) {#service "." #collection "." #verb, level},
#include "access/permissions.def"
#undef PERMISSION
};

struct role {
    const char *name;
    const char *service; /* how the names of its permissions begin */
    enum level level;
    const char *sentence;
};

static const struct role roles[] = {
    {"roles/bigtable.viewer", "bigtable.", VIEW, "sees what there is, but no data"},
    {"roles/bigtable.reader", "bigtable.", READ, "reads data, too"},
    {"roles/bigtable.user", "bigtable.", WRITE, "reads and writes data"},
    {"roles/bigtable.editor", "bigtable.", MANAGE, "makes, changes and deletes resources, too"},
    {"roles/bigtable.admin", "bigtable.", POLICY, "everything, policies too"},
    {"roles/datastore.viewer", "datastore.", READ,
     "reads entities, and sees which indexes there are"},
    {"roles/datastore.user", "datastore.", WRITE, "reads and writes entities"},
    {"roles/datastore.owner", "datastore.", POLICY, "everything: indexes, exports, imports too"},
    {"roles/viewer", "", READ, "as roles/bigtable.reader and roles/datastore.viewer"},
    {"roles/editor", "", MANAGE, "as roles/bigtable.editor and roles/datastore.owner"},
    {"roles/owner", "", POLICY, "as roles/bigtable.admin and roles/datastore.owner"},
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

static struct permission_set granted_by(const struct role *role)
{
    size_t size = strlen(role->service);
    struct permission_set set = {{0}};
    for (unsigned i = 0; i < PERMISSION_COUNT; i++)
        if (permissions[i].level <= role->level &&
            strncmp(permissions[i].name, role->service, size) == 0)
            set.words[i / 64] |= (uint64_t)1 << i % 64;
    return set;
}

bool role_find(bytes name, struct permission_set *out)
{
    *out = (struct permission_set){{0}};
    for (size_t i = 0; i < ROLE_COUNT; i++)
        if (bytes_equal(name, bytes_of(roles[i].name))) {
            *out = granted_by(&roles[i]);
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
