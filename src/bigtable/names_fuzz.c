/* Fuzzer: names of instances, tables and families, held against their description by segments. A
 * name that is put together is one that is accepted, and comes apart again.
 *
 * Input: choices (base/testing/fuzzing.h): two strings. */
#include "base/limits.h"
#include "base/testing/fuzzing.h"
#include "bigtable/names.h"

#include <stdio.h>

enum { MOST_STRING = 255, MOST_SEGMENTS = 8, ARENA_LIMIT = 1 << 16 };

static bool accepts(status s)
{
    bool ok = status_is_ok(s);
    CHECK(ok || (s.code == STATUS_INVALID_ARGUMENT && status_message(s)[0] != '\0'));
    status_free(s);
    return ok;
}

/* A string of the input, up to its first NUL. */
static void choose_string(struct choices *choices, char string[MOST_STRING + 1])
{
    bytes chosen = choose_bytes(choices, MOST_STRING);
    snprintf(string, MOST_STRING + 1, "%.*s", (int)chosen.size,
             chosen.size == 0 ? "" : (const char *)chosen.data);
}

/* Cuts at the slashes; MOST_SEGMENTS if there are as many or more. */
static size_t split(const char *name, bytes segments[MOST_SEGMENTS])
{
    size_t count = 0;
    for (bool more = true; more && count < MOST_SEGMENTS; count++) {
        const char *slash = strchr(name, '/');
        more = slash != NULL;
        segments[count] = more ? bytes_make(name, (size_t)(slash - name)) : bytes_of(name);
        name = more ? slash + 1 : name;
    }
    return count;
}

/* Whether the name is of this many pairs of a collection and an id. */
static bool is_resource(const char *name, size_t pairs)
{
    static const char *const collections[] = {"projects", "instances", "tables"};
    bytes segments[MOST_SEGMENTS];
    bool is = split(name, segments) == 2 * pairs;
    for (size_t i = 0; i < pairs && is; i++)
        is = bytes_equal(segments[2 * i], bytes_of(collections[i])) && segments[2 * i + 1].size > 0;
    return is;
}

static bool is_of(const char *id, const char *characters, size_t most)
{
    return strspn(id, characters) == strlen(id) && id[0] != '\0' && strlen(id) <= most;
}

static void check(const char *name)
{
    static const char characters[] = "-._abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789";
    CHECK(accepts(name_check_instance(name)) == is_resource(name, 2));
    CHECK(accepts(name_check_table(name)) == is_resource(name, 3));
    CHECK(accepts(name_check_family(name)) == is_of(name, characters, LIMIT_FAMILY_NAME_BYTES));
    CHECK(accepts(name_check_table_id(name)) ==
          (is_of(name, characters, LIMIT_TABLE_ID_BYTES) && name[0] != '-' && name[0] != '.'));
}

static void put_together(const char *instance, const char *id)
{
    struct arena *arena = arena_create(ARENA_LIMIT);
    CHECK(arena != NULL);
    char *name = name_of_table(arena, instance, id);
    CHECK(name != NULL);
    bool is_good = accepts(name_check_instance(instance)) && accepts(name_check_table_id(id));
    if (is_good) {
        CHECK(accepts(name_check_table(name)));
        CHECK(strcmp(name_id(name), id) == 0);
    }
    arena_destroy(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices = choices_of(data, size);
    char first[MOST_STRING + 1], second[MOST_STRING + 1];
    choose_string(&choices, first);
    choose_string(&choices, second);
    check(first);
    check(second);
    put_together(first, second);
    return 0;
}
