/* Fuzzer: any filter and order of ListBackups. An accepted filter means the same in parentheses,
 * and the opposite behind NOT; an order has a before and an after.
 *
 * Input: a line with an order, then a filter. */
#include "base/testing/fuzzing.h"
#include "bigtable/backup_facts.h"
#include "bigtable/backup_filter.h"

#include <stdio.h>

enum { ARENA_LIMIT = 8 << 20, MOST_TEXT = 4096 };

static bool parse(const char *text, struct arena *arena, const struct backup_filter **out)
{
    status s = backup_filter_parse(text, arena, out);
    bool is_filter = status_is_ok(s);
    CHECK(is_filter || s.code == STATUS_INVALID_ARGUMENT || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    return is_filter;
}

/* One level deeper may be one too many. */
static void check_around(const char *before, const char *text, struct arena *arena,
                         const BtAdmin__Backup *backup, bool expected)
{
    char wrapped[MOST_TEXT + 16];
    const struct backup_filter *filter;
    snprintf(wrapped, sizeof wrapped, "%s(%s)", before, text);
    if (parse(wrapped, arena, &filter))
        CHECK(backup_filter_matches(filter, backup) == expected);
}

static void check_filter(const char *text, struct arena *arena, const BtAdmin__Backup *backup)
{
    const struct backup_filter *filter;
    if (!parse(text, arena, &filter) || filter == NULL)
        return;
    bool matches = backup_filter_matches(filter, backup);
    check_around("", text, arena, backup, matches);
    check_around("NOT", text, arena, backup, !matches);
    check_around("-", text, arena, backup, !matches);
}

static void check_order(const char *text, const BtAdmin__Backup *a, const BtAdmin__Backup *b)
{
    struct backup_ordering ordering;
    status s = backup_ordering_parse(text, &ordering);
    if (status_is_ok(s)) {
        CHECK(ordering.count > 0 && ordering.count <= BACKUP_FIELDS);
        CHECK((backup_ordering_compare(&ordering, a, b) < 0) ==
              (backup_ordering_compare(&ordering, b, a) > 0));
        CHECK(backup_ordering_compare(&ordering, a, a) == 0);
    }
    status_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[MOST_TEXT];
    Pb__Timestamp time = PB__TIMESTAMP__INIT;
    BtAdmin__Backup a = BT_ADMIN__BACKUP__INIT, b = BT_ADMIN__BACKUP__INIT;
    struct arena *arena = arena_create(ARENA_LIMIT);
    CHECK(arena != NULL);
    size = size < sizeof text ? size : sizeof text - 1;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    time.seconds = 1767225600;
    a.name = "projects/p/instances/i/clusters/c/backups/a";
    a.source_table = "projects/p/instances/i/tables/t";
    a.start_time = a.expire_time = &time;
    a.size_bytes = 7;
    b.name = "projects/p/instances/i/clusters/c/backups/b";
    b.state = BT_ADMIN__BACKUP__STATE__READY;
    char *line = strchr(text, '\n');
    if (line != NULL)
        *line = '\0';
    check_order(text, &a, &b);
    if (line != NULL)
        check_filter(line + 1, arena, &a);
    arena_destroy(arena);
    return 0;
}
