/* Unions by buckets: see union_buckets.h. */
#include "sql/view/union_buckets.h"

enum { ROW = 'r', BUCKET = 'b', BUCKET_ENTRY_BYTES = 4 };

/* --- unions --- */

bool view_sketch_parse(bytes written, struct hll_state *out)
{
    status parsed = hll_state_parse(written, out);
    bool is_valid = status_is_ok(parsed);
    status_free(parsed);
    return is_valid;
}

status view_union_add(struct view_union *all, bytes sketch)
{
    struct hll_state state;
    if (!view_sketch_parse(sketch, &state))
        return view_bad_record();
    all->is_mixed = all->is_mixed || !hll_types_match(all->sketch.value_type, state.value_type);
    if (all->is_mixed)
        return status_ok();
    return hll_sketch_merge(&all->sketch, &state) ? status_ok() : status_out_of_memory();
}

/* --- entries --- */

static unsigned bucket_of(bytes source_key)
{
    return bytes_hash(source_key) % VIEW_UNION_BUCKETS;
}

void view_union_touch(struct view_union_touched *touched, bytes source_key)
{
    unsigned bucket = bucket_of(source_key);
    touched->bits[bucket / 8] |= (uint8_t)(1U << bucket % 8);
}

static bool is_touched(const struct view_union_touched *touched, unsigned bucket)
{
    return (touched->bits[bucket / 8] >> bucket % 8 & 1) != 0;
}

static bytes bucket_prefix(const struct view_aggregate *aggregate, uint8_t kind, unsigned bucket,
                           uint8_t room[BUCKET_ENTRY_BYTES])
{
    room[0] = aggregate->index;
    room[1] = kind;
    room[2] = (uint8_t)(bucket >> 8);
    room[3] = (uint8_t)bucket;
    return bytes_make(room, BUCKET_ENTRY_BYTES);
}

void view_union_row_entry(const struct view_aggregate *aggregate, bytes source_key,
                          struct buffer *out)
{
    uint8_t room[BUCKET_ENTRY_BYTES];
    buffer_append_bytes(out, bucket_prefix(aggregate, ROW, bucket_of(source_key), room));
    buffer_append_bytes(out, source_key);
}

static status find_bucket(const struct view_aggregate *aggregate, unsigned bucket,
                          const struct view_entries *entries, bytes *value, bool *found)
{
    uint8_t room[BUCKET_ENTRY_BYTES];
    bytes entry, prefix = bucket_prefix(aggregate, BUCKET, bucket, room);
    return entries->find(entries->context, prefix, prefix, false, &entry, value, found);
}

/* --- buckets --- */

static status add_bucket(struct view_union *all, bytes value)
{
    if (value.size == 0 || value.data[0] > 1)
        return view_bad_record();
    all->is_mixed = all->is_mixed || value.data[0] == 1;
    return all->is_mixed ? status_ok() : view_union_add(all, bytes_from(value, 1));
}

static status put_bucket(const struct view_aggregate *aggregate, unsigned bucket,
                         struct view_union *all, const struct view_entries *entries)
{
    uint8_t room[BUCKET_ENTRY_BYTES];
    struct buffer value = {0};
    bytes entry = bucket_prefix(aggregate, BUCKET, bucket, room);
    buffer_append_byte(&value, all->is_mixed);
    bool is_written = all->is_mixed || hll_sketch_write(&all->sketch, &value);
    status result = !is_written || value.failed
                        ? status_out_of_memory()
                        : entries->put(entries->context, entry, buffer_bytes(&value));
    buffer_free(&value);
    return result;
}

static status extend_bucket(const struct view_aggregate *aggregate, unsigned bucket, bytes value,
                            bytes sketch, const struct view_entries *entries)
{
    struct view_union all = {0};
    status result = add_bucket(&all, value);
    if (status_is_ok(result))
        result = view_union_add(&all, sketch);
    if (status_is_ok(result))
        result = put_bucket(aggregate, bucket, &all, entries);
    hll_sketch_free(&all.sketch);
    return result;
}

status view_union_add_to_bucket(const struct view_aggregate *aggregate,
                                const struct view_union_row *row,
                                const struct view_entries *entries)
{
    unsigned bucket = bucket_of(row->source_key);
    bytes value;
    bool found;
    TRY(find_bucket(aggregate, bucket, entries, &value, &found));
    return found ? extend_bucket(aggregate, bucket, value, row->sketch, entries) : status_ok();
}

/* --- making them anew --- */

/* All entries that begin so. */
static status add_entries(bytes prefix, const struct view_entries *entries, struct view_union *out)
{
    struct buffer from = {0};
    bytes entry, value;
    bool found = true;
    status result = status_ok();
    buffer_append_bytes(&from, prefix);
    while (found && status_is_ok(result)) {
        result = from.failed ? status_out_of_memory()
                             : entries->find(entries->context, prefix, buffer_bytes(&from), false,
                                             &entry, &value, &found);
        if (!status_is_ok(result) || !found)
            break;
        result = view_union_add(out, value);
        buffer_clear(&from);
        buffer_append_bytes(&from, entry);
        buffer_append_byte(&from, 0);
    }
    buffer_free(&from);
    return result;
}

status view_union_of_rows(const struct view_aggregate *aggregate,
                          const struct view_entries *entries, struct view_union *out)
{
    const uint8_t prefix[] = {aggregate->index, ROW};
    return add_entries(bytes_make(prefix, sizeof prefix), entries, out);
}

static bool is_of_nothing(const struct view_union *all)
{
    return !all->is_mixed && all->sketch.precision == 0;
}

/* Of its rows; `*all` is then the bucket's. */
static status remake_bucket(const struct view_aggregate *aggregate, unsigned bucket, bool has_entry,
                            const struct view_entries *entries, struct view_union *all)
{
    uint8_t room[BUCKET_ENTRY_BYTES];
    TRY(add_entries(bucket_prefix(aggregate, ROW, bucket, room), entries, all));
    if (!is_of_nothing(all))
        return put_bucket(aggregate, bucket, all, entries);
    return has_entry
               ? entries->remove(entries->context, bucket_prefix(aggregate, BUCKET, bucket, room))
               : status_ok();
}

static status merge_union(struct view_union *all, struct view_union *part)
{
    struct buffer written = {0};
    if (is_of_nothing(part))
        return status_ok();
    all->is_mixed = all->is_mixed || part->is_mixed;
    if (all->is_mixed)
        return status_ok();
    status result = hll_sketch_write(&part->sketch, &written)
                        ? view_union_add(all, buffer_bytes(&written))
                        : status_out_of_memory();
    buffer_free(&written);
    return result;
}

static status add_remade(const struct view_aggregate *aggregate, unsigned bucket, bool has_entry,
                         const struct view_entries *entries, struct view_union *out)
{
    struct view_union part = {0};
    status result = remake_bucket(aggregate, bucket, has_entry, entries, &part);
    if (status_is_ok(result))
        result = merge_union(out, &part);
    hll_sketch_free(&part.sketch);
    return result;
}

status view_union_of_buckets(const struct view_aggregate *aggregate,
                             const struct view_union_touched *touched,
                             const struct view_entries *entries, struct view_union *out)
{
    for (unsigned bucket = 0; bucket < VIEW_UNION_BUCKETS; bucket++) {
        bytes value;
        bool found;
        TRY(find_bucket(aggregate, bucket, entries, &value, &found));
        if (found && !is_touched(touched, bucket))
            TRY(add_bucket(out, value));
        else
            TRY(add_remade(aggregate, bucket, found, entries, out));
    }
    return status_ok();
}
