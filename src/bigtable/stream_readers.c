/* Who reads change streams: coming and going. See stream_readers.h. */
#include "bigtable/stream_readers.h"

#include "base/check.h"
#include "base/limits.h"

status stream_readers_enter(struct stream_readers *readers, struct stream_reader *reader)
{
    pthread_mutex_lock(&readers->lock);
    bool has_room = readers->count < LIMIT_CHANGE_STREAMS;
    if (has_room) {
        list_append(&readers->readers, &reader->link);
        readers->count++;
    }
    pthread_mutex_unlock(&readers->lock);
    if (has_room)
        return status_ok();
    return status_make(STATUS_RESOURCE_EXHAUSTED, "More than %d change streams are read at a time",
                       LIMIT_CHANGE_STREAMS);
}

bool stream_readers_may_keep(struct stream_readers *readers)
{
    enum { PIECES_MOST = 16 };
    if (atomic_fetch_add(&readers->pieces, 1) < PIECES_MOST)
        return true;
    atomic_fetch_sub(&readers->pieces, 1);
    return false;
}

void stream_readers_give_back(struct stream_readers *readers)
{
    int before = atomic_fetch_sub(&readers->pieces, 1);
    DCHECK(before > 0);
}

void stream_readers_leave(struct stream_readers *readers, struct stream_reader *reader)
{
    pthread_mutex_lock(&readers->lock);
    struct link **place = &readers->readers.first;
    while (*place != &reader->link)
        place = &(*place)->next;
    list_take_at(&readers->readers, place);
    readers->count--;
    pthread_mutex_unlock(&readers->lock);
}
