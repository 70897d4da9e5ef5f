/* See table_names.h. */
#include "replica/table_names.h"

#include "cluster/shared_table.h"
#include "replica/pull_message.h"
#include "replica/schema_snapshot.h"

static uint64_t look_up(struct cluster *cluster, uint64_t id, struct buffer *answer)
{
    struct table *table;
    uint64_t uid = 0;
    status s = cluster_table_of_id(cluster, id, &table);
    if (status_is_ok(s)) {
        uid = schema_has_table(table) ? table_uid(table) : 0;
        if (uid != 0)
            pull_message_table(answer, uid, table_name(table));
        table_release(table);
    }
    status_free(s);
    return uid;
}

uint64_t table_names_tell(struct table_names *names, struct cluster *cluster, uint64_t id,
                          struct buffer *answer)
{
    for (size_t i = 0; i < names->count; i++)
        if (names->of[i].id == id)
            return names->of[i].uid;
    size_t place = names->told++ % TABLE_NAMES_MOST;
    if (names->count < TABLE_NAMES_MOST)
        names->count++;
    names->of[place].id = id;
    names->of[place].uid = look_up(cluster, id, answer);
    return names->of[place].uid;
}
