/* Descents: see query_descent.h.
 *
 * One reader goes down, from value to value. The rows of a value come from it with their keys
 * falling: they are *held* until the first of another value comes (`ahead`), and then given from
 * the last to the first. If they are more than can be held, a second reader gives them from the
 * first on; behind them the one that goes down is sent below the value. So what is held is little,
 * and a row is read once, or, where values have many, some of them twice.
 *
 * Invariants
 *  1. Behind what is held, or what `upwards` still has, come the rows before `group`.
 *  2. With `ahead`, nothing has been asked of `down` since: it is still there. */
#include "datastore/query/query_descent.h"

#include "row/row_key.h"

/* For a reader and its bound. */
enum { UPWARDS_BYTES = 1 << 20 };

/* A row of the group: where in `rows` its path and types are, one behind the other. */
struct held {
    size_t at;
    size_t path_size;
    size_t types_size;
};

struct ds_descent {
    const struct ds_snapshot *snapshot;
    struct arena *arena;
    bytes prefix;
    bytes to;           /* mirrored */
    struct buffer last; /* where the rows end that are read */
    struct ds_rows_reader *down;
    struct ds_rows_reader *upwards; /* of the group; NULL: it is held */
    struct arena *upwards_arena;
    struct buffer group; /* the prefix and the value with which its rows begin */
    struct buffer rows;
    struct held held[DS_DESCENT_ROWS];
    size_t held_count;
    struct ds_row_found ahead; /* the first of the next group, if there is one */
    bool has_ahead;
    bool is_at_end;
    struct buffer key; /* what is given */
};

/* --- where a mirrored key lies among rows --- */

/* Rows below `group` come after the key, those at or above `behind` before it. In between, with a
 * path, are rows of one value, of which the paths tell; without, all come at or after it. */
struct place {
    struct buffer group;
    struct buffer behind;
    bytes path; /* a view of the key; empty: it divides no value's rows */
};

static void free_place(struct place *place)
{
    buffer_free(&place->group);
    buffer_free(&place->behind);
}

/* Rows whose mirrored values are not before some bytes have values that are before the inverted
 * bytes, or begin with them. A key that does not begin with the prefix is behind all. */
static status find_place(bytes prefix, bytes key, struct place *out)
{
    *out = (struct place){.path = {0}};
    buffer_append_bytes(&out->group, prefix);
    if (!bytes_start_with(key, prefix)) {
        buffer_append_bytes(&out->behind, prefix);
    } else {
        bytes rest = bytes_from(key, prefix.size);
        size_t size = ds_value_size(rest, DS_DESCENDING);
        bytes value = bytes_make(rest.data, size == 0 ? rest.size : size);
        out->path = bytes_from(rest, value.size);
        ds_bytes_append(&out->group, value, DS_DESCENDING);
        key_after_prefix(&out->behind, buffer_bytes(&out->group));
    }
    if (!out->group.failed && !out->behind.failed)
        return status_ok();
    free_place(out);
    return status_out_of_memory();
}

/* The end of the rows that come after the key, except those of which the paths tell. */
static bytes rows_after(const struct place *place)
{
    return buffer_bytes(place->path.size > 0 ? &place->group : &place->behind);
}

/* --- what is given --- */

static status mirror(struct ds_descent *descent, bytes path, bytes *out)
{
    struct buffer *key = &descent->key;
    buffer_clear(key);
    buffer_append_bytes(key, descent->prefix);
    ds_bytes_append(key, bytes_from(buffer_bytes(&descent->group), descent->prefix.size),
                    DS_DESCENDING);
    buffer_append_bytes(key, path);
    *out = buffer_bytes(key);
    return key->failed ? status_out_of_memory() : status_ok();
}

static bytes held_path(const struct ds_descent *descent, const struct held *held)
{
    return bytes_make(descent->rows.data + held->at, held->path_size);
}

static bytes held_types(const struct ds_descent *descent, const struct held *held)
{
    return bytes_make(descent->rows.data + held->at + held->path_size, held->types_size);
}

static status give(struct ds_descent *descent, bytes path, bytes types, struct ds_row_found *row,
                   bool *found)
{
    row->value = types;
    TRY(mirror(descent, path, &row->key));
    *found = bytes_compare(row->key, descent->to) < 0;
    descent->is_at_end = !*found;
    return status_ok();
}

/* --- groups --- */

static bool is_of_group(const struct ds_descent *descent, bytes row_key)
{
    return bytes_start_with(row_key, buffer_bytes(&descent->group));
}

static status begin_group(struct ds_descent *descent, bytes row_key)
{
    size_t prefix = descent->prefix.size;
    if (!bytes_start_with(row_key, descent->prefix))
        return ds_damaged("a row outside of its range");
    size_t value = ds_value_size(bytes_from(row_key, prefix), DS_ASCENDING);
    if (value == 0)
        return ds_damaged("a row without its values");
    buffer_clear(&descent->rows);
    buffer_clear(&descent->group);
    buffer_append(&descent->group, row_key.data, prefix + value);
    return descent->group.failed ? status_out_of_memory() : status_ok();
}

static status hold(struct ds_descent *descent, const struct ds_row_found *row)
{
    bytes path = bytes_from(row->key, descent->group.size);
    descent->held[descent->held_count++] =
        (struct held){descent->rows.size, path.size, row->value.size};
    buffer_append_bytes(&descent->rows, path);
    buffer_append_bytes(&descent->rows, row->value);
    return descent->rows.failed ? status_out_of_memory() : status_ok();
}

/* The group's rows from a key on. */
static status go_upwards(struct ds_descent *descent, bytes from)
{
    struct buffer behind = {0};
    descent->held_count = 0;
    if (descent->upwards_arena == NULL)
        descent->upwards_arena = arena_create(UPWARDS_BYTES);
    else
        arena_reset(descent->upwards_arena);
    key_after_prefix(&behind, buffer_bytes(&descent->group));
    status s = behind.failed || descent->upwards_arena == NULL
                   ? status_out_of_memory()
                   : ds_rows_open(descent->snapshot, DS_FORWARDS, from, buffer_bytes(&behind),
                                  descent->upwards_arena, &descent->upwards);
    buffer_free(&behind);
    return s;
}

/* To the rows before the key. */
static status go_down(struct ds_descent *descent, bytes to)
{
    bytes last = buffer_bytes(&descent->last);
    descent->has_ahead = false;
    descent->is_at_end = bytes_compare(to, last) <= 0;
    if (descent->is_at_end)
        return status_ok();
    if (descent->down != NULL)
        return ds_rows_seek(descent->down, to);
    return ds_rows_open(descent->snapshot, DS_BACKWARDS, last, to, descent->arena, &descent->down);
}

static void close_upwards(struct ds_descent *descent)
{
    ds_rows_close(descent->upwards);
    descent->upwards = NULL;
}

static status next_down(struct ds_descent *descent, struct ds_row_found *row, bool *found)
{
    *found = true;
    if (!descent->has_ahead)
        return ds_rows_next(descent->down, row, found);
    *row = descent->ahead;
    descent->has_ahead = false;
    return status_ok();
}

/* Holds the next group, or opens `upwards` for it. */
static status take_group(struct ds_descent *descent)
{
    struct ds_row_found row;
    bool found;
    TRY(next_down(descent, &row, &found));
    descent->is_at_end = !found;
    if (found)
        TRY(begin_group(descent, row.key));
    while (found) {
        TRY(hold(descent, &row));
        TRY(ds_rows_next(descent->down, &row, &found));
        if (found && !is_of_group(descent, row.key)) {
            descent->ahead = row;
            descent->has_ahead = true;
            found = false;
        } else if (found && descent->held_count == DS_DESCENT_ROWS) {
            return go_upwards(descent, buffer_bytes(&descent->group));
        }
    }
    return status_ok();
}

static status next_upwards(struct ds_descent *descent, struct ds_row_found *row, bool *found)
{
    TRY(ds_rows_next(descent->upwards, row, found));
    if (*found)
        return give(descent, bytes_from(row->key, descent->group.size), row->value, row, found);
    close_upwards(descent);
    return go_down(descent, buffer_bytes(&descent->group));
}

status ds_descent_next(struct ds_descent *descent, struct ds_row_found *row, bool *found)
{
    *found = false;
    while (!*found && !descent->is_at_end) {
        if (descent->upwards != NULL) {
            TRY(next_upwards(descent, row, found));
        } else if (descent->held_count > 0) {
            const struct held *held = &descent->held[--descent->held_count];
            TRY(give(descent, held_path(descent, held), held_types(descent, held), row, found));
        } else {
            TRY(take_group(descent));
        }
    }
    return status_ok();
}

/* --- seeking --- */

static status go_to(struct ds_descent *descent, const struct place *place)
{
    struct buffer from = {0};
    close_upwards(descent);
    descent->held_count = 0;
    if (place->path.size == 0)
        return go_down(descent, rows_after(place));
    descent->has_ahead = false;
    buffer_clear(&descent->group);
    buffer_append_bytes(&descent->group, buffer_bytes(&place->group));
    buffer_append_bytes(&from, buffer_bytes(&place->group));
    buffer_append_bytes(&from, place->path);
    status s = descent->group.failed || from.failed ? status_out_of_memory()
                                                    : go_upwards(descent, buffer_bytes(&from));
    buffer_free(&from);
    return s;
}

/* The group is that of the key, of which the paths tell: what comes before it is passed. */
static status seek_in_group(struct ds_descent *descent, bytes path)
{
    struct buffer *key = &descent->key;
    size_t *count = &descent->held_count;
    while (*count > 0 && bytes_compare(held_path(descent, &descent->held[*count - 1]), path) < 0)
        --*count;
    if (descent->upwards == NULL)
        return status_ok();
    buffer_clear(key);
    buffer_append_bytes(key, buffer_bytes(&descent->group));
    buffer_append_bytes(key, path);
    return key->failed ? status_out_of_memory() : ds_rows_seek(descent->upwards, buffer_bytes(key));
}

/* The key comes behind the group. */
static status leave_group(struct ds_descent *descent, const struct place *place)
{
    bool is_ahead = descent->has_ahead && bytes_compare(descent->ahead.key, rows_after(place)) < 0;
    close_upwards(descent);
    descent->held_count = 0;
    return is_ahead ? status_ok() : go_to(descent, place);
}

status ds_descent_seek(struct ds_descent *descent, bytes key)
{
    struct place place;
    if (descent->is_at_end)
        return status_ok();
    TRY(find_place(descent->prefix, key, &place));
    bool is_in_group = place.path.size > 0 &&
                       bytes_equal(buffer_bytes(&place.group), buffer_bytes(&descent->group));
    status s = is_in_group ? seek_in_group(descent, place.path) : leave_group(descent, &place);
    free_place(&place);
    return s;
}

/* --- opening and closing --- */

/* The end of what is read: below it, or in its group, lies nothing that is to be given. */
static status set_last(struct ds_descent *descent)
{
    struct place place;
    TRY(find_place(descent->prefix, descent->to, &place));
    buffer_append_bytes(&descent->last, rows_after(&place));
    free_place(&place);
    return descent->last.failed ? status_out_of_memory() : status_ok();
}

static status begin(struct ds_descent *descent, bytes from)
{
    struct place place;
    TRY(set_last(descent));
    TRY(find_place(descent->prefix, from, &place));
    status s = go_to(descent, &place);
    free_place(&place);
    return s;
}

status ds_descent_open(const struct ds_snapshot *snapshot, bytes prefix, bytes from, bytes to,
                       struct arena *arena, struct ds_descent **out)
{
    struct ds_descent *descent = *out = arena_zalloc(arena, sizeof *descent);
    if (descent == NULL)
        return status_out_of_memory();
    descent->snapshot = snapshot;
    descent->arena = arena;
    descent->prefix = prefix;
    descent->to = to;
    status s = begin(descent, from);
    if (!status_is_ok(s)) {
        ds_descent_close(descent);
        *out = NULL;
    }
    return s;
}

void ds_descent_close(struct ds_descent *descent)
{
    if (descent == NULL)
        return;
    ds_rows_close(descent->down);
    ds_rows_close(descent->upwards);
    arena_destroy(descent->upwards_arena);
    buffer_free(&descent->last);
    buffer_free(&descent->group);
    buffer_free(&descent->rows);
    buffer_free(&descent->key);
}

/* --- what was looked at --- */

static status note(struct ds_reading *reading, bytes from, bytes to)
{
    return bytes_compare(from, to) < 0 ? ds_reading_note_range(reading, from, to) : status_ok();
}

/* Notes those rows of a place's own value that have its path or a later one, or the others. */
static status note_group(struct ds_reading *reading, const struct place *place, bool is_later)
{
    struct buffer middle = {0};
    if (place->path.size == 0)
        return status_ok();
    buffer_append_bytes(&middle, buffer_bytes(&place->group));
    buffer_append_bytes(&middle, place->path);
    status s = middle.failed ? status_out_of_memory()
               : is_later    ? note(reading, buffer_bytes(&middle), buffer_bytes(&place->behind))
                             : note(reading, buffer_bytes(&place->group), buffer_bytes(&middle));
    buffer_free(&middle);
    return s;
}

/* Both have a path, of the same value. */
static status note_paths(struct ds_reading *reading, const struct place *first,
                         const struct place *end)
{
    struct buffer from = {0}, to = {0};
    buffer_append_bytes(&from, buffer_bytes(&first->group));
    buffer_append_bytes(&from, first->path);
    buffer_append_bytes(&to, buffer_bytes(&end->group));
    buffer_append_bytes(&to, end->path);
    status s = from.failed || to.failed ? status_out_of_memory()
                                        : note(reading, buffer_bytes(&from), buffer_bytes(&to));
    buffer_free(&from);
    buffer_free(&to);
    return s;
}

static status note_all(struct ds_reading *reading, const struct place *first,
                       const struct place *end)
{
    if (first->path.size > 0 && end->path.size > 0 &&
        bytes_equal(buffer_bytes(&first->group), buffer_bytes(&end->group)))
        return note_paths(reading, first, end);
    TRY(note_group(reading, first, true));
    TRY(note(reading, buffer_bytes(&end->behind), rows_after(first)));
    return note_group(reading, end, false);
}

status ds_descent_note(struct ds_reading *reading, bytes prefix, bytes from, bytes to)
{
    struct place first, end;
    TRY(find_place(prefix, from, &first));
    status s = find_place(prefix, to, &end);
    if (status_is_ok(s)) {
        s = note_all(reading, &first, &end);
        free_place(&end);
    }
    free_place(&first);
    return s;
}
