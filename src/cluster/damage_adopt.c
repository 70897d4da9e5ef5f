/* See damage.h: a table that is made of rows from elsewhere, some of which could not be had there,
 * comes with the ranges of these, out of service. */
#include "cluster/damage_private.h"

#include "base/check.h"

static status adopt(struct damages *damages, struct keyspace *keyspace,
                    const struct damage_record *record)
{
    DCHECK(check_is_held(&damages->lock) && record->keyspace_id == keyspace_id(keyspace));
    bool is_new;
    struct damage *damage = damages_add(damages, record, &is_new);
    if (damage == NULL)
        return status_out_of_memory();
    damage->is_stored = true;
    return damage_close_as(damage, keyspace, record->what);
}

status damages_adopt(struct damages *damages, struct keyspace *keyspace,
                     const struct damage_record *records, size_t count, struct store_batch *batch)
{
    status s = status_ok();
    pthread_mutex_lock(&damages->lock);
    for (size_t i = 0; i < count && status_is_ok(s); i++) {
        s = adopt(damages, keyspace, &records[i]);
        if (status_is_ok(s))
            s = catalog_put_damage(batch, damages->shard->system, &records[i]);
    }
    pthread_mutex_unlock(&damages->lock);
    return s;
}

void damages_tell_adopted(struct damages *damages, struct keyspace *keyspace)
{
    pthread_mutex_lock(&damages->lock);
    for (const struct damage *at = damages->first; at != NULL; at = at->next)
        if (at->record.keyspace_id == keyspace_id(keyspace))
            damage_close(damages, at, keyspace);
    damages_show(damages);
    pthread_mutex_unlock(&damages->lock);
}
