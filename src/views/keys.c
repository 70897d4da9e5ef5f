/* See keys.h. */
#include "views/keys.h"

bytes view_state_key(void)
{
    static const uint8_t key = VIEW_RECORD_STATE;
    return bytes_make(&key, 1);
}

static bytes prefixed(struct arena *arena, uint8_t first, bytes rest)
{
    uint8_t *made = arena_alloc(arena, rest.size + 1);
    if (made == NULL)
        return bytes_make(NULL, 0);
    made[0] = first;
    if (rest.size > 0)
        memcpy(made + 1, rest.data, rest.size);
    return bytes_make(made, rest.size + 1);
}

bytes view_record_key(struct arena *arena, char kind, bytes rest)
{
    return prefixed(arena, (uint8_t)kind, rest);
}

bytes view_record_value(struct arena *arena, enum view_record_tag tag, bytes rest)
{
    return prefixed(arena, (uint8_t)tag, rest);
}

bytes view_entry_prefix(struct arena *arena, bytes id)
{
    enum { HEAD = 3 };
    uint8_t *made = arena_alloc(arena, id.size + HEAD);
    if (made == NULL)
        return bytes_make(NULL, 0);
    made[0] = VIEW_RECORD_ENTRY;
    made[1] = (uint8_t)(id.size >> 8);
    made[2] = (uint8_t)id.size;
    if (id.size > 0)
        memcpy(made + HEAD, id.data, id.size);
    return bytes_make(made, id.size + HEAD);
}

status view_record_read(bytes value, enum view_record_tag *tag, bytes *rest)
{
    if (value.size == 0 || value.data[0] > VIEW_RECORD_LEFT_OUT)
        return status_make(STATUS_DATA_LOSS, "A record of the view is none.");
    *tag = (enum view_record_tag)value.data[0];
    *rest = bytes_from(value, 1);
    return status_ok();
}

bytes view_prefix_end(struct arena *arena, bytes prefix)
{
    uint8_t *made = arena_alloc(arena, prefix.size);
    size_t size = prefix.size;
    if (made == NULL)
        return bytes_make(NULL, 0);
    memcpy(made, prefix.data, size);
    while (size > 0 && made[size - 1] == 0xff)
        size--;
    if (size > 0)
        made[size - 1]++;
    return bytes_make(made, size);
}
