/* See resource.h. */
#include "access/resource.h"

static const char operations[] = "operations/";

/* A capital stands for any text. */
static const char *const forms[KIND_COUNT] = {
    [KIND_PROJECT] = "projects/P",
    [KIND_PROJECT_ID] = "PROJECT_ID",
    [KIND_INSTANCE] = "projects/P/instances/I",
    [KIND_CLUSTER] = "projects/P/instances/I/clusters/C",
    [KIND_APP_PROFILE] = "projects/P/instances/I/appProfiles/A",
    [KIND_TABLE] = "projects/P/instances/I/tables/T",
    [KIND_AUTHORIZED_VIEW] = "projects/P/instances/I/tables/T/authorizedViews/V",
    [KIND_SCHEMA_BUNDLE] = "projects/P/instances/I/tables/T/schemaBundles/S",
    [KIND_BACKUP] = "projects/P/instances/I/clusters/C/backups/B",
    [KIND_SNAPSHOT] = "projects/P/instances/I/clusters/C/snapshots/S",
    [KIND_LOGICAL_VIEW] = "projects/P/instances/I/logicalViews/V",
    [KIND_MATERIALIZED_VIEW] = "projects/P/instances/I/materializedViews/V",
    [KIND_LOCATION] = "projects/P/locations/L",
    [KIND_DATABASE] = "projects/P/databases/D",
    [KIND_COLLECTION_GROUP] = "projects/P/databases/D/collectionGroups/K",
    [KIND_COLLECTION_INDEX] = "projects/P/databases/D/collectionGroups/K/indexes/I",
    [KIND_FIELD] = "projects/P/databases/D/collectionGroups/K/fields/F",
    [KIND_PROJECT_OPERATION] = "projects/P/operations/O",
    [KIND_DATABASE_OPERATION] = "projects/P/databases/D/operations/O",
    [KIND_SERVER] = "servers/S",
    [KIND_OPERATION] = "operations/projects/P/…",
};

const char *kind_form(enum access_kind kind)
{
    return forms[kind];
}

/* Takes what comes before the next '/' off the front, and the '/'. */
static bytes take_segment(bytes *rest)
{
    const uint8_t *slash = rest->size == 0 ? NULL : memchr(rest->data, '/', rest->size);
    bytes segment = *rest;
    if (slash != NULL)
        segment.size = (size_t)(slash - rest->data);
    *rest = bytes_from(*rest, slash == NULL ? rest->size : segment.size + 1);
    return segment;
}

static bool is_id(bytes segment)
{
    for (size_t i = 0; i < segment.size; i++)
        if (segment.data[i] < ' ' || segment.data[i] == 0x7f)
            return false;
    return segment.size > 0;
}

static bool has_form(bytes name, const char *form)
{
    bytes expected = bytes_of(form);
    if (name.size > 0 && name.data[name.size - 1] == '/')
        return false;
    while (expected.size > 0) {
        bytes wanted = take_segment(&expected);
        bytes segment = take_segment(&name);
        bool is_free = wanted.data[0] >= 'A' && wanted.data[0] <= 'Z';
        if (is_free ? !is_id(segment) : !bytes_equal(segment, wanted))
            return false;
    }
    return name.size == 0;
}

bytes resource_root(bytes name)
{
    bytes prefix = bytes_of(operations);
    return bytes_start_with(name, prefix) ? bytes_from(name, prefix.size) : name;
}

bool resource_kind(bytes name, enum access_kind *out)
{
    for (unsigned i = 0; i < KIND_OPERATION; i++) {
        *out = (enum access_kind)i;
        if (has_form(name, forms[i]))
            return true;
    }
    *out = KIND_OPERATION;
    return bytes_start_with(name, bytes_of("operations/projects/")) && is_id(name);
}

/* Collections and ids take turns in a name. */
bool resource_parent(bytes *prefix)
{
    int slashes = 0;
    while (prefix->size > 0 && slashes < 2)
        slashes += prefix->data[--prefix->size] == '/';
    return prefix->size > 0;
}
